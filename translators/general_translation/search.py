"""Looks for the sizes that a function can read off its arguments."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from translators.emit.emission import Note
from translators.emit.general.writing import Bounds
from translators.emit.jax import JaxFunction
from translators.general_translation.block_lengths import Blocked, blocked
from translators.general_translation.confirmed import Confirmation, tell_apart
from translators.general_translation.fitted import Fitted
from translators.general_translation.naming import name_blocks
from translators.general_translation.reaching import reach
from translators.general_translation.resized import (
    AmbiguousError,
    AnotherTextError,
    Budget,
    Resized,
    UnlikeError,
)
from translators.graph.graph import walk
from translators.resize.choosing import Range, bounds_of, programs_alone
from translators.resize.evidence import evidence
from translators.resize.family import block_sizes
from translators.resize.reading import families
from translators.translation import Target, Translation, translate_module
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import Launch

# What is emitted and tried for one kernel is bounded: fewer launches of large kernels.
_MOST_TRANSLATIONS = 30
_FEWEST_TRANSLATIONS = 14
_MOST_OPS = 6000
_TIMES_OF_PALLAS = 2
_MOST_SINGLY = 14
_FAMILIES_SINGLY = 2
_WAYS = 6
# Short loops are written otherwise than long ones.
_SCALES = (1, 16)


def translate_general(
    kernel: Any, launch: Launch, others: Sequence[Launch] = (), emit: Target = "jax"
) -> Translation:
    """Translates a jitted function for launches like the given one, of any sizes.

    Args:
      kernel: the jitted function.
      launch: one launch.
      others: other launches by the same host code, from which is seen what depends on what.
      emit: what to write.

    Returns:
      The launch's translation. Its function is one for other sizes too, or there is a note that
      says why it is not.

    Raises:
      InputError: part of the kernel has no faithful translation; at the kernel's line.
    """
    return generalized(translate_module(kernel_graph(kernel, launch), launch, emit), others)


def generalized(
    translation: Translation,
    others: Sequence[Launch] = (),
    blocks: Mapping[str, int] = MappingProxyType({}),
) -> Translation:
    """The translation with a function that holds for launches of other sizes, where it can be.

    Args:
      translation: of one launch.
      others: other launches by the same host code, from which is seen what depends on what.
      blocks: how long blocks are that somebody asked for, by the name of the dimension.
    """
    if translation.emitted is not None:
        module, launch = translation.emitted
        inner = replace(translation, module=module, launch=launch, emitted=None)
        return replace(translation, function=generalized(inner, (), blocks).function)
    ops = sum(1 for _ in walk(translation.module.kernel.body))
    most = min(_MOST_TRANSLATIONS, max(_FEWEST_TRANSLATIONS, _MOST_OPS // ops))
    if translation.function.pallas:
        most *= _TIMES_OF_PALLAS
    budget = Budget(most)
    # What the function takes by name is data, and no size.
    data, launch = translation.function.scalars, translation.launch
    found = families(launch, others, data, evidence(translation.module, launch, data))
    searches = [Search(Resized(translation, family, budget, blocks)) for family in found]
    reasons: list[str] = []
    for attempt in _attempts(searches, budget, most):
        try:
            return replace(translation, function=attempt())
        except UnlikeError as error:
            reasons.append(str(error))
    reason = reasons[0] if reasons else "the grid of its launches follows no formula"
    note = Note(text=f"holds for the sizes of its launch alone: {reason}")
    function = translation.function
    return replace(translation, function=replace(function, notes=(*function.notes, note)))


def _attempts(
    searches: Sequence["Search"], budget: Budget, most: int
) -> Iterator[Callable[[], JaxFunction]]:
    """Ways to find a function, the most general first."""
    for number_ in range(_WAYS):
        for search in searches:
            yield partial(search.at_once, number_)
    budget.add(min(_MOST_SINGLY, most))
    yield from (search.one_after_another for search in searches[:_FAMILIES_SINGLY])


class Search:
    """Looks for the sizes of one family of launches that a function can read off its arguments.

    Args:
      resized: the launches.
    """

    def __init__(self, resized: Resized) -> None:
        self._resized = resized
        self._family = self._resized.family
        self._outcomes: dict[tuple[tuple[str, Range], ...], JaxFunction | UnlikeError] = {}

    def _readable(self) -> list[str]:
        """The sizes that are a dimension of an argument."""
        shapes = [
            self._family.arrays[name].shape for name in self._resized.base.function.parameters
        ]
        singles = [each.single for shape in shapes for each in shape]
        return list(dict.fromkeys(each for each in singles if each is not None))

    def at_once(self, number_: int) -> JaxFunction:
        """The function for all sizes that can be read, in the n-th way to choose their ranges.

        Raises:
          UnlikeError: there is none.
        """
        names = self._readable()
        if not names:
            raise UnlikeError("no size can be read off an argument")
        ways = self._ranges(names)
        if number_ >= len(ways):
            raise UnlikeError("there are no more ranges to try")
        return self._general(ways[number_])

    def _ranges(self, names: Sequence[str]) -> list[dict[str, Range]]:
        """Likely ranges for all sizes, the widest first; sizes left out are as in the launch."""
        sizes, blocks = self._family.sizes, block_sizes(self._family.launch)
        alone = programs_alone(self._family)
        equal = {name for name in names if sizes[name] in blocks}
        small = {name for name in names if sizes[name] <= max(blocks, default=0)} - alone
        ways = [dict.fromkeys(names, Range.FREE)]
        ways.append({name: Range.FREE for name in names if name not in equal})
        for range_ in (Range.WITHIN, Range.ALIGNED):
            for kept in (equal, set()):
                ways.append(
                    {
                        name: range_ if name in small else Range.FREE
                        for name in names
                        if name not in kept
                        and (name not in small or bounds_of(self._family, name, range_))
                    }
                )
        unique: list[dict[str, Range]] = []
        for way in ways:
            if way and way not in unique:
                unique.append(way)
        return unique

    def one_after_another(self) -> JaxFunction:
        """The function for sizes that are added one by one to those that are not as in the launch.

        Raises:
          UnlikeError: there is none.
        """
        kept: dict[str, Range] = {}
        found: JaxFunction | None = None
        reason = "no size can be read off an argument"
        for name in self._readable():
            for range_ in Range:
                ranges = {**kept, name: range_}
                if bounds_of(self._family, name, range_) is None:
                    continue
                try:
                    found = self._general(ranges)
                except UnlikeError as error:
                    reason = str(error)
                    continue
                kept = ranges
                break
        if found is None:
            raise UnlikeError(reason)
        return found

    def _general(self, ranges: Mapping[str, Range]) -> JaxFunction:
        """The function that is for sizes in these ranges.

        Raises:
          UnlikeError: there is none.
        """
        key = tuple(sorted(ranges.items()))
        if key not in self._outcomes:
            bounds = {name: bounds_of(self._family, name, each) for name, each in ranges.items()}
            known = {name: each for name, each in bounds.items() if each}
            self._outcomes[key] = self._outcome(known)
        outcome = self._outcomes[key]
        if isinstance(outcome, AmbiguousError) and len(ranges) > 1:
            rest = {name: each for name, each in ranges.items() if name != outcome.size}
            return self._general(rest)
        if isinstance(outcome, UnlikeError):
            raise outcome
        return outcome

    def _outcome(self, bounds: Mapping[str, Bounds]) -> JaxFunction | UnlikeError:
        reason: UnlikeError | None = None
        for trial in self._trials(bounds):
            try:
                fitted = trial()
                tell_apart(fitted)
                Confirmation(fitted).confirm()
                return fitted.function()
            except UnlikeError as error:
                if isinstance(error, AmbiguousError):
                    return error
                reason = error
                if not isinstance(error, AnotherTextError):
                    break
        assert reason is not None
        return reason

    def _trials(self, bounds: Mapping[str, Bounds]) -> Iterator[Callable[[], Fitted]]:
        """Ways to fit a function, the next for when the last one gives another text."""
        try:
            blocks = blocked(self._resized, bounds)
        except UnlikeError:
            blocks = None
        if blocks is not None:
            yield partial(self._in_blocks, bounds, blocks)
            if blocks.as_long != blocks:
                yield partial(self._in_blocks, bounds, blocks.as_long)
        for scale in _SCALES:
            yield partial(self._plain, bounds, scale)

    def _plain(self, bounds: Mapping[str, Bounds], scale: int) -> Fitted:
        """The function for launches with blocks of the lengths that suit each."""
        fitted = Fitted(self._resized, bounds, scale)
        reach(fitted, fitted.bounds)
        return fitted

    def _in_blocks(self, bounds: Mapping[str, Bounds], blocks: Blocked) -> Fitted:
        """The function for launches with blocks of fixed lengths.

        Raises:
          AnotherTextError: there is none.
        """
        try:
            fitted = Fitted(self._resized, bounds, lengths=blocks.short)
            reach(fitted, blocks.short.above)
            name_blocks(fitted, blocks)
            reach(fitted, [name for name in fitted.bounds if name not in blocks.short.above])
        except UnlikeError as error:
            raise AnotherTextError(str(error)) from error
        return fitted
