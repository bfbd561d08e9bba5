"""Intervals of machine arithmetic that gives no expression.

Each function takes the intervals of two operands and gives that of the result, as a mathematical
integer; what does not fit in the type wraps around, so that the caller drops it.
"""

from collections.abc import Iterable

from translators.access.expression import Interval


def product(left: Interval, right: Interval) -> Interval:
    """Of `left * right`."""
    return _hull(one * other for one in _ends(left) for other in _ends(right))


def quotient(left: Interval, right: Interval) -> Interval:
    """Of `left / right` rounded towards zero, where the divisor is not zero."""
    if right.low > 0:
        return _hull(_truncated(one, other) for one in _ends(left) for other in _ends(right))
    most = max(map(abs, _ends(left)))
    return Interval(-most, most)


def remainder(left: Interval, right: Interval) -> Interval:
    """Of what such a division leaves, which has the sign of the dividend."""
    most = max(0, max(map(abs, _ends(right))) - 1)
    low = max(-most, left.low) if left.low < 0 else 0
    high = min(most, left.high) if left.high > 0 else 0
    return Interval(low, high)


def shifted_right(left: Interval, right: Interval) -> Interval:
    """Of `left >> right`, which keeps the sign."""
    low, high = max(0, right.low), max(0, right.high)
    return _hull(one >> count for one in _ends(left) for count in (low, high))


def conjoined(left: Interval, right: Interval) -> Interval | None:
    """Of the bits that both have; `None` where both may be negative."""
    ends = [each.high for each in (left, right) if each.low >= 0]
    return Interval(0, min(ends)) if ends else None


def disjoined(left: Interval, right: Interval) -> Interval | None:
    """Of the bits that either or just one of them has; `None` where one may be negative."""
    if min(left.low, right.low) < 0:
        return None
    return Interval(0, (1 << max(left.high, right.high).bit_length()) - 1)


def magnitude(operand: Interval) -> Interval:
    """Of the distance from zero."""
    return Interval(0, max(map(abs, _ends(operand))))


def _ends(interval: Interval) -> tuple[int, int]:
    return interval.low, interval.high


def _truncated(one: int, other: int) -> int:
    return abs(one) // other * (1 if one >= 0 else -1)


def _hull(ends: Iterable[int]) -> Interval:
    found = list(ends)
    return Interval(min(found), max(found))
