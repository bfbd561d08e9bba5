"""Integers that depend on the program alone, in every program at once.

What holds in each row of an enumeration is proved, not sampled: there are no other programs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from translators.access.expression import (
    Affine,
    Derivation,
    Derived,
    Digit,
    Interval,
    Leaf,
    ProgramId,
    Variable,
    derived_in,
)

Array: TypeAlias = Any
Terms: TypeAlias = Iterable[tuple[Variable, int]]

# Sums of a few of these still fit in the 64 bits that they are computed in.
_LIMITS = Interval(-(1 << 60), (1 << 60) - 1)


class Enumeration:
    """The values of expressions in some programs, in a fixed order.

    Attributes:
      leaves: for each program id, and each digit if any, its values.
      count: how many programs there are.
    """

    def __init__(self, leaves: Mapping[Leaf, Array], count: int) -> None:
        self.leaves = dict(leaves)
        self.count = count
        self._derived: dict[Derived, Array | None] = {}

    def values(self, expression: Affine) -> Array | None:
        """What an expression is in each program; `None` where that is not computed.

        It is not where a leaf is not enumerated, and where the numbers are out of the range in
        which they are computed exactly.
        """
        for derived in derived_in(expression):
            if derived not in self._derived:
                self._derived[derived] = self._apply(derived)
        return self._sum(expression)

    def _sum(self, expression: Affine) -> Array | None:
        parts = [abs(expression.offset)]
        for variable, factor in expression.terms:
            interval = variable.interval
            parts.append(max(abs(interval.low), abs(interval.high)) * abs(factor))
        if sum(parts) > _LIMITS.high:
            return None
        found = np.full(self.count, expression.offset, np.int64)
        for variable, factor in expression.terms:
            if isinstance(variable, Derived):
                values = self._derived[variable]
            else:
                values = self.leaves.get(variable)
            if values is None:
                return None
            found += values if factor == 1 else values * factor
        return found

    def _apply(self, derived: Derived) -> Array | None:
        left, right = self._sum(derived.left), self._sum(derived.right)
        if left is None or right is None:
            return None
        match derived.derivation:
            case Derivation.FLOOR_DIVIDE | Derivation.REMAINDER:
                if right.min() <= 0:
                    return None
                divide = derived.derivation is Derivation.FLOOR_DIVIDE
                return left // right if divide else left % right
            case Derivation.MINIMUM:
                return np.minimum(left, right)
            case Derivation.MAXIMUM:
                return np.maximum(left, right)


def of_programs(extents: Mapping[int, int]) -> Enumeration:
    """All programs of a grid, the last axis moving fastest.

    Args:
      extents: of each axis of the grid that is enumerated.
    """
    shape = tuple(extents.values())
    leaves: dict[Leaf, Array] = {}
    for place, (axis, extent) in enumerate(extents.items()):
        along = [1] * len(shape)
        along[place] = extent
        values = np.broadcast_to(np.arange(extent).reshape(along), shape).reshape(-1)
        leaves[ProgramId(axis=axis, extent=extent)] = values
    return Enumeration(leaves, math.prod(shape))


def laid_out(programs: Enumeration, order: Array, digits: Sequence[Digit]) -> Enumeration:
    """The same programs in the order of the digits, the last one moving fastest.

    Args:
      programs: the programs, whose leaves are program ids.
      order: for each place in the new order, which program stands there.
      digits: the digits; the product of their extents is the number of programs.
    """
    shape = tuple(each.extent for each in digits)
    leaves = {leaf: values[order] for leaf, values in programs.leaves.items()}
    for digit, values in zip(digits, np.indices(shape).reshape(len(shape), -1), strict=True):
        leaves[digit] = values
    return Enumeration(leaves, programs.count)


def spread(values: Array) -> tuple[Array, int, int]:
    """`(digit, factor, start)` with `values == start + factor * digit` and `factor` as it can be.

    The digit starts at 0, and its values have no common divisor.
    """
    start = int(values.min())
    digit = values - start
    factor = math.gcd(*np.unique(digit).tolist()) or 1
    return digit // factor, factor, start


def slopes(values: Array, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
    """The start, and the step along each axis, of values that are a sum over the axes of a box.

    Args:
      values: one for each place in the box, the last axis moving fastest.
      shape: of the box, no extent below 2.

    Returns:
      `None` if the values are no such sum.
    """
    box = values.reshape(shape)
    corner = (0,) * len(shape)
    start = int(box[corner])
    steps = []
    expected: Array = np.full((1,) * len(shape), start, np.int64)
    for axis, extent in enumerate(shape):
        step = int(box[(*corner[:axis], 1, *corner[axis + 1 :])]) - start
        along = [1] * len(shape)
        along[axis] = extent
        expected = expected + step * np.arange(extent).reshape(along)
        steps.append(step)
    return (start, tuple(steps)) if bool((box == expected).all()) else None
