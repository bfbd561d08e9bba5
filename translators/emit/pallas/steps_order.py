"""In which order the steps of a grid are done, and which blocks they write."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from translators.access.enumeration import Array
from translators.access.expression import Variable, leaves
from translators.emit.emission import UnsupportedError
from translators.emit.pallas.emission import CoarserError, StepEmission
from translators.emit.pallas.index_maps import IndexMaps
from translators.emit.pallas.places import evaluated, steps_of
from translators.emit.pallas.plan import Plan
from translators.emit.pallas.traffic import Fetched, least_traffic
from translators.emit.pallas.windows import Window, reach


def order_of(e: StepEmission, plan: Plan, maps: IndexMaps) -> list[Variable]:
    """The variables in their order: those that move what is written outside of the others.

    The steps of a loop are innermost. Of the orders that are left, that in which the least is
    fetched.

    Args:
      e: what is written.
      plan: the grid.
      maps: which blocks are read.

    Raises:
      CoarserError: a block of less than whole dimensions would be written, left and come back to.
      UnsupportedError: a block would be written, left and come back to.
    """
    moving = [
        {each for index in window.index for each in leaves(index)} for window in e.outputs.values()
    ]
    parts = plan.parts
    ordered = sorted(plan.grid, key=lambda each: -sum(each in some for some in moving))
    if parts is not None:
        # What it carries goes from one step to the next.
        ordered.remove(parts.variable)
        ordered.append(parts.variable)
    for window, some in zip(e.outputs.values(), moving, strict=True):
        inside = [each in some for each in ordered]
        if inside != sorted(inside, reverse=True) or _comes_back(window, plan.grid):
            known = e.whole.get(window.buffer, {})
            rest = {
                place: reach(span) for place, span in enumerate(window.spans) if place not in known
            }
            if rest:
                raise CoarserError(window.buffer, rest)
            name = e.buffers.states[window.buffer].fact.name
            raise UnsupportedError(
                f"blocks of `{name}` would be left and come back to, whatever the order of "
                "the grid",
                e.module.kernel.location,
            )

    def is_possible(order: Sequence[Variable]) -> bool:
        if parts is not None and order[-1] != parts.variable:
            return False
        inside = [[each in some for each in order] for some in moving]
        return all(each == sorted(each, reverse=True) for each in inside)

    fetched = [_fetched(maps, each) for each in e.windows.values() if not each.scalars]
    return least_traffic(ordered, plan.grid, fetched, is_possible)


def _fetched(maps: IndexMaps, window: Window) -> Fetched:
    """What a window costs where it moves."""
    moved = maps.moved(window)
    steady = {leaf for index in window.index for leaf in leaves(index)}
    return Fetched(bytes=window.bytes, moved=moved, led=moved - steady)


def check_places(e: StepEmission, window: Window) -> None:
    """Refuses writes to blocks that the array does not have.

    Raises:
      UnsupportedError: a step may lie behind the end of the array.
    """
    for cut in window.dimensions:
        if cut.index.interval.high * cut.block >= max(cut.size, 1):
            name = e.buffers.states[window.buffer].fact.name
            raise UnsupportedError(
                f"some programs may write behind the end of `{name}`",
                e.module.kernel.location,
            )


def is_visited(window: Window, grid: Mapping[Variable, int]) -> bool:
    """Whether the steps together write to all blocks of the array."""
    blocks = prod(-(-each.size // each.block) for each in window.dimensions)
    return len(np.unique(_visits(window, grid))) == blocks


def _comes_back(window: Window, grid: Mapping[Variable, int]) -> bool:
    """Whether a block is seen again by steps that move the window elsewhere on the way."""
    visits = _visits(window, grid)
    return len(np.unique(visits)) < len(visits)


def _visits(window: Window, grid: Mapping[Variable, int]) -> Array:
    """Which block is seen, for all values of the variables of the grid that move a window."""
    counts: dict[Variable, int] = {
        leaf: grid[leaf] for index in window.index for leaf in leaves(index)
    }
    steps = steps_of(counts)
    place = np.zeros(prod(counts.values()), np.int64)
    for cut in window.dimensions:
        place = place * -(-cut.size // cut.block) + evaluated(cut.index, steps)
    return place


def semantics_of(e: StepEmission, plan: Plan, variable: Variable) -> str:
    """Whether steps along a variable may be done in any order, by any core."""
    if plan.parts is not None and variable == plan.parts.variable:
        return "arbitrary"
    windows = e.outputs.values()
    moved = ({leaf for index in each.index for leaf in leaves(index)} for each in windows)
    return "parallel" if all(variable in some for some in moved) else "arbitrary"
