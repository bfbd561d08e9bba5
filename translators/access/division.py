"""Derived variables: division, remainder, minimum, maximum, folded where that is exact."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from translators.access.expression import (
    Affine,
    Derivation,
    Derived,
    Interval,
    Leaf,
    constant,
    derived_in,
    of,
    text_of,
    total,
)
from translators.access.parts import bounds_of
from translators.graph.location import SourceLocation

# Nesting beyond this is no index that a person wrote; it bounds the work on hostile input.
MOST_DERIVED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which op asks for a derived variable, and where it stands."""

    op: str = ""
    location: SourceLocation | None = None


NOWHERE = Source()


def _derive(
    derivation: Derivation, left: Affine, right: Affine, interval: Interval, source: Source
) -> Affine | None:
    inside = (each for side in (left, right) for each, _ in side.terms)
    size = 1 + sum(each.size for each in inside if isinstance(each, Derived))
    if size > MOST_DERIVED:
        return None
    return of(
        Derived(
            derivation=derivation,
            left=left,
            right=right,
            interval=interval,
            size=size,
            text=text_of(derivation, left, right),
            op=source.op,
            location=source.location,
        )
    )


def divide(left: Affine, right: Affine, source: Source = NOWHERE) -> tuple[Affine, Affine] | None:
    """Quotient, rounded down, and remainder; `None` where they would nest too deeply.

    Args:
      left: the dividend.
      right: the divisor, whose interval must be positive.
      source: who asks.
    """
    divisor = right.value
    if divisor is None:
        return _divide_symbolically(left, right, source)
    whole = total(
        ((each, factor // divisor) for each, factor in left.terms if factor % divisor == 0),
        left.offset // divisor,
    )
    rest = left - whole.times(divisor)
    low, high = rest.interval.low // divisor, rest.interval.high // divisor
    if low == high:
        return whole.plus(low), rest.plus(-low * divisor)
    coarse, fine, unit = _split(rest, divisor)
    count = constant(divisor // unit)
    pair = _divide_symbolically(coarse, count, source)
    if pair is None:
        return None
    return whole + pair[0], pair[1].times(unit) + fine


def _split(rest: Affine, divisor: int) -> tuple[Affine, Affine, int]:
    """`(coarse, fine, unit)` with `rest == unit * coarse + fine` and `0 <= fine < unit`.

    `unit` divides the divisor, so that `rest // divisor == coarse // (divisor // unit)`.
    """
    units = {math.gcd(divisor, factor) for _, factor in rest.terms}
    units |= {math.gcd(first, second) for first in units for second in units}
    for unit in sorted(units, reverse=True):
        coarse = total(
            ((each, factor // unit) for each, factor in rest.terms if factor % unit == 0),
            rest.offset // unit,
        )
        fine = rest - coarse.times(unit)
        low, high = fine.interval.low // unit, fine.interval.high // unit
        if low == high:
            return coarse.plus(low), fine.plus(-low * unit), unit
    return rest, constant(0), 1


def _divide_symbolically(
    left: Affine, right: Affine, source: Source
) -> tuple[Affine, Affine] | None:
    span, by = left.interval, right.interval
    ends = [end // count for end in (span.low, span.high) for count in (by.low, by.high)]
    quotient = _derive(Derivation.FLOOR_DIVIDE, left, right, Interval(min(ends), max(ends)), source)
    most = by.high - 1
    if span.low >= 0:
        if span.high < by.low:
            return constant(0), left
        most = min(most, span.high)
    rest = _derive(Derivation.REMAINDER, left, right, Interval(0, most), source)
    return None if quotient is None or rest is None else (quotient, rest)


def minimum(left: Affine, right: Affine, source: Source = NOWHERE) -> Affine | None:
    """The lesser of two; `None` where it would nest too deeply."""
    gap = bounds_of(left - right)
    if gap.high <= 0:
        return left
    if gap.low >= 0:
        return right
    one, two = bounds_of(left), bounds_of(right)
    interval = Interval(min(one.low, two.low), min(one.high, two.high))
    return _derive(Derivation.MINIMUM, left, right, interval, source)


def maximum(left: Affine, right: Affine, source: Source = NOWHERE) -> Affine | None:
    """The greater of two; `None` where it would nest too deeply."""
    gap = bounds_of(left - right)
    if gap.high <= 0:
        return right
    if gap.low >= 0:
        return left
    one, two = bounds_of(left), bounds_of(right)
    interval = Interval(max(one.low, two.low), max(one.high, two.high))
    return _derive(Derivation.MAXIMUM, left, right, interval, source)


def substitute(expression: Affine, replace: Callable[[Leaf], Affine]) -> Affine | None:
    """The expression with every leaf replaced; `None` where the result would nest too deeply."""
    known: dict[Derived, Affine] = {}

    def rewritten(each: Affine) -> Affine:
        result = constant(each.offset)
        for variable, factor in each.terms:
            new = known[variable] if isinstance(variable, Derived) else replace(variable)
            result = result + new.times(factor)
        return result

    for derived in derived_in(expression):
        new = again(derived, rewritten(derived.left), rewritten(derived.right))
        if new is None:
            return None
        known[derived] = new
    return rewritten(expression)


def again(derived: Derived, left: Affine, right: Affine) -> Affine | None:
    """What `derived` is of other operands; `None` where it would nest too deeply."""
    source = Source(op=derived.op, location=derived.location)
    match derived.derivation:
        case Derivation.FLOOR_DIVIDE | Derivation.REMAINDER:
            pair = divide(left, right, source) if right.interval.low > 0 else None
            first = derived.derivation is Derivation.FLOOR_DIVIDE
            return None if pair is None else pair[0 if first else 1]
        case Derivation.MINIMUM:
            return minimum(left, right, source)
        case Derivation.MAXIMUM:
            return maximum(left, right, source)
