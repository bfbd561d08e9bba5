"""The way from a kernel to a function that calls a Pallas kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from translators.access.analysis import Analysis, analyze
from translators.access.expression import ProgramId, Variable
from translators.access.programs import program_axes
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
from translators.emit.pallas.plan import plan_of, rows_of_each
from translators.emit.pallas.remainders import without_remainders
from translators.emit.pallas.splitting import split
from translators.emit.pallas.trimming import trimmed
from translators.graph.graph import Module


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
    for simpler in (without_remainders, trimmed, split):
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
    room, in_parts = room_for(module, placed), True
    while True:
        lengths = Lengths(asked=blocks, location=module.kernel.location)
        try:
            function = _with_room(module, placed, arguments, room, lengths)
            return placed, replace(function, blocks=lengths.found)
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
    if merged is None:
        lengths.merged.clear()
        return emit_pallas(module, placed, arguments, plan_of(module, placed, room, lengths))
    axes = [ProgramId(axis=axis, extent=merged.grid[axis]) for axis in range(len(merged.names))]
    names: dict[Variable, str] = dict(zip(axes, merged.names, strict=True))
    steps = set(axes[len(axes) - merged.steps :])
    launch = replace(placed.launch, grid=merged.grid)
    flat = folded(merged.module)
    if flat is not None:
        fewer = analyze(flat, launch)
        if has_rows(fewer):
            plan = plan_of(flat, fewer, room, lengths, names, steps)
            return emit_pallas(flat, fewer, arguments, plan)
    fewer = analyze(merged.module, launch)
    plan = plan_of(merged.module, fewer, room, lengths, names, steps)
    return emit_pallas(merged.module, fewer, arguments, plan)
