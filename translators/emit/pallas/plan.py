"""Which programs make a step of the grid: one, or many where each has little to do."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from translators.access.analysis import Analysis
from translators.access.delinearize import Position
from translators.access.expression import (
    Digit,
    Iteration,
    Lane,
    ProgramId,
    Variable,
    depends_on_data,
)
from translators.emit.axis_order import outermost_first
from translators.emit.emission import UnsupportedError
from translators.emit.pallas.blocks import Room
from translators.emit.pallas.lengths import Lengths
from translators.emit.pallas.parts import Parts, parts_of
from translators.emit.terms import BatchAxis, Term, Tiled
from translators.graph.graph import Module, walk
from translators.graph.types import I32, shape_of

# Fewer programs than sublanes are not worth a step of several.
_LEAST_ROWS = 8
# The first axis that counts steps, where coordinates are taken apart; behind all coordinates.
_STEPS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A grid of steps.

    Attributes:
      grid: the variables that count the steps, the outermost first, with how many there are.
      names: what they are called.
      programs: what each coordinate of the programs is within a step.
      parts: the loop of which each step does a part, if there is one.
    """

    grid: Mapping[Variable, int]
    names: Mapping[Variable, str]
    programs: Mapping[Variable, BatchAxis | Term | Tiled]
    parts: Parts | None = None


def plan_of(
    module: Module,
    analysis: Analysis,
    room: Room,
    lengths: Lengths,
    names: Mapping[Variable, str] = MappingProxyType({}),
    single: Set[Variable] = frozenset(),
) -> Plan:
    """Decides how many programs a step computes.

    Args:
      module: the kernel.
      analysis: its accesses.
      room: how large a step may be.
      lengths: how many programs a step has where that is asked for.
      names: what coordinates are called, where it is not what they are.
      single: coordinates of which a step has one program in any case.

    Raises:
      UnsupportedError: iterations of a loop are to be steps, and no loop has such.
    """
    coordinates = _coordinates(analysis)
    ordered = outermost_first(analysis.accesses, coordinates)
    own = rows_of_each(analysis)
    alone = own is None or _goes_its_own_way(analysis)
    free = [] if alone else [each for each in ordered if each not in single]
    many = {
        each: lengths.programs(names.get(each, str(each)), rows, each.extent)
        for each, rows in _many(module, free, room, own or 1).items()
    }
    grid: dict[Variable, int] = {}
    called: dict[Variable, str] = {}
    programs: dict[Variable, BatchAxis | Term | Tiled] = {}
    for each in ordered:
        name = names.get(each, str(each))
        rows = many.get(each, 1)
        if rows == 1:
            grid[each] = each.extent
            called[each] = name
            programs[each] = Term(text=name, element=I32)
            continue
        axis = BatchAxis(name=name, extent=rows, place=0)
        if rows >= each.extent:
            programs[each] = axis
            continue
        step = Digit(axis=_STEPS + len(grid), extent=-(-each.extent // rows), name=name)
        grid[step] = step.extent
        called[step] = step.name
        programs[step] = Term(text=step.name, element=I32)
        programs[each] = Tiled(step=step, axis=axis)
    parts = parts_of(module, analysis, room, lengths)
    if parts is None and room.carried > 0:
        raise UnsupportedError("no loop can be divided among steps", module.kernel.location)
    if parts is not None:
        grid[parts.variable] = parts.count
        called[parts.variable] = parts.name
        programs[parts.variable] = Term(text=parts.name, element=I32)
    return Plan(grid=grid, names=called, programs=programs, parts=parts)


def _coordinates(analysis: Analysis) -> Sequence[Digit | ProgramId]:
    if analysis.axes is not None:
        return analysis.axes.axes
    return [
        ProgramId(axis=axis, extent=extent)
        for axis, extent in enumerate(analysis.launch.grid)
        if extent > 1
    ]


def _goes_its_own_way(analysis: Analysis) -> bool:
    """Whether each program goes where data lead it."""
    return any(
        depends_on_data(dimension.index)
        for access in analysis.accesses
        if access.shape and isinstance(access.position, Position)
        for dimension in access.position.dimensions
    )


def rows_of_each(analysis: Analysis) -> int | None:
    """How many rows of its own each program writes in a loop; `None` where programs differ in it.

    One where no loop does. Of many programs, that many rows of each are computed at once.
    """
    most = 1
    for access in analysis.accesses:
        if access.op.name != "tt.store" or not isinstance(access.position, Position):
            continue
        for dimension in access.position.dimensions:
            variables = [variable for variable, _ in dimension.index.terms]
            loops = [each for each in variables if isinstance(each, Iteration)]
            programs = any(isinstance(each, Digit | ProgramId) for each in variables)
            if programs and loops and not any(isinstance(each, Lane) for each in variables):
                if not all(each.fixed for each in loops):
                    return None
                most = max(most, prod(each.extent for each in loops))
    return most


def _many(
    module: Module, ordered: Sequence[Digit | ProgramId], room: Room, own: int
) -> dict[Digit | ProgramId, int]:
    """Of how many programs along one coordinate a step is made; none for kernels of products.

    Args:
      module: the kernel.
      ordered: the coordinates, the outermost first.
      room: how large a step may be.
      own: how many rows each program writes.
    """
    if not ordered or any(op.name == "tt.dot" for op in walk(module.kernel.body)):
        return {}
    largest = max(
        (prod(shape_of(value.type)) for op in walk(module.kernel.body) for value in op.results),
        default=1,
    )
    last = ordered[-1]
    rows = min(room.programs, room.elements // (largest * own))
    if last.extent <= rows:
        return {last: last.extent}
    rows = 1 << max(0, rows.bit_length() - 1)
    return {last: rows} if rows >= _LEAST_ROWS else {}
