"""How long the blocks of a kernel in Pallas are, for launches that have several of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from translators.emit.general.writing import Bounds
from translators.emit.pallas.lengths import BlockLength
from translators.general_translation.resized import RefusedError, Resized, require_as_good
from translators.resize.choosing import LARGEST, MOST_PROGRAMS, fitting_sizes, primes_from
from translators.translation import Translation

# By how much larger a size gets to have several blocks.
_LARGER = (16, 256, 4096)
# With more programs, a launch takes long to be analysed.
_MANY_PROGRAMS = 1 << 13
# Long enough for every type whose elements lie in one row of a register.
_SHORT = 128
# How often lengths are halved that do not fit into vector memory together.
_HALVINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Blocks of fixed lengths.

    Attributes:
      blocks: the lengths, by the name of the dimension; `LARGEST` where one block is enough.
      above: what sizes have to exceed for there to be several blocks.
    """

    blocks: Mapping[str, int] = field(default_factory=dict)
    above: Mapping[str, int] = field(default_factory=dict)


PLAIN = Lengths()
"""Blocks of whatever lengths suit a launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Lengths for launches that have several blocks.

    Attributes:
      long: those that suit large arrays.
      short: those for launches to fit formulas to, which would have many programs otherwise.
    """

    long: Lengths
    short: Lengths

    @property
    def as_long(self) -> "Blocked":
        """Long ones in the place of the short ones."""
        return replace(self, short=self.long)


def blocked(resized: Resized, bounds: Mapping[str, Bounds]) -> Blocked | None:
    """The lengths for launches of larger sizes; `None` where nothing goes in several blocks.

    Args:
      resized: the launches, with blocks of any lengths.
      bounds: of the sizes that are changed.

    Raises:
      UnlikeError: launches of other sizes are refused, or go through their arrays otherwise.
    """
    if not resized.base.function.pallas:
        return None
    first = fitting_sizes(resized.family, bounds)[0]
    translation = resized.translated(first)
    require_as_good(resized.base, translation)
    usual = _dimensions(translation)
    lengths: dict[str, int] = {}
    growing: dict[str, dict[str, float]] = {}
    for name, limits in bounds.items():
        if limits.most is not None:
            continue
        for factor in _LARGER:
            size = limits.step * next(primes_from(first[name] * factor // limits.step))
            sizes = {**first, name: size}
            if prod(resized.family.resized(sizes).grid) > MOST_PROGRAMS:
                break
            try:
                translation = resized.translated(sizes)
            except RefusedError:
                break
            require_as_good(resized.base, translation)
            larger = _dimensions(translation)
            grown = [
                each
                for each in larger.values()
                if each.name in usual and each.whole > usual[each.name].whole
            ]
            several = [each for each in grown if each.length < each.whole]
            for each in several:
                lengths[each.name] = min(each.length, lengths.get(each.name, LARGEST))
                growing.setdefault(name, {})[each.name] = each.whole / size
            if several or not grown:
                break
    if not lengths:
        return None

    def fixed(chosen: Mapping[str, int]) -> Lengths:
        above = {
            name: max(1, *(int(chosen[each] / slope) for each, slope in dimensions.items()))
            for name, dimensions in growing.items()
        }
        return Lengths(
            blocks={**dict.fromkeys(usual, LARGEST), **chosen, **resized.blocks}, above=above
        )

    for _ in range(_HALVINGS):
        long = fixed(lengths)
        sizes = fitting_sizes(resized.family, bounds, 1, long.above)[0]
        try:
            resized.with_blocks(long.blocks).translated(sizes)
        except RefusedError:
            lengths = {name: each // 2 for name, each in lengths.items()}
            continue
        driven = [each for dimensions in growing.values() for each in dimensions]
        alone = len(driven) == len(set(driven))
        if not alone or prod(resized.family.resized(sizes).grid) <= _MANY_PROGRAMS:
            return Blocked(long=long, short=long)
        short = {name: _SHORT if each % _SHORT == 0 else each for name, each in lengths.items()}
        return Blocked(long=long, short=fixed(short))
    return None


def _dimensions(translation: Translation) -> dict[str, BlockLength]:
    """The dimensions that go in blocks, by name."""
    return {each.name: each for each in translation.function.blocks}
