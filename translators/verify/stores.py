"""Which lines of a kernel write to each of its arguments."""

from collections.abc import Sequence

from translators.graph.graph import Module, Op, Region, Value, walk
from translators.graph.location import SourceLocation
from translators.graph.ops.catalog import OPS
from translators.graph.ops.definition import Effect
from translators.graph.types import DescriptorType, PointerType, element_of

_WRITES = (Effect.WRITE, Effect.READ_WRITE)


def store_locations(module: Module) -> list[tuple[SourceLocation, ...]]:
    """For each argument of the kernel, the places of the stores and atomics that may write to it.

    A pointer is followed from the argument through everything that it passes: arithmetic, loops,
    branches and calls.
    """
    roots = _roots(module)
    found: list[dict[SourceLocation, None]] = [{} for _ in module.kernel.arguments]
    for op in _ops(module):
        if OPS[op.name].effect in _WRITES and op.location is not None:
            for argument in roots.get(op.operands[0], ()):
                found[argument][op.location] = None
    return [tuple(places) for places in found]


def atomic_arguments(module: Module) -> frozenset[int]:
    """The kernel's arguments, by index, that floats may be added to atomically."""
    roots = _roots(module)
    found: set[int] = set()
    for op in _ops(module):
        adds = op.text("atomic_rmw_op") == "fadd" or op.name == "tt.descriptor_reduce"
        if adds:
            found |= roots.get(op.operands[0], set())
    return frozenset(found)


def _ops(module: Module) -> list[Op]:
    return [op for function in module.functions.values() for op in walk(function.body)]


def _roots(module: Module) -> dict[Value, set[int]]:
    """For every pointer, the arguments of the kernel that it may come from."""
    roots: dict[Value, set[int]] = {
        argument: {index} for index, argument in enumerate(module.kernel.arguments)
    }
    ops = _ops(module)
    grows = True
    while grows:
        grows = False
        for op in ops:
            for source, target in _flows(module, op):
                new = roots.get(source, set()) - roots.get(target, set())
                if new and _points(target):
                    roots.setdefault(target, set()).update(new)
                    grows = True
    return roots


def _points(value: Value) -> bool:
    type_ = value.type
    return isinstance(type_, DescriptorType) or isinstance(element_of(type_), PointerType)


def _flows(module: Module, op: Op) -> list[tuple[Value, Value]]:
    """Where an operand of an op may come out: at a result, or in a region."""
    if op.name == "tt.call":
        callee = module.functions[op.text("callee")]
        returns = [each for each in walk(callee.body) if each.name == "tt.return"]
        return _pairs(
            (op.operands, callee.arguments), *((each.operands, op.results) for each in returns)
        )
    if not op.regions:
        return [(source, target) for source in op.operands for target in op.results]
    ends = [_given(region) for region in op.regions]
    if op.name == "scf.for":
        inner = op.regions[0].arguments[1:]
        starts = op.operands[3:]
        return _pairs(*((each, to) for each in (starts, ends[0]) for to in (inner, op.results)))
    if op.name == "scf.while":
        before, after = (region.arguments for region in op.regions)
        passed = ends[0][1:]
        return _pairs(
            (op.operands, before), (ends[1], before), (passed, after), (passed, op.results)
        )
    return _pairs(*((each, op.results) for each in ends))


def _given(region: Region) -> tuple[Value, ...]:
    """What a region ends with; nothing if it leaves the function."""
    end = region.terminator
    return () if end.name == "tt.return" else end.operands


def _pairs(*groups: tuple[Sequence[Value], Sequence[Value]]) -> list[tuple[Value, Value]]:
    """Values of two sequences, position by position."""
    return [pair for sources, targets in groups for pair in zip(sources, targets, strict=False)]
