"""Translations that hold for all sizes of a launch.

A kernel is translated for several launches that differ in sizes. Where the texts differ in
numbers alone, and each number follows a formula over dimensions of the arguments, one function
takes the place of all of them: it reads the sizes off its arguments.

What that rests on:

- For the launches that formulas are fitted to, and for one launch with each size as large as can
  be analysed, the function's text with the formulas evaluated is exactly the translation of that
  launch. So it is as right as that translation. These sizes have no common divisors and are
  larger than blocks, so that no number has its value by chance.
- For sizes below a block, of 1, and of whole blocks, and for the launch itself, translations may
  have other texts. There the function is run, and compared with the evaluator on random inputs:
  confirmed, not proved. A launch that is too large to be run so is left to whoever verifies it.
- For all other sizes it is inferred from these: not proved. A text whose form depends on a
  threshold that no launch tried reaches would not be noticed.
- That a launch of other sizes has the grid, the strides and the integers that the formulas give
  is a guess from the launches that are known (see `resize.reading`). The docstring of the function
  says what it takes them to be.

What does not fit stays as in the launch, and a check in the function refuses anything else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from hlo_tools.errors import InputError
from translators.access.analysis import Access
from translators.access.classify import AccessClass
from translators.access.delinearize import Position
from translators.emit.emission import Note
from translators.emit.general.fitting import Fitter
from translators.emit.general.formula import Formula, Sizes, number
from translators.emit.general.template import Number, Template, TemplateError, template_of
from translators.emit.general.writing import Bounds, General, Taken
from translators.emit.jax import JaxFunction
from translators.graph.graph import Module
from translators.resize.choosing import (
    MOST_SHARED,
    Range,
    bounds_of,
    fitting_sizes,
    large_sizes,
    programs_alone,
    unusual_sizes,
)
from translators.resize.family import Family, block_sizes
from translators.resize.reading import families
from translators.translation import Translation, load, translate_module
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import ArrayArgument, ConstantArgument, Launch
from translators.verify.emitted import Emitted
from translators.verify.ladder import Settings, climb
from translators.verify.report import Status
from translators.verify.subject import Subject

# What is emitted and tried for one kernel is bounded, whatever it consists of.
_MOST_TRANSLATIONS = 40
_MOST_SINGLY = 2
_RANGES = 6
_MOST_LITERALS = 8
# A scalar up to this may have the value of a size by chance.
_LIKELY_BY_CHANCE = 16
# Short loops are written otherwise than long ones.
_SCALES = (1, 16)
_MOST_PROGRAMS = 4096
_MOST_ELEMENTS = 1 << 22
_REACHES = (1 << 30, 1 << 20, 1 << 14)
_SETTINGS = Settings(inputs=1, seconds=4.0, specials=False)


class UnlikeError(Exception):
    """Launches of other sizes are not translated alike; the message is a clause."""


class OutgrownError(UnlikeError):
    """Launches of much larger sizes are not."""


def translate_general(kernel: Any, launch: Launch, others: Sequence[Launch] = ()) -> Translation:
    """Translates a jitted function for launches like the given one, of any sizes.

    Args:
      kernel: the jitted function.
      launch: one launch.
      others: other launches by the same host code, from which is seen what depends on what.

    Returns:
      The launch's translation. Its function is one for other sizes too, or there is a note that
      says why it is not.

    Raises:
      InputError: part of the kernel has no faithful translation; at the kernel's line.
    """
    return generalized(translate_module(kernel_graph(kernel, launch), launch), others)


def generalized(translation: Translation, others: Sequence[Launch] = ()) -> Translation:
    """The translation with a function that holds for launches of other sizes, where it can be."""
    budget = _Budget(_MOST_TRANSLATIONS)
    searches = [
        _Search(translation, family, budget) for family in families(translation.launch, others)
    ]
    reasons: list[str] = []
    for attempt in _attempts(searches):
        try:
            return replace(translation, function=attempt())
        except UnlikeError as error:
            reasons.append(str(error))
    note = Note(text=f"holds for the sizes of its launch alone: {reasons[0]}")
    function = translation.function
    return replace(translation, function=replace(function, notes=(*function.notes, note)))


def _attempts(searches: Sequence["_Search"]) -> Iterator[Callable[[], JaxFunction]]:
    """Ways to find a function, the most general first."""
    for number_ in range(_RANGES):
        for search in searches:
            yield partial(search.at_once, number_)
    yield from (search.one_after_another for search in searches[:_MOST_SINGLY])


class _Budget:
    """How many more launches may be translated."""

    def __init__(self, left: int) -> None:
        self._left = left

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


class _Search:
    """Looks for the sizes of one family of launches that a function can read off its arguments."""

    def __init__(self, translation: Translation, family: Family, budget: _Budget) -> None:
        self._base = translation
        # What the function takes by name is data, and no size.
        self._family = family.keeping(translation.function.scalars)
        self._budget = budget
        self._translated: dict[tuple[tuple[str, int], ...], Translation] = {}
        self._outcomes: dict[tuple[tuple[str, Range], ...], JaxFunction | UnlikeError] = {}

    def _readable(self) -> list[str]:
        """The sizes that are a dimension of an argument."""
        shapes = [self._family.arrays[name].shape for name in self._base.function.parameters]
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
        if isinstance(outcome, UnlikeError):
            raise outcome
        return outcome

    def _outcome(self, bounds: Mapping[str, Bounds]) -> JaxFunction | UnlikeError:
        reason: UnlikeError | None = None
        for scale in _SCALES:
            try:
                fitted = _Fitted(self, bounds, scale)
                fitted.reach()
                fitted.tell_apart()
                fitted.confirm()
                return fitted.function()
            except OutgrownError as error:
                reason = error
            except UnlikeError as error:
                return reason or error
        assert reason is not None
        return reason

    # What `_Fitted` asks for.

    @property
    def family(self) -> Family:
        """The launches."""
        return self._family

    @property
    def base(self) -> Translation:
        """The translation of the launch that is given."""
        return self._base

    def translated(self, sizes: Sizes) -> Translation:
        """The translation of the launch with these sizes.

        Raises:
          UnlikeError: it is refused.
        """
        key = tuple(sorted(sizes.items()))
        if all(self._family.sizes[name] == value for name, value in key):
            return self._base
        if key not in self._translated:
            self._translated[key] = self.launched(self._family.resized(sizes))
        return self._translated[key]

    def launched(self, launch: Launch) -> Translation:
        """The translation of another launch.

        Raises:
          UnlikeError: it is refused.
        """
        self._budget.spend()
        if self._family.shares_memory and max(map(_elements, launch.arrays)) > MOST_SHARED:
            raise UnlikeError("arguments are different views of one memory")
        try:
            return translate_module(self._base.module, launch)
        except InputError as error:
            raise UnlikeError(f"a launch of other sizes is refused: {error.message}") from error


class _Fitted:
    """A function for sizes within some bounds, and what is known of where it holds."""

    def __init__(self, search: _Search, bounds: Mapping[str, Bounds], scale: int) -> None:
        self._search = search
        self._scale = scale
        self._family = search.family
        self._bounds = dict(bounds)
        launches = fitting_sizes(self._family, bounds, scale)
        self._template, numbers = self._texts(launches)
        self._written = self._formulas(launches, numbers)

    def _texts(self, launches: Sequence[Sizes]) -> tuple[Template, list[tuple[Number, ...]]]:
        """The text that all launches have, and the numbers of each."""
        templates: list[Template] = []
        for sizes in launches:
            translation = self._search.translated(sizes)
            _require_as_good(self._search.base, translation)
            templates.append(_template(translation.function))
            if templates[-1].key != templates[0].key:
                raise UnlikeError("launches of other sizes are translated to another text")
        return templates[0], [each.numbers for each in templates]

    def _formulas(
        self, launches: Sequence[Sizes], numbers: Sequence[tuple[Number, ...]]
    ) -> list[Formula | Number]:
        """What each number follows."""
        divisors = dict.fromkeys(
            (*block_sizes(self._family.launch), *self._family.launch.grid, *_literals(numbers))
        )
        divisors.pop(1, None)
        known = [{**self._family.sizes, **sizes} for sizes in launches]
        fitter = Fitter(known, list(divisors), self._family.formulas)
        found: list[Formula | Number] = []
        for values in zip(*numbers, strict=True):
            if len(set(map(repr, values))) == 1:
                found.append(values[0])
                continue
            formula = fitter.formula(values) if all(type(each) is int for each in values) else None
            if formula is None:
                shown = ", ".join(map(str, values))
                raise UnlikeError(f"a number follows no formula over the sizes: {shown}")
            found.append(formula)
        return found

    def reach(self) -> None:
        """Makes sure of large sizes, or bounds them."""
        for name in list(self._bounds):
            if self._bounds[name].most is not None:
                continue
            for most in _REACHES:
                sizes = large_sizes(self._family, self._bounds, name, most, self._scale)
                if sizes is not None and self._same_text(sizes):
                    break
            else:
                raise OutgrownError(f"a launch with a large `{name}` is translated to another text")

    def tell_apart(self) -> None:
        """Makes sure that small scalars are sizes, and do not have the value of one by chance.

        Raises:
          UnlikeError: the kernel would do as well if a scalar were a number of its own.
        """
        sizes = fitting_sizes(self._family, self._bounds, self._scale)[0]
        tied = self._search.translated(sizes)
        for name, formula in self._family.scalars.items():
            size = formula.single
            if size not in self._bounds or self._family.sizes[size] > _LIKELY_BY_CHANCE:
                continue
            apart = self._family.keeping([name]).resized(sizes)
            try:
                other = self._search.launched(apart)
                _require_as_good(tied, other)
            except UnlikeError:
                continue
            if _text(other) != _text(tied):
                value = self._family.sizes[size]
                raise UnlikeError(f"`{name}` may be the size {value}, or always {value}")

    def confirm(self) -> None:
        """Tries the function on sizes that are unusual.

        Raises:
          UnlikeError: it is wrong for some of them, or nobody knows.
        """
        formulas = [each for each in self._written if isinstance(each, Formula)]
        cases = unusual_sizes(self._family, self._bounds, [*formulas, *self._family.grid])
        for what, sizes in cases:
            if self._same_text(sizes):
                continue
            problem = self._problem(sizes)
            if problem and what == "sizes of 1":
                self._bounds = {
                    name: replace(each, least=2) if each.step == 1 else each
                    for name, each in self._bounds.items()
                }
            elif problem:
                raise UnlikeError(f"for {what} it is not shown to be right: {problem}")
        alone = programs_alone(self._family)
        own = {name: self._family.sizes[name] for name in self._bounds}
        # Of what programs do alike a few are enough.
        fewer = {name: min(3, each) if name in alone else each for name, each in own.items()}
        if self._same_text(own) or self._too_large(fewer):
            return
        problem = self._problem(fewer)
        if problem:
            raise UnlikeError(f"for the launch itself it is not shown to be right: {problem}")

    def _too_large(self, sizes: Sizes) -> bool:
        """Whether a launch of these sizes takes too long to be run."""
        launch = self._family.resized(sizes)
        elements = sum(map(_elements, launch.arrays))
        return prod(launch.grid) > _MOST_PROGRAMS or elements > _MOST_ELEMENTS

    def _same_text(self, sizes: Sizes) -> bool:
        """Whether the translation for these sizes is this text, number by number."""
        translation = self._search.translated(sizes)
        template = _template(translation.function)
        known = {**self._family.sizes, **sizes}
        expected = tuple(
            each.value(known) if isinstance(each, Formula) else each for each in self._written
        )
        return template.key == self._template.key and template.numbers == expected

    def _problem(self, sizes: Sizes) -> str:
        """What is wrong with the function for a launch of these sizes; empty if nothing is."""
        launch = self._family.resized(sizes)
        function = self.function()
        # Other float scalars are not what is in question, and would be compiled for anew.
        signature = replace(function, scalars=())
        emitted = Emitted(signature=signature, call=load(function))
        module: Module = self._search.base.module
        report = climb(Subject(launch=launch, module=module, emitted=emitted), _SETTINGS)
        if report.passed:
            return ""
        wrong = (each.reason for each in report.rungs if each.status is Status.FAILED)
        return next(wrong, "") or next((each.reason for each in report.rungs), "not compared")

    def function(self) -> JaxFunction:
        """The function."""
        function = self._search.base.function
        family = self._family
        fixed = {name: each for name, each in family.sizes.items() if name not in self._bounds}
        source = General(
            template=self._template,
            written=self._written,
            taken=[
                Taken(name=name, shape=family.arrays[name].shape) for name in function.parameters
            ],
            fixed=fixed,
            bounds=self._bounds,
            promises=list(_promises(family, function)),
        ).source()
        free = ", ".join(f"`{name}`" for name in self._bounds)
        notes = [*function.notes, Note(text=f"holds for other sizes too, of {free}")]
        return replace(function, source=source, notes=tuple(notes))


def _text(translation: Translation) -> tuple[tuple[str, ...], tuple[Number, ...]]:
    template = _template(translation.function)
    return template.key, template.numbers


def _literals(numbers: Sequence[tuple[Number, ...]]) -> list[int]:
    """The smallest integers that the text has in all launches."""
    same = {
        one
        for one, *others in zip(*numbers, strict=True)
        if isinstance(one, int) and one > 1 and all(each == one for each in others)
    }
    return sorted(same)[:_MOST_LITERALS]


def _elements(array: ArrayArgument) -> int:
    return prod(array.shape)


def _template(function: JaxFunction) -> Template:
    try:
        return template_of(function)
    except TemplateError as error:
        raise UnlikeError(str(error)) from error


def _require_as_good(base: Translation, other: Translation) -> None:
    """Raises `UnlikeError` where a launch of other sizes does not go through its arrays likewise.

    Its sizes are then not what the kernel takes them to be.
    """
    one, two = base.function, other.function
    if one.parameters != two.parameters:
        names = ", ".join(f"`{each}`" for each in set(one.parameters) ^ set(two.parameters))
        raise UnlikeError(f"for other sizes it matters otherwise what {names} held before")
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


def _promises(
    family: Family, function: JaxFunction
) -> Iterator[tuple[str, str, Sequence[Formula]]]:
    """What the docstring says of the launches."""
    axes = max((axis for axis, each in enumerate(family.grid) if each != number(1)), default=0)
    yield "grid", "", family.grid[: axes + 1]
    for name, formula in family.scalars.items():
        if formula.single != name:
            yield name, "", (formula,)
    for array in family.launch.arrays:
        shaped = family.arrays[array.name]
        if array.name not in function.parameters:
            yield array.name, "shape ", shaped.shape
    for argument in family.launch.singles:
        if isinstance(argument, ConstantArgument) and argument.value is not None:
            yield argument.name, repr(argument.value), ()
