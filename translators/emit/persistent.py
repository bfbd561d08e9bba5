"""Loops in which each program goes through tiles that lie as far apart as there are programs.

`for tile in range(tl.program_id(0), tiles, programs)` keeps the processors of a GPU busy with no
more programs than it has of them. What a program does for one tile is then what a program of a grid
of tiles does, which is what grids are on a TPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from translators.access.analysis import Analysis, analyze
from translators.access.expression import Affine, ProgramId, constant, derived_in, of
from translators.access.loops import Loop
from translators.access.states import Integer
from translators.emit.carried import returns_inside
from translators.emit.ordering import why_ordered
from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    Module,
    Op,
    Region,
    Value,
    make_op,
    users,
    walk,
)
from translators.graph.ops.catalog import OPS
from translators.graph.ops.definition import Effect
from translators.graph.types import I32, I64
from translators.graph.verifier import verify

_PROGRAM, _COUNT = "tt.get_program_id", "tt.get_num_programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Persistent:
    """A loop through tiles.

    Attributes:
      op: the loop.
      axis: that of the grid along which programs take turns.
      tiles: how many tiles there are.
      carried: for the values that go round the loop how far they are from the number of the tile,
        or what they are in all tiles.
    """

    op: Op
    axis: int
    tiles: int
    carried: Mapping[Value, Affine]


def with_a_program_for_each_tile(
    module: Module, analysis: Analysis, aliases: Mapping[int, int]
) -> tuple[Module, Analysis] | None:
    """The kernel on a grid of the tiles that its programs go through; `None` if there are none.

    Args:
      module: a verified kernel.
      analysis: its accesses, in terms of program ids.
      aliases: the first of the arguments that are one array, by index.
    """
    found = _loop_of_tiles(module, analysis)
    if found is None:
        return None
    made = copied_kernel(module, _Copier(found, analysis.launch.grid[found.axis]))
    verify(made)
    grid = list(analysis.launch.grid)
    grid[found.axis] = found.tiles
    first, second, third = grid
    spread = analyze(made, replace(analysis.launch, grid=(first, second, third)))
    if why_ordered(made, spread, aliases) is not None:
        return None  # some tile depends on those that its program did before
    return made, spread


def _loop_of_tiles(module: Module, analysis: Analysis) -> _Persistent | None:
    body = module.kernel.body
    others = [each.body for each in module.functions.values() if each is not module.kernel]
    if any(op.name in (_PROGRAM, _COUNT) for other in others for op in walk(other)):
        return None
    loops = [op for op in walk(body) if op.name in ("scf.for", "scf.while")]
    for op in body.ops:
        loop = analysis.loops.get(loops.index(op)) if op.name == "scf.for" else None
        if loop is None or loop.upper.value is None or loop.upper.value < 1:
            continue
        if op.operands[0].type not in (I32, I64):
            continue
        axis = _axis_of(loop, analysis.launch.grid)
        if axis is None or not _does_all(body, op) or returns_inside(op.regions[0]):
            continue
        carried = _carried(op, loop, axis, analysis)
        if carried is not None and not _knows_its_program(body, op, axis):
            return _Persistent(op=op, axis=axis, tiles=loop.upper.value, carried=carried)
    return None


def _axis_of(loop: Loop, grid: tuple[int, int, int]) -> int | None:
    """The axis whose programs begin at their own tile and go on as far as there are of them."""
    for axis, extent in enumerate(grid):
        program = of(ProgramId(axis=axis, extent=extent))
        if extent > 1 and loop.step == extent and loop.lower == program:
            return axis
    return None


def _does_all(body: Region, loop: Op) -> bool:
    """Whether nothing but the loop touches memory that is written, or comes out of it."""
    outside = [op for op in body.ops if op is not loop]
    used = users(body)
    return not any(each in used for each in loop.results) and not any(
        OPS[inner.name].effect in (Effect.WRITE, Effect.READ_WRITE)
        for op in outside
        for inner in (op, *(each for region in op.regions for each in walk(region)))
    )


def _carried(op: Op, loop: Loop, axis: int, analysis: Analysis) -> dict[Value, Affine] | None:
    """What goes round the loop, by the number of the tile; `None` if it is not known of something.

    A value that is as far on in the next iteration as the tile is says no more than the tile.
    """
    region = op.regions[0]
    used = users(region)
    extent = analysis.launch.grid[axis]
    program = ProgramId(axis=axis, extent=extent)
    found: dict[Value, Affine] = {}
    for argument in region.arguments[1:]:
        if argument not in used:
            continue
        state = analysis.states.get(argument)
        if not isinstance(state, Integer) or any(derived_in(state.expression)):
            return None
        terms = dict(state.expression.terms)
        by_program, by_iteration = terms.pop(program, 0), terms.pop(loop.iteration, 0)
        if loop.iteration.extent == 1:
            by_iteration = by_program * extent  # there is no other iteration to tell
        if terms or by_iteration != by_program * extent or by_program not in (0, 1):
            return None
        if by_program and argument.type != region.arguments[0].type:
            return None
        rest = constant(state.expression.offset)
        found[argument] = of(program) + rest if by_program else rest
    return found


def _knows_its_program(body: Region, loop: Op, axis: int) -> bool:
    """Whether what is done for a tile depends on which program does it."""
    known: set[Value] = set()
    for op in body.ops:
        inner = [op, *(each for region in op.regions for each in walk(region))]
        tells = any(each.name == _PROGRAM and each.attributes["axis"] == axis for each in inner)
        if op is loop:
            taken = {value for each in inner[1:] for value in each.operands}
            return tells or bool(taken & known)
        if tells or any(value in known for each in inner for value in each.operands):
            known.update(op.results)
    raise AssertionError("the loop is one of the kernel's ops")


class _Copier(Copier):
    """Puts the body in the place of the loop, for the tile that has the program's number."""

    def __init__(self, found: _Persistent, programs: int) -> None:
        super().__init__()
        self._found = found
        self._programs = programs

    def copies(self, op: Op, region: Region) -> bool:
        """Copies what is in the loop; says how many programs there were."""
        if op.name == _COUNT and op.attributes["axis"] == self._found.axis:
            self.values[op.result] = self._constant(op, region, self._programs)
            return False
        if op is not self._found.op:
            return True
        inner = op.regions[0]
        counter = inner.arguments[0]
        made = make_op(
            _PROGRAM,
            (),
            (I32,),
            attributes={"axis": self._found.axis},
            location=op.location,
            result_names=[counter.name],
        )
        region.ops.append(made)
        if counter.type != I32:
            made = make_op("arith.extsi", (made.result,), (counter.type,), location=op.location)
            region.ops.append(made)
        self.values[counter] = made.result
        for argument, expression in self._found.carried.items():
            self.values[argument] = self._of_tile(op, region, argument, expression)
        self.copy(Region(ops=inner.ops[:-1]), region)
        return False

    def _of_tile(self, op: Op, region: Region, argument: Value, expression: Affine) -> Value:
        offset = self._constant(op, region, expression.offset, argument)
        if not expression.terms:
            return offset
        tile = self.values[self._found.op.regions[0].arguments[0]]
        added = make_op(
            "arith.addi",
            (tile, offset),
            (argument.type,),
            location=op.location,
            result_names=[argument.name],
        )
        region.ops.append(added)
        return added.result

    def _constant(self, op: Op, region: Region, value: int, like: Value | None = None) -> Value:
        type_ = (like or op.result).type
        made = make_op(
            "arith.constant", (), (type_,), attributes={"value": value}, location=op.location
        )
        region.ops.append(made)
        return made.result
