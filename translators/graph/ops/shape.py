"""Ops that make tensors or move elements without computing on them."""

from math import prod

import numpy as np

from translators.graph.errors import UndefinedError
from translators.graph.graph import Op, integer, integers
from translators.graph.machine import Machine
from translators.graph.numerics import Array, dtype_of, element_type, to_float
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    INT,
    INTS,
    NUMBERS,
    OPTIONAL_FLAG,
    OpDefinition,
    Operands,
    Typing,
)
from translators.graph.types import (
    I1,
    I32,
    FloatType,
    IntType,
    Number,
    PointerType,
    TensorType,
    Type,
    shape_of,
    shaped,
    with_element,
)


def _constant_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 0)
    (type_,) = rules.wanted(typing)
    element = rules.element(type_)
    value = typing.attributes["value"]
    rules.expect(not isinstance(value, str), "holds numbers, not text")
    rules.expect(not isinstance(element, PointerType), f"holds no pointers, got `{type_}`")
    given: tuple[Number, ...] = value if isinstance(value, tuple) else (value,)  # type: ignore[assignment]
    if isinstance(value, tuple):
        count = prod(shape_of(type_))
        rules.expect(len(given) == count, f"holds {count} numbers or one, not {len(given)}")
    for number in given:
        if isinstance(element, IntType):
            fits = type(number) is int and element.smallest <= number <= element.largest
            rules.expect(fits, f"holds {number!r}, which is no value of `{element}`")
        else:
            rules.expect(type(number) is float, f"holds {number!r}, which is no float")
    if isinstance(element, FloatType):
        exact = np.array(given, np.float64)
        with np.errstate(all="ignore"):
            kept = to_float(exact, element).astype(np.float64)
        lost = exact[~((kept == exact) | np.isnan(exact))]
        rules.expect(not lost.size, f"holds {lost[:1].tolist()}, which is no value of `{element}`")
    return (type_,)


def _constant(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    type_ = op.result.type
    numbers = np.array(op.attributes["value"]).astype(dtype_of(element_type(type_)))
    if numbers.ndim:
        return (numbers.reshape(shape_of(type_)),)
    return (np.broadcast_to(numbers, shape_of(type_)),)


def _poison_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 0)
    (type_,) = rules.wanted(typing)
    rules.element(type_)
    return (type_,)


def _poison(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    type_ = op.result.type
    return (np.zeros(shape_of(type_), dtype_of(element_type(type_))),)


def _range_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 0)
    start, end = (integer(typing.attributes, key) for key in ("start", "end"))
    rules.expect(0 <= start < end <= I32.largest, f"goes from {start} to {end}")
    return (TensorType((end - start,), I32),)


def _range(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.arange(op.integer("start"), op.integer("end"), dtype=np.int32),)


def _splat_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    (result,) = rules.wanted(typing)
    (operand,) = typing.operands
    rules.expect(not shape_of(operand), f"takes a scalar, not `{operand}`")
    return (with_element(rules.tensor(result), rules.element(operand)),)


def _broadcast_to(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.broadcast_to(operands[0], shape_of(op.result.type)),)


def _unsplat_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    operand = rules.tensor(typing.operands[0])
    rules.expect(prod(operand.shape) == 1, f"takes one element, not `{operand}`")
    return (operand.element,)


def _reshaped(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (operands[0].reshape(shape_of(op.result.type)),)


def _broadcast_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    operand, result = rules.tensor(typing.operands[0]), rules.tensor(rules.wanted(typing)[0])
    fits = len(operand.shape) == len(result.shape) and all(
        old in (1, new) for old, new in zip(operand.shape, result.shape, strict=True)
    )
    rules.expect(fits, f"stretches dimensions of 1 only, got `{operand}` to `{result}`")
    return (with_element(result, operand.element),)


def _expand_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    operand = rules.tensor(typing.operands[0])
    axis = integer(typing.attributes, "axis")
    rules.expect(0 <= axis <= len(operand.shape), f"has no place for axis {axis} in `{operand}`")
    return (TensorType((*operand.shape[:axis], 1, *operand.shape[axis:]), operand.element),)


def _reshape_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    operand, result = rules.tensor(typing.operands[0]), rules.tensor(rules.wanted(typing)[0])
    rules.expect(
        prod(operand.shape) == prod(result.shape),
        f"keeps the number of elements, got `{operand}` to `{result}`",
    )
    return (with_element(result, operand.element),)


def _trans_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    operand = rules.tensor(typing.operands[0])
    order = integers(typing.attributes, "order")
    rules.expect(
        sorted(order) == list(range(len(operand.shape))),
        f"has an order {order} that is no permutation of the axes of `{operand}`",
    )
    return (TensorType(tuple(operand.shape[axis] for axis in order), operand.element),)


def _trans(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.transpose(operands[0], integers(op.attributes, "order")),)


def _join_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2)
    operand = rules.same_type(*typing.operands)
    return (shaped((*shape_of(operand), 2), rules.element(operand)),)


def _join(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.stack(operands, axis=-1),)


