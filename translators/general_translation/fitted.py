"""Functions that are fitted to the translations of several launches, and tried on others."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from translators.emit.emission import Note
from translators.emit.general.fitting import Fitter
from translators.emit.general.formula import Formula, Sizes, number
from translators.emit.general.template import Number, Template
from translators.emit.general.writing import Bounds, General, Taken
from translators.emit.jax import JaxFunction
from translators.general_translation.confirming import UnknownError, problem
from translators.general_translation.resized import (
    AmbiguousError,
    AnotherTextError,
    Resized,
    UnlikeError,
    require_as_good,
    template,
    text,
)
from translators.resize.choosing import (
    FEW,
    ONES,
    fitting_sizes,
    large_sizes,
    programs_alone,
    unusual_sizes,
)
from translators.resize.family import Family, block_sizes
from translators.translation import load
from translators.triton.launches import ArrayArgument, ConstantArgument

_MOST_LITERALS = 8
# A scalar up to this may have the value of a size by chance.
_LIKELY_BY_CHANCE = 64
_MOST_LEAST = 3
_FITTED = 4
_MOST_TEXTS = 2
# A launch with more is left to whoever verifies it.
_MOST_PROGRAMS = 4096
_MOST_ELEMENTS = 1 << 22


class Fitted:
    """A function for sizes within some bounds, and what is known of where it holds.

    Args:
      resized: the launches.
      bounds: of the sizes that it reads off its arguments.
      scale: how much larger the sizes are that formulas are fitted to.

    Raises:
      UnlikeError: there is no such function.
    """

    def __init__(self, resized: Resized, bounds: Mapping[str, Bounds], scale: int) -> None:
        self._resized = resized
        self._scale = scale
        self._family = resized.family
        self._bounds = dict(bounds)
        self._others: list[Sizes] = []
        self._reached: dict[str, int] = {}
        self._template, launches, numbers = self._texts(fitting_sizes(self._family, bounds, scale))
        self._written = self._formulas(launches, numbers)

    def _texts(
        self, launches: Sequence[Sizes]
    ) -> tuple[Template, list[Sizes], list[tuple[Number, ...]]]:
        """A text that enough launches have, those launches, and the numbers of each.

        What is 0 or 1 by chance is left out of a text, so that single launches may have others.
        """
        known: dict[tuple[str, ...], list[tuple[Sizes, Template]]] = {}
        for sizes in launches:
            translation = self._resized.translated(sizes)
            require_as_good(self._resized.base, translation)
            if translation.function.parameters != self._resized.base.function.parameters:
                self._others.append(sizes)
                continue
            found = template(translation.function)
            same = known.setdefault(found.key, [])
            same.append((sizes, found))
            if len(same) == _FITTED:
                break
            if len(known) > _MOST_TEXTS:
                raise AnotherTextError("launches of other sizes are translated to other texts")
        else:
            raise AnotherTextError("launches of other sizes are translated to other texts")
        self._others += [sizes for each in known.values() if each is not same for sizes, _ in each]
        return same[0][1], [sizes for sizes, _ in same], [each.numbers for _, each in same]

    def _formulas(
        self, launches: Sequence[Sizes], numbers: Sequence[tuple[Number, ...]]
    ) -> list[Formula | Number]:
        """What each number follows."""
        blocks = block_sizes(self._family.launch)
        programs = [each for each in self._family.launch.grid if each > 1]
        # Programs of a fixed number go over the blocks together.
        together = [block * count for block in blocks for count in programs]
        divisors = dict.fromkeys((*blocks, *programs, *together, *_literals(numbers)))
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
        """Makes sure of large sizes, and bounds those of which the largest have another text.

        Raises:
          AnotherTextError: all large ones have.
        """
        for name in self._bounds:
            if self._bounds[name].most is not None:
                continue
            choices = large_sizes(self._family, self._bounds, name, self._scale)
            for place, sizes in enumerate(choices):
                if self._same_text(sizes):
                    if place:
                        self._reached[name] = sizes[name]
                    break
            else:
                raise AnotherTextError(
                    f"a launch with a large `{name}` is translated to another text"
                )

    def tell_apart(self) -> None:
        """Makes sure that small scalars are sizes, and do not have the value of one by chance.

        Raises:
          AmbiguousError: the kernel would do as well if a scalar were a number of its own.
        """
        sizes = fitting_sizes(self._family, self._bounds, self._scale)[0]
        tied = self._resized.translated(sizes)
        strides = {each for array in self._family.arrays.values() for each in array.strides}
        for name, formula in self._family.scalars.items():
            size = formula.single
            if size not in self._bounds or formula in strides:
                continue
            if self._family.sizes[size] > _LIKELY_BY_CHANCE:
                continue
            apart = self._family.keeping([name]).resized(sizes)
            try:
                other = self._resized.launched(apart)
                require_as_good(tied, other)
            except UnlikeError:
                continue
            if text(other) != text(tied):
                value = self._family.sizes[size]
                message = f"`{name}` may be the size {value}, or always {value}"
                raise AmbiguousError(message, size)

    def confirm(self) -> None:
        """Tries the function on sizes that are unusual.

        Raises:
          UnlikeError: it is wrong for some of them, or nobody knows.
        """
        for sizes in self._others:
            self._require("single other sizes", sizes)
        least = self._least()
        if least:
            self._bounds[least[0]] = replace(self._bounds[least[0]], least=least[1])
        for what, sizes in self._unusual():
            wrong = self._wrong(sizes)
            if wrong and what == ONES:
                # The next case has no size below this.
                self._bounds = {
                    name: replace(each, least=max(each.least, FEW))
                    for name, each in self._bounds.items()
                }
            elif wrong:
                raise UnlikeError(f"for {what} it is not shown to be right: {wrong}")
        self._confirm_own()

    def _unusual(self) -> Iterator[tuple[str, dict[str, int]]]:
        formulas = [each for each in self._written if isinstance(each, Formula)]
        return unusual_sizes(self._family, self._bounds, [*formulas, *self._family.grid])

    def _least(self) -> tuple[str, int] | None:
        """A size with what it must be at least, where small sizes are wrong and that helps."""
        _, small = next(self._unusual())
        # What is in front of the text is proved by no comparison of texts.
        if not self._wrong(small, run=True):
            return None
        literals = sorted({each for each in self._written if isinstance(each, int)})
        for name, value in small.items():
            own = self._family.sizes[name]
            choices = [each for each in literals if value < each < own][:_MOST_LEAST]
            for least in (*choices, own):
                if self._bounds[name].step == 1 and not self._wrong({**small, name: least}):
                    return name, least
        return None

    def _require(self, what: str, sizes: Sizes) -> None:
        wrong = self._wrong(sizes)
        if wrong:
            raise UnlikeError(f"for {what} it is not shown to be right: {wrong}")

    def _wrong(self, sizes: Sizes, *, run: bool = False) -> str:
        """Why a launch of these sizes is not shown to be right; empty if it is.

        Args:
          sizes: of the launch.
          run: whether to run the function although its text is right.
        """
        same = self._same_text(sizes)
        if same and not run:
            return ""
        try:
            return self._problem(sizes)
        except UnknownError as error:
            return "" if same else str(error)

    def _confirm_own(self) -> None:
        alone = programs_alone(self._family)
        own = {name: self._family.sizes[name] for name in self._bounds}
        # Of what programs do alike a few are enough.
        fewer = {name: min(FEW, each) if name in alone else each for name, each in own.items()}
        if self._same_text(own) or self._too_large(fewer):
            return
        try:
            wrong = self._problem(fewer)
        except UnknownError:
            return
        if wrong:
            raise UnlikeError(f"for the launch itself it is not shown to be right: {wrong}")

    def _too_large(self, sizes: Sizes) -> bool:
        """Whether a launch of these sizes takes too long to be run."""
        launch = self._family.resized(sizes)
        elements = sum(map(_elements, launch.arrays))
        return prod(launch.grid) > _MOST_PROGRAMS or elements > _MOST_ELEMENTS

    def _same_text(self, sizes: Sizes) -> bool:
        """Whether the translation for these sizes is this text, number by number."""
        key, numbers = text(self._resized.translated(sizes))
        known = {**self._family.sizes, **sizes}
        expected = tuple(
            each.value(known) if isinstance(each, Formula) else each for each in self._written
        )
        return key == self._template.key and numbers == expected

    def _problem(self, sizes: Sizes) -> str:
        """What is wrong with the function for a launch of these sizes; empty if nothing is."""
        function = self.function()
        module = self._resized.base.module
        return problem(function, load(function), module, self._family.resized(sizes))

    def function(self) -> JaxFunction:
        """The function."""
        function = self._resized.base.function
        family = self._family
        fixed = {name: each for name, each in family.sizes.items() if name not in self._bounds}
        source = General(
            template=self._template,
            written=self._written,
            taken=[
                Taken(name=name, shape=family.arrays[name].shape) for name in function.parameters
            ],
            fixed=fixed,
            bounds={
                name: replace(each, most=self._reached[name]) if name in self._reached else each
                for name, each in self._bounds.items()
            },
            promises=list(_promises(family, function, self._bounds)),
        ).source()
        free = ", ".join(f"`{name}`" for name in self._bounds)
        notes = [*function.notes, Note(text=f"holds for other sizes too, of {free}")]
        return replace(function, source=source, notes=tuple(notes))


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


def _promises(
    family: Family, function: JaxFunction, free: Collection[str]
) -> Iterator[tuple[str, str, Sequence[Formula]]]:
    """What the docstring says of the launches."""
    axes = max((axis for axis, each in enumerate(family.grid) if each != number(1)), default=0)
    yield "grid", "", family.grid[: axes + 1]
    for name, formula in family.scalars.items():
        if formula.single != name or name not in free:
            yield name, "", (formula,)
    for array in family.launch.arrays:
        shaped = family.arrays[array.name]
        if array.name not in function.parameters:
            yield array.name, "shape ", shaped.shape
    for argument in family.launch.singles:
        if isinstance(argument, ConstantArgument) and argument.value is not None:
            yield argument.name, repr(argument.value), ()
