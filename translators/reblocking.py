"""A kernel with other block lengths than it was launched with.

A block length is a constant of the kernel. With another one the kernel is another kernel, which
computes the same if it is right: nothing here proves that, the verification does, which holds what
was emitted against the kernel as it was launched.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from hlo_tools.errors import InputError
from translators.access.analysis import Access, Analysis, analyze
from translators.access.delinearize import Position
from translators.access.expression import Affine, Iteration, ProgramId
from translators.access.states import Integer, Pointer
from translators.graph.graph import Module, Op, walk
from translators.graph.types import FloatType, element_of
from translators.specializing import specialization
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import Argument, ConstantArgument, Launch


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
    """How far apart programs that follow one another along an axis are, wherever that is said.

    Where it is not said of what they touch, it is of the numbers that they compute.
    """
    touched = [
        access.pointer.offset for access in analysis.accesses if isinstance(access.pointer, Pointer)
    ]
    computed = [
        state.expression for state in analysis.states.values() if isinstance(state, Integer)
    ]
    return _factors(touched, axis) or _factors(computed, axis)


def _factors(expressions: Iterable[Affine], axis: int) -> frozenset[int]:
    return frozenset(
        abs(factor)
        for expression in expressions
        for variable, factor in expression.terms
        if isinstance(variable, ProgramId) and variable.axis == axis and abs(factor) > 1
    )


# Lengths of blocks that are worth a try, the best first (docs/kernel-model.md: below 256 a trip
# through a loop of products waits for one op after another).
_LENGTHS = (512, 256)
_LEAST, _MOST = 16, 256
_MOST_NAMES = 3


def loops_over_products(module: Module) -> bool:
    """Whether a kernel has a loop that multiplies matrices."""
    return any(op.name == "scf.for" and _multiplies(op) for op in walk(module.kernel.body))


def _multiplies(op: Op) -> bool:
    """Whether a loop multiplies matrices itself, not only in a loop inside of it."""
    ops = [inner for region in op.regions for inner in walk(region)]
    deeper = {
        each
        for inner in ops
        if inner.name in ("scf.for", "scf.while")
        for region in inner.regions
        for each in walk(region)
    }
    return any(inner.name == "tt.dot" and inner not in deeper for inner in ops)


def _goes_block_by_block(module: Module, analysis: Analysis) -> bool:
    """Whether some loop over products is no single product of all that it goes through.

    It carries more than their sum, or is not equally long in all programs.
    """
    loops = [op for op in walk(module.kernel.body) if op.name in ("scf.for", "scf.while")]
    for number, op in enumerate(loops):
        if op.name != "scf.for" or not _multiplies(op):
            continue
        floats = [each for each in op.results if isinstance(element_of(each.type), FloatType)]
        loop = analysis.loops.get(number)
        if len(floats) > 1 or loop is None or loop.trips is None or loop.trips.value is None:
            return True
    return False


def larger_blocks(module: Module, launch: Launch) -> Iterator[dict[str, int]]:
    """Constants that may be lengths of blocks, made larger; the most promising first.

    Programs or iterations that follow one another lie so far apart. There are none for a kernel
    whose loops of products each become one product.
    """
    found = analyze(module, specialization(module, launch))
    if not _goes_block_by_block(module, found):
        return
    distances = {
        abs(factor)
        for state in found.states.values()
        if isinstance(state, Integer)
        for variable, factor in state.expression.terms
        if isinstance(variable, ProgramId | Iteration)
    }
    small = {
        each.name: each.value
        for each in launch.singles
        if isinstance(each, ConstantArgument)
        and isinstance(each.value, int)
        and not isinstance(each.value, bool)
        and _LEAST <= each.value <= _MOST
        and each.value in distances
    }
    names = list(small)[:_MOST_NAMES]
    for length in _LENGTHS:
        for count in range(min(len(names), 2), 0, -1):
            for chosen in combinations(names, count):
                wished = {name: length for name in chosen if small[name] < length}
                if len(wished) == count:
                    yield wished


def refuse_unlike(module: Module, launch: Launch, graph: Module, changed: Launch) -> None:
    """Refuses constants with which the kernel would not go to the same places.

    Raises:
      InputError: it has other accesses, leaves an array, or does not write the same positions.
    """
    before = analyze(module, specialization(module, launch)).accesses
    after = analyze(graph, specialization(graph, changed)).accesses
    if [each.op.name for each in before] != [each.op.name for each in after]:
        raise InputError("with other constants the kernel has other accesses")
    for one, other in zip(before, after, strict=True):
        if _ranges(one) != _ranges(other):
            raise InputError("with other constants the kernel goes to other places")


def _ranges(access: Access) -> object:
    """Which positions of each dimension an access goes to, and whether it surely stays inside."""
    if not isinstance(access.position, Position):
        return access.kind
    return [
        (
            each.axes,
            each.proved,
            max(each.index.interval.low, 0),
            min(each.index.interval.high, each.size - 1),
        )
        for each in access.position.dimensions
    ]