def _split_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    operand = rules.tensor(typing.operands[0])
    rules.expect(operand.shape[-1] == 2, f"takes a last dimension of 2, not `{operand}`")
    half = shaped(operand.shape[:-1], operand.element)
    return (half, half)


def _split(op: Op, operands: Operands, machine: Machine) -> tuple[Array, Array]:
    return operands[0][..., 0], operands[0][..., 1]


def _cat_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2)
    operand = rules.tensor(rules.same_type(*typing.operands))
    return (TensorType((2 * operand.shape[0], *operand.shape[1:]), operand.element),)


def _cat(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.concatenate(operands, axis=0),)


def checked_axis(typing: Typing, operand: TensorType) -> int:
    """The attribute `axis`, which must be an axis of `operand`."""
    axis = integer(typing.attributes, "axis")
    rules.expect(0 <= axis < len(operand.shape), f"has no axis {axis} in `{operand}`")
    return axis


def _gather_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2)
    source, indices = (rules.tensor(each) for each in typing.operands)
    rules.integer(indices)
    axis = checked_axis(typing, source)
    fits = len(source.shape) == len(indices.shape) and all(
        index == axis or source.shape[index] == indices.shape[index]
        for index in range(len(source.shape))
    )
    rules.expect(fits, f"takes indices that differ along axis {axis} only, not `{indices}`")
    return (with_element(indices, source.element),)


def _gather(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    source, indices = operands
    axis = op.integer("axis")
    size = source.shape[axis]
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        raise UndefinedError(
            f"gathers element {int(indices[outside].flat[0])} of an axis of {size} elements"
        )
    return (np.take_along_axis(source, indices.astype(np.int64), axis),)


def _histogram_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1, 2)
    (result,) = rules.wanted(typing)
    source = rules.tensor(typing.operands[0])
    rules.expect(len(source.shape) == 1, f"takes a tensor of rank 1, not `{source}`")
    rules.integer(source)
    for mask in typing.operands[1:]:
        rules.expect(mask == with_element(source, I1), f"takes a mask of its shape, not `{mask}`")
    counts = rules.tensor(result)
    rules.expect(len(counts.shape) == 1, f"gives a tensor of rank 1, not `{counts}`")
    rules.integer(counts)
    return (counts,)


def _histogram(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    result = op.result.type
    (bins,) = shape_of(result)
    values = operands[0] if len(operands) == 1 else operands[0][operands[1]]
    counted = np.bincount(values[(values >= 0) & (values < bins)], minlength=bins)
    return (counted.astype(dtype_of(element_type(result))),)


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="arith.constant",
        summary="numbers known while translating",
        rule=_constant_rule,
        meaning=_constant,
        attributes={"value": NUMBERS},
    ),
    OpDefinition(
        name="ub.poison",
        summary="a value that must not matter; zeros here",
        rule=_poison_rule,
        meaning=_poison,
    ),
    OpDefinition(
        name="tt.make_range",
        summary="the integers from `start` up to, but not including, `end`",
        rule=_range_rule,
        meaning=_range,
        attributes={"start": INT, "end": INT},
    ),
    OpDefinition(
        name="tt.splat",
        summary="a tensor of one scalar",
        rule=_splat_rule,
        meaning=_broadcast_to,
    ),
    OpDefinition(
        name="tt.unsplat",
        summary="the scalar of a tensor with one element",
        rule=_unsplat_rule,
        meaning=_reshaped,
    ),
    OpDefinition(
        name="tt.broadcast",
        summary="dimensions of 1 stretched",
        rule=_broadcast_rule,
        meaning=_broadcast_to,
    ),
    OpDefinition(
        name="tt.expand_dims",
        summary="a dimension of 1 put in at `axis`",
        rule=_expand_rule,
        meaning=_reshaped,
        attributes={"axis": INT},
    ),
    OpDefinition(
        name="tt.reshape",
        summary="another shape, in row-major order even where reordering is allowed",
        rule=_reshape_rule,
        meaning=_reshaped,
        attributes={"allow_reorder": OPTIONAL_FLAG, "efficient_layout": OPTIONAL_FLAG},
    ),
    OpDefinition(
        name="tt.trans",
        summary="axes permuted: axis i of the result is axis `order[i]` of the operand",
        rule=_trans_rule,
        meaning=_trans,
        attributes={"order": INTS},
    ),
    OpDefinition(
        name="tt.join",
        summary="two tensors side by side along a new last dimension",
        rule=_join_rule,
        meaning=_join,
    ),
    OpDefinition(
        name="tt.split",
        summary="the two halves of a last dimension of 2",
        rule=_split_rule,
        meaning=_split,
    ),
    OpDefinition(
        name="tt.cat",
        summary="one tensor after the other, though Triton promises no order",
        rule=_cat_rule,
        meaning=_cat,
    ),
    OpDefinition(
        name="tt.gather",
        summary="along `axis`, the elements that the indices name",
        rule=_gather_rule,
        meaning=_gather,
        attributes={"axis": INT, "efficient_layout": OPTIONAL_FLAG},
    ),
    OpDefinition(
        name="tt.histogram",
        summary="how often each of 0, 1, 2... occurs; values beyond the bins are not counted",
        rule=_histogram_rule,
        meaning=_histogram,
    ),
)
