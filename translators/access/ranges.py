"""Intervals of expressions where conditions are known to hold."""

import math
from collections.abc import Iterable, Mapping

from translators.access.expression import (
    Affine,
    Derivation,
    Derived,
    Interval,
    Variable,
    derived_in,
)
from translators.access.parts import parts_of

# How often what one fact says of a variable is used to read the others.
_ROUNDS = 2


def interval_under(expression: Affine, facts: Iterable[Affine]) -> Interval | None:
    """Between what an expression lies where each fact is at least zero.

    All facts together bound variables. Then each is used alone: for `fact >= 0`, `m > 0` and
    `k > 0`, `m * expression` is at most `m * expression + k * fact`, with `m` and `k` such that a
    variable that both have disappears.

    Returns:
      `None` where that shows that the facts cannot all hold.
    """
    parts = (part for each in facts for part in parts_of(each))
    given = [_tightened(each) for each in parts if each.interval.low < 0]
    if not given:
        return expression.interval
    bounds = _bounds(given)
    if bounds is None:
        return None
    for derived in derived_in(expression):
        _bound_derived(derived, bounds)
    interval = _interval(expression, bounds)
    low, high = interval.low, interval.high
    for fact in given:
        for variable, inside in fact.terms:
            coefficient = expression.coefficient(variable)
            if not coefficient:
                continue
            scale = abs(inside) // math.gcd(inside, coefficient)
            factor = -coefficient * scale // inside
            end = _interval(expression.times(scale) + fact.times(factor), bounds)
            if factor > 0:
                high = min(high, end.high // scale)
            else:
                low = max(low, -(-end.low // scale))
    return Interval(low, high) if low <= high else None


def _tightened(fact: Affine) -> Affine:
    """The same fact as one that is zero somewhere: `4 * x + 3 >= 0` says that `4 * x >= 0`.

    A counter that begins at and goes by multiples of 4 so ends 4 before an end that is one.
    """
    step = math.gcd(*(factor for _, factor in fact.terms))
    return fact.plus(-(fact.offset % step)) if step else fact


def _interval(expression: Affine, bounds: Mapping[Variable, Interval]) -> Interval:
    low = high = expression.offset
    for variable, factor in expression.terms:
        part = bounds.get(variable, variable.interval).scaled(factor)
        low += part.low
        high += part.high
    return Interval(low, high)


def _bounds(facts: Iterable[Affine]) -> dict[Variable, Interval] | None:
    """Between what variables lie where the facts hold; `None` where they cannot all hold."""
    given = list(facts)
    bounds: dict[Variable, Interval] = {}
    for _ in range(_ROUNDS):
        for fact in given:
            whole = _interval(fact, bounds)
            if whole.high < 0:
                return None
            for variable, factor in fact.terms:
                old = bounds.get(variable, variable.interval)
                # The others add up to at most this, so that the variable adds up to the rest.
                others = whole.high - old.scaled(factor).high
                if factor > 0:
                    low, high = max(old.low, -(others // factor)), old.high
                else:
                    low, high = old.low, min(old.high, others // -factor)
                if low > high:
                    return None
                bounds[variable] = Interval(low, high)
                whole = _interval(fact, bounds)
        for fact in given:
            for derived in derived_in(fact):
                _bound_derived(derived, bounds)
    return bounds


def _bound_derived(derived: Derived, bounds: dict[Variable, Interval]) -> None:
    """Bounds what is derived by a division or a choice from the bounds of its operands."""
    left, right = (_interval(each, bounds) for each in (derived.left, derived.right))
    match derived.derivation:
        case Derivation.FLOOR_DIVIDE:
            ends = [end // by for end in (left.low, left.high) for by in (right.low, right.high)]
            found = Interval(min(ends), max(ends))
        case Derivation.MINIMUM:
            found = Interval(min(left.low, right.low), min(left.high, right.high))
        case Derivation.MAXIMUM:
            found = Interval(max(left.low, right.low), max(left.high, right.high))
        case Derivation.REMAINDER:
            if not 0 <= left.low <= left.high < right.low:
                return
            found = left
    old = bounds.get(derived, derived.interval)
    low, high = max(old.low, found.low), min(old.high, found.high)
    if low <= high:
        bounds[derived] = Interval(low, high)


def holds_under(expression: Affine, facts: Iterable[Affine]) -> bool:
    """Whether `expression >= 0` wherever each fact is at least zero."""
    interval = interval_under(expression, facts)
    return interval is None or interval.low >= 0
