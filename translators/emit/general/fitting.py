"""Finds the formula that a number of the text follows from one size of launch to the next.

A formula is accepted where it gives the number exactly in every launch. Formulas are tried from
the simplest on, and have few enough coefficients that launches are left over to refute them.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement
from math import prod
from typing import TypeAlias

from translators.emit.general.formula import Factor, Formula, Sizes, number

Monomial: TypeAlias = tuple[Factor, ...]

_MOST_FACTORS = 3
_SMALL = 4


class Fitter:
    """Knows the sizes of some launches, and what numbers may be made of.

    Args:
      launches: all sizes of each launch, of which there are three or more; those that vary
        differ from each launch to each other.
      divisors: what sizes may be divided by into blocks, and multiplied by.
      known: formulas of numbers of the launch, of which numbers of the text may be made too.
    """

    def __init__(
        self,
        launches: Sequence[Sizes],
        divisors: Sequence[int],
        known: Sequence[Formula] = (),
    ) -> None:
        self._launches = launches
        self._coefficients = _coefficients(divisors)
        varying = [
            name for name in launches[0] if len({each[name] for each in launches}) == len(launches)
        ]
        given = {factor for formula in known for factor in formula.factors if factor.counts_blocks}
        factors = dict.fromkeys(
            [
                *(Factor((name,)) for name in varying),
                *(Factor((name,), each) for each in divisors for name in varying),
                *sorted(given),
            ]
        )
        self._known: dict[tuple[int, ...], Formula] = {}
        for formula in known:
            values_ = tuple(map(formula.value, launches))
            if len(set(values_)) > 1:
                self._known.setdefault(values_, formula)
        self._products: dict[tuple[int, ...], Monomial] = {}
        values = {each: [each.value(sizes) for sizes in launches] for each in factors}
        for count in range(1, _MOST_FACTORS + 1):
            for chosen in combinations_with_replacement(factors, count):
                found = tuple(map(prod, zip(*(values[each] for each in chosen), strict=True)))
                if len(set(found)) > 1:
                    self._products.setdefault(found, chosen)

    def formula(self, values: tuple[int, ...]) -> Formula | None:
        """The simplest formula with these values, one for each launch; `None` if none is found."""
        if values not in self._known:
            found = next(self._candidates(values), None)
            if found is None:
                return None
            self._known[values] = found
        return self._known[values]

    def _candidates(self, values: tuple[int, ...]) -> Iterator[Formula]:
        if len(set(values)) == 1:
            yield number(values[0])
        plain = self._products.get(values)
        if plain is not None:
            yield Formula(terms=((plain, 1),))
        for found, factors in self._products.items():
            slope = _slope(found, values)
            if slope is not None:
                offset = values[0] - slope * found[0]
                if self._allowed(slope, offset):
                    yield Formula(terms=((factors, slope),), offset=offset)
        yield from self._pairs(values)

    def _pairs(self, values: tuple[int, ...]) -> Iterator[Formula]:
        """Sums of two products, of which one has the coefficient 1 or -1."""
        for found, factors in self._products.items():
            for sign in (-1, 1):
                rest = tuple(value - sign * each for value, each in zip(values, found, strict=True))
                for coefficient in self._coefficients:
                    if any(each % coefficient for each in rest):
                        continue
                    other = self._products.get(tuple(each // coefficient for each in rest))
                    if other is not None:
                        yield Formula(terms=((other, coefficient), (factors, sign)))

    def _allowed(self, slope: int, offset: int) -> bool:
        return slope in self._coefficients and (
            abs(offset) <= _SMALL or offset in self._coefficients
        )


def _coefficients(divisors: Sequence[int]) -> dict[int, None]:
    """What products may be multiplied by, likely ones first."""
    found = [1, *divisors, *range(2, _SMALL + 1)]
    found += [one * other for one, other in combinations(divisors, 2)]
    return dict.fromkeys(each for one in found for each in (one, -one))


def _slope(found: tuple[int, ...], values: tuple[int, ...]) -> int | None:
    """The integer by which values follow others, up to a constant."""
    steps = [
        (after - before, to - start)
        for before, after, start, to in zip(found, found[1:], values, values[1:], strict=False)
    ]
    width, height = next(each for each in steps if each[0])
    if height % width or not height:
        return None
    slope = height // width
    return slope if all(high == slope * wide for wide, high in steps) else None
