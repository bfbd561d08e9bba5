"""A kernel with other block lengths than it was launched with.

A block length is a constant of the kernel. With another one the kernel is another kernel, which
computes the same if it is right: nothing here proves that, the verification does, which holds what
was emitted against the kernel as it was launched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hlo_tools.errors import InputError
from translators.access.analysis import Analysis, analyze
from translators.access.expression import Affine, ProgramId
from translators.access.states import Integer, Pointer
from translators.emit.emission import Note
from translators.graph.graph import Module
from translators.translation import Target, Translation, specialization, translate_module
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import Argument, ConstantArgument, Launch


def translate_with_blocks(
    kernel: Any, launch: Launch, blocks: Mapping[str, int], emit: Target = "pallas"
) -> Translation:
    """Translates a jitted function for a launch, with other block lengths than it has.

    Args:
      kernel: the jitted function.
      launch: the launch.
      blocks: constants of the kernel, by name.
      emit: what to write.

    Returns:
      The translation, whose launch and graph are those of the kernel as it was launched.

    Raises:
      InputError: the kernel cannot have these blocks, or part of it has no faithful translation.
    """
    module = kernel_graph(kernel, launch)
    graph, changed = reblocked(kernel, module, launch, blocks)
    translation = translate_module(graph, changed, emit)
    told = ", ".join(f"{name}={value}" for name, value in blocks.items())
    note = Note(text=f"blocks of another length than the launch's: {told}")
    function = translation.function
    return replace(
        translation,
        launch=launch,
        module=module,
        function=replace(function, notes=(*function.notes, note)),
    )


def reblocked(
    kernel: Any, module: Module, launch: Launch, blocks: Mapping[str, int]
) -> tuple[Module, Launch]:
    """The kernel and its launch with other constants.

    An axis of the grid whose programs lie so many times as far apart as before has so many times
    fewer of them.

    Args:
      kernel: the jitted function.
      module: its graph, as launched.
      launch: the launch.
      blocks: the constants, by name.

    Raises:
      InputError: the kernel has no such constant, it is refused with it, or the grid does not
        follow it.
    """
    constants = {
        each.name: each.value for each in launch.singles if isinstance(each, ConstantArgument)
    }
    for name, value in blocks.items():
        before = constants.get(name)
        if not isinstance(before, int) or isinstance(before, bool):
            numbers = ", ".join(
                f"`{each}`"
                for each, number in constants.items()
                if isinstance(number, int) and not isinstance(number, bool)
            )
            raise InputError(
                f"`{launch.kernel.function}` has no constant `{name}` that is an integer"
                + (f"; it has {numbers}" if numbers else "")
            )
        if value < 1 or value & (value - 1):
            raise InputError(f"`{name}` must be a power of two, not {value}")
    changed = replace(launch, arguments=tuple(_changed(each, blocks) for each in launch.arguments))
    graph = kernel_graph(kernel, changed)
    before_ = analyze(module, specialization(module, launch))
    after = analyze(graph, specialization(graph, changed))
    grid = tuple(_count(axis, launch, before_, after, constants, blocks) for axis in range(3))
    return graph, replace(changed, grid=(grid[0], grid[1], grid[2]))


def _changed(argument: Argument, blocks: Mapping[str, int]) -> Argument:
    if isinstance(argument, ConstantArgument) and argument.name in blocks:
        return replace(argument, value=blocks[argument.name])
    return argument


def _count(
    axis: int,
    launch: Launch,
    before: Analysis,
    after: Analysis,
    constants: Mapping[str, object],
    blocks: Mapping[str, int],
) -> int:
    """How many programs there are along an axis of the grid with the other constants."""
    extent = launch.grid[axis]
    one, other = _distances(before, axis), _distances(after, axis)
    if extent == 1 or one == other:
        return extent
    for name, value in blocks.items():
        old = constants[name]
        assert isinstance(old, int)
        if other == {distance * value // old for distance in one}:
            return max(1, -(-extent * old // value))
    raise InputError(
        f"axis {axis} of the grid does not follow {', '.join(f'`{each}`' for each in blocks)}"
    )


def _distances(analysis: Analysis, axis: int) -> frozenset[int]:
    """How far apart programs that follow one another along an axis are, wherever that is said."""
    return frozenset(
        abs(factor)
        for expression in _expressions(analysis)
        for variable, factor in expression.terms
        if isinstance(variable, ProgramId) and variable.axis == axis and abs(factor) > 1
    )


def _expressions(analysis: Analysis) -> Iterator[Affine]:
    for access in analysis.accesses:
        if isinstance(access.pointer, Pointer):
            yield access.pointer.offset
    for state in analysis.states.values():
        if isinstance(state, Integer):
            yield state.expression
