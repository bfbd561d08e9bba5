"""Integer ops against Python's integers, at every width and at the edges of each."""

from collections.abc import Callable

import pytest
from graph_oracles import apply
from hypothesis import given, settings
from hypothesis import strategies as st

from translators.graph.errors import GraphError
from translators.graph.types import I1, I8, I16, I32, I64, IntType, TensorType

WIDTHS = (1, 4, 7, 8, 16, 32, 64)


def signed(value: int, width: int) -> int:
    """The low bits read in two's complement."""
    low = value % (1 << width)
    return low - (1 << width) if low >> (width - 1) else low


def unsigned(value: int, width: int) -> int:
    return value % (1 << width)


def cut(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def bits(a: int, b: int, width: int, what: Callable[[int, int], int]) -> int:
    return what(unsigned(a, width), unsigned(b, width))


# Each takes two values read as signed and the width, and gives any number of that residue.
MEANINGS: dict[str, Callable[[int, int, int], int]] = {
    "arith.addi": lambda a, b, w: a + b,
    "arith.subi": lambda a, b, w: a - b,
    "arith.muli": lambda a, b, w: a * b,
    "arith.andi": lambda a, b, w: a & b,
    "arith.ori": lambda a, b, w: a | b,
    "arith.xori": lambda a, b, w: a ^ b,
    "arith.divsi": lambda a, b, w: cut(a, b) if b else -1,
    "arith.remsi": lambda a, b, w: a - b * cut(a, b) if b else a,
    "arith.divui": lambda a, b, w: bits(a, b, w, lambda x, y: x // y if y else -1),
    "arith.remui": lambda a, b, w: bits(a, b, w, lambda x, y: x % y if y else x),
    "arith.floordivsi": lambda a, b, w: a // b if b else -1,
    "arith.ceildivsi": lambda a, b, w: -(-a // b) if b else -1,
    "arith.ceildivui": lambda a, b, w: bits(a, b, w, lambda x, y: -(-x // y) if y else -1),
    "arith.maxsi": lambda a, b, w: max(a, b),
    "arith.minsi": lambda a, b, w: min(a, b),
    "arith.maxui": lambda a, b, w: bits(a, b, w, max),
    "arith.minui": lambda a, b, w: bits(a, b, w, min),
    "arith.shli": lambda a, b, w: bits(a, b, w, lambda x, y: x << y if y < w else 0),
    "arith.shrui": lambda a, b, w: bits(a, b, w, lambda x, y: x >> y),
    "arith.shrsi": lambda a, b, w: a >> unsigned(b, w),
    "tt.mulhiui": lambda a, b, w: bits(a, b, w, lambda x, y: (x * y) >> w),
    "math.ipowi": lambda a, b, w: power(a, b),
}


def power(base: int, exponent: int) -> int:
    if exponent >= 0:
        # Only the low 64 bits can matter.
        return pow(base, exponent, 1 << 64)
    return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)


def value_of(value: int, width: int) -> int:
    """A value of the type, as the graph writes it: the set bit of `i1` is 1."""
    return IntType(width).wrap(value)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[int, list[int], list[int]]:
    """A width and two lists of signed values of that width, many of them at an edge."""
    width = draw(st.sampled_from(WIDTHS))
    least, most = -(1 << (width - 1)), (1 << (width - 1)) - 1
    edges = [each for each in (least, least + 1, -1, 0, 1, 3, most) if least <= each <= most]
    values = st.one_of(st.sampled_from(edges), st.integers(least, most))
    count = draw(st.integers(1, 6))
    lists = st.lists(values, min_size=count, max_size=count)
    return width, draw(lists), draw(lists)


@pytest.mark.parametrize("name", MEANINGS)
@settings(max_examples=60)
@given(given_pairs=pairs())
def test_meaning_is_that_of_integers_cut_to_the_width(
    name: str, given_pairs: tuple[int, list[int], list[int]]
) -> None:
    width, left, right = given_pairs
    type_ = TensorType((len(left),), IntType(width))
    operands = [[value_of(each, width) for each in side] for side in (left, right)]
    (found,) = apply(name, [(type_, operands[0]), (type_, operands[1])])
    wanted = [
        value_of(MEANINGS[name](a, b, width), width) for a, b in zip(left, right, strict=True)
    ]
    assert [int(each) for each in found] == wanted


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "remainder"),
    [
        (-7, 3, -2, -1),
        (7, -3, -2, 1),
        (-7, -3, 2, -1),
        (7, 3, 2, 1),
        (-(1 << 31), -1, -(1 << 31), 0),
    ],
)
def test_signed_division_cuts_toward_zero(
    dividend: int, divisor: int, quotient: int, remainder: int
) -> None:
    operands = [(I32, dividend), (I32, divisor)]
    assert int(apply("arith.divsi", operands)[0]) == quotient
    assert int(apply("arith.remsi", operands)[0]) == remainder


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize(
    "predicate", ["eq", "ne", *(s + p for s in "su" for p in ("lt", "le", "gt", "ge"))]
)
@given(given_pairs=pairs())
def test_comparison_reads_its_operands_as_the_predicate_says(
    predicate: str, given_pairs: tuple[int, list[int], list[int]]
) -> None:
    width, left, right = given_pairs
    type_ = TensorType((len(left),), IntType(width))
    operands = [(type_, [value_of(each, width) for each in side]) for side in (left, right)]
    (found,) = apply("arith.cmpi", operands, predicate=predicate)
    read = unsigned if predicate[0] == "u" else signed
    wanted = [
        COMPARISONS[predicate[-2:]](read(a, width), read(b, width))
        for a, b in zip(left, right, strict=True)
    ]
    assert found.tolist() == wanted


@given(given_pairs=pairs())
def test_extended_ops_lose_nothing(given_pairs: tuple[int, list[int], list[int]]) -> None:
    """Both results together are the exact sum, difference or product."""
    width, left, right = given_pairs
    type_ = TensorType((len(left),), IntType(width))
    operands = [(type_, [value_of(each, width) for each in side]) for side in (left, right)]
    modulus = 1 << width
    results = {
        name: apply(f"arith.{name}_extended", operands)
        for name in ("addui", "subui", "mului", "mulsi")
    }
    for index, (a, b) in enumerate(zip(left, right, strict=True)):
        low = {name: unsigned(int(pair[0][index]), width) for name, pair in results.items()}
        high = {name: int(pair[1][index]) for name, pair in results.items()}
        x, y = unsigned(a, width), unsigned(b, width)
        assert low["addui"] + modulus * high["addui"] == x + y
        assert low["subui"] - modulus * high["subui"] == x - y
        assert low["mului"] + modulus * unsigned(high["mului"], width) == x * y
        assert low["mulsi"] + modulus * signed(high["mulsi"], width) == a * b


@given(given_pairs=pairs())
def test_counts_of_bits_are_those_of_the_binary_digits(
    given_pairs: tuple[int, list[int], list[int]],
) -> None:
    width, values, _ = given_pairs
    type_ = TensorType((len(values),), IntType(width))
    operand = [(type_, [value_of(each, width) for each in values])]
    digits = [format(unsigned(each, width), f"0{width}b") for each in values]
    for name, count in (
        ("math.ctlz", lambda text: len(text) - len(text.lstrip("0"))),
        ("math.cttz", lambda text: len(text) - len(text.rstrip("0"))),
        ("math.ctpop", lambda text: text.count("1")),
    ):
        wanted = [value_of(count(text), width) for text in digits]
        assert [int(each) for each in apply(name, operand)[0]] == wanted, name


@given(st.integers(-128, 127), st.sampled_from([I16, I32, I64]))
def test_widening_and_narrowing_keep_the_low_bits(value: int, wide: IntType) -> None:
    (extended,) = apply("arith.extsi", [(I8, value)], results=[wide])
    assert int(extended) == value
    (filled,) = apply("arith.extui", [(I8, value)], results=[wide])
    assert int(filled) == value % 256
    for each in (extended, filled):
        assert int(apply("arith.trunci", [(wide, each)], results=[I8])[0]) == value


def test_the_set_bit_is_minus_one_where_it_is_read_as_signed() -> None:
    assert int(apply("arith.extsi", [(I1, 1)], results=[I32])[0]) == -1
    assert int(apply("arith.extui", [(I1, 1)], results=[I32])[0]) == 1


def test_absolute_value_wraps_at_the_least_value() -> None:
    assert int(apply("math.absi", [(I8, -128)])[0]) == -128
    assert int(apply("math.absi", [(I8, -127)])[0]) == 127


def test_philox_gives_the_published_numbers() -> None:
    """Philox 4x32-10 by integer ops alone; answers of Random123's `kat_vectors`."""

    def one(name: str, a: int, b: int) -> int:
        return int(apply(name, [(I32, a), (I32, b)])[0])

    def philox(counter: list[int], key: list[int]) -> list[int]:
        c0, c1, c2, c3 = (I32.wrap(each) for each in counter)
        k0, k1 = (I32.wrap(each) for each in key)
        for _ in range(10):
            high0, low0 = (one(op, I32.wrap(0xD2511F53), c0) for op in ("tt.mulhiui", "arith.muli"))
            high1, low1 = (one(op, I32.wrap(0xCD9E8D57), c2) for op in ("tt.mulhiui", "arith.muli"))
            c0, c1, c2, c3 = (
                one("arith.xori", one("arith.xori", high1, c1), k0),
                low1,
                one("arith.xori", one("arith.xori", high0, c3), k1),
                low0,
            )
            k0 = one("arith.addi", k0, I32.wrap(0x9E3779B9))
            k1 = one("arith.addi", k1, I32.wrap(0xBB67AE85))
        return [each % (1 << 32) for each in (c0, c1, c2, c3)]

    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    full = (1 << 32) - 1
    assert philox([full] * 4, [full] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize(
    ("name", "source", "target", "message"),
    [
        ("arith.extsi", I32, I8, "gives a wider type"),
        ("arith.trunci", I8, I32, "gives a narrower type"),
        ("arith.extui", I8, I8, "gives a wider type"),
    ],
)
def test_a_conversion_the_wrong_way_is_an_error(
    name: str, source: IntType, target: IntType, message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        apply(name, [(source, 0)], results=[target])
