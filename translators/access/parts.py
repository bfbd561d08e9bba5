"""Comparisons with a least or greatest number, taken apart into several that all hold.

`i < min(a, b)` holds where `i < a` and `i < b` do, and `i >= max(a, b)` likewise. The parts say of
an index what the whole hides: which of them is the edge of an array, which one always holds.
"""

from translators.access.expression import Affine, Derivation, Derived, Interval, of

# A mask has one or two of them; more parts than this are no longer worth their time.
_MOST = 8


def parts_of(expression: Affine) -> tuple[Affine, ...]:
    """Expressions that all are at least zero just where the given one is."""
    found: list[Affine] = []
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        pair = _pair(each)
        if pair is None:
            found.append(each)
        elif len(found) + len(waiting) + 2 > _MOST:
            return (expression,)
        else:
            waiting += reversed(pair)
    return tuple(dict.fromkeys(found))


def bounds_of(expression: Affine) -> Interval:
    """Between what an expression lies, where the operands of its choices are not taken alone.

    `min(i + 8, 50) - i` is at most 8, though neither the choice nor `i` says so.
    """
    whole = expression.interval
    least = [each.interval for each in parts_of(expression)]
    greatest = [each.interval.scaled(-1) for each in parts_of(expression.times(-1))]
    low = max(whole.low, min(each.low for each in least), *(each.low for each in greatest))
    high = min(whole.high, *(each.high for each in least), max(each.high for each in greatest))
    return Interval(low, high)


def _pair(expression: Affine) -> tuple[Affine, Affine] | None:
    """The expression with each operand of its first choice that is at most the other operand."""
    for variable, factor in expression.terms:
        if not isinstance(variable, Derived):
            continue
        least = variable.derivation is Derivation.MINIMUM and factor > 0
        if least or (variable.derivation is Derivation.MAXIMUM and factor < 0):
            rest = expression - of(variable).times(factor)
            return rest + variable.left.times(factor), rest + variable.right.times(factor)
    return None
