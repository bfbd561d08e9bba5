"""Float arithmetic and comparison of the `arith` dialect, and what Triton adds to it.

Types narrower than `f32` are computed on in `f64` and rounded once: with at most 11 bits of
significand that is the correctly rounded result of every operation here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, to_float
from translators.graph.ops import rules
from translators.graph.ops.definition import OpDefinition, Operands, Typing, one_of
from translators.graph.types import F32, I1, FloatType, Type, element_of, with_element


def float_type(type_: Type) -> FloatType:
    """The element type of a verified float operand."""
    element = element_of(type_)
    assert isinstance(element, FloatType)
    return element


def widened(values: Array, type_: FloatType) -> Array:
    """Values in the type that is computed in: their own from `f32` up, else `f64`."""
    return values if type_.width >= 32 else values.astype(np.float64)


def maximum(a: Array, b: Array) -> Array:
    """The greater value; NaN if either is, and +0 is above -0."""
    both_zero = (a == 0) & (b == 0)
    return np.where(both_zero, a + b, np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    """The lesser value; NaN if either is, and -0 is below +0."""
    return -maximum(-a, -b)


def maxnum(a: Array, b: Array) -> Array:
    """The greater value; that of the other where one is NaN."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, maximum(a, b)))


def minnum(a: Array, b: Array) -> Array:
    """The lesser value; that of the other where one is NaN."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, minimum(a, b)))


def _clamp(value: Array, low: Array, high: Array, propagate: str) -> Array:
    clamped = minnum(maxnum(value, low), high)
    return np.where(np.isnan(value), value, clamped) if propagate == "all" else clamped


_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    predicate = op.text("predicate")
    left, right = (widened(each, float_type(op.operands[0].type)) for each in operands)
    unordered = np.isnan(left) | np.isnan(right)
    if predicate in ("true", "false"):
        return (np.full(left.shape, predicate == "true"),)
    if predicate in ("ord", "uno"):
        return (np.asarray(unordered == (predicate == "uno")),)
    holds = _ORDERED[predicate[1:]](left, right)
    return (np.asarray(np.where(unordered, predicate[0] == "u", holds)),)


def _operation(name: str, summary: str, function: Callable[..., Array], count: int) -> OpDefinition:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        type_ = float_type(op.operands[0].type)
        return (to_float(function(*(widened(each, type_) for each in operands)), type_),)

    return OpDefinition(
        name=name, summary=summary, rule=rules.uniform(count, FloatType), meaning=meaning
    )


def _clampf(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    type_ = float_type(op.operands[0].type)
    value, low, high = (widened(each, type_) for each in operands)
    return (to_float(_clamp(value, low, high, op.text("propagateNan")), type_),)


def _select_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 3)
    condition, on_true, on_false = typing.operands
    chosen = rules.same_type(on_true, on_false)
    if condition != I1:
        rules.expect(
            condition == with_element(chosen, I1),
            f"chooses by `i1` or by `i1` of the shape of `{chosen}`, not by `{condition}`",
        )
    return (chosen,)


def _select(op: Op, operands: Operands, machine: Machine) -> tuple[Any]:
    condition, on_true, on_false = operands
    if condition.ndim == 0:
        return (on_true if condition else on_false,)
    return (np.where(condition, on_true, on_false),)


def _precise(count: int) -> Callable[[Typing], tuple[Type, ...]]:
    uniform = rules.uniform(count, FloatType)

    def rule(typing: Typing) -> tuple[Type, ...]:
        (type_,) = uniform(typing)
        rules.expect(element_of(type_) == F32, f"takes `f32`, not `{type_}`")
        return (type_,)

    return rule


def _precise_operation(
    name: str, summary: str, function: Callable[..., Array], count: int
) -> OpDefinition:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        return (np.asarray(function(*operands)),)

    return OpDefinition(name=name, summary=summary, rule=_precise(count), meaning=meaning)


PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)

OPS: tuple[OpDefinition, ...] = (
    _operation("arith.addf", "sum", np.add, 2),
    _operation("arith.subf", "difference", np.subtract, 2),
    _operation("arith.mulf", "product", np.multiply, 2),
    _operation("arith.divf", "quotient", np.divide, 2),
    _operation("arith.remf", "remainder, with the sign of the dividend", np.fmod, 2),
    _operation("arith.negf", "the other sign, of NaN and zero too", np.negative, 1),
    _operation("arith.maximumf", "greater of two; NaN if either is", maximum, 2),
    _operation("arith.minimumf", "lesser of two; NaN if either is", minimum, 2),
    _operation("arith.maxnumf", "greater of two; the other where one is NaN", maxnum, 2),
    _operation("arith.minnumf", "lesser of two; the other where one is NaN", minnum, 2),
    _precise_operation("tt.approx_divf", "quotient; correctly rounded all the same", np.divide, 2),
    _precise_operation("tt.precise_divf", "correctly rounded quotient", np.divide, 2),
    _precise_operation("tt.precise_sqrt", "correctly rounded square root", np.sqrt, 1),
    OpDefinition(
        name="tt.clampf",
        summary="held between two bounds; a NaN becomes the lower bound, or stays",
        rule=rules.uniform(3, FloatType),
        meaning=_clampf,
        attributes={"propagateNan": one_of("none", "all")},
    ),
    OpDefinition(
        name="arith.cmpf",
        summary="whether two floats compare as the predicate says, ordered or unordered",
        rule=rules.predicate(2, FloatType),
        meaning=_compare,
        attributes={"predicate": one_of(*PREDICATES)},
    ),
    OpDefinition(
        name="arith.select",
        summary="the second operand where the first holds, else the third",
        rule=_select_rule,
        meaning=_select,
    ),
)
