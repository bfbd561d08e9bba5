"""Integer arithmetic of the `arith` and `math` dialects.

All of it is done on 64 bits and wrapped to the type. What LLVM leaves undefined is defined as XLA
does it: division by zero gives all ones and the dividend as remainder, the least value divided by
-1 itself and 0, and a shift by the width or more shifts all bits out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, signed, unsigned, wrapped
from translators.graph.ops import rules
from translators.graph.ops.definition import OpDefinition, Operands, Rule, Typing, one_of
from translators.graph.types import I1, IntType, Type, element_of, with_element

Binary = Callable[[Array, Array, IntType], Array]


def _type(op: Op) -> IntType:
    element = element_of(op.operands[0].type)
    assert isinstance(element, IntType)
    return element


def _shift_count(count: Array, type_: IntType) -> tuple[Array, Array]:
    """The count as far as 64 bits allow, and where it is the width or more."""
    bits = unsigned(count, type_)
    return np.minimum(bits, np.uint64(63)), bits >= type_.width


def _divide(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient and remainder of `int64` values, cut toward zero."""
    zero, minus = b == 0, b == -1
    safe = np.where(zero | minus, 1, b)
    rest = np.fmod(a, safe)
    quotient = (a - rest) // safe
    quotient = np.where(minus, np.negative(a), np.where(zero, -1, quotient))
    return quotient, np.where(zero, a, np.where(minus, 0, rest))


