"""Pointers, which are emitted as offsets into an array that is known."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.terms import Term, common_batch, common_dims
from translators.graph.graph import Op
from translators.graph.types import (
    I8,
    I32,
    DescriptorType,
    ElementType,
    IntType,
    PointerType,
    Type,
    bit_width,
    element_of,
    shape_of,
)


def pointee_of(type_: Type) -> ElementType:
    """What a pointer, each of a tensor of pointers, or a descriptor leads to."""
    if isinstance(type_, DescriptorType):
        return type_.block.element
    element = element_of(type_)
    assert isinstance(element, PointerType)
    return element.pointee


def same_width(one: ElementType, other: ElementType) -> bool:
    """Whether elements of both types take the same bytes in memory."""
    return _bits(one) == _bits(other)


def _bits(element: ElementType) -> int:
    return max(8, bit_width(element))


def _add_pointer(e: Emission, op: Op) -> None:
    pointer = e.pointer(op.operands[0], op)
    moved = e.term(op.operands[1])
    shape = shape_of(op.result.type)
    e.put(
        op.result,
        pointer.each(lambda each: replace(each, offset=_sum(e, each.offset, moved, shape))),
    )


def _sum(e: Emission, base: Term, moved: Term, shape: tuple[int, ...]) -> Term:
    if base.number == 0:
        return moved
    if moved.number == 0:
        return base
    narrow = all(each.element in (I32, I8, IntType(16)) for each in (base, moved))
    return Term(
        text=e.writer.assign(f"{base.text} + {moved.text}"),
        element=I32 if narrow else moved.element,
        shape=shape,
        dims=common_dims((base, moved)) if shape else (),
        batch=common_batch((base, moved)),
    )


def _refused(e: Emission, op: Op) -> None:
    raise e.refuse(op, "makes a pointer of a number, so that its array is not known")


def _address(e: Emission, op: Op) -> None:
    """Kernels ask whether an optional array was given: what is known is that it was."""
    e.addresses.add(op.result)


_TABLE: dict[str, Callable[[Emission, Op], None]] = {
    "tt.addptr": _add_pointer,
    "tt.int_to_ptr": _refused,
    "tt.ptr_to_int": _address,
}

RULES: Mapping[str, Rule] = MappingProxyType(_TABLE)
