"""Where the steps of a grid go, all of them at once."""

from collections.abc import Mapping
from math import prod

import numpy as np

from translators.access.enumeration import Array
from translators.access.expression import Affine, Derivation, Variable, derived_in


def steps_of(counts: Mapping[Variable, int]) -> dict[Variable, Array]:
    """The value of each variable in every step.

    Args:
      counts: how many values each one takes, from 0 on.

    Returns:
      For each variable integers of shape `(steps,)`.
    """
    sizes = list(counts.values())
    box = np.indices(sizes).reshape(len(sizes), prod(sizes))
    return dict(zip(counts, box, strict=True))


def evaluated(expression: Affine, values: Mapping[Variable, Array]) -> Array:
    """The expression in every step.

    Args:
      expression: over variables that have values.
      values: integers of shape `(steps,)` for each variable.

    Returns:
      Integers of shape `(steps,)`, or `(1,)` where no variable moves it.
    """
    known = dict(values)

    def sum_of(part: Affine) -> Array:
        found = np.full(1, part.offset, np.int64)
        for each, factor in part.terms:
            found = found + known[each] * factor
        return found

    for derived in derived_in(expression):
        left, right = sum_of(derived.left), sum_of(derived.right)
        match derived.derivation:
            case Derivation.FLOOR_DIVIDE:
                known[derived] = left // right
            case Derivation.REMAINDER:
                known[derived] = left % right
            case Derivation.MINIMUM:
                known[derived] = np.minimum(left, right)
            case Derivation.MAXIMUM:
                known[derived] = np.maximum(left, right)
    return sum_of(expression)
