"""Intervals of expressions where conditions are known to hold."""

import math
from collections.abc import Iterable

from translators.access.expression import Affine, Interval


def interval_under(expression: Affine, facts: Iterable[Affine]) -> Interval | None:
    """Between what an expression lies where each fact is at least zero.

    Each fact is used alone: for `fact >= 0`, `m > 0` and `k > 0`, `m * expression` is at most
    `m * expression + k * fact`, with `m` and `k` such that a variable that both have disappears.

    Returns:
      `None` where that shows that the facts cannot all hold.
    """
    interval = expression.interval
    low, high = interval.low, interval.high
    for fact in facts:
        if fact.interval.high < 0:
            return None
        for variable, inside in fact.terms:
            coefficient = expression.coefficient(variable)
            if not coefficient:
                continue
            scale = abs(inside) // math.gcd(inside, coefficient)
            factor = -coefficient * scale // inside
            end = (expression.times(scale) + fact.times(factor)).interval
            if factor > 0:
                high = min(high, end.high // scale)
            else:
                low = max(low, -(-end.low // scale))
    return Interval(low, high) if low <= high else None


def holds_under(expression: Affine, facts: Iterable[Affine]) -> bool:
    """Whether `expression >= 0` wherever each fact is at least zero."""
    interval = interval_under(expression, facts)
    return interval is None or interval.low >= 0
