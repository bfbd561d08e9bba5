"""`tl.make_block_ptr` and `tl.advance`, which Triton 3.9 no longer has, as plain pointers.

A block pointer is a base with shape, strides and offsets. A load or store through one becomes a
tensor of pointers, and a mask for the dimensions of its `boundary_check`: what the front ends of
older Tritons made of them. Everything here runs inside Triton's code generator.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import triton.language as tl
from triton.language import core


class BlockPointerType(core.base_type):  # type: ignore[misc]  # triton is not followed
    """The type of a block pointer: what it flattens to in the IR."""

    def __init__(
        self,
        pointer: Any,
        index_types: Sequence[Any],
        block_shape: Sequence[int],
    ) -> None:
        self.pointer = pointer
        self.index_types = list(index_types)
        self.block_shape = list(block_shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BlockPointerType)
            and self.pointer == other.pointer
            and self.block_shape == other.block_shape
        )

    def __hash__(self) -> int:
        return hash((self.mangle(),))

    @property
    def scalar(self) -> Any:
        """The type of a pointer to one element."""
        return self.pointer

    @property
    def element_ty(self) -> Any:
        """The type of one element."""
        return self.pointer.element_ty

    def mangle(self) -> str:
        """The type's part in the name of a specialised function."""
        return f"B{self.pointer.mangle()}B{'_'.join(map(str, self.block_shape))}B"

    def is_block(self) -> bool:
        """It is no tensor."""
        return False

    def is_ptr(self) -> bool:
        """It points to a block, not to an element."""
        return False

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        for each in (self.pointer, *self.index_types):
            each._flatten_ir_types(builder, out)

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple["BlockPointer", int]:
        values = []
        for each in (self.pointer, *self.index_types):
            value, cursor = each._unflatten_ir(handles, cursor)
            values.append(value)
        rank = len(self.block_shape)
        base, indices = values[0], values[1:]
        pointer = BlockPointer(
            base,
            shape=indices[:rank],
            strides=indices[rank : 2 * rank],
            offsets=indices[2 * rank :],
            block_shape=self.block_shape,
        )
        return pointer, cursor


class BlockPointer(core.base_value):  # type: ignore[misc]  # triton is not followed
    """A base pointer, the shape and strides of what it points into, and the block's offsets."""

    def __init__(
        self,
        base: Any,
        *,
        shape: Sequence[Any],
        strides: Sequence[Any],
        offsets: Sequence[Any],
        block_shape: Sequence[int],
    ) -> None:
        self.base = base
        self.shape = list(shape)
        self.strides = list(strides)
        self.offsets = list(offsets)
        self.block_shape = list(block_shape)
        indices = [*self.shape, *self.strides, *self.offsets]
        self.type = BlockPointerType(base.type, [each.type for each in indices], block_shape)

    @property
    def dtype(self) -> Any:
        """The type of a pointer to one element."""
        return self.base.type

    def _set_name(self, builder: Any, name: str) -> None:
        """The parts have names of their own."""

    def _flatten_ir(self, handles: list[Any]) -> None:
        for each in (self.base, *self.shape, *self.strides, *self.offsets):
            each._flatten_ir(handles)

    def advanced(self, steps: Sequence[Any], semantic: Any) -> "BlockPointer":
        """The block pointer moved by so many elements along each dimension."""
        offsets = [
            offset.__add__(_index(step, tl.int32, semantic), _semantic=semantic)
            for offset, step in zip(self.offsets, steps, strict=True)
        ]
        return BlockPointer(
            self.base,
            shape=self.shape,
            strides=self.strides,
            offsets=offsets,
            block_shape=self.block_shape,
        )

    def elements(self, checked: Sequence[int], semantic: Any) -> tuple[Any, Any]:
        """Pointers to the block's elements, and which lie within the checked dimensions."""
        pointers, mask = self.base, None
        rank = len(self.block_shape)
        for axis, size in enumerate(self.block_shape):
            lane = tl.arange(0, size, _semantic=semantic).to(tl.int64, _semantic=semantic)
            offset = self.offsets[axis].to(tl.int64, _semantic=semantic)
            index = offset.__add__(lane, _semantic=semantic)
            for other in range(rank):
                if other != axis:
                    index = tl.expand_dims(index, other, _semantic=semantic)
            step = index.__mul__(self.strides[axis], _semantic=semantic)
            pointers = pointers.__add__(step, _semantic=semantic)
            if axis in checked:
                inside = index.__ge__(0, _semantic=semantic).__and__(
                    index.__lt__(self.shape[axis], _semantic=semantic), _semantic=semantic
                )
                mask = inside if mask is None else mask.__and__(inside, _semantic=semantic)
        if mask is not None:
            mask = tl.broadcast_to(mask, self.block_shape, _semantic=semantic)
        return pointers, mask


