"""The way from a kernel to its function: program axes, fewer programs, text."""

from collections.abc import Sequence
from dataclasses import replace

from translators.access.analysis import Analysis, analyze
from translators.access.programs import program_axes
from translators.emit.affine import TableError
from translators.emit.facts import ArgumentFact, ArrayFact
from translators.emit.jax import JaxFunction, emit_jax
from translators.emit.merging import merge_programs
from translators.emit.ordering import program_order
from translators.graph.graph import Module


def emit_kernel(
    module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact]
) -> tuple[Analysis, JaxFunction]:
    """Writes a kernel as a function on JAX arrays, of as few programs as can be.

    Args:
      module: the kernel, as `unshared` gives it.
      analysis: its accesses, in terms of program ids.
      arguments: one fact for each of the kernel's arguments.

    Returns:
      The accesses in the terms in which they were emitted, and the function.

    Raises:
      GraphError: part of the kernel has no faithful form in JAX.
    """
    aliases = {
        index: fact.alias for index, fact in enumerate(arguments) if isinstance(fact, ArrayFact)
    }
    ordered, unordered = program_order(module, analysis, aliases)
    if ordered is not None:
        return analysis, emit_jax(module, analysis, arguments, ordered=ordered)
    placed, function = _at_once(module, analysis, arguments)
    if unordered is not None:
        function = replace(function, notes=(unordered, *function.notes))
    return placed, function


def _at_once(
    module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact]
) -> tuple[Analysis, JaxFunction]:
    """The function in which all programs take each op together."""
    placed = analyze(module, analysis.launch, program_axes(analysis))
    merged = merge_programs(module, placed)
    try:
        if merged is None:
            return placed, emit_jax(module, placed, arguments)
        fewer = analyze(merged.module, replace(analysis.launch, grid=merged.grid))
        return placed, emit_jax(merged.module, fewer, arguments)
    except TableError:
        return analysis, emit_jax(module, analysis, arguments)
