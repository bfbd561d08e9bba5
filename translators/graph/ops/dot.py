"""Products of matrices."""

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, element_type, keep_bits, to_float, wrapped
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    OPTIONAL_INT,
    AttributeSpec,
    OpDefinition,
    Operands,
    Typing,
)
from translators.graph.types import F32, FloatType, IntType, Type

# How `f32` operands are split: significant bits of a part, and how many parts. Of two parts the
# products down to first order are summed, of three down to second order
# (`lib/Dialect/TritonGPU/Transforms/F32DotTC.cpp`).
_SPLITS = {"tf32": (11, 1), "tf32x3": (11, 2), "bf16x3": (8, 2), "bf16x6": (8, 3)}


def _rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 3)
    left, right, addend = (rules.tensor(each) for each in typing.operands)
    rank = len(left.shape)
    rules.expect(
        rank in (2, 3) and len(right.shape) == rank and len(addend.shape) == rank,
        f"takes tensors of one rank, 2 or 3, not `{left}`, `{right}` and `{addend}`",
    )
    rules.expect(
        left.shape[-1] == right.shape[-2]
        and left.shape[:-2] == right.shape[:-2] == addend.shape[:-2]
        and addend.shape[-2:] == (left.shape[-2], right.shape[-1]),
        f"has shapes that do not chain: `{left}`, `{right}` and `{addend}`",
    )
    kinds = {type(rules.element(each)) for each in (left, right, addend)}
    rules.expect(
        kinds in ({IntType}, {FloatType}),
        f"takes only integers or only floats, not `{left}`, `{right}` and `{addend}`",
    )
    return (addend,)


def _parts(values: Array, precision: int, count: int) -> list[Array]:
    """`f32` values as a sum of parts, most significant first, as `f64`."""
    found = []
    rest = values
    for _ in range(count):
        part = keep_bits(rest, precision)
        found.append(part.astype(np.float64))
        # Nothing is left of an infinity or NaN.
        rest = np.where(np.isfinite(part), rest - part, np.float32(0))
    return found


def _product(left: Array, right: Array, precision: str) -> Array:
    """The product of float matrices as `f64`, summed in `f64`."""
    f32 = left.dtype == np.float32 and right.dtype == np.float32
    if not f32 or precision == "ieee":
        return np.asarray(np.matmul(left.astype(np.float64), right.astype(np.float64)))
    bits, count = _SPLITS[precision]
    lefts, rights = _parts(left, bits, count), _parts(right, bits, count)
    main = np.asarray(np.matmul(lefts[0], rights[0]))
    rest = np.zeros_like(main)
    for order in range(count - 1, 0, -1):
        for index in range(order + 1):
            rest += np.matmul(lefts[index], rights[order - index])
    # An infinity times a part that is zero says nothing of the product.
    return main + np.where(np.isnan(rest), 0.0, rest)


def _dot(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    left, right, addend = operands
    result = element_type(op.result.type)
    if isinstance(result, IntType):
        product = np.matmul(left.astype(np.int64), right.astype(np.int64))
        return (wrapped(product + addend.astype(np.int64), result),)
    assert isinstance(result, FloatType)
    product = _product(left, right, op.text("inputPrecision", "ieee"))
    total = product + addend.astype(np.float64)
    # Hardware accumulates in f32, in an order that nobody promises: the exact sum is rounded to
    # f32 once, and to a narrower accumulator from there.
    return (to_float(total if result.width > 32 else to_float(total, F32), result),)


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.dot",
        summary="product of the first two plus the third, with `f32` inputs cut as asked",
        rule=_rule,
        meaning=_dot,
        attributes={
            "inputPrecision": AttributeSpec(
                kind=str, choices=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"), required=False
            ),
            "maxNumImpreciseAcc": OPTIONAL_INT,
        },
    ),
)
