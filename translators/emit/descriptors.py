"""Accesses through tensor descriptors: tiles of an array whose edges are checked."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.access.analysis import Access
from translators.access.descriptors import block_shape
from translators.access.states import Described, Pointer
from translators.emit.accesses import edges_only, gathered, scatter, separate, tiled, write_tile
from translators.emit.affine import affine_term
from translators.emit.atomics import update_at_once
from translators.emit.emission import Emission, RetryError, Rule
from translators.emit.shaping import reshaped
from translators.emit.terms import PointerTerm, Term, constant
from translators.emit.tiles import read
from translators.graph.graph import Op
from translators.graph.types import I1, DescriptorType, FloatType, shape_of

_KINDS = {"add": "add", "min": "min", "max": "max"}


def located(e: Emission, op: Op) -> tuple[Access, PointerTerm]:
    """The access, and where each lane of the block goes."""
    access = e.accesses[op]
    descriptor = op.operands[0].type
    assert isinstance(descriptor, DescriptorType)
    if not isinstance(access.pointer, Pointer):
        raise e.refuse(op, f"goes through a descriptor that {access.pointer.reason}")
    offset = affine_term(e, access.pointer.offset, block_shape(op), low=True)
    buffer = e.aliases.get(access.pointer.argument, access.pointer.argument)
    return access, PointerTerm(buffer=buffer, offset=offset, pointee=descriptor.block.element)


def inside(e: Emission, op: Op, access: Access) -> Term | None:
    """Which lanes of the block lie in the array."""
    mask = access.mask
    assert mask is not None
    shape = block_shape(op)
    if mask.never:
        return constant(0, I1, shape)
    found: Term | None = None
    for comparison in (*(each.comparison for each in mask.bounds), *mask.predicates):
        number = affine_term(e, comparison.expression, shape)
        holds = number.like(e.writer.assign(f"{number.text} >= 0"), element=I1)
        found = e.both(found, holds)
    return found


def _load(e: Emission, op: Op) -> None:
    access, pointer = located(e, op)
    shape = block_shape(op)
    described = e.analysis.states.get(op.operands[0])
    padding = described.padding if isinstance(described, Described) else "zero"
    real = isinstance(pointer.pointee, FloatType)
    fill = float("nan") if padding == "nan" and real else 0.0 if real else 0
    spans = tiled(e, access, pointer)
    if spans is not None and edges_only(access):
        found = read(e, e.buffers.states[pointer.buffer], spans, shape, fill)
        found = found.like(e.writer.assign(found.text, op.result.name))
    else:
        found = gathered(e, op, pointer, shape)
        within = inside(e, op, access)
        if within is not None:
            found = e.chosen(within, found, constant(fill, pointer.pointee, shape))
    e.put(op.result, reshaped(e, found, shape_of(op.result.type), op.result.name))


def _store(e: Emission, op: Op) -> None:
    access, pointer = located(e, op)
    shape = block_shape(op)
    value = e.term(op.operands[3 if op.name == "tt.descriptor_scatter" else 1])
    value = reshaped(e, value, shape)
    here = e.come_here()
    if here is not None and here.number == 0:
        return
    spans = tiled(e, access, pointer)
    if spans is not None and separate(e, spans, shape):
        condition = e.both(here, None if edges_only(access) else inside(e, op, access))
        write_tile(e, pointer.buffer, spans, shape, value, condition)
        return
    if any(each in e.axes for each in e.iterations.values()):
        raise RetryError
    scatter(e, op, pointer, value, e.both(here, inside(e, op, access)), shape)


def _reduce(e: Emission, op: Op) -> None:
    access, pointer = located(e, op)
    kind = op.text("kind")
    if kind not in _KINDS:
        raise e.refuse(op, f"`{kind}` by many programs at once has no form in JAX yet")
    shape = block_shape(op)
    value = reshaped(e, e.term(op.operands[1]), shape)
    condition = e.both(e.come_here(), inside(e, op, access))
    update_at_once(e, op, pointer, tiled(e, access, pointer), shape, value, condition, kind)


def _make(e: Emission, op: Op) -> None:
    """What a descriptor says, the analysis of accesses knows."""


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "tt.make_tensor_descriptor": _make,
        "tt.descriptor_load": _load,
        "tt.descriptor_gather": _load,
        "tt.descriptor_store": _store,
        "tt.descriptor_scatter": _store,
        "tt.descriptor_reduce": _reduce,
    }
)
