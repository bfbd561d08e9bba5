"""The way from a kernel to a function that calls a Pallas kernel."""

from collections.abc import Sequence
from dataclasses import replace

from translators.access.analysis import Analysis, analyze
from translators.access.expression import ProgramId, Variable
from translators.access.programs import program_axes
from translators.emit.emission import UnsupportedError
from translators.emit.facts import ArgumentFact, ArrayFact
from translators.emit.jax import JaxFunction
from translators.emit.merging import merge_programs
from translators.emit.ordering import why_ordered
from translators.emit.pallas.blocks import Room, chooser
from translators.emit.pallas.folding import folded, has_rows
from translators.emit.pallas.function import TooLargeError, emit_pallas
from translators.emit.pallas.plan import plan_of
from translators.graph.graph import Module


def emit_pallas_kernel(
    module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact]
) -> tuple[Analysis, JaxFunction]:
    """Writes a kernel as a Pallas kernel for TPU.

    Args:
      module: the kernel, as `unshared` gives it.
      analysis: its accesses, in terms of program ids.
      arguments: one fact for each of the kernel's arguments.

    Returns:
      The accesses in the terms in which they were emitted, and the function.

    Raises:
      GraphError: the kernel is none of blocks; at the kernel's line.
    """
    aliases = {
        index: fact.alias for index, fact in enumerate(arguments) if isinstance(fact, ArrayFact)
    }
    ordered = why_ordered(module, analysis, aliases)
    if ordered is not None:
        raise UnsupportedError(ordered.text, module.kernel.location)
    placed = analyze(module, analysis.launch, program_axes(analysis))
    room = Room()
    while True:
        try:
            return placed, _with_room(module, placed, arguments, room)
        except TooLargeError:
            if room.least:
                raise
            room = room.half


def _with_room(
    module: Module, placed: Analysis, arguments: Sequence[ArgumentFact], room: Room
) -> JaxFunction:
    """The function with blocks of at most a size."""
    merged = merge_programs(module, placed, chooser(module, room))
    if merged is None:
        return emit_pallas(module, placed, arguments, plan_of(module, placed, room))
    axes = [ProgramId(axis=axis, extent=merged.grid[axis]) for axis in range(len(merged.names))]
    names: dict[Variable, str] = dict(zip(axes, merged.names, strict=True))
    steps = set(axes[len(axes) - merged.steps :])
    launch = replace(placed.launch, grid=merged.grid)
    flat = folded(merged.module)
    if flat is not None:
        fewer = analyze(flat, launch)
        if has_rows(fewer):
            plan = plan_of(flat, fewer, room, names, steps)
            return emit_pallas(flat, fewer, arguments, plan)
    fewer = analyze(merged.module, launch)
    plan = plan_of(merged.module, fewer, room, names, steps)
    return emit_pallas(merged.module, fewer, arguments, plan)
