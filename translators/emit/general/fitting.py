"""Finds the formula that a number of the text follows from one size of launch to the next.

A formula is accepted where it gives the number exactly in every launch. Formulas are tried from
the simplest on, and have few enough coefficients that launches are left over to refute them.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, pairwise
from math import prod
from typing import TypeAlias

from translators.emit.general.formula import Factor, Formula, Sizes, number

Monomial: TypeAlias = tuple[Factor, ...]

_MOST_FACTORS = 3
_MOST_FACTORS_OF_SUMS = 2
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

        self._by_steps: dict[tuple[int, ...], list[tuple[tuple[int, ...], Monomial]]] = {}
        for found, chosen in self._products.items():
            if len(chosen) <= _MOST_FACTORS_OF_SUMS:
                self._by_steps.setdefault(_steps(found), []).append((found, chosen))

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
        """Sums of two products and a number; one product has the coefficient 1 or -1."""
        for sign in (-1, 1):
            for found, factors in self._products.items():
                if len(factors) > _MOST_FACTORS_OF_SUMS:
                    continue
                pairs = zip(values, found, strict=True)
                rest = tuple(value - sign * each for value, each in pairs)
                for coefficient in self._coefficients:
                    if any(each % coefficient for each in _steps(rest)):
                        continue
                    key = tuple(each // coefficient for each in _steps(rest))
                    for known, others in self._by_steps.get(key, ()):
                        offset = rest[0] - coefficient * known[0]
                        if others != factors and self._allowed(coefficient, offset):
                            terms = ((others, coefficient), (factors, sign))
                            yield Formula(terms=terms, offset=offset)

    def _allowed(self, slope: int, offset: int) -> bool:
        # Counts that are rounded up or down are off by one from a multiple.
        return slope in self._coefficients and (
            abs(offset) <= _SMALL or any(offset + each in self._coefficients for each in (-1, 0, 1))
        )


def _coefficients(divisors: Sequence[int]) -> dict[int, None]:
    """What products may be multiplied by, likely ones first."""
    found = [1, *divisors, *range(2, _SMALL + 1)]
    found += [one * other for one, other in combinations(divisors, 2)]
    return dict.fromkeys(each for one in found for each in (one, -one))


def _steps(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(values))


def _slope(found: tuple[int, ...], values: tuple[int, ...]) -> int | None:
    """The integer by which values follow others, up to a constant."""
    steps = list(zip(_steps(found), _steps(values), strict=True))
    width, height = next(each for each in steps if each[0])
    if height % width or not height:
        return None
    slope = height // width
    return slope if all(high == slope * wide for wide, high in steps) else None
