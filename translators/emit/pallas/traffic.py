"""In which order the variables of a grid are counted: so that the fewest bytes are fetched."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import permutations
from math import prod

from translators.access.expression import Variable

# More variables than this are left as they are: their orders are too many to try.
_MOST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A block of an array that is fetched whenever it is another one than in the step before.

    Attributes:
      bytes: its size.
      moved: the variables of the grid that move it.
      led: those among them that move it only through numbers in memory, which tend to repeat: the
        expert of a block of rows, the sequence of a block of tokens.
    """

    bytes: int
    moved: Set[Variable]
    led: Set[Variable]


def least_traffic(
    ordered: Sequence[Variable],
    counts: Mapping[Variable, int],
    fetched: Sequence[Fetched],
    is_possible: Callable[[Sequence[Variable]], bool],
) -> list[Variable]:
    """The order of the variables, the outermost first, in which the least is fetched.

    Args:
      ordered: the variables in an order that is possible; it is kept where no other is better.
      counts: how many values each of them has.
      fetched: the blocks.
      is_possible: whether an order may be chosen.
    """
    varied = [each for each in ordered if counts[each] > 1]
    if len(varied) > _MOST:
        return list(ordered)
    single = [each for each in ordered if counts[each] <= 1]
    # The first of all permutations is the order as it is, and `min` takes the first of equals.
    orders = [[*single, *each] for each in permutations(varied) if is_possible([*single, *each])]
    return min(orders, key=lambda order: _bytes(order, counts, fetched), default=list(ordered))


def _bytes(
    order: Sequence[Variable], counts: Mapping[Variable, int], fetched: Sequence[Fetched]
) -> float:
    """What is fetched in all: for numbers in memory the mean of always and never another one."""
    return sum(
        each.bytes
        * (_fetches(order, counts, each.moved) + _fetches(order, counts, each.moved - each.led))
        / 2
        for each in fetched
    )


def _fetches(
    order: Sequence[Variable], counts: Mapping[Variable, int], moved: Set[Variable]
) -> int:
    """How often a block is another one than in the step before."""
    places = [place for place, each in enumerate(order) if each in moved]
    return prod(counts[each] for each in order[: max(places, default=-1) + 1])