def _divide_unsigned(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient and remainder of `uint64` values."""
    zero = b == 0
    safe = np.where(zero, np.uint64(1), b)
    all_ones = np.uint64((1 << 64) - 1)
    return np.where(zero, all_ones, a // safe), np.where(zero, a, a % safe)


def _floor_divide(a: Array, b: Array, type_: IntType) -> Array:
    quotient, rest = _divide(signed(a), signed(b))
    down = (rest != 0) & ((signed(a) < 0) != (signed(b) < 0)) & (signed(b) != 0)
    return np.asarray(quotient - down)


def _ceil_divide(a: Array, b: Array, type_: IntType) -> Array:
    quotient, rest = _divide(signed(a), signed(b))
    up = (rest != 0) & ((signed(a) < 0) == (signed(b) < 0)) & (signed(b) != 0)
    return np.asarray(quotient + up)


def _ceil_divide_unsigned(a: Array, b: Array, type_: IntType) -> Array:
    divisor = unsigned(b, type_)
    quotient, rest = _divide_unsigned(unsigned(a, type_), divisor)
    return np.asarray(quotient + ((rest != 0) & (divisor != 0)).astype(np.uint64))


def _shift_left(a: Array, b: Array, type_: IntType) -> Array:
    count, out = _shift_count(b, type_)
    return np.where(out, np.uint64(0), unsigned(a, type_) << count)


def _shift_right(a: Array, b: Array, type_: IntType) -> Array:
    count, out = _shift_count(b, type_)
    # The sign of i1 is its only bit.
    value = -signed(a) if type_.width == 1 else signed(a)
    return np.where(out, value >> np.int64(63), value >> count.astype(np.int64))


def _shift_right_unsigned(a: Array, b: Array, type_: IntType) -> Array:
    count, out = _shift_count(b, type_)
    return np.where(out, np.uint64(0), unsigned(a, type_) >> count)


def _high_unsigned(a: Array, b: Array, type_: IntType) -> Array:
    """The upper half of the product of unsigned values."""
    left, right = unsigned(a, type_), unsigned(b, type_)
    if type_.width <= 32:
        return np.asarray((left * right) >> np.uint64(type_.width))
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    middle = (left >> half) * (right & low) + (((left & low) * (right & low)) >> half)
    carried = (left & low) * (right >> half) + (middle & low)
    upper = (left >> half) * (right >> half) + (middle >> half) + (carried >> half)
    if type_.width == 64:
        return np.asarray(upper)
    return np.asarray(
        (upper << np.uint64(64 - type_.width)) | ((left * right) >> np.uint64(type_.width))
    )


def _high_signed(a: Array, b: Array, type_: IntType) -> Array:
    upper = _high_unsigned(a, b, type_)
    corrected = upper - np.where(signed(a) < 0, unsigned(b, type_), np.uint64(0))
    return np.asarray(corrected - np.where(signed(b) < 0, unsigned(a, type_), np.uint64(0)))


def _signed_key(values: Array, type_: IntType) -> Array:
    """Values whose order is the signed one; the set bit of `i1` is -1."""
    return -signed(values) if type_.width == 1 else signed(values)


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    predicate = op.text("predicate")
    key = unsigned if predicate[0] == "u" else _signed_key
    left, right = (key(each, _type(op)) for each in operands)
    return (np.asarray(_COMPARISONS[predicate[-2:]](left, right)),)


def _binary(name: str, summary: str, function: Binary, rule: Rule | None = None) -> OpDefinition:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        return (wrapped(function(operands[0], operands[1], _type(op)), _type(op)),)

    return OpDefinition(
        name=name,
        summary=summary,
        rule=rule or rules.uniform(2, IntType),
        meaning=meaning,
    )


def _unary(
    name: str, summary: str, function: Callable[[Array, IntType], Array], **extra: Any
) -> OpDefinition:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        return (wrapped(function(operands[0], _type(op)), _type(op)),)

    return OpDefinition(
        name=name, summary=summary, rule=rules.uniform(1, IntType), meaning=meaning, **extra
    )


def _extended_rule(flag: bool) -> Rule:
    def rule(typing: Typing) -> tuple[Type, ...]:
        (type_,) = rules.uniform(2, IntType)(typing)
        return (type_, with_element(type_, I1) if flag else type_)

    return rule


def _extended(
    name: str, summary: str, functions: tuple[Binary, Binary], flag: bool
) -> OpDefinition:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array, Array]:
        left, right = operands
        first, second = (function(left, right, _type(op)) for function in functions)
        kept = np.asarray(second).astype(np.bool_) if flag else wrapped(second, _type(op))
        return wrapped(first, _type(op)), kept

    return OpDefinition(name=name, summary=summary, rule=_extended_rule(flag), meaning=meaning)


def _carry(a: Array, b: Array, type_: IntType) -> Array:
    total = unsigned(wrapped(signed(a) + signed(b), type_), type_)
    return np.asarray(total < unsigned(a, type_))


def _borrow(a: Array, b: Array, type_: IntType) -> Array:
    return np.asarray(unsigned(a, type_) < unsigned(b, type_))


def _add(a: Array, b: Array, type_: IntType) -> Array:
    return signed(a) + signed(b)


def _subtract(a: Array, b: Array, type_: IntType) -> Array:
    return signed(a) - signed(b)


def _multiply(a: Array, b: Array, type_: IntType) -> Array:
    return signed(a) * signed(b)


def _leading_zeros(values: Array, type_: IntType) -> Array:
    bits = unsigned(values, type_)
    found = np.zeros(bits.shape, np.int64)
    for position in range(type_.width):
        found = np.where(bits >> np.uint64(position) == 0, found + 1, found)
    return found


def _trailing_zeros(values: Array, type_: IntType) -> Array:
    bits = unsigned(values, type_)
    found = np.zeros(bits.shape, np.int64)
    for count in range(1, type_.width + 1):
        low = np.uint64((1 << count) - 1)
        found = np.where(bits & low == 0, count, found)
    return found


def _ones(values: Array, type_: IntType) -> Array:
    return np.bitwise_count(unsigned(values, type_)).astype(np.int64)


def _power(a: Array, b: Array, type_: IntType) -> Array:
    """`a` to the `b`, wrapped; a negative power is that of the inverse, cut toward zero."""
    base, exponent = signed(a), signed(b)
    result = np.ones(np.broadcast(base, exponent).shape, np.int64)
    left, factor = np.maximum(exponent, 0), base
    while left.any():
        result = np.where(left & 1, result * factor, result)
        factor = factor * factor
        left = left >> 1
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(exponent & 1, -1, 1), 0))
    return np.where(exponent < 0, inverse, result)


def _comparable(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2)
    type_ = rules.same_type(*typing.operands)
    rules.integer(type_)
    return (with_element(type_, I1),)


def _extend_problem(source: Any, target: Any) -> str | None:
    if not (isinstance(source, IntType) and isinstance(target, IntType)):
        return "takes and gives integers"
    return None if target.width > source.width else "gives a wider type"


def _truncate_problem(source: Any, target: Any) -> str | None:
    if not (isinstance(source, IntType) and isinstance(target, IntType)):
        return "takes and gives integers"
    return None if target.width < source.width else "gives a narrower type"


def _recast(read: Callable[[Array, IntType], Array]) -> Any:
    def meaning(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
        target = element_of(op.result.type)
        assert isinstance(target, IntType)
        return (wrapped(read(operands[0], _type(op)), target),)

    return meaning


OPS: tuple[OpDefinition, ...] = (
    _binary("arith.addi", "sum, wrapping", _add),
    _binary("arith.subi", "difference, wrapping", _subtract),
    _binary("arith.muli", "product, wrapping", _multiply),
    _binary(
        "arith.divsi",
        "signed quotient, cut toward zero",
        lambda a, b, t: _divide(_signed_key(a, t), _signed_key(b, t))[0],
    ),
    _binary(
        "arith.remsi",
        "signed remainder, with the sign of the dividend",
        lambda a, b, t: _divide(_signed_key(a, t), _signed_key(b, t))[1],
    ),
    _binary(
        "arith.divui",
        "unsigned quotient",
        lambda a, b, t: _divide_unsigned(unsigned(a, t), unsigned(b, t))[0],
    ),
    _binary(
        "arith.remui",
        "unsigned remainder",
        lambda a, b, t: _divide_unsigned(unsigned(a, t), unsigned(b, t))[1],
    ),
    _binary("arith.floordivsi", "signed quotient, rounded down", _floor_divide),
    _binary("arith.ceildivsi", "signed quotient, rounded up", _ceil_divide),
    _binary("arith.ceildivui", "unsigned quotient, rounded up", _ceil_divide_unsigned),
    _binary("arith.andi", "bitwise and", lambda a, b, t: signed(a) & signed(b)),
    _binary("arith.ori", "bitwise or", lambda a, b, t: signed(a) | signed(b)),
    _binary("arith.xori", "bitwise exclusive or", lambda a, b, t: signed(a) ^ signed(b)),
    _binary("arith.shli", "shifted left", _shift_left),
    _binary("arith.shrsi", "shifted right, keeping the sign", _shift_right),
    _binary("arith.shrui", "shifted right, filled with zeros", _shift_right_unsigned),
    _binary(
        "arith.maxsi",
        "greater of two signed values",
        lambda a, b, t: np.maximum(_signed_key(a, t), _signed_key(b, t)),
    ),
    _binary(
        "arith.minsi",
        "lesser of two signed values",
        lambda a, b, t: np.minimum(_signed_key(a, t), _signed_key(b, t)),
    ),
    _binary(
        "arith.maxui",
        "greater of two unsigned values",
        lambda a, b, t: np.maximum(unsigned(a, t), unsigned(b, t)),
    ),
    _binary(
        "arith.minui",
        "lesser of two unsigned values",
        lambda a, b, t: np.minimum(unsigned(a, t), unsigned(b, t)),
    ),
    _binary("tt.mulhiui", "upper half of the unsigned product", _high_unsigned),
    _extended("arith.addui_extended", "sum and whether it carried", (_add, _carry), flag=True),
    _extended(
        "arith.subui_extended",
        "difference and whether it borrowed",
        (_subtract, _borrow),
        flag=True,
    ),
    _extended(
        "arith.mului_extended",
        "lower and upper half of the unsigned product",
        (_multiply, _high_unsigned),
        flag=False,
    ),
    _extended(
        "arith.mulsi_extended",
        "lower and upper half of the signed product",
        (_multiply, _high_signed),
        flag=False,
    ),
    OpDefinition(
        name="arith.cmpi",
        summary="whether two integers compare as the predicate says",
        rule=_comparable,
        meaning=_compare,
        attributes={
            "predicate": one_of("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
        },
    ),
    OpDefinition(
        name="arith.extsi",
        summary="widened with the sign; the set bit of i1 becomes -1",
        rule=rules.cast(_extend_problem),
        meaning=_recast(_signed_key),
    ),
    OpDefinition(
        name="arith.extui",
        summary="widened with zeros",
        rule=rules.cast(_extend_problem),
        meaning=_recast(unsigned),
    ),
    OpDefinition(
        name="arith.trunci",
        summary="the low bits",
        rule=rules.cast(_truncate_problem),
        meaning=_recast(lambda values, type_: signed(values)),
    ),
    _unary(
        "math.absi", "magnitude; that of the least value is itself", lambda a, t: np.abs(signed(a))
    ),
    _unary("math.ctlz", "zero bits above the highest set one", _leading_zeros),
    _unary("math.cttz", "zero bits below the lowest set one", _trailing_zeros),
    _unary("math.ctpop", "set bits", _ones),
    _binary("math.ipowi", "power, wrapping", _power),
)
