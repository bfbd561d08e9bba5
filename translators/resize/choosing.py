"""Sizes for launches to try: such that no two numbers of them are the same by chance."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import count, islice
from math import prod
from types import MappingProxyType

from translators.emit.general.formula import Formula, Sizes
from translators.emit.general.writing import Bounds
from translators.resize.family import Family, block_sizes

# Launches to choose from those that formulas are fitted to.
LAUNCHES = 7
# How sizes grow that go in several blocks, in no order that others have.
_GROWTH = (1.0, 1.7, 1.3, 2.3, 1.5, 2.0, 1.15)
# How sizes change beside them that do not, and that vector memory may not hold much more of.
_CHANGE = (1.0, 0.7, 1.4, 0.85, 1.2, 0.6, 1.8)
# Where no constant says how large a block is.
_USUAL_BLOCK = 16
_GREATEST_ALIGNMENT = 16
# Where the analysis lists every program of a launch, fewer are tried.
MOST_PROGRAMS = 1 << 15
_REACHES = (1 << 30, 1 << 20, 1 << 14)
# Elements of an array in launches that formulas are fitted to, and how far sizes shrink for that.
_MOST_ELEMENTS = 1 << 28
_SMALLEST = 1 << 8
# Elements of arrays that share memory, of which each is looked at.
MOST_SHARED = 1 << 18
LARGEST = 1 << 30
ONES = "sizes of 1"
FEW = 3


class Range(Enum):
    """Which values a size is given.

    `FREE` sizes are larger than any block, or any number of programs; those `WITHIN` a block are
    as in the launch; `ALIGNED` ones divide into as large blocks as that of the launch does.
    """

    FREE = "free"
    WITHIN = "within"
    ALIGNED = "aligned"


def bounds_of(family: Family, name: str, range_: Range) -> Bounds | None:
    """What a size is confined to in a range; `None` where it has no such range."""
    value, blocks = family.sizes[name], block_sizes(family.launch)
    match range_:
        case Range.FREE:
            return Bounds()
        case Range.WITHIN:
            around = [each for each in blocks if each > value]
            if value in blocks or not around or around[0] <= FEW:
                return None
            return Bounds(most=around[0])
        case Range.ALIGNED:
            step = max((each for each in blocks if value % each == 0), default=1)
            if step == 1:
                step = value & -value
            step = min(step, value) if step in blocks else min(step, _GREATEST_ALIGNMENT)
            return Bounds(least=step, step=step) if step > 1 else None


def fitting_sizes(
    family: Family,
    bounds: Mapping[str, Bounds],
    scale: int = 1,
    above: Mapping[str, int] = MappingProxyType({}),
) -> list[dict[str, int]]:
    """Sizes of a few launches: generic ones, in the order that they have in the launch.

    Args:
      family: the launches.
      bounds: of each size that is changed.
      scale: by how much larger those are that nothing bounds and programs are not as many as.
      above: what sizes have to exceed that go in blocks in Pallas; the others are then no larger
        than in the launch, or than a few blocks of the kernel's.
    """
    smaller, most = 1, MOST_SHARED if family.shares_memory else _MOST_ELEMENTS
    while True:
        found = _generic_sizes(family, bounds, scale / smaller, above)
        largest = max(
            prod(array.shape) for sizes in found for array in family.resized(sizes).arrays
        )
        if largest <= most or smaller > _SMALLEST:
            return found
        smaller *= 2


def _generic_sizes(
    family: Family, bounds: Mapping[str, Bounds], scale: float, above: Mapping[str, int]
) -> list[dict[str, int]]:
    """Such sizes, whatever the arrays' sizes are then."""
    ranked = sorted(bounds, key=lambda name: family.sizes[name])
    counted = programs_alone(family)
    largest = max(block_sizes(family.launch), default=_USUAL_BLOCK)
    found: list[dict[str, int]] = []
    for index in range(LAUNCHES):
        taken = {*found[-1].values()} if found else set()
        sizes: dict[str, int] = {}
        for rank, name in enumerate(ranked):
            limits = bounds[name]
            if limits.most is not None:
                choices = _below(limits.most)
                start = (index * 3 + rank) % len(choices)
                values: Iterator[int] = iter([*choices[start:], *choices[:start]])
            else:
                if name in above:
                    # Several blocks, of no two sizes as many.
                    growth = _GROWTH[(index + 2 * rank) % LAUNCHES]
                    about = above[name] * (3.1 + 1.2 * rank) * growth
                elif name in counted:
                    about = limits.step * (5.0 + 4 * rank + 6 * index)
                elif above:
                    about = max(2 * largest, family.sizes[name]) * _CHANGE[index]
                else:
                    generic = 2 * largest * (1.2 + 0.8 * rank) * (1 + 0.37 * index)
                    about = scale * max(generic, family.sizes[name] * (1 + 0.13 * index))
                values = (limits.step * each for each in primes_from(int(about) // limits.step))
            fresh = (each for each in values if each not in taken)
            sizes[name] = next(fresh, limits.most or limits.least)
            taken.add(sizes[name])
        found.append(sizes)
    return found


def large_sizes(
    family: Family,
    bounds: Mapping[str, Bounds],
    name: str,
    scale: int = 1,
    above: Mapping[str, int] = MappingProxyType({}),
    usual: Sizes = MappingProxyType({}),
    programs: int = LARGEST,
) -> Iterator[dict[str, int]]:
    """One size as large as arrays may be, the others small; then less and less large.

    Args:
      family: the launches.
      bounds: of each size that is changed.
      name: which one is to be large.
      scale: that of `fitting_sizes`, which the size is to exceed.
      above: that of `fitting_sizes`.
      usual: what sizes are that need not exceed anything; as for `fitting_sizes` where not given.
      programs: how many programs a launch may have at the most.
    """
    smallest = {**fitting_sizes(family, bounds, above=above)[0], **usual}
    for each, most in above.items():
        # Two blocks are enough.
        step = bounds[each].step
        smallest[each] = step * next(primes_from(most // step + 1))
    largest = MOST_SHARED if family.shares_memory else LARGEST
    step = bounds[name].step
    for most, limit in ((largest, programs), *((each, MOST_PROGRAMS) for each in _REACHES)):
        value = min(most, largest, above.get(name, largest) * MOST_PROGRAMS) // step
        while value * step > scale * smallest[name]:
            launch = family.resized({**smallest, name: step * value})
            elements = max(prod(array.shape) for array in launch.arrays)
            if prod(launch.grid) <= limit and elements <= min(most, largest):
                yield {**smallest, name: step * next(primes_from(value))}
                break
            value -= value // 8 + 1


def unusual_sizes(
    family: Family, bounds: Mapping[str, Bounds], formulas: Sequence[Formula]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Sizes of launches whose text may be another one, and what is unusual about them.

    Args:
      family: the launches.
      bounds: of each size that is changed.
      formulas: those of the grid and of the text.
    """
    divisors: dict[str, int] = {}
    for factor in sorted({each for formula in formulas for each in formula.factors}):
        for name in factor.sizes:
            divisors[name] = max(factor.divisor, divisors.get(name, 1))
    few = {
        name: max(each.least, FEW if each.step == 1 else 2 * each.step)
        for name, each in bounds.items()
    }
    yield "sizes below a block", _distinct(few, bounds)
    yield ONES, {name: each.least for name, each in bounds.items()}
    whole = {
        name: bounds[name].most or max(divisors.get(name, 1), bounds[name].step) for name in bounds
    }
    yield "whole blocks", {name: few[name] if each == 1 else each for name, each in whole.items()}


def _distinct(sizes: Mapping[str, int], bounds: Mapping[str, Bounds]) -> dict[str, int]:
    """The sizes, each larger than the last one where it may be."""
    found: dict[str, int] = {}
    for index, (name, value) in enumerate(sizes.items()):
        larger = value + index * 2 * bounds[name].step
        most = bounds[name].most
        found[name] = larger if most is None else min(larger, most)
    return found


def programs_alone(family: Family) -> set[str]:
    """Sizes that programs are as many as, and are not divided into blocks."""
    factors = {factor for formula in family.grid for factor in formula.factors}
    divided = {name for each in factors if each.counts_blocks for name in each.sizes}
    return {name for each in factors for name in each.sizes} - divided


def _below(most: int) -> list[int]:
    """Generic values up to a block, from the middle up first."""
    primes = [each for each in range(2, most) if _is_prime(each)]
    upper = [each for each in primes if 2 * each > most]
    rest = [each for each in range(most - 1, 1, -1) if each not in primes]
    return [*upper, *(each for each in reversed(primes) if each not in upper), *rest]


def primes_from(start: int) -> Iterator[int]:
    """The primes from a number on."""
    return (each for each in count(max(2, start)) if _is_prime(each))


def _is_prime(number: int) -> bool:
    if number < 4:
        return number > 1
    return all(
        number % each for each in islice(count(2), int(number**0.5)) if each * each <= number
    )
