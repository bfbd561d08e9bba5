"""Which loop of products is divided among the steps of the grid, and how.

Where a step has no room for all that a product sums over, the steps bring it in parts.
"""

from dataclasses import dataclass

from translators.access.analysis import Analysis
from translators.access.expression import Digit, Variable
from translators.access.loops import Loop
from translators.emit.carried import loop_name, returns_inside, stores
from translators.emit.pallas.blocks import Room
from translators.emit.pallas.lengths import Lengths
from translators.graph.errors import GraphError
from translators.graph.graph import Module, Op, Region, walk
from translators.graph.types import shape_of

# The axis that counts steps of a loop; behind those of programs.
_STEPS = 128
_LANES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A loop of which each step of the grid does a part.

    Attributes:
      op: the loop.
      loop: what is known of it.
      count: how many steps there are.
      iterations: how many of its iterations a step does at once.
      variable: what counts the steps.
      name: what that is called.
    """

    op: Op
    loop: Loop
    count: int
    iterations: int
    variable: Variable
    name: str


def parts_of(module: Module, analysis: Analysis, room: Room, lengths: Lengths) -> Parts | None:
    """How the loop of a kernel's products is divided among steps; `None` where it is not.

    Args:
      module: the kernel.
      analysis: its accesses.
      room: how many positions of what is summed over a step may have.
      lengths: how many iterations a step does, where that is asked for.

    Raises:
      GraphError: as many as are asked for make no steps.
    """
    body = module.kernel.body
    loops = [op for op in walk(body) if op.name in ("scf.for", "scf.while")]
    found = [op for op in body.ops if op in loops and _products(op)]
    if len(found) != 1:
        return None
    (op,) = found
    before = Region(ops=body.ops[: body.ops.index(op)])
    if stores(before) or stores(op.regions[0]) or returns_inside(op.regions[0]):
        return None
    loop = analysis.loops.get(loops.index(op))
    trips = None if loop is None or loop.trips is None else loop.trips.value
    if loop is None or trips is None or trips < 2:
        return None
    name = loop_name(op)
    depth = max(shape_of(each.operands[0].type)[-1] for each in _products(op))
    asked = lengths.asked.get(name)
    if asked is None and room.inner is None:
        return None
    wanted = min(trips, asked or max(1, (room.inner or 0) // depth))
    count = max(each for each in range(1, wanted + 1) if trips % each == 0)
    whole = count == trips
    if asked is not None and not whole and (count < wanted or count * depth % _LANES):
        raise GraphError(
            f"steps of `{name}` have to divide its {trips} iterations, and to go through multiples "
            f"of {_LANES} positions, as {asked} iterations of {depth} do not",
            op.location,
        )
    if asked is not None or not whole:
        lengths.iterations(name, count, trips)
    if whole or count * depth % _LANES:
        return None
    if count == 1:
        variable: Variable = loop.iteration
    else:
        variable = Digit(axis=_STEPS, extent=trips // count, name=name)
    return Parts(
        op=op, loop=loop, count=trips // count, iterations=count, variable=variable, name=name
    )


def _products(op: Op) -> list[Op]:
    return [each for region in op.regions for each in walk(region) if each.name == "tt.dot"]