@contextmanager
def block_pointers() -> Iterator[None]:
    """Within it, kernels may use block pointers; all else is as before."""
    replacements = {
        "make_block_ptr": make_block_ptr,
        "advance": advance,
        "load": load,
        "store": store,
    }
    with ExitStack() as stack:
        for owner in (tl, core):
            for name, function in replacements.items():
                stack.enter_context(mock.patch.object(owner, name, function, create=True))
        yield


_plain_load = core.load
_plain_store = core.store


@core.builtin  # type: ignore[untyped-decorator]  # triton is not followed
def make_block_ptr(
    base: Any,
    shape: Any,
    strides: Any,
    offsets: Any,
    block_shape: Any,
    order: Any,
    _semantic: Any = None,
) -> BlockPointer:
    """A pointer to a block of an array; `order` says how to fetch it, and changes no result."""
    sizes = [int(core._unwrap_if_constexpr(size)) for size in _items(block_shape)]
    parts = [_items(shape), _items(strides), _items(offsets)]
    if any(len(part) != len(sizes) for part in parts):
        raise ValueError("the shape, strides, offsets and block shape have different lengths")
    return BlockPointer(
        base,
        shape=[_index(each, tl.int64, _semantic) for each in parts[0]],
        strides=[_index(each, tl.int64, _semantic) for each in parts[1]],
        offsets=[_index(each, tl.int32, _semantic) for each in parts[2]],
        block_shape=sizes,
    )


@core.builtin  # type: ignore[untyped-decorator]  # triton is not followed
def advance(base: BlockPointer, offsets: Any, _semantic: Any = None) -> BlockPointer:
    """A block pointer moved by `offsets` elements."""
    return base.advanced(_items(offsets), _semantic)


@core.builtin  # type: ignore[untyped-decorator]  # triton is not followed
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    _semantic: Any = None,
) -> Any:
    """`tl.load`, which also reads through block pointers."""
    hints = {
        "cache_modifier": cache_modifier,
        "eviction_policy": eviction_policy,
        "volatile": volatile,
    }
    checked = _axes(boundary_check)
    if not isinstance(pointer, BlockPointer):
        _refuse_boundary_check(checked)
        return _plain_load(pointer, mask, other, **hints, _semantic=_semantic)
    _refuse_mask(mask, other)
    pointers, inside = pointer.elements(checked, _semantic)
    padding = core._unwrap_if_constexpr(padding_option)
    fill = None
    if inside is not None and padding:
        fill = float("nan") if padding == "nan" else 0
    return _plain_load(pointers, inside, fill, **hints, _semantic=_semantic)


@core.builtin  # type: ignore[untyped-decorator]  # triton is not followed
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    _semantic: Any = None,
) -> Any:
    """`tl.store`, which also writes through block pointers."""
    hints = {"cache_modifier": cache_modifier, "eviction_policy": eviction_policy}
    checked = _axes(boundary_check)
    if not isinstance(pointer, BlockPointer):
        _refuse_boundary_check(checked)
        return _plain_store(pointer, value, mask, **hints, _semantic=_semantic)
    _refuse_mask(mask, None)
    pointers, inside = pointer.elements(checked, _semantic)
    value = _semantic.to_tensor(value)
    if value.type.is_block():
        value = tl.broadcast_to(value, pointer.block_shape, _semantic=_semantic)
    return _plain_store(pointers, value, inside, **hints, _semantic=_semantic)


def _items(value: Any) -> list[Any]:
    value = core._unwrap_if_constexpr(value)
    return list(value) if hasattr(value, "__iter__") else [value]


def _axes(value: Any) -> list[int]:
    value = core._unwrap_if_constexpr(value)
    if value is None:
        return []
    return [int(core._unwrap_if_constexpr(axis)) for axis in _items(value)]


def _index(value: Any, dtype: Any, semantic: Any) -> Any:
    return semantic.to_tensor(value).to(dtype, _semantic=semantic)


def _refuse_boundary_check(checked: list[int]) -> None:
    if checked:
        raise ValueError("`boundary_check` is for block pointers only")


def _refuse_mask(mask: Any, other: Any) -> None:
    if core._unwrap_if_constexpr(mask) is not None or core._unwrap_if_constexpr(other) is not None:
        raise ValueError("`mask` and `other` cannot be given with a block pointer")
