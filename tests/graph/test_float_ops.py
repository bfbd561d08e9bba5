"""Float ops against exact rational arithmetic rounded once, in every format."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from graph_oracles import apply, exact, nearest, same
from hypothesis import given, settings
from hypothesis import strategies as st

from translators.graph.errors import GraphError
from translators.graph.numerics import dtype_of, from_integers, keep_bits, to_float
from translators.graph.types import (
    BF16,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    F64,
    FLOAT_TYPES,
    I1,
    I8,
    I16,
    I32,
    I64,
    FloatType,
    IntType,
    TensorType,
)

# NaN and overflow are what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SMALL = [each for each in FLOAT_TYPES.values() if each.width <= 16]
COMPUTED = (F16, BF16, F32, F64)


def every_value(type_: FloatType) -> np.ndarray[Any, Any]:
    """All finite values of a small format, ascending, with one zero."""
    bits = np.arange(1 << type_.width, dtype=np.uint64).astype(f"u{type_.width // 8}")
    values = bits.view(dtype_of(type_)).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


@pytest.mark.parametrize("type_", SMALL, ids=str)
def test_a_format_is_described_as_its_bits_are(type_: FloatType) -> None:
    values = every_value(type_)
    assert values[-1] == type_.largest
    normal = 2.0**type_.smallest_exponent
    least = values[values > 0][0]
    assert least == normal * 2.0 ** (1 - type_.precision)
    assert all(nearest(Fraction(float(each)), type_) == each for each in values[::7])


@pytest.mark.parametrize("type_", SMALL, ids=str)
def test_rounding_finds_the_nearest_and_breaks_ties_to_even(type_: FloatType) -> None:
    """Every value, every midpoint of two neighbours, and what lies just beside each midpoint."""
    values = every_value(type_)
    assert np.array_equal(to_float(values, type_).astype(np.float64), values)
    low, high = values[:-1], values[1:]
    middle = low + (high - low) / 2
    below = to_float(np.nextafter(middle, -np.inf), type_).astype(np.float64)
    above = to_float(np.nextafter(middle, np.inf), type_).astype(np.float64)
    assert np.array_equal(below, low) and np.array_equal(above, high)
    found = to_float(middle, type_)
    even = found.view(f"u{type_.width // 8}") % 2 == 0
    assert even.all()
    cut = to_float(middle, type_, toward_zero=True).astype(np.float64)
    assert np.array_equal(np.abs(cut), np.minimum(np.abs(low), np.abs(high)))


@pytest.mark.parametrize("type_", SMALL, ids=str)
def test_too_large_saturates_in_eight_bits_and_is_infinite_in_sixteen(type_: FloatType) -> None:
    large = np.array([np.inf, type_.largest * 4, -type_.largest * 4, -np.inf])
    found = to_float(large, type_).astype(np.float64)
    limit = type_.largest if type_.width == 8 else np.inf
    assert found.tolist() == [limit, limit, -limit, -limit]
    assert np.isnan(to_float(np.array(np.nan), type_).astype(np.float64))


def test_conversion_rounds_once_where_a_detour_by_float32_rounds_twice() -> None:
    """Just above a midpoint of bf16, by less than float32 can hold."""
    value = np.array(1 + 2.0**-8 + 2.0**-40)
    assert float(to_float(value, BF16)) == 1 + 2.0**-7
    large = np.array([(1 << 40) + (1 << 32) + 1, (1 << 62) + (1 << 54) + 1], np.int64)
    wanted = [nearest(Fraction(int(each)), BF16) for each in large]
    assert from_integers(large, BF16).astype(np.float64).tolist() == wanted


def finite(type_: FloatType) -> st.SearchStrategy[float]:
    """Finite values of a format, from bit patterns, so that all magnitudes are as frequent."""
    held = dtype_of(type_)
    return (
        st.integers(0, (1 << type_.width) - 1)
        .map(lambda bits: np.array(bits, f"u{type_.width // 8}").view(held))
        .filter(lambda value: bool(np.isfinite(value.astype(np.float64))))
        .map(float)
    )


ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.divf": operator.truediv,
}


@pytest.mark.parametrize("type_", COMPUTED, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC)
@settings(max_examples=60)
@given(data=st.data())
def test_arithmetic_is_rounded_correctly(name: str, type_: FloatType, data: st.DataObject) -> None:
    a, b = data.draw(finite(type_)), data.draw(finite(type_))
    if name == "arith.divf" and b == 0:
        return
    (found,) = apply(name, [(type_, a), (type_, b)])
    wanted = nearest(ARITHMETIC[name](exact(a), exact(b)), type_)
    assert float(found) == wanted


@pytest.mark.parametrize("type_", COMPUTED, ids=str)
@given(data=st.data())
def test_fused_multiply_add_rounds_once(type_: FloatType, data: st.DataObject) -> None:
    a, b = data.draw(finite(type_)), data.draw(finite(type_))
    near = st.sampled_from([-a * b, float(to_float(np.array(-a * b), type_))])
    c = data.draw(st.one_of(finite(type_), near.filter(math.isfinite)))
    c = float(to_float(np.array(c), type_))
    if not math.isfinite(c):
        return
    (found,) = apply("math.fma", [(type_, a), (type_, b), (type_, c)])
    assert float(found) == nearest(exact(a) * exact(b) + exact(c), type_)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("type_", COMPUTED, ids=str)
@pytest.mark.parametrize(
    ("a", "b", "maximum", "maxnum", "minimum", "minnum"),
    [
        (1.0, 2.0, 2.0, 2.0, 1.0, 1.0),
        (NAN, 2.0, NAN, 2.0, NAN, 2.0),
        (2.0, NAN, NAN, 2.0, NAN, 2.0),
        (NAN, NAN, NAN, NAN, NAN, NAN),
        (-0.0, 0.0, 0.0, 0.0, -0.0, -0.0),
        (0.0, -0.0, 0.0, 0.0, -0.0, -0.0),
        (-0.0, -0.0, -0.0, -0.0, -0.0, -0.0),
        (INF, NAN, NAN, INF, NAN, INF),
        (-INF, 1.0, 1.0, 1.0, -INF, -INF),
    ],
)
def test_extremes_treat_nan_and_signed_zero_as_their_names_say(
    type_: FloatType,
    a: float,
    b: float,
    maximum: float,
    maxnum: float,
    minimum: float,
    minnum: float,
) -> None:
    operands = [(type_, a), (type_, b)]
    for name, wanted in (
        ("arith.maximumf", maximum),
        ("arith.maxnumf", maxnum),
        ("arith.minimumf", minimum),
        ("arith.minnumf", minnum),
    ):
        assert same(apply(name, operands)[0], wanted), name


@pytest.mark.parametrize(("propagate", "wanted"), [("none", -1.0), ("all", NAN)])
def test_clamp_lets_nan_through_only_when_asked(propagate: str, wanted: float) -> None:
    bounds = [(F32, -1.0), (F32, 1.0)]
    found = apply("tt.clampf", [(F32, NAN), *bounds], propagateNan=propagate)
    assert same(found[0], wanted)
    for value, held in ((5.0, 1.0), (-5.0, -1.0), (0.25, 0.25)):
        found = apply("tt.clampf", [(F32, value), *bounds], propagateNan=propagate)
        assert float(found[0]) == held


@pytest.mark.parametrize("type_", [BF16, F8E4M3FN, F32], ids=str)
@given(a=st.sampled_from([NAN, -1.0, 0.0, -0.0, 2.0]), b=st.sampled_from([NAN, -1.0, 0.0, 2.0]))
def test_comparisons_differ_in_what_they_say_of_nan(type_: FloatType, a: float, b: float) -> None:
    unordered = math.isnan(a) or math.isnan(b)
    for name, holds in (
        ("eq", a == b),
        ("ne", a != b and not unordered),
        ("lt", a < b),
        ("le", a <= b),
        ("gt", a > b),
        ("ge", a >= b),
    ):
        operands = [(type_, a), (type_, b)]
        ordered = apply("arith.cmpf", operands, predicate="o" + name)[0]
        either = apply("arith.cmpf", operands, predicate="u" + name)[0]
        assert bool(ordered) == (holds and not unordered)
        assert bool(either) == (holds or unordered)
    for name, wanted in (
        ("ord", not unordered),
        ("uno", unordered),
        ("true", True),
        ("false", False),
    ):
        assert bool(apply("arith.cmpf", [(type_, a), (type_, b)], predicate=name)[0]) == wanted


@pytest.mark.parametrize("target", [F16, BF16, F32, F64], ids=str)
@given(data=st.data())
def test_integers_become_the_nearest_float(target: FloatType, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([I1, I8, I16, I32, I64]))
    signed = data.draw(st.integers(-(1 << (source.width - 1)), (1 << (source.width - 1)) - 1))
    operand = [(source, source.wrap(signed))]
    found = apply("arith.sitofp", operand, results=[target])
    assert float(found[0]) == nearest(Fraction(signed), target)
    found = apply("arith.uitofp", operand, results=[target])
    assert float(found[0]) == nearest(Fraction(signed % (1 << source.width)), target)


@pytest.mark.parametrize("source", COMPUTED, ids=str)
@given(data=st.data())
def test_floats_become_integers_cut_toward_zero_and_held_in_range(
    source: FloatType, data: st.DataObject
) -> None:
    target = data.draw(st.sampled_from([I8, I16, I32, I64]))
    value = data.draw(st.one_of(finite(source), st.sampled_from([INF, -INF, 1.5, -1.5, 127.99])))
    value = float(to_float(np.array(value), source))
    least, most = target.smallest, target.largest
    whole = math.trunc(value) if math.isfinite(value) else (most if value > 0 else least) * 4
    found = apply("arith.fptosi", [(source, value)], results=[target])
    assert int(found[0]) == min(max(whole, least), most)
    found = apply("arith.fptoui", [(source, value)], results=[target])
    assert int(found[0]) == target.wrap(min(max(whole, 0), (1 << target.width) - 1))


@pytest.mark.parametrize("name", ["arith.fptosi", "arith.fptoui"])
def test_no_number_becomes_zero(name: str) -> None:
    assert int(apply(name, [(F32, NAN)], results=[I32])[0]) == 0


def test_bits_survive_a_bitcast_there_and_back() -> None:
    type_ = TensorType((4,), F32)
    values = np.array([1.5, -0.0, np.inf, 3e-45], np.float32)
    (bits,) = apply("tt.bitcast", [(type_, values)], results=[TensorType((4,), I32)])
    assert bits[0] == 0x3FC00000
    (back,) = apply("tt.bitcast", [(TensorType((4,), I32), bits)], results=[type_])
    assert back.tobytes() == values.tobytes()


@given(finite(F32))
def test_tf32_keeps_eleven_bits_and_the_nearest_of_them(value: float) -> None:
    kept = float(keep_bits(np.array(value, np.float32), 11))
    if not math.isfinite(kept):
        assert abs(value) > 3.4e38
        return
    _, exponent = math.frexp(value)
    unit = math.ldexp(1.0, max(exponent, -125) - 11)
    assert abs(kept - value) <= unit / 2
    assert kept % unit == 0


REFERENCES: dict[str, tuple[Callable[..., float], float, float]] = {
    "math.exp": (math.exp, -80, 80),
    "math.exp2": (lambda x: 2.0**x, -100, 100),
    "math.expm1": (math.expm1, -20, 20),
    "math.log": (math.log, 1e-30, 1e30),
    "math.log2": (math.log2, 1e-30, 1e30),
    "math.log10": (math.log10, 1e-30, 1e30),
    "math.log1p": (math.log1p, -0.99, 1e10),
    "math.sqrt": (math.sqrt, 0, 1e30),
    "math.rsqrt": (lambda x: 1 / math.sqrt(x), 1e-20, 1e30),
    "math.cbrt": (math.cbrt, -1e30, 1e30),
    "math.sin": (math.sin, -1e4, 1e4),
    "math.cos": (math.cos, -1e4, 1e4),
    "math.tan": (math.tan, -1.5, 1.5),
    "math.asin": (math.asin, -1, 1),
    "math.acos": (math.acos, -1, 1),
    "math.atan": (math.atan, -1e6, 1e6),
    "math.sinh": (math.sinh, -20, 20),
    "math.cosh": (math.cosh, -20, 20),
    "math.tanh": (math.tanh, -20, 20),
    "math.asinh": (math.asinh, -1e6, 1e6),
    "math.acosh": (math.acosh, 1, 1e6),
    "math.atanh": (math.atanh, -0.99, 0.99),
    "math.erf": (math.erf, -5, 5),
    "math.erfc": (math.erfc, -5, 5),
    "math.absf": (abs, -1e30, 1e30),
    "math.floor": (math.floor, -1e6, 1e6),
    "math.ceil": (math.ceil, -1e6, 1e6),
    "math.trunc": (math.trunc, -1e6, 1e6),
    "math.roundeven": (round, -1e6, 1e6),
    "math.round": (lambda x: math.copysign(math.floor(abs(x) + 0.5), x), -1e6, 1e6),
}


@pytest.mark.parametrize("type_", COMPUTED, ids=str)
@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=15)
@given(data=st.data())
def test_functions_are_those_of_the_c_library(
    name: str, type_: FloatType, data: st.DataObject
) -> None:
    """Within one unit in the last place of the format, four in `f64`."""
    function, low, high = REFERENCES[name]
    drawn = data.draw(st.floats(low, high, allow_subnormal=False))
    value = float(to_float(np.array(drawn), type_))
    if not low <= value <= high:
        return
    found = float(apply(name, [(type_, value)])[0])
    wanted = nearest(Fraction(function(value)), type_)
    _, exponent = math.frexp(wanted) if math.isfinite(wanted) else (0, 0)
    unit = math.ldexp(1.0, max(exponent - 1, type_.smallest_exponent) + 1 - type_.precision)
    assert found == wanted or abs(found - wanted) <= unit * (4 if type_ == F64 else 1)


def test_fpowi_and_powf_and_two_operand_functions() -> None:
    operands = [(F32, -2.0), (I32, 3)]
    assert float(apply("math.fpowi", operands)[0]) == -8.0
    assert float(apply("math.powf", [(F64, 2.0), (F64, -1.0)])[0]) == 0.5
    assert same(apply("math.copysign", [(BF16, 3.0), (BF16, -0.0)])[0], -3.0)
    assert float(apply("math.atan2", [(F64, 1.0), (F64, -1.0)])[0]) == math.atan2(1, -1)
    assert same(apply("arith.remf", [(F32, -7.0), (F32, 3.0)])[0], -1.0)
    sine, cosine = apply("math.sincos", [(F64, 0.5)])
    assert (float(sine), float(cosine)) == (math.sin(0.5), math.cos(0.5))


@pytest.mark.parametrize(
    ("value", "is_finite", "is_inf", "is_nan", "is_normal"),
    [
        (1.0, True, False, False, True),
        (0.0, True, False, False, False),
        (1e-40, True, False, False, False),
        (INF, False, True, False, False),
        (NAN, False, False, True, False),
    ],
)
def test_classes_of_floats(
    value: float, is_finite: bool, is_inf: bool, is_nan: bool, is_normal: bool
) -> None:
    for name, wanted in (
        ("isfinite", is_finite),
        ("isinf", is_inf),
        ("isnan", is_nan),
        ("isnormal", is_normal),
    ):
        assert bool(apply(f"math.{name}", [(F32, value)])[0]) == wanted, name


@pytest.mark.parametrize(
    ("symbol", "type_", "values", "wanted"),
    [
        ("__nv_rsqrtf", F32, [0.25], 2.0),
        ("__nv_tanhf", F32, [0.0], 0.0),
        ("__nv_fast_cosf", F32, [0.0], 1.0),
        ("__nv_pow", F64, [2.0, 10.0], 1024.0),
        ("__nv_rintf", F32, [2.5], 2.0),
        ("__nv_roundf", F32, [2.5], 3.0),
        ("__nv_fmaxf", F32, [NAN, 1.0], 1.0),
        ("__nv_lgamma", F64, [4.0], math.log(6)),
    ],
)
def test_library_functions(
    symbol: str, type_: FloatType, values: list[float], wanted: float
) -> None:
    operands = [(type_, each) for each in values]
    assert float(apply("tt.extern_elementwise", operands, symbol=symbol)[0]) == pytest.approx(
        wanted
    )


@pytest.mark.parametrize(
    ("symbol", "source", "value", "target", "wanted"),
    [
        ("__nv_popc", I32, -1, I32, 32),
        ("__nv_popcll", I64, 5, I32, 2),
        ("__nv_float2int_rd", F32, -1.5, I32, -2),
        ("__nv_float2int_rn", F32, 2.5, I32, 2),
        ("__nv_llrintf", F32, -2.5, I64, -2),
        ("__nv_isinff", F32, -INF, I32, 1),
    ],
)
def test_library_functions_that_give_integers(
    symbol: str, source: FloatType | IntType, value: float, target: IntType, wanted: int
) -> None:
    (found,) = apply("tt.extern_elementwise", [(source, value)], results=[target], symbol=symbol)
    assert int(found) == wanted


def test_sixteen_bit_floats_convert_to_eight_bits_as_asked() -> None:
    value = [(F16, 1.0 + 3 / 16)]
    assert float(apply("tt.fp_to_fp", value, results=[F8E4M3FN], rounding="rtne")[0]) == 1.25
    assert float(apply("tt.fp_to_fp", value, results=[F8E4M3FN], rounding="rtz")[0]) == 1.125
    assert float(apply("tt.fp_to_fp", [(F16, 60000.0)], results=[F8E5M2])[0]) == 57344.0
    assert same(apply("arith.negf", [(F8E5M2, 0.0)])[0], -0.0)


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("tanh.approx.f32 $0, $1;", [0.5], math.tanh(0.5)),
        (" ex2.approx.ftz.f32 $0, $1;\n", [3.0], 8.0),
        ("fma.rn.f32 $0, $1, $2, $3", [2.0, 3.0, 4.0], 10.0),
        ("div.rn.f32 $0,$1,$2;", [1.0, 4.0], 0.25),
        ("add.f32 $0, $1, $2;", [1e-40, 0.0], float(np.float32(1e-40))),
        ("add.ftz.f32 $0, $1, $2;", [1e-40, 0.0], 0.0),
    ],
)
def test_single_instructions_of_assembly(text: str, values: list[float], wanted: float) -> None:
    operands = [(F32, each) for each in values]
    (found,) = apply(
        "tt.elementwise_inline_asm", operands, asm_string=text, pure=True, packed_element=1
    )
    assert float(found) == float(np.float32(wanted))


@pytest.mark.parametrize(
    "text",
    [
        "sub.f32 $0, $2, $1;",
        "tanh.approx.f32 $0, $1; tanh.approx.f32 $0, $0;",
        "{ .reg .b32 r; mov.b32 $0, r; }",
        "unheard.of.f32 $0, $1;",
        "",
    ],
)
def test_other_assembly_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(GraphError, match="assembly whose meaning is not known") as caught:
        apply(
            "tt.elementwise_inline_asm",
            [(F32, 1.0), (F32, 1.0)],
            asm_string=text,
            pure=True,
            packed_element=1,
        )
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("narrow", SMALL, ids=str)
@given(data=st.data())
@settings(max_examples=20)
def test_widening_loses_nothing_and_narrowing_is_its_inverse(
    narrow: FloatType, data: st.DataObject
) -> None:
    value = data.draw(finite(narrow))
    (wide,) = apply("arith.extf", [(narrow, value)], results=[F32])
    assert float(wide) == value
    (back,) = apply("arith.truncf", [(F32, wide)], results=[narrow])
    assert same(back, value)


@given(finite(F32), finite(F32))
@settings(max_examples=60)
def test_precise_ops_are_rounded_correctly(a: float, b: float) -> None:
    if b:
        for name in ("tt.precise_divf", "tt.approx_divf"):
            (quotient,) = apply(name, [(F32, a), (F32, b)])
            assert float(quotient) == nearest(exact(a) / exact(b), F32)
    (root,) = apply("tt.precise_sqrt", [(F32, abs(a))])
    # The root lies between the midpoints to its neighbours.
    below, above = (np.nextafter(root, np.float32(end)) for end in (-1, np.inf))
    low, high = (exact(root) + exact(below)) / 2, (exact(root) + exact(above)) / 2
    assert max(low, 0) ** 2 <= exact(abs(a)) <= high**2


def test_poison_is_zero_and_bits_are_kept() -> None:
    assert apply("ub.poison", [], results=[TensorType((2,), BF16)])[0].tolist() == [0, 0]
    assert int(apply("arith.bitcast", [(F64, -0.0)], results=[I64])[0]) == -(1 << 63)
