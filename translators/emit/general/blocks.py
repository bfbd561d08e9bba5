"""Numbers of a text that follow the length of its blocks."""

from collections.abc import Iterator, Sequence
from itertools import islice, product

from translators.emit.general.formula import Factor, Formula, Sizes, number

# Ways to read the numbers of one formula.
_MOST_WAYS = 256


def following(
    formula: Formula, length: int, name: str, seen: Sequence[tuple[Sizes, int]]
) -> Formula | None:
    """The formula with a length by name, where it was a number; `None` if none is found.

    Args:
      formula: what a number follows while blocks have the length.
      length: the length.
      name: what to call it.
      seen: sizes, with the length by that name among them, and what the number is for these.
    """
    if all(formula.value(sizes) == value for sizes, value in seen):
        return formula
    for each in islice(_readings(formula, length, name), _MOST_WAYS):
        if all(each.value(sizes) == value for sizes, value in seen):
            return each
    return None


def _readings(formula: Formula, length: int, name: str) -> Iterator[Formula]:
    """The formula with some of its numbers as multiples or parts of the length."""
    parts = [
        list(_terms(factors, coefficient, length, name)) for factors, coefficient in formula.terms
    ]
    for chosen in product(*parts, [*_multiples(formula.offset, length, name)]):
        *terms, offset = chosen
        found = number(0)
        for each in terms:
            found = Formula(terms=(*found.terms, *each.terms), offset=found.offset + each.offset)
        yield Formula(terms=(*found.terms, *offset.terms), offset=found.offset + offset.offset)


def _terms(
    factors: Sequence[Factor], coefficient: int, length: int, name: str
) -> Iterator[Formula]:
    divided = [
        [each, Factor(each.sizes, each.divisor // length, name)]
        if each.divisor % length == 0
        else [each]
        for each in factors
    ]
    for chosen in product(*divided):
        term = Formula(terms=((tuple(sorted(chosen)), 1),))
        for scale in _multiples(coefficient, length, name):
            yield term.times(scale)


def _multiples(value: int, length: int, name: str) -> Iterator[Formula]:
    """A number as itself, as so many times the length, and as a part of it."""
    yield number(value)
    if value and value % length == 0:
        yield Formula(terms=(((Factor((name,)),), value // length),))
    elif abs(value) > 1 and length % value == 0:
        sign = 1 if value > 0 else -1
        yield Formula(terms=(((Factor((name,), length // abs(value)),), sign),))
