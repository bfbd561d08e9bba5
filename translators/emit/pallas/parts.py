"""Which loop is divided among the steps of the grid, and how.

Where a step has no room for all that a loop goes through, the steps bring it in parts. What a loop
only adds up is brought several iterations at a time, which are computed at once. Whatever else it
carries goes from step to step in the order of the iterations; of these a step has one, as the loop
was unrolled before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from translators.access.analysis import Analysis
from translators.access.expression import Affine, Digit, Variable
from translators.access.loops import Loop
from translators.access.walk import ACCESS_OPS
from translators.emit.at_once import Total, adds_up
from translators.emit.carried import follows, loop_name, returns_inside, stores
from translators.emit.pallas.blocks import Room
from translators.emit.pallas.emission import READS
from translators.emit.pallas.lengths import Lengths
from translators.graph.errors import GraphError
from translators.graph.graph import Module, Op, Region, Value, walk
from translators.graph.types import shape_of

# The axis that counts steps of a loop; behind those of programs.
_STEPS = 128
_LANES = 128
# A step goes through so many rows of an array, of up to so many iterations.
_ROWS = 1024
_MOST_LAID_OUT = 8
# Of a loop of which no array says how many iterations it has at most.
_MOST_STEPS = 1 << 16
_ADDING = ("arith.addf", "arith.addi", "tt.dot")
# Writes that may be made an iteration at a time.
_STORES = ("tt.store", "tt.descriptor_store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A loop of which each step of the grid does a part.

    Attributes:
      op: the loop.
      loop: what is known of it.
      count: how many steps there are; in some programs fewer of them have an iteration to do.
      iterations: how many of its iterations a step does at once.
      variable: what counts the steps.
      name: what that is called.
      totals: how each carried value adds up; `None` where one goes from step to step as it is.
    """

    op: Op
    loop: Loop
    count: int
    iterations: int
    variable: Variable
    name: str
    totals: Mapping[Value, Total] | None

    @property
    def varies(self) -> bool:
        """Whether programs may have iterations for some of the steps alone."""
        return self.loop.trips is None or self.loop.trips.value is None

    @property
    def last(self) -> Affine:
        """The last iteration of a program, and the first where it has none."""
        last = self.loop.last
        assert last is not None
        return last


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLoop:
    """A loop of a kernel's products.

    Attributes:
      op: the loop.
      loop: what is known of it.
      totals: how each carried value adds up; `None` where one is more than a sum, or where there
        may be more or fewer iterations.
    """

    op: Op
    loop: Loop
    totals: Mapping[Value, Total] | None

    @property
    def divisible(self) -> bool:
        """Whether each iteration may be a step, with what it carries in memory."""
        if self.totals is not None or self.loop.last is None:
            return False
        if not 1 < self.loop.iteration.extent <= _MOST_STEPS:
            return False
        writes = _writes(self.op.regions[0])
        fixed = self.loop.trips is not None and self.loop.trips.value is not None
        return not writes or (fixed and all(each.name in _STORES for each in writes))


def loop_of_products(module: Module, analysis: Analysis) -> ProductLoop | None:
    """The loop of a kernel that can be divided among steps; `None` if there is none, or several."""
    body = module.kernel.body
    loops = [op for op in walk(body) if op.name in ("scf.for", "scf.while")]
    found = [op for op in body.ops if op in loops and _products(op)]
    if len(found) != 1:
        return None
    (op,) = found
    before = Region(ops=body.ops[: body.ops.index(op)])
    loop = analysis.loops.get(loops.index(op))
    if loop is None or stores(before) or returns_inside(op.regions[0]):
        return None
    carried = [each for each in op.regions[0].arguments[1:] if not follows(analysis, each)]
    totals = adds_up(op, carried)
    sums = totals is not None and _are_sums(totals) and not stores(op.regions[0])
    fixed = loop.trips is not None and loop.trips.value is not None
    return ProductLoop(op=op, loop=loop, totals=totals if sums and fixed else None)


def iterations_at_once(analysis: Analysis, found: ProductLoop) -> int:
    """How many iterations of a loop a step does that carries more than sums; not all of them."""
    extent = found.loop.iteration.extent
    inside = set(walk(found.op.regions[0]))
    rows = [prod(each.shape[:-1]) for each in analysis.accesses if each.op in inside]
    wanted = min(_MOST_LAID_OUT, extent - 1, max(1, _ROWS // max(rows, default=_ROWS)))
    return max(each for each in range(1, wanted + 1) if extent % each == 0)


def parts_of(module: Module, analysis: Analysis, room: Room, lengths: Lengths) -> Parts | None:
    """How the loop of a kernel's products is divided among steps; `None` where it is not.

    Args:
      module: the kernel.
      analysis: its accesses.
      room: how many positions of what is summed over a step may have, or how many iterations of
        the loop as it was written are one of the loop at hand.
      lengths: how many iterations a step does, where that is asked for.

    Raises:
      GraphError: as many as are asked for make no steps.
    """
    found = loop_of_products(module, analysis)
    if found is None:
        return None
    if room.carried:
        return _of_iterations(found, room, lengths) if found.divisible else None
    if found.totals is None:
        return None
    trips = None if found.loop.trips is None else found.loop.trips.value
    assert trips is not None
    if loop_name(found.op) not in lengths.asked and room.inner is None:
        return None
    return _of_sums(found.op, found.loop, found.totals, trips, room, lengths)


def _of_sums(
    op: Op,
    loop: Loop,
    totals: Mapping[Value, Total],
    trips: int,
    room: Room,
    lengths: Lengths,
) -> Parts | None:
    """Steps of several iterations each, which are computed at once."""
    name = loop_name(op)
    if trips < 2:
        return None
    asked = lengths.asked.get(name)
    depth = max(shape_of(each.operands[0].type)[-1] for each in _products(op))
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
        op=op,
        loop=loop,
        count=trips // count,
        iterations=count,
        variable=variable,
        name=name,
        totals=totals,
    )


def _of_iterations(found: ProductLoop, room: Room, lengths: Lengths) -> Parts:
    """Steps of an iteration each, of the loop as it is now."""
    op, loop, name = found.op, found.loop, loop_name(found.op)
    parts = Parts(
        op=op,
        loop=loop,
        count=loop.iteration.extent,
        iterations=1,
        variable=loop.iteration,
        name=name,
        totals=None,
    )
    lengths.iterations(name, room.carried, parts.count * room.carried)
    return parts


def _are_sums(totals: Mapping[Value, Total]) -> bool:
    return all(
        total.chain and all(op.name in _ADDING for op in total.chain) for total in totals.values()
    )


def _products(op: Op) -> list[Op]:
    return [each for region in op.regions for each in walk(region) if each.name == "tt.dot"]


def _writes(region: Region) -> Sequence[Op]:
    return [each for each in walk(region) if each.name in ACCESS_OPS and each.name not in READS]
