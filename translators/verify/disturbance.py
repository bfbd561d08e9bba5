"""Rounding, exaggerated at random: how far another way to compute the same may lead.

Nobody promises in which order a sum is taken, nor to how many bits a function is computed. Run
with every result moved by a unit in its last place, up or down or not at all, a kernel shows how
much of what it leaves is noise (Vignes, "Discrete stochastic arithmetic", 2004).
"""

import math

import numpy as np

from translators.graph.graph import Op
from translators.graph.numerics import Array, element_type, to_float
from translators.graph.types import FloatType, shape_of

# Ops that give a nearby number in some cases; all others give exactly what they say.
_ROUNDED = frozenset(
    (
        *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.truncf"),
        *("tt.approx_divf", "tt.precise_divf", "tt.precise_sqrt", "tt.fp_to_fp"),
        *("tt.extern_elementwise", "tt.elementwise_inline_asm"),
        *(
            f"math.{name}"
            for name in (
                *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos"),
                *("cosh", "erf", "erfc", "exp", "exp2", "expm1", "fma", "fpowi", "log", "log10"),
                *("log1p", "log2", "powf", "rsqrt", "sin", "sincos", "sinh", "sqrt", "tan", "tanh"),
            )
        ),
    )
)
_SUMS = frozenset({"tt.dot", "tt.reduce", "tt.scan"})
_ADDS = frozenset({"arith.addf", "arith.mulf"})


class Disturbance:
    """Moves what ops give, as `evaluate` takes it.

    Args:
      rng: says which way.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __call__(self, op: Op, value: Array) -> Array:
        """The result of an op, each element moved by up to a unit in the last place.

        A sum of n terms, evaluated as if it were exact, is moved by up to the square root of n:
        one term after another may be added, and the errors of the additions are independent.
        """
        steps = _steps(op)
        if not steps or value.dtype.kind in "biu":
            return value
        type_ = element_type(op.results[0].type)
        if not isinstance(type_, FloatType):
            return value
        unit = 2.0 ** (1 - type_.precision)
        moved = steps * unit * self._rng.integers(-1, 2, value.shape)
        return to_float(np.asarray(value.astype(np.float64) * (1 + moved)), type_)


def _steps(op: Op) -> float:
    """By how many units the result of an op may be off; 0 for what is exact."""
    if op.name in _ROUNDED:
        return 1.0
    if op.name not in _SUMS:
        return 0.0
    shape = shape_of(op.operands[0].type)
    if op.name == "tt.dot":
        return math.sqrt(shape[-1])
    if any(inner.name in _ADDS for inner in op.regions[0].ops):
        return math.sqrt(shape[op.integer("axis")])
    return 0.0
