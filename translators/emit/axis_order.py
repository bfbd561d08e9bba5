"""In which order batch axes lie in the arrays that a kernel touches.

Values whose axes lie as in memory need no transposing where they are read and written.
"""

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from typing import TypeVar

from translators.access.analysis import Access
from translators.access.delinearize import Position
from translators.access.expression import Variable

Counter = TypeVar("Counter", bound=Variable)


def outermost_first(accesses: Iterable[Access], counters: Sequence[Counter]) -> list[Counter]:
    """The variables in the order of most accesses, the one of the largest stride first.

    Where accesses do not say, they stay as they are.
    """
    steps = [_steps(each) for each in accesses]

    def compare(one: Counter, other: Counter) -> int:
        votes = (_vote(each, one, other) for each in steps)
        total = sum(votes)
        return -1 if total > 0 else 1 if total < 0 else 0

    return sorted(counters, key=cmp_to_key(compare))


def lies_outside(accesses: Iterable[Access], counter: Variable, others: Sequence[Variable]) -> bool:
    """Whether a variable moves most accesses by more than each of the others that moves them."""
    total = 0
    for access in accesses:
        steps = _steps(access)
        rivals = [steps[each] for each in others if each in steps]
        if counter in steps and rivals:
            total += 1 if steps[counter] > max(rivals) else -1
    return total > 0


def _vote(steps: dict[Variable, int], one: Variable, other: Variable) -> int:
    if one not in steps or other not in steps:
        return 0
    return 1 if steps[one] > steps[other] else -1 if steps[one] < steps[other] else 0


def _steps(access: Access) -> dict[Variable, int]:
    """By how many elements each variable moves an access."""
    if not isinstance(access.position, Position):
        return {}
    found: dict[Variable, int] = {}
    for dimension in access.position.dimensions:
        for variable, factor in dimension.index.terms:
            step = abs(factor * dimension.stride)
            found[variable] = max(found.get(variable, 0), step)
    return found
