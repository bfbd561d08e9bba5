"""What the ops on integers make of the states of their operands."""

from collections.abc import Callable
from typing import TypeAlias

from translators.access import bounds, conditions
from translators.access.division import Source, divide
from translators.access.expression import Affine, Interval, constant, of
from translators.access.knowledge import Knowledge, state_axes
from translators.access.states import Integer, State, merged
from translators.graph.graph import Op
from translators.graph.types import IntType, element_of

Transfer: TypeAlias = Callable[[Op, Knowledge], State | None]
_TOO_DEEP = "nests more divisions than are followed"


def _operands(op: Op, known: Knowledge) -> tuple[Integer, Integer]:
    left, right = op.operands
    return known.integer(left), known.integer(right)


def _ranges(op: Op, known: Knowledge) -> tuple[Interval, Interval]:
    left, right = op.operands
    return known.range_of(left), known.range_of(right)


def linear(combine: Callable[[Affine, Affine], Affine]) -> Transfer:
    """A sum or a difference, unless it wraps around."""

    def transfer(op: Op, known: Knowledge) -> State | None:
        left, right = _operands(op, known)
        assumptions = merged(left.assumptions, right.assumptions)
        return known.fitted(op, combine(left.expression, right.expression), assumptions)

    return transfer


def multiply(op: Op, known: Knowledge) -> State | None:
    """`arith.muli`: by a number that is known."""
    left, right = _operands(op, known)
    assumptions = merged(left.assumptions, right.assumptions)
    for one, other in ((left.expression, right.expression), (right.expression, left.expression)):
        factor = one.value
        if factor is not None:
            return known.fitted(op, other.times(factor), assumptions)
    interval = bounds.product(*_ranges(op, known))
    reason = "is a product of two values that vary"
    return known.opaque(op, reason, elementwise=True, interval=interval)


def shift_left(op: Op, known: Knowledge) -> State | None:
    """`arith.shli`: a product with a power of two."""
    left, right = _operands(op, known)
    count = right.expression.value
    if count is None or not 0 <= count < _width(op):
        return known.opaque(op, "shifts by what is not a fixed count", elementwise=True)
    assumptions = merged(left.assumptions, right.assumptions)
    return known.fitted(op, left.expression.times(1 << count), assumptions)


def _width(op: Op) -> int:
    element = element_of(op.result.type)
    assert isinstance(element, IntType)
    return element.width


def _quotient(
    op: Op, known: Knowledge, left: Integer, right: Affine, *, remainder: bool = False
) -> State | None:
    pair = divide(left.expression, right, Source(op=op.name, location=op.location))
    if pair is None:
        return known.opaque(op, _TOO_DEEP, elementwise=True)
    return Integer(expression=pair[remainder], assumptions=left.assumptions)


def division(*, remainder: bool, floor: bool = False, up: bool = False) -> Transfer:
    """Division by what is positive; truncating and unsigned ones need a dividend >= 0."""

    def transfer(op: Op, known: Knowledge) -> State | None:
        left, right = _operands(op, known)
        interval = None
        if not floor and not op.name.endswith("ui"):
            bound = bounds.remainder if remainder else bounds.quotient
            interval = bound(*_ranges(op, known))
        if right.expression.interval.low <= 0:
            reason = "divides by what may not be positive"
            return known.opaque(op, reason, elementwise=True, interval=interval)
        if left.expression.interval.low < 0 and not floor:
            reason = "divides what may be negative"
            return known.opaque(op, reason, elementwise=True, interval=interval)
        dividend = left.expression + right.expression.plus(-1) if up else left.expression
        both = Integer(expression=dividend, assumptions=merged(left.assumptions, right.assumptions))
        return _quotient(op, known, both, right.expression, remainder=remainder)

    return transfer


def shift_right(op: Op, known: Knowledge) -> State | None:
    """`arith.shrsi` and `arith.shrui`: a quotient by a power of two, rounded down."""
    left, right = _operands(op, known)
    count = right.expression.value
    span, counts = _ranges(op, known)
    interval: Interval | None = bounds.shifted_right(span, counts)
    if op.name == "arith.shrui" and span.low < 0:
        interval = None
        if counts.low > 0:
            interval = Interval(0, ((1 << _width(op)) - 1) >> counts.low)
    if count is None or not 0 <= count < _width(op):
        reason = "shifts by what is not a fixed count"
        return known.opaque(op, reason, elementwise=True, interval=interval)
    if op.name == "arith.shrui" and left.expression.interval.low < 0:
        reason = "shifts the bits of what may be negative"
        return known.opaque(op, reason, elementwise=True, interval=interval)
    return _quotient(op, known, left, constant(1 << count))


