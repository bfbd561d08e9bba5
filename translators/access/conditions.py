"""What the ops on conditions (`i1`) make of the states of their operands."""

from translators.access.expression import Affine
from translators.access.knowledge import Knowledge
from translators.access.states import (
    Condition,
    State,
    at_least_zero,
    both,
    merged,
    negated,
)
from translators.graph.graph import Op
from translators.graph.types import IntType, element_of


def comparison(op: Op, known: Knowledge) -> State | None:
    """`arith.cmpi`: one or two comparisons with zero."""
    predicate = op.attributes["predicate"]
    assert isinstance(predicate, str)
    if element_of(op.operands[0].type) == IntType(1):
        return known.opaque(op, "compares conditions", elementwise=True)
    left, right = (known.integer(each) for each in op.operands)
    one, other = left.expression, right.expression
    if predicate[0] == "u" and min(one.interval.low, other.interval.low) < 0:
        return known.opaque(op, "compares unsigned what may be negative", elementwise=True)
    assumptions = merged(left.assumptions, right.assumptions)

    def ordered(expression: Affine) -> Condition:
        return at_least_zero(expression, op.name, op.location, assumptions)

    match predicate[-2:]:
        case "lt":
            return ordered((other - one).plus(-1))
        case "le":
            return ordered(other - one)
        case "gt":
            return ordered((one - other).plus(-1))
        case "ge":
            return ordered(one - other)
    equal = both((ordered(other - one), ordered(one - other)))
    if predicate == "eq":
        return equal
    for gap in (one - other, other - one):
        if gap.interval.low >= 0:
            return ordered(gap.plus(-1))
    return negated(equal) or known.opaque(op, "excludes one value", elementwise=True)


def conjunction(op: Op, known: Knowledge) -> State | None:
    """`arith.andi` of conditions."""
    return both(known.condition(each) for each in op.operands)


def disjunction(op: Op, known: Knowledge) -> State | None:
    """`arith.ori` of conditions: one of the two where that is known."""
    one, other = (known.condition(each) for each in op.operands)
    assumptions = merged(one.assumptions, other.assumptions)
    if one.always or other.always:
        return Condition(assumptions=assumptions)
    if one.never or one == other:
        return other
    if other.never:
        return one
    return known.opaque(op, "holds where either of two conditions does", elementwise=True)


def exclusive(op: Op, known: Knowledge) -> State | None:
    """`arith.xori` of conditions: with `true`, the negation."""
    one, other = (known.condition(each) for each in op.operands)
    if one.always or one.never:
        one, other = other, one
    if other.never:
        return one
    found = negated(one) if other.always else None
    return found or known.opaque(op, "combines conditions", elementwise=True)
