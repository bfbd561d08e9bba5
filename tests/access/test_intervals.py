"""Between what integers lie is known also where no expression is."""

from collections.abc import Callable

import numpy as np
import pytest
from address_oracle import assert_agrees
from kernel_builder import F32_POINTER, I32_POINTER, Kernel, array, launch

from reading import interval
from translators.access.analysis import Analysis
from translators.access.delinearize import Position
from translators.access.expression import Interval
from translators.access.states import Integer
from translators.graph.graph import Value
from translators.graph.types import I8, I16, I32, I64, IntType, PointerType, with_element

DATA = np.array([-7, 3, 100, -(2**31), 2**31 - 1, 0, 12, -1], np.int32)


def agrees(k: Kernel) -> Analysis:
    module = k.done()
    return assert_agrees(module, launch(module, 3, data=array("data", 8)), {0: DATA})


def loaded_kernel() -> tuple[Kernel, Value, Value]:
    """A kernel, a vector of any integers that it loads, and one of integers from 0 to 15."""
    k = Kernel(data=I32_POINTER)
    loaded = k.load(k.point(k["data"], k.arange(8)))
    return k, loaded, k.binary("arith.andi", loaded, 15)


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("arith.muli", "small", (0, 225)),
        ("arith.muli", -3, (-45, 0)),
        ("arith.divsi", "not zero", (-15, 15)),
        ("arith.remsi", "not zero", (0, 15)),
        ("arith.shrsi", 2, (0, 3)),
        ("arith.andi", 6, (0, 6)),
        ("arith.ori", "small", (0, 15)),
        ("arith.xori", "small", (0, 15)),
        ("arith.minsi", 4, (0, 4)),
        ("arith.maxsi", 4, (4, 15)),
    ],
)
def test_arithmetic_on_what_is_bounded_is_bounded(
    name: str, other: str | int, expected: tuple[int, int]
) -> None:
    k, loaded, small = loaded_kernel()
    right = {"small": small, "not zero": k.binary("arith.ori", loaded, 1)}.get(other, other)
    made = k.binary(name, small, right)
    assert interval(agrees(k), made) == Interval(*expected)


@pytest.mark.parametrize("divisor", [3, 8])
def test_truncating_division_of_what_may_be_negative_is_bounded(divisor: int) -> None:
    k, loaded, _ = loaded_kernel()
    quotient, rest = k.div(loaded, divisor), k.rem(loaded, divisor)
    analysis = agrees(k)
    most = 2**31 // divisor
    assert interval(analysis, quotient) == Interval(-most, (2**31 - 1) // divisor)
    assert interval(analysis, rest) == Interval(1 - divisor, divisor - 1)


def test_unsigned_readings_of_what_may_be_negative_are_bounded() -> None:
    k, loaded, _ = loaded_kernel()
    wide = k.builder.value("arith.extui", loaded, results=(with_element(loaded.type, I64),))
    high = k.binary("arith.shrui", loaded, 28)
    far = k.builder.value("math.absi", k.binary("arith.shrsi", loaded, 20))
    analysis = agrees(k)
    assert interval(analysis, wide) == Interval(0, 2**32 - 1)
    assert interval(analysis, high) == Interval(0, 15)
    assert interval(analysis, far) == Interval(0, 2048)


@pytest.mark.parametrize("type_", [I8, I16, I64])
def test_what_is_loaded_is_bounded_by_its_type(type_: IntType) -> None:
    k = Kernel(data=PointerType(type_))
    loaded = k.load(k.point(k["data"], k.arange(8)))
    module = k.done()
    data = np.arange(8).astype(f"int{type_.width}")
    analysis = assert_agrees(module, launch(module, 1, data=array("data", 8)), {0: data})
    assert interval(analysis, loaded) == Interval(type_.smallest, type_.largest)


def test_wide_index_arithmetic_of_program_ids_has_its_exact_interval() -> None:
    """`pid.to(tl.int64) * stride + lanes`, as kernels write it against overflow."""
    k = Kernel(x=F32_POINTER)
    row = k.mul(k.widen(k.pid(), I64), 1 << 20)
    offsets = k.add(row, k.widen(k.arange(16), I64))
    k.load(k.point(k["x"], offsets))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 5, x=array("x", 5 << 20)))
    assert interval(analysis, offsets) == Interval(0, (4 << 20) + 15)