def conjoin(op: Op, known: Knowledge) -> State | None:
    """`arith.andi`: the low bits as a remainder, the high ones as a multiple."""
    if _width(op) == 1:
        return conditions.conjunction(op, known)
    left, right = _operands(op, known)
    if left.expression.value is not None:
        left, right = right, left
    mask = right.expression.value
    if mask is not None and mask >= 0 and mask & (mask + 1) == 0:
        return _quotient(op, known, left, constant(mask + 1), remainder=True)
    if mask is not None and mask < 0 and -mask & (-mask - 1) == 0:
        state = _quotient(op, known, left, constant(-mask))
        if isinstance(state, Integer):
            return Integer(expression=state.expression.times(-mask), assumptions=left.assumptions)
    interval = bounds.conjoined(*_ranges(op, known))
    return known.opaque(op, "combines bits", elementwise=True, interval=interval)


def disjoin(op: Op, known: Knowledge) -> State | None:
    """`arith.ori`."""
    if _width(op) == 1:
        return conditions.disjunction(op, known)
    interval = bounds.disjoined(*_ranges(op, known))
    return known.opaque(op, "combines bits", elementwise=True, interval=interval)


def differ(op: Op, known: Knowledge) -> State | None:
    """`arith.xori`."""
    if _width(op) == 1:
        return conditions.exclusive(op, known)
    interval = bounds.disjoined(*_ranges(op, known))
    return known.opaque(op, "combines bits", elementwise=True, interval=interval)


def extreme(choose: Callable[[Affine, Affine, Source], Affine | None], unsigned: bool) -> Transfer:
    """The lesser or the greater of two; unsigned only of what is not negative."""

    def transfer(op: Op, known: Knowledge) -> State | None:
        if _width(op) == 1:
            return known.opaque(op, "combines conditions", elementwise=True)
        left, right = _operands(op, known)
        one, other = left.expression, right.expression
        if unsigned and min(one.interval.low, other.interval.low) < 0:
            return known.opaque(op, "compares unsigned what may be negative", elementwise=True)
        found = choose(one, other, Source(op=op.name, location=op.location))
        if found is None:
            return known.opaque(op, _TOO_DEEP, elementwise=True)
        assumptions = merged(left.assumptions, right.assumptions)
        return Integer(expression=found, assumptions=assumptions)

    return transfer


def magnitude(op: Op, known: Knowledge) -> State | None:
    """`math.absi`."""
    operand = known.integer(op.operands[0])
    if operand.expression.interval.low >= 0:
        return operand
    interval = bounds.magnitude(known.range_of(op.operands[0]))
    reason = "takes the magnitude of what may be negative"
    return known.opaque(op, reason, elementwise=True, interval=interval)


def extend(op: Op, known: Knowledge) -> State | None:
    """`arith.extsi` and `arith.extui`."""
    (operand,) = op.operands
    element = element_of(operand.type)
    if element == IntType(1):
        return _number(op, known)
    state = known.integer(operand)
    if op.name == "arith.extui" and state.expression.interval.low < 0:
        assert isinstance(element, IntType)
        interval = Interval(0, (1 << element.width) - 1)
        reason = f"reads `{element}` that may be negative unsigned"
        return known.opaque(op, reason, elementwise=True, interval=interval)
    return state


def _number(op: Op, known: Knowledge) -> State | None:
    """A condition as a number: 0 or 1, signed 0 or -1."""
    condition = known.condition(op.operands[0])
    if condition.never:
        return Integer(expression=constant(0), assumptions=condition.assumptions)
    held = -1 if op.name == "arith.extsi" else 1
    if condition.always:
        return Integer(expression=constant(held), assumptions=condition.assumptions)
    symbol = known.symbol(
        op.result,
        "is a condition used as a number",
        op=op.name,
        location=op.location,
        moving=state_axes(condition),
        interval=Interval(min(0, held), max(0, held)),
    )
    return Integer(expression=of(symbol))


def truncate(op: Op, known: Knowledge) -> State | None:
    """`arith.trunci`, unless it cuts off bits that matter."""
    if _width(op) == 1:
        return known.opaque(op, "keeps the lowest bit", elementwise=True)
    state = known.integer(op.operands[0])
    return known.fitted(op, state.expression, state.assumptions)
