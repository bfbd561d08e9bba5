"""Accesses through tensor descriptors as addresses and bounds."""

from collections.abc import Sequence

from translators.access.expression import Affine, lane
from translators.access.knowledge import Knowledge
from translators.access.states import (
    Condition,
    Described,
    Pointer,
    State,
    UnknownPointer,
    at_least_zero,
    both,
    merged,
)
from translators.graph.graph import Op
from translators.graph.types import DescriptorType, shape_of

# Where the indices stand among the operands.
_STARTS = {"tt.descriptor_load": 1, "tt.descriptor_store": 2, "tt.descriptor_reduce": 2}
_ROWS = ("tt.descriptor_gather", "tt.descriptor_scatter")
DESCRIPTOR_OPS = frozenset((*_STARTS, *_ROWS))


def make(op: Op, known: Knowledge) -> State | None:
    """`tt.make_tensor_descriptor`; `None` where the pointer is not followed."""
    base, *numbers = op.operands
    pointer = known.get(base)
    if not isinstance(pointer, Pointer):
        return pointer
    parts = [known.integer(each) for each in numbers]
    rank = len(parts) // 2
    return Described(
        argument=pointer.argument,
        offset=pointer.offset,
        sizes=tuple(each.expression for each in parts[:rank]),
        strides=tuple(each.expression for each in parts[rank:]),
        padding=op.text("padding", "zero"),
        assumptions=merged(pointer.assumptions, *(each.assumptions for each in parts)),
    )


def block_shape(op: Op) -> tuple[int, ...]:
    """The shape of what an access through a descriptor touches.

    That is the descriptor's block, whose dimensions of 1 the tensor read or written may lack; or
    the rows that are gathered or scattered.
    """
    descriptor = op.operands[0].type
    assert isinstance(descriptor, DescriptorType)
    shape = descriptor.block.shape
    return (*shape_of(op.operands[1].type), shape[1]) if op.name in _ROWS else shape


def located(op: Op, known: Knowledge) -> tuple[Pointer | UnknownPointer, Condition | None]:
    """Where an access through a descriptor leads, and which of its lanes lie in the array.

    The lanes are those of `block_shape`. The condition is `None` where the pointer is unknown.
    """
    state = known.get(op.operands[0])
    if isinstance(state, UnknownPointer):
        return state, None
    if not isinstance(state, Described):
        reason = "is a tensor descriptor of which nothing is known"
        return UnknownPointer(reason=reason, op=op.name, location=op.location), None
    first = 1 if op.name in _ROWS else _STARTS[op.name]
    given = [known.integer(each) for each in op.operands[first : first + len(state.sizes)]]
    starts = [each.expression for each in given]
    assumptions = merged(state.assumptions, *(each.assumptions for each in given))
    indices = _indices(starts, block_shape(op), rows=op.name in _ROWS)
    offset = state.offset
    for index, stride in zip(indices, state.strides, strict=True):
        moved = _product(index, stride)
        if moved is None:
            reason = f"moves by `{stride}`, which varies, times `{index}`"
            return UnknownPointer(reason=reason, op=op.name, location=op.location), None
        offset = offset + moved
    bounds = [
        at_least_zero(each, op.name, op.location, assumptions)
        for index, size in zip(indices, state.sizes, strict=True)
        for each in (index, (size - index).plus(-1))
    ]
    pointer = Pointer(argument=state.argument, offset=offset, assumptions=assumptions)
    return pointer, both(bounds)


def _indices(starts: Sequence[Affine], shape: tuple[int, ...], *, rows: bool) -> list[Affine]:
    """The index along each axis of the array; of gathered rows, the first is the row itself."""
    indices = [
        start + lane(axis, extent)
        for axis, (start, extent) in enumerate(zip(starts, shape, strict=True))
    ]
    if rows:
        indices[0] = starts[0]
    return indices


def _product(one: Affine, other: Affine) -> Affine | None:
    for factor, expression in ((one, other), (other, one)):
        if factor.value is not None:
            return expression.times(factor.value)
    return None
