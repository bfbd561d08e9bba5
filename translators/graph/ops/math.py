"""The `math` dialect on floats.

Functions are evaluated in `f64` and rounded once, so that narrower types get the nearest result
or, rarely, its neighbour; `f64` gets what NumPy and the C library give.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, to_float
from translators.graph.ops import rules
from translators.graph.ops.definition import OpDefinition, Operands, Typing
from translators.graph.ops.floats import float_type
from translators.graph.types import F64, FloatType, IntType, Type, with_element


def elementwise(function: Callable[..., float], count: int = 1) -> Callable[..., Array]:
    """A function of Python floats, for arrays."""
    mapped = np.frompyfunc(function, count, 1)

    def apply(*operands: Array) -> Array:
        return np.asarray(mapped(*operands)).astype(np.float64)

    return apply


def round_half_away(values: Array) -> Array:
    """The nearest integer, the one farther from zero of two."""
    cut = np.trunc(values)
    up = np.where(np.abs(values - cut) >= 0.5, np.sign(values), 0)
    return np.asarray(np.copysign(cut + up, values))


def _fused_exact(a: float, b: float, c: float) -> float:
    """`a * b + c` of `f64`, rounded once."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c if a * b == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_fused_f64 = elementwise(_fused_exact, 3)


def fused(a: Array, b: Array, c: Array, type_: FloatType) -> Array:
    """`a * b + c`, rounded once."""
    if type_ == F64:
        return _fused_f64(a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    # The error of the sum, exactly; where there is one, the sum is made odd, which keeps enough
    # of it to round correctly to a narrower type (Boldo and Melquiond, 2008).
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & 1) == 0
    neighbour = np.nextafter(total, np.copysign(np.inf, error))
    inexact = np.isfinite(total) & (error != 0)
    return to_float(np.where(inexact & even, neighbour, total), type_)


def reciprocal_sqrt(values: Array) -> Array:
    """One over the square root; infinite at zero with the zero's sign."""
    return np.divide(1.0, np.sqrt(values))


erf = elementwise(math.erf)
erfc = elementwise(math.erfc)


def _integer_power(base: Array, exponent: Array) -> Array:
    return np.power(base, exponent.astype(np.float64))


def function(
    name: str,
    summary: str,
    apply: Callable[..., Array],
    count: int = 1,
) -> OpDefinition:
    """An op that applies a function of `f64` arrays to each element."""

    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        wide = (each.astype(np.float64) for each in operands)
        return (to_float(np.asarray(apply(*wide)), float_type(op.operands[0].type)),)

    return OpDefinition(
        name=name, summary=summary, rule=rules.uniform(count, FloatType), meaning=meaning
    )


def _test(name: str, summary: str, apply: Callable[[Array, FloatType], Array]) -> OpDefinition:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        type_ = float_type(op.operands[0].type)
        return (np.asarray(apply(operands[0].astype(np.float64), type_)),)

    return OpDefinition(
        name=name, summary=summary, rule=rules.predicate(1, FloatType), meaning=meaning
    )


def _fma(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    left, right, addend = operands
    return (fused(left, right, addend, float_type(op.operands[0].type)),)


def _sincos(op: Op, operands: Operands, machine: Machine) -> tuple[Array, Array]:
    type_ = float_type(op.operands[0].type)
    wide = operands[0].astype(np.float64)
    return to_float(np.asarray(np.sin(wide)), type_), to_float(np.asarray(np.cos(wide)), type_)


def _two_of_one(typing: Typing) -> tuple[Type, ...]:
    (type_,) = rules.uniform(1, FloatType)(typing)
    return (type_, type_)


def _fpowi_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2)
    base, exponent = typing.operands
    rules.element(base, FloatType)
    power = rules.element(exponent, IntType)
    rules.expect(
        exponent == with_element(base, power), f"takes one shape, not `{base}` and `{exponent}`"
    )
    return (base,)


def _fpowi(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    base, exponent = operands
    power = _integer_power(base.astype(np.float64), exponent)
    return (to_float(np.asarray(power), float_type(op.operands[0].type)),)


OPS: tuple[OpDefinition, ...] = (
    function("math.absf", "magnitude", np.abs),
    function("math.acos", "arc cosine", np.arccos),
    function("math.acosh", "inverse hyperbolic cosine", np.arccosh),
    function("math.asin", "arc sine", np.arcsin),
    function("math.asinh", "inverse hyperbolic sine", np.arcsinh),
    function("math.atan", "arc tangent", np.arctan),
    function("math.atan2", "angle of the point (second, first)", np.arctan2, 2),
    function("math.atanh", "inverse hyperbolic tangent", np.arctanh),
    function("math.cbrt", "cube root", np.cbrt),
    function("math.ceil", "rounded up", np.ceil),
    function("math.copysign", "the first with the sign of the second", np.copysign, 2),
    function("math.cos", "cosine", np.cos),
    function("math.cosh", "hyperbolic cosine", np.cosh),
    function("math.erf", "error function", erf),
    function("math.erfc", "complementary error function", erfc),
    function("math.exp", "power of e", np.exp),
    function("math.exp2", "power of 2", np.exp2),
    function("math.expm1", "power of e, less 1", np.expm1),
    function("math.floor", "rounded down", np.floor),
    function("math.log", "natural logarithm", np.log),
    function("math.log10", "logarithm to base 10", np.log10),
    function("math.log1p", "natural logarithm of 1 more", np.log1p),
    function("math.log2", "logarithm to base 2", np.log2),
    function("math.powf", "power", np.power, 2),
    function("math.round", "nearest integer, halves away from zero", round_half_away),
    function("math.roundeven", "nearest integer, halves to even", np.rint),
    function("math.rsqrt", "one over the square root", reciprocal_sqrt),
    function("math.sin", "sine", np.sin),
    function("math.sinh", "hyperbolic sine", np.sinh),
    function("math.sqrt", "square root", np.sqrt),
    function("math.tan", "tangent", np.tan),
    function("math.tanh", "hyperbolic tangent", np.tanh),
    function("math.trunc", "cut toward zero", np.trunc),
    _test("math.isfinite", "whether finite", lambda values, _: np.isfinite(values)),
    _test("math.isinf", "whether infinite", lambda values, _: np.isinf(values)),
    _test("math.isnan", "whether NaN", lambda values, _: np.isnan(values)),
    _test(
        "math.isnormal",
        "whether neither zero, subnormal, infinite nor NaN",
        lambda values, type_: (
            np.isfinite(values) & (np.abs(values) >= 2.0**type_.smallest_exponent)
        ),
    ),
    OpDefinition(
        name="math.fma",
        summary="product of the first two plus the third, rounded once",
        rule=rules.uniform(3, FloatType),
        meaning=_fma,
    ),
    OpDefinition(
        name="math.fpowi",
        summary="float to an integer power",
        rule=_fpowi_rule,
        meaning=_fpowi,
    ),
    OpDefinition(name="math.sincos", summary="sine and cosine", rule=_two_of_one, meaning=_sincos),
)
