"""The way from a kernel to a function that calls a Pallas kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from translators.access.analysis import Analysis, analyze
from translators.access.expression import ProgramId, Variable
from translators.access.extents import analyze_within_arrays
from translators.access.programs import program_axes
from translators.emit.carried import loop_name
from translators.emit.emission import UnsupportedError
from translators.emit.facts import ArgumentFact, ArrayFact
from translators.emit.jax import JaxFunction
from translators.emit.merging import merge_programs
from translators.emit.ordering import why_ordered
from translators.emit.pallas.blocks import Room, chooser, room_for
from translators.emit.pallas.elements.legal import legal
from translators.emit.pallas.emission import TooLargeError
from translators.emit.pallas.folding import folded, has_rows
from translators.emit.pallas.function import emit_pallas
from translators.emit.pallas.lengths import Lengths
from translators.emit.pallas.parts import iterations_at_once, loop_of_products
from translators.emit.pallas.plan import plan_of, rows_of_each
from translators.emit.pallas.remainders import without_remainders
from translators.emit.pallas.splitting import split
from translators.emit.pallas.trimming import trimmed
from translators.emit.pallas.unrolling import unrolled
from translators.graph.errors import GraphError
from translators.graph.graph import Module, walk


def emit_pallas_kernel(
    module: Module,
    analysis: Analysis,
    arguments: Sequence[ArgumentFact],
    blocks: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Analysis, JaxFunction]:
    """Writes a kernel as a Pallas kernel for TPU.

    Args:
      module: the kernel, as `unshared` gives it.
      analysis: its accesses, in terms of program ids.
      arguments: one fact for each of the kernel's arguments.
      blocks: how long blocks are to be, by the name of the dimension; as suits where not given.

    Returns:
      The accesses in the terms in which they were emitted, and the function.

    Raises:
      GraphError: the kernel is none of blocks; at the kernel's line.
    """
    of_tpu = legal(module, analysis, arguments)
    module, analysis, arguments = of_tpu.module, of_tpu.analysis, of_tpu.arguments
    for simpler in (without_remainders, trimmed):
        made = simpler(module, analysis)
        if made is not None:
            module, analysis = made, analyze(made, analysis.launch)
    aliases = {
        index: fact.alias for index, fact in enumerate(arguments) if isinstance(fact, ArrayFact)
    }
    ordered = why_ordered(module, analysis, aliases)
    if ordered is not None:
        raise UnsupportedError(ordered.text, module.kernel.location)
    placed = analyze(module, analysis.launch, program_axes(analysis))
    loops = (loop_name(op) for op in walk(module.kernel.body) if op.name == "scf.for")
    divided = _divided(module, placed, blocks) if any(each in blocks for each in loops) else None
    if divided is not None and divided.name in blocks:
        return placed, _fitting(divided, arguments, blocks)
    whole = _whole(module, analysis, placed)
    try:
        return whole.analysis, _fitting(whole, arguments, blocks)
    except TooLargeError as error:
        # What is smaller has no room either, with all iterations of a loop in one step.
        divided = _divided(module, placed, blocks)
        if divided is None:
            raise
        too_large = error
    try:
        return placed, _fitting(divided, arguments, blocks)
    except UnsupportedError:
        raise too_large from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Divided:
    """A kernel of whose loop a step does some iterations, or all.

    Attributes:
      module: the kernel, in which these iterations are one.
      analysis: its accesses.
      room: how large a step may be.
      name: what the loop's counter is called; empty where a step does all iterations.
    """

    module: Module
    analysis: Analysis
    room: Room
    name: str = ""


def _whole(module: Module, analysis: Analysis, placed: Analysis) -> _Divided:
    """The kernel whose steps do all iterations of a loop, in two loops where that saves a mask."""
    made = split(module, analysis)
    if made is not None:
        module, analysis = made, analyze(made, analysis.launch)
        placed = analyze(module, analysis.launch, program_axes(analysis))
    return _Divided(module=module, analysis=placed, room=room_for(module, placed))


def _divided(module: Module, placed: Analysis, asked: Mapping[str, int]) -> _Divided | None:
    """The kernel with a loop that is divided though it carries more than sums.

    `None` where it has no such loop, or where no array says how many iterations there are.

    Raises:
      GraphError: as many iterations as are asked for make no steps.
    """
    analysis = analyze_within_arrays(module, placed.launch, placed.axes)
    found = loop_of_products(module, analysis)
    if found is None or not found.divisible:
        return None
    name, extent = loop_name(found.op), found.loop.iteration.extent
    count = asked.get(name) or iterations_at_once(analysis, found)
    if extent % count:
        raise GraphError(
            f"steps of `{name}` have to divide its {extent} iterations, as {count} do not",
            found.op.location,
        )
    if count > 1:
        even = found.loop.trips is not None and found.loop.trips.value is not None
        module = unrolled(module, found.op, found.loop.step, count, even=even)
        analysis = analyze_within_arrays(module, placed.launch, placed.axes)
    return _Divided(module=module, analysis=analysis, room=Room().in_iterations(count), name=name)


def _fitting(
    divided: _Divided, arguments: Sequence[ArgumentFact], blocks: Mapping[str, int]
) -> JaxFunction:
    """The function with blocks that vector memory has room for.

    Raises:
      GraphError: there are none, or the kernel has another problem.
    """
    module, placed = divided.module, divided.analysis
    room, in_parts = divided.room, not divided.name
    while True:
        lengths = Lengths(asked=blocks, location=module.kernel.location)
        try:
            function = _with_room(module, placed, arguments, room, lengths)
            return replace(function, blocks=lengths.found)
        except TooLargeError:
            if in_parts and room.inner is None:
                room = room.in_parts
            elif room.least or lengths.settled:
                raise
            else:
                room = room.half
        except UnsupportedError:
            if room.inner is not None:
                room, in_parts = replace(room, inner=None).half, False
            elif room.programs > 1 and (rows_of_each(placed) or 1) > 1:
                room = replace(room, programs=1)
            else:
                raise


def _with_room(
    module: Module,
    placed: Analysis,
    arguments: Sequence[ArgumentFact],
    room: Room,
    lengths: Lengths,
) -> JaxFunction:
    """The function with blocks of at most a size."""
    merged = merge_programs(module, placed, lengths.chooser(chooser(module, room)))
    analyzed = analyze_within_arrays if room.carried else analyze
    if merged is None:
        lengths.merged.clear()
        return emit_pallas(module, placed, arguments, plan_of(module, placed, room, lengths))
    axes = [ProgramId(axis=axis, extent=merged.grid[axis]) for axis in range(len(merged.names))]
    names: dict[Variable, str] = dict(zip(axes, merged.names, strict=True))
    steps = set(axes[len(axes) - merged.steps :])
    launch = replace(placed.launch, grid=merged.grid)
    flat = folded(merged.module)
    if flat is not None:
        fewer = analyzed(flat, launch)
        if has_rows(fewer):
            plan = plan_of(flat, fewer, room, lengths, names, steps)
            return emit_pallas(flat, fewer, arguments, plan)
    fewer = analyzed(merged.module, launch)
    plan = plan_of(merged.module, fewer, room, lengths, names, steps)
    return emit_pallas(merged.module, fewer, arguments, plan)
