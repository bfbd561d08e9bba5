"""Translations of launches of other sizes, as many as may be made."""

from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType

from hlo_tools.errors import InputError
from translators.access.analysis import Access
from translators.access.classify import AccessClass
from translators.access.delinearize import Position
from translators.emit.general.formula import Sizes
from translators.emit.general.template import Template, TemplateError, template_of
from translators.emit.jax import JaxFunction
from translators.emit.pallas.lengths import UnknownDimensionError
from translators.resize.choosing import MOST_SHARED
from translators.resize.family import Family
from translators.translation import Target, Translation, translate_module
from translators.triton.launches import Launch


class UnlikeError(Exception):
    """Launches of other sizes are not translated alike; the message is a clause."""


class AnotherTextError(UnlikeError):
    """Their text is another one; that of larger sizes may be the same for all."""


class RefusedError(UnlikeError):
    """A launch of other sizes has no translation."""


class AmbiguousError(UnlikeError):
    """A scalar may be a size or a number of its own.

    Args:
      message: a clause.
      size: the size.
    """

    def __init__(self, message: str, size: str) -> None:
        super().__init__(message)
        self.size = size


class Budget:
    """How many more launches may be translated.

    Args:
      left: that number.
    """

    def __init__(self, left: int) -> None:
        self._left = left

    def add(self, more: int) -> None:
        """Gives some more."""
        self._left = max(0, self._left) + more

    @property
    def spent(self) -> bool:
        """Whether none may be."""
        return self._left <= 0

    def spend(self) -> None:
        """Takes one.

        Raises:
          UnlikeError: none is left.
        """
        if self.spent:
            raise UnlikeError("too many launches would have to be tried")
        self._left -= 1


class Resized:
    """The translations of one family of launches.

    Args:
      translation: of the launch that is given.
      family: the launches.
      budget: how many more of them may be translated.
      blocks: how long blocks are in all of them, by the name of the dimension; as suits each
        where not given.
    """

    def __init__(
        self,
        translation: Translation,
        family: Family,
        budget: Budget,
        blocks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.base = translation
        self.family = family
        self.blocks = blocks
        self._budget = budget
        self._translated: dict[tuple[tuple[str, int], ...], Translation | RefusedError] = {}

    def with_blocks(self, blocks: Mapping[str, int]) -> "Resized":
        """The same launches with blocks of other lengths."""
        return Resized(self.base, self.family, self._budget, blocks)

    def translated(self, sizes: Sizes) -> Translation:
        """The translation of the launch with these sizes.

        Raises:
          UnlikeError: it is refused.
        """
        key = tuple(sorted(sizes.items()))
        if not self.blocks and all(self.family.sizes[name] == value for name, value in key):
            return self.base
        if key not in self._translated:
            try:
                self._translated[key] = self.launched(self.family.resized(sizes))
            except RefusedError as error:
                self._translated[key] = error
        found = self._translated[key]
        if isinstance(found, RefusedError):
            raise found
        return found

    def launched(self, launch: Launch) -> Translation:
        """The translation of another launch.

        Raises:
          UnlikeError: it is refused.
        """
        if self.family.shares_memory:
            largest = max(prod(array.shape) for array in launch.arrays)
            if largest > MOST_SHARED:
                raise UnlikeError("arguments are different views of one memory")
        self._budget.spend()
        blocks = dict(self.blocks)
        try:
            while True:
                try:
                    return translate_module(self.base.module, launch, target_of(self.base), blocks)
                except UnknownDimensionError as error:
                    # One program alone does not go along it.
                    del blocks[error.name]
        except InputError as error:
            raise RefusedError(f"a launch of other sizes is refused: {error.message}") from error


def target_of(translation: Translation) -> Target:
    """What a translation was written as."""
    return "pallas" if translation.function.pallas else "jax"


def template(function: JaxFunction) -> Template:
    """The function without its numbers.

    Raises:
      UnlikeError: it has another form than templates have.
    """
    try:
        return template_of(function)
    except TemplateError as error:
        raise UnlikeError(str(error)) from error


def require_as_good(base: Translation, other: Translation) -> None:
    """Makes sure that a launch of other sizes goes through its arrays likewise.

    Otherwise its sizes are not what the kernel takes them to be.

    Raises:
      UnlikeError: it does not.
    """
    one, two = base.function, other.function
    more = [f"`{each}`" for each in two.parameters if each not in one.parameters]
    if more:
        raise UnlikeError(f"for other sizes it matters what {', '.join(more)} held before")
    if (one.results, one.scalars, one.wide) != (two.results, two.scalars, two.wide):
        raise UnlikeError("for other sizes the function gives or needs something else")
    pairs = zip(base.analysis.accesses, other.analysis.accesses, strict=True)
    for usual, unusual in pairs:
        for (what, before), (_, after) in zip(_faults(usual), _faults(unusual), strict=True):
            if after and not before:
                line = usual.op.location.line if usual.op.location else 0
                raise UnlikeError(f"for other sizes the access in line {line} {what}")


def _faults(access: Access) -> Iterator[tuple[str, bool]]:
    """What may be less good in a launch of other sizes, and whether it is so here."""
    dimensions = access.position.dimensions if isinstance(access.position, Position) else ()
    yield "is less regular", access.kind > AccessClass.SLICE or not dimensions
    yield "may leave its array", not all(each.proved for each in dimensions)
    intervals = [(each.index.interval, each.size) for each in dimensions]
    part = any(each.low > 0 or each.high < size - 1 for each, size in intervals)
    yield "covers only a part of its array", part
