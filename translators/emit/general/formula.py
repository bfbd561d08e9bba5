"""Integers as formulas over sizes: sums of products of sizes and of counts of blocks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

Sizes: TypeAlias = Mapping[str, int]
"""What each size is, by name."""


@dataclass(frozen=True, slots=True, order=True)
class Factor:
    """A product of sizes, divided and rounded up.

    Attributes:
      sizes: the names of the sizes, in alphabetical order.
      divisor: at least 1.
      block: the name of a length that divides it too; empty if none does.
    """

    sizes: tuple[str, ...]
    divisor: int = 1
    block: str = ""

    def value(self, sizes: Sizes) -> int:
        """What it is for these sizes."""
        divisor = self.divisor * sizes[self.block] if self.block else self.divisor
        return -(-prod(sizes[each] for each in self.sizes) // divisor)

    @property
    def counts_blocks(self) -> bool:
        """Whether it is the number of blocks that cover something."""
        return self.divisor > 1 or bool(self.block)


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of products.

    Attributes:
      terms: products of factors, each with what it is multiplied by.
      offset: what is added.
    """

    terms: tuple[tuple[tuple[Factor, ...], int], ...] = ()
    offset: int = 0

    def value(self, sizes: Sizes) -> int:
        """What it is for these sizes."""
        products = (
            coefficient * prod(each.value(sizes) for each in factors)
            for factors, coefficient in self.terms
        )
        return sum(products) + self.offset

    @property
    def constant(self) -> bool:
        """Whether it is the same for all sizes."""
        return not self.terms

    @property
    def factors(self) -> frozenset[Factor]:
        """What it is made of."""
        return frozenset(factor for factors, _ in self.terms for factor in factors)

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it depends on."""
        names = frozenset(name for factor in self.factors for name in factor.sizes)
        return names | {factor.block for factor in self.factors if factor.block}

    @property
    def single(self) -> str | None:
        """The size that it is; `None` if it is not just one."""
        match self:
            case Formula(terms=(((Factor(sizes=(name,), divisor=1),), 1),), offset=0):
                return name
        return None

    def times(self, other: "Formula") -> "Formula":
        """The product of two formulas."""
        found: dict[tuple[Factor, ...], int] = {}
        for left, first in (*self.terms, ((), self.offset)):
            for right, second in (*other.terms, ((), other.offset)):
                key = tuple(sorted((*left, *right)))
                found[key] = found.get(key, 0) + first * second
        offset = found.pop((), 0)
        kept = tuple((factors, number) for factors, number in found.items() if number)
        return Formula(terms=kept, offset=offset)

    def plus(self, number: int) -> "Formula":
        """The formula with a number added."""
        return Formula(terms=self.terms, offset=self.offset + number)

    def negated(self) -> "Formula":
        """The formula with the other sign."""
        terms = tuple((factors, -number) for factors, number in self.terms)
        return Formula(terms=terms, offset=-self.offset)

    def text(self, names: Mapping[Factor, str]) -> str:
        """As Python writes it, each factor under the name that it is given."""
        parts: list[tuple[bool, str]] = []
        for factors, coefficient in sorted(self.terms, key=lambda each: each[1] < 0):
            words = [names[each] for each in factors]
            if abs(coefficient) != 1:
                words.append(str(abs(coefficient)))
            parts.append((coefficient < 0, " * ".join(words)))
        if self.offset or not parts:
            last = (self.offset < 0, str(abs(self.offset)))
            # What is subtracted comes last.
            first_negative = [minus for minus, _ in parts].count(False)
            parts.insert(len(parts) if last[0] else first_negative, last)
        (negative, first), *rest = parts
        text = f"-{first}" if negative else first
        return text + "".join(f" {'-' if minus else '+'} {word}" for minus, word in rest)


def number(value: int) -> Formula:
    """A formula that is the same for all sizes."""
    return Formula(offset=value)


def size(name: str) -> Formula:
    """A size itself."""
    return product_of((Factor((name,)),))


def product_of(factors: Iterable[Factor], coefficient: int = 1) -> Formula:
    """A product."""
    return Formula(terms=((tuple(sorted(factors)), coefficient),))