def combined(name: str) -> Callable[[Kernel], Callable[..., list[Value]]]:
    return lambda k: lambda pair: [k.builder.value(name, *pair)]


@pytest.mark.parametrize("kind", ["tt.reduce", "tt.scan"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("arith.maxsi", (2, 17)),
        ("arith.minsi", (2, 17)),
        ("arith.addi", (16, 136)),
        ("arith.muli", (I32.smallest, I32.largest)),
    ],
)
def test_folds_of_bounded_elements_are_bounded(
    kind: str, name: str, expected: tuple[int, int]
) -> None:
    k, _, small = loaded_kernel()
    (made,) = k.fold(kind, [k.add(small, 2)], 0, combined(name)(k))
    low = 2 if (kind, name) == ("tt.scan", "arith.addi") else expected[0]
    assert interval(agrees(k), made) == Interval(low, expected[1])


def test_the_place_of_the_greatest_is_one_of_the_places() -> None:
    """The index that `tl.argmax` carries along is chosen, and the value it chooses by is not."""
    k, loaded, _ = loaded_kernel()

    def body(pair: tuple[Value, ...]) -> list[Value]:
        value, place, other, beside = pair
        first = k.builder.value("arith.cmpi", value, other, predicate="sgt")
        chosen = k.builder.value("arith.select", first, value, other)
        changed = k.builder.value("arith.addi", chosen, k.number(0))
        return [
            k.builder.value("arith.xori", changed, k.number(1)),
            k.builder.value("arith.select", first, place, beside),
        ]

    lanes = k.arange(8)
    wrapped, place = k.fold("tt.reduce", [k.binary("arith.andi", loaded, 6), lanes], 0, body)
    analysis = agrees(k)
    assert interval(analysis, place) == Interval(0, 7)
    assert interval(analysis, wrapped) == Interval(I32.smallest, I32.largest)


def test_what_a_fold_of_sums_assumed_is_not_left_behind() -> None:
    """Partial sums leave the interval of the elements, so that nothing is said of them."""
    k, _, small = loaded_kernel()
    k.fold("tt.reduce", [small], 0, combined("arith.addi")(k))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, data=array("data", 8)), {0: DATA})
    region = module.kernel.body.ops[-2].regions[0]
    assert not any(each in analysis.states for each in region.arguments)


def test_a_reduced_row_does_not_move_along_the_axis_that_is_gone() -> None:
    k = Kernel(data=I32_POINTER, x=F32_POINTER)
    rows = k.load(k.point(k["data"], k.arange(4)))
    grid = k.add(k.to(k.expand(rows, 1), (4, 8)), k.to(k.expand(k.arange(8), 0), (4, 8)))
    (most,) = k.fold("tt.reduce", [grid], 1, combined("arith.maxsi")(k))
    (all_,) = k.fold("tt.reduce", [k.to(k.expand(rows, 1), (4, 8))], 0, combined("arith.minsi")(k))
    module = k.done()
    given = launch(module, 1, data=array("data", 8), x=array("x", 8))
    analysis = assert_agrees(module, given, {0: np.arange(8, dtype=np.int32)})
    lanes = []
    for value in (most, all_):
        state = analysis.states[value]
        assert isinstance(state, Integer)
        ((symbol, _),) = state.expression.terms
        lanes.append(symbol.lanes)
    assert lanes == [(0,), (None,)]


def test_two_masks_together_keep_an_index_inside() -> None:
    """Neither mask alone says that `8 * row + column` stays within the eight columns."""
    k = Kernel(x=F32_POINTER)
    rows, columns = k.expand(k.arange(4), 1), k.expand(k.arange(8), 0)
    flat = k.add(k.mul(rows, 8), columns)
    inside = k.both(
        k.to(k.less(rows, 1), (4, 8)),
        k.to(k.less(columns, 6), (4, 8)),
    )
    k.load(k.point(k["x"], k.add(k.mul(k.pid(), 10), flat)), inside)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 3, x=array("x", 3, 6, strides=(10, 1))))
    position = analysis.accesses[0].position
    assert isinstance(position, Position)
    assert [each.proved for each in position.dimensions] == [True, True]
