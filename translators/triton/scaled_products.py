"""`tt.dot_scaled` as the ops that it stands for: elements spread out, scaled, and multiplied.

Where a GPU has no such instruction, Triton computes it so itself, in `bf16` or, if an operand is
`f16`, in `f16` (`lib/Dialect/TritonGPU/Transforms/DecomposeScaledBlocked.cpp`). A scale is a power
of two, one for a number of elements along the summed dimension; all ones is NaN. Elements of four
bits lie two in a byte, the first one in the lower half.
"""

from dataclasses import dataclass

from translators.graph.builder import Builder
from translators.graph.errors import GraphError
from translators.graph.graph import Value
from translators.graph.types import (
    BF16,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    I32,
    FloatType,
    IntType,
    TensorType,
    element_of,
    shape_of,
    with_element,
)

_EIGHT_BITS = {"e4m3": F8E4M3FN, "e5m2": F8E5M2}
_WHOLE = {"bf16": BF16, "fp16": F16}
_NAN_SCALE = 0xFF
_EXPONENT_SHIFT = 23  # of `f32`


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One side of a product.

    Attributes:
      elements: a matrix, of bytes with two elements each for `e2m1`.
      scale: of each group of elements, rows as the result's rows or columns; `None` for none.
      format: `e2m1`, `e4m3`, `e5m2`, `bf16` or `fp16`.
      summed: the axis of the elements along which the product sums.
      packed: the axis along which two elements share a byte.
    """

    elements: Value
    scale: Value | None
    format: str
    summed: int
    packed: int


def scaled_product(
    builder: Builder, left: Factor, right: Factor, addend: Value, *, fast: bool
) -> Value:
    """Writes the product of two scaled matrices plus a third one.

    Args:
      builder: where to.
      left: what is on the left.
      right: what is on the right.
      addend: what is added, `f32`.
      fast: whether no scale is NaN.

    Raises:
      GraphError: a format is unknown.
    """
    if len(shape_of(addend.type)) != 2:
        raise GraphError("`tt.dot_scaled` of more than matrices is not supported", builder.location)
    element = F16 if "fp16" in (left.format, right.format) else BF16
    sides = [_scaled(builder, each, element, fast) for each in (left, right)]
    return builder.value("tt.dot", *sides, addend, inputPrecision="ieee")


def _scaled(builder: Builder, factor: Factor, element: FloatType, fast: bool) -> Value:
    values = _spread(builder, factor)
    values = _converted(builder, values, element)
    if factor.scale is None:
        return values
    scale = _scale(builder, factor.scale, element, fast)
    rows, groups = shape_of(scale.type)
    size = shape_of(values.type)[factor.summed]
    if not groups or size % groups:
        raise GraphError(
            f"`tt.dot_scaled` has {groups} scales for {size} elements", builder.location
        )
    each = size // groups
    if factor.summed == 1:
        shape, axis = (rows, groups, each), 2
    else:
        scale = builder.value("tt.trans", scale, order=(1, 0))
        shape, axis = (groups, each, rows), 1
    scale = builder.value("tt.expand_dims", scale, axis=axis)
    scale = builder.value("tt.broadcast", scale, results=(TensorType(shape, element),))
    scale = builder.value("tt.reshape", scale, results=(values.type,))
    return builder.value("arith.mulf", values, scale)


def _spread(builder: Builder, factor: Factor) -> Value:
    """One float for each element."""
    values = factor.elements
    element = element_of(values.type)
    if factor.format == "e2m1":
        return _four_bits(builder, values, factor.packed)
    wanted = _EIGHT_BITS.get(factor.format) or _WHOLE.get(factor.format)
    if wanted is None:
        raise GraphError(
            f"`tt.dot_scaled` of the format `{factor.format}` is not supported", builder.location
        )
    if isinstance(element, IntType):
        values = builder.value("tt.bitcast", values, results=(with_element(values.type, wanted),))
    return values


def _four_bits(builder: Builder, values: Value, axis: int) -> Value:
    """A sign, two bits of exponent, one of mantissa: twice the element is an integer up to 12."""
    wide = builder.value("arith.extui", values, results=(with_element(values.type, I32),))
    low = _element(builder, wide)
    high = _element(builder, _with(builder, "arith.shrui", wide, 4))
    both = builder.value("tt.join", low, high)
    rank = len(shape_of(values.type))
    shape = list(shape_of(values.type))
    if axis != rank - 1:
        order = [each for each in range(rank) if each <= axis]
        order += [rank, *(each for each in range(rank) if each > axis)]
        both = builder.value("tt.trans", both, order=tuple(order))
    shape[axis] *= 2
    return builder.value("tt.reshape", both, results=(TensorType(tuple(shape), F32),))


def _element(builder: Builder, bits: Value) -> Value:
    magnitude = _with(builder, "arith.andi", bits, 7)
    mantissa = _with(builder, "arith.andi", magnitude, 1)
    exponent = _with(builder, "arith.shrui", magnitude, 1)
    # Below 2 there is no hidden bit, and nothing to shift.
    shift = _with(builder, "arith.maxsi", _with(builder, "arith.subi", exponent, 1), 0)
    normal = builder.value("arith.shli", _with(builder, "arith.ori", mantissa, 2), shift)
    small = _compared(builder, "ult", magnitude, 2)
    twice = builder.value("arith.select", small, magnitude, normal)
    real = builder.value("arith.sitofp", twice, results=(with_element(twice.type, F32),))
    sign = _with(builder, "arith.andi", bits, 8)
    half, minus = (builder.constant(each, real.type) for each in (0.5, -0.5))
    positive = _compared(builder, "eq", sign, 0)
    factor = builder.value("arith.select", positive, half, minus)
    return builder.value("arith.mulf", real, factor)


def _scale(builder: Builder, scale: Value, element: FloatType, fast: bool) -> Value:
    """The scales as floats."""
    if isinstance(element_of(scale.type), FloatType):
        return _converted(builder, scale, element)
    wide = builder.value("arith.extui", scale, results=(with_element(scale.type, I32),))
    bits = _with(builder, "arith.shli", wide, _EXPONENT_SHIFT)
    power = builder.value("tt.bitcast", bits, results=(with_element(bits.type, F32),))
    if not fast:
        nan = builder.constant(float("nan"), power.type)
        power = builder.value(
            "arith.select", _compared(builder, "eq", wide, _NAN_SCALE), nan, power
        )
    return _converted(builder, power, element)


def _converted(builder: Builder, values: Value, element: FloatType) -> Value:
    if element_of(values.type) == element:
        return values
    wanted = with_element(values.type, element)
    given = element_of(values.type)
    assert isinstance(given, FloatType)
    if given.width == element.width:
        return builder.value("tt.fp_to_fp", values, results=(wanted,), rounding="rtne")
    name = "arith.extf" if given.width < element.width else "arith.truncf"
    return builder.value(name, values, results=(wanted,))


def _with(builder: Builder, name: str, values: Value, number: int) -> Value:
    return builder.value(name, values, builder.constant(number, values.type))


def _compared(builder: Builder, predicate: str, values: Value, number: int) -> Value:
    other = builder.constant(number, values.type)
    return builder.value("arith.cmpi", values, other, predicate=predicate)
