"""Tensor descriptors: blocks of an array whose edges are checked.

What lies outside the array reads as zero, or as NaN where the descriptor says so, and is not
written.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from translators.graph.errors import UndefinedError
from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, dtype_of
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    OPTIONAL_TEXT,
    Effect,
    OpDefinition,
    Operands,
    Typing,
    one_of,
)
from translators.graph.ops.floats import maxnum, minnum, widened
from translators.graph.ops.memory import PADDING, UPDATES, byte_size, update
from translators.graph.types import (
    I64,
    ElementType,
    FloatType,
    IntType,
    TensorType,
    Type,
    shape_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """An array in memory as a kernel describes it.

    Attributes:
      base: byte address of its first element.
      shape: elements along each axis.
      strides: elements from one to the next along each axis.
      element: what it holds.
      padding: `zero` or `nan`, read outside of it.
    """

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: ElementType
    padding: str = "zero"

    def locate(self, indices: tuple[Array, ...]) -> tuple[Array, Array]:
        """Byte addresses of elements, and which of them lie in the array."""
        inside = np.ones(np.broadcast_shapes(*(each.shape for each in indices)), np.bool_)
        offset = np.zeros(inside.shape, np.int64)
        for index, size, stride in zip(indices, self.shape, self.strides, strict=True):
            inside &= (index >= 0) & (index < size)
            offset += index * stride
        return self.base + offset * byte_size(self.element), inside


def _make_rule(typing: Typing) -> tuple[Type, ...]:
    (result,) = rules.wanted(typing)
    made = rules.descriptor(result)
    rank = len(made.block.shape)
    rules.expect_count(typing, 1 + 2 * rank)
    base, *numbers = typing.operands
    rules.expect(
        not shape_of(base) and rules.pointee(base) == made.block.element,
        f"describes `{made.block.element}` in memory, not `{base}`",
    )
    for size in numbers[:rank]:
        rules.scalar_integer(size, "a size")
    for stride in numbers[rank:]:
        rules.expect(stride == I64, f"has strides of `i64`, not `{stride}`")
    return (made,)


def _make(op: Op, operands: Operands, machine: Machine) -> tuple[Descriptor]:
    block = rules.descriptor(op.result.type).block
    rank = len(block.shape)
    numbers = [int(each) for each in operands[1:]]
    if numbers[-1] != 1:
        raise UndefinedError(f"describes an array whose last stride is {numbers[-1]}, not 1")
    made = Descriptor(
        base=int(operands[0]),
        shape=tuple(numbers[:rank]),
        strides=tuple(numbers[rank:]),
        element=block.element,
        padding=op.text("padding", "zero"),
    )
    return (made,)


def _block_operands(typing: Typing, first: int) -> None:
    """Checks that one scalar integer for each axis follows operand `first`."""
    block = rules.descriptor(typing.operands[0]).block
    rules.expect_count(typing, first + len(block.shape))
    for index in typing.operands[first:]:
        rules.scalar_integer(index, "an index")


def _is_block(block: TensorType, type_: Type) -> bool:
    """Whether a tensor holds a block, whose dimensions of 1 it may lack."""
    tensor = rules.tensor(type_)
    return tensor.element == block.element and prod(tensor.shape) == prod(block.shape)


def _load_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1, 1 << 8)
    _block_operands(typing, 1)
    (result,) = rules.wanted(typing)
    block = rules.descriptor(typing.operands[0]).block
    rules.expect(_is_block(block, result), f"loads `{block}`, not `{result}`")
    return (result,)


def _store_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2, 1 << 8)
    _block_operands(typing, 2)
    block = rules.descriptor(typing.operands[0]).block
    stored = typing.operands[1]
    rules.expect(_is_block(block, stored), f"stores `{block}`, not `{stored}`")
    return ()


def _block_indices(op: Op, starts: Any) -> tuple[Array, ...]:
    shape = rules.descriptor(op.operands[0].type).block.shape
    ranges = np.ogrid[tuple(slice(size) for size in shape)]
    return tuple(
        np.asarray(int(start) + each, np.int64) for start, each in zip(starts, ranges, strict=True)
    )


def _row_indices(rows: Array, column: Array, width: int) -> tuple[Array, Array]:
    columns = int(column) + np.arange(width, dtype=np.int64)
    return rows.astype(np.int64)[:, None], columns[None, :]


def _read(machine: Machine, descriptor: Descriptor, indices: tuple[Array, ...]) -> Array:
    addresses, inside = descriptor.locate(indices)
    outside = np.nan if descriptor.padding == "nan" else 0
    fill = outside if isinstance(descriptor.element, FloatType) else 0
    found = np.full(addresses.shape, fill, dtype_of(descriptor.element))
    found[inside] = machine.memory.load(addresses[inside], descriptor.element)
    return found


def _write(
    machine: Machine, descriptor: Descriptor, indices: tuple[Array, ...], values: Array
) -> None:
    addresses, inside = descriptor.locate(indices)
    stored = values.reshape(addresses.shape)[inside]
    machine.memory.store(addresses[inside], stored, descriptor.element)


def _load(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    found = _read(machine, operands[0], _block_indices(op, operands[1:]))
    return (found.reshape(shape_of(op.result.type)),)


def _store(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    _write(machine, operands[0], _block_indices(op, operands[2:]), operands[1])
    return ()


def _combine(kind: str, old: Array, value: Array, element: ElementType) -> Array:
    if isinstance(element, IntType):
        return UPDATES[kind](old, value, element)
    if kind == "add":
        return UPDATES["fadd"](old, value, element)
    assert isinstance(element, FloatType)
    choose = maxnum if kind == "max" else minnum
    return choose(widened(old, element), widened(value, element)).astype(old.dtype)


def _reduce(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    descriptor, values, *starts = operands
    addresses, inside = descriptor.locate(_block_indices(op, starts))
    chosen = values.reshape(addresses.shape)[inside]
    kind = op.text("kind")
    update(
        machine,
        addresses[inside],
        descriptor.element,
        lambda old, positions: _combine(kind, old, chosen[positions], descriptor.element),
    )
    return ()


def _reduce_rule(typing: Typing) -> tuple[Type, ...]:
    _store_rule(typing)
    element = rules.descriptor(typing.operands[0]).block.element
    kind = typing.attributes["kind"]
    fits = isinstance(element, IntType) or kind in ("add", "max", "min")
    rules.expect(fits, f"cannot `{kind}` elements of `{element}`")
    return ()


def _rows(typing: Typing, position: int) -> Type:
    """The tensor of rows that the operands from `position` name."""
    block = rules.descriptor(typing.operands[0]).block
    rules.expect(
        len(block.shape) == 2 and block.shape[0] == 1,
        f"takes a descriptor of single rows, not of `{block}`",
    )
    rows = rules.tensor(typing.operands[position])
    rules.integer(rows)
    rules.expect(len(rows.shape) == 1, f"takes row numbers of rank 1, not `{rows}`")
    rules.scalar_integer(typing.operands[position + 1], "a column")
    return type(rows)((rows.shape[0], block.shape[1]), block.element)


def _gather_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 3)
    return (_rows(typing, 1),)


def _gather(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    descriptor, rows, column = operands
    width = shape_of(op.result.type)[1]
    return (_read(machine, descriptor, _row_indices(rows, column, width)),)


def _scatter_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 4)
    expected = _rows(typing, 1)
    stored = typing.operands[3]
    rules.expect(stored == expected, f"stores `{expected}`, not `{stored}`")
    return ()


def _scatter(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    descriptor, rows, column, values = operands
    _write(machine, descriptor, _row_indices(rows, column, values.shape[1]), values)
    return ()


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.make_tensor_descriptor",
        summary="a base pointer, sizes and strides as a descriptor",
        rule=_make_rule,
        meaning=_make,
        attributes={"padding": PADDING},
    ),
    OpDefinition(
        name="tt.descriptor_load",
        summary="the block that starts at the indices",
        rule=_load_rule,
        meaning=_load,
        attributes={"cache": OPTIONAL_TEXT, "evict": OPTIONAL_TEXT},
        effect=Effect.READ,
    ),
    OpDefinition(
        name="tt.descriptor_store",
        summary="the block that starts at the indices, written",
        rule=_store_rule,
        meaning=_store,
        effect=Effect.WRITE,
    ),
    OpDefinition(
        name="tt.descriptor_reduce",
        summary="the block that starts at the indices, changed by a tensor",
        rule=_reduce_rule,
        meaning=_reduce,
        attributes={"kind": one_of("add", "min", "max", "and", "or", "xor")},
        effect=Effect.READ_WRITE,
    ),
    OpDefinition(
        name="tt.descriptor_gather",
        summary="the rows that the row numbers name, from one column on",
        rule=_gather_rule,
        meaning=_gather,
        effect=Effect.READ,
    ),
    OpDefinition(
        name="tt.descriptor_scatter",
        summary="rows written where the row numbers name, from one column on",
        rule=_scatter_rule,
        meaning=_scatter,
        effect=Effect.WRITE,
    ),
)
