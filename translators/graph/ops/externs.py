"""Functions of a device library, called by name.

The names are those of NVIDIA's libdevice: `__nv_` and the name for `f64`, with an `f` behind it
for `f32`, `__nv_fast_` for what trades accuracy for speed. All of them are evaluated as the
function they approximate.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, dtype_of, element_type, to_float, to_integers
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    OPTIONAL_FLAG,
    OPTIONAL_TEXT,
    TEXT,
    OpDefinition,
    Operands,
    RuleError,
    Typing,
)
from translators.graph.ops.floats import maxnum, minnum
from translators.graph.ops.math import (
    elementwise,
    erf,
    erfc,
    reciprocal_sqrt,
    round_half_away,
)
from translators.graph.types import (
    F32,
    F64,
    I32,
    I64,
    ElementType,
    FloatType,
    IntType,
    Type,
    with_element,
)


def _gamma(value: float) -> float:
    try:
        return math.gamma(value)
    except ValueError:
        return math.copysign(math.inf, value) if value == 0 else math.nan
    except OverflowError:
        return math.inf


def _log_gamma(value: float) -> float:
    try:
        return math.lgamma(value)
    except (ValueError, OverflowError):
        return math.inf


def _positive_difference(a: Array, b: Array) -> Array:
    return np.where(a <= b, 0.0, a - b)


_REAL: dict[str, tuple[int, Callable[..., Array]]] = {
    **{
        name: (1, function)
        for name, function in (
            ("acos", np.arccos),
            ("acosh", np.arccosh),
            ("asin", np.arcsin),
            ("asinh", np.arcsinh),
            ("atan", np.arctan),
            ("atanh", np.arctanh),
            ("cbrt", np.cbrt),
            ("ceil", np.ceil),
            ("cos", np.cos),
            ("cosh", np.cosh),
            ("erf", erf),
            ("erfc", erfc),
            ("exp", np.exp),
            ("exp10", lambda values: np.power(10.0, values)),
            ("exp2", np.exp2),
            ("expm1", np.expm1),
            ("fabs", np.abs),
            ("floor", np.floor),
            ("lgamma", elementwise(_log_gamma)),
            ("log", np.log),
            ("log10", np.log10),
            ("log1p", np.log1p),
            ("log2", np.log2),
            ("nearbyint", np.rint),
            ("rint", np.rint),
            ("round", round_half_away),
            ("rsqrt", reciprocal_sqrt),
            ("sin", np.sin),
            ("sinh", np.sinh),
            ("sqrt", np.sqrt),
            ("tan", np.tan),
            ("tanh", np.tanh),
            ("tgamma", elementwise(_gamma)),
            ("trunc", np.trunc),
        )
    },
    **{
        name: (2, function)
        for name, function in (
            ("atan2", np.arctan2),
            ("copysign", np.copysign),
            ("fdim", _positive_difference),
            ("fmax", maxnum),
            ("fmin", minnum),
            ("fmod", np.fmod),
            ("hypot", np.hypot),
            ("pow", np.power),
        )
    },
}
_FAST = ("cos", "exp", "exp10", "log", "log10", "log2", "pow", "sin", "tan", "tanh")


def _register() -> dict[str, tuple[tuple[ElementType, ...], ElementType, Callable[..., Array]]]:
    """Operand element types, result element type and function of `f64` arrays, by symbol."""
    found: dict[str, tuple[tuple[ElementType, ...], ElementType, Callable[..., Array]]] = {}
    for name, (count, function) in _REAL.items():
        found[f"__nv_{name}"] = ((F64,) * count, F64, function)
        found[f"__nv_{name}f"] = ((F32,) * count, F32, function)
    for name in _FAST:
        found[f"__nv_fast_{name}f"] = found[f"__nv_{name}f"]
    found["__nv_powi"] = ((F64, I32), F64, np.power)
    found["__nv_powif"] = ((F32, I32), F32, np.power)
    found["__nv_fast_fdividef"] = ((F32, F32), F32, np.divide)
    found["__nv_fdiv_rn"] = ((F32, F32), F32, np.divide)
    found["__nv_ddiv_rn"] = ((F64, F64), F64, np.divide)
    found["__nv_fsqrt_rn"] = ((F32,), F32, np.sqrt)
    found["__nv_dsqrt_rn"] = ((F64,), F64, np.sqrt)
    for test, function in (("isinf", np.isinf), ("isnan", np.isnan), ("signbit", np.signbit)):
        found[f"__nv_{test}f"] = ((F32,), I32, function)
        found[f"__nv_{test}d"] = ((F64,), I32, function)
    found["__nv_finitef"] = ((F32,), I32, np.isfinite)
    found["__nv_isfinited"] = ((F64,), I32, np.isfinite)
    roundings = (("rn", np.rint), ("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil))
    for suffix, function in roundings:
        found[f"__nv_float2int_{suffix}"] = ((F32,), I32, function)
        found[f"__nv_float2ll_{suffix}"] = ((F32,), I64, function)
        found[f"__nv_double2int_{suffix}"] = ((F64,), I32, function)
        found[f"__nv_double2ll_{suffix}"] = ((F64,), I64, function)
    for suffix, real in (("f", F32), ("", F64)):
        found[f"__nv_llrint{suffix}"] = ((real,), I64, np.rint)
        found[f"__nv_llround{suffix}"] = ((real,), I64, round_half_away)
    found["__nv_popc"] = ((I32,), I32, lambda values: np.bitwise_count(_bits(values, np.uint32)))
    found["__nv_popcll"] = ((I64,), I32, lambda values: np.bitwise_count(_bits(values, np.uint64)))
    return found


def _bits(values: Array, target: type[np.unsignedinteger[Any]]) -> Array:
    return values.view(target)


SYMBOLS = _register()


def _rule(typing: Typing) -> tuple[Type, ...]:
    symbol = str(typing.attributes["symbol"])
    if symbol not in SYMBOLS:
        raise RuleError(f"calls `{symbol}`, whose meaning is not known")
    takes, gives, _ = SYMBOLS[symbol]
    rules.expect_count(typing, len(takes))
    first = typing.operands[0]
    for operand, element in zip(typing.operands, takes, strict=True):
        rules.expect(
            operand == with_element(first, element),
            f"calls `{symbol}`, which takes `{with_element(first, element)}`, not `{operand}`",
        )
    return (with_element(first, gives),)


def _extern(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    takes, _, function = SYMBOLS[op.text("symbol")]
    result = element_type(op.result.type)
    if isinstance(takes[0], IntType):
        return (np.asarray(function(*operands)).astype(dtype_of(result)),)
    found = np.asarray(function(*(each.astype(np.float64) for each in operands)))
    if isinstance(result, FloatType):
        return (to_float(found, result),)
    assert isinstance(result, IntType)
    bounded = to_integers(found, smallest=result.smallest, largest=result.largest)
    return (bounded.astype(dtype_of(result)),)


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.extern_elementwise",
        summary="a function of libdevice on each element",
        rule=_rule,
        meaning=_extern,
        attributes={
            "symbol": TEXT,
            "libname": OPTIONAL_TEXT,
            "libpath": OPTIONAL_TEXT,
            "pure": OPTIONAL_FLAG,
        },
    ),
)
