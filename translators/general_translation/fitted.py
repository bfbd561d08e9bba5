"""Functions that are fitted to the translations of several launches."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from translators.emit.emission import Note
from translators.emit.general.fitting import Fitter
from translators.emit.general.formula import Factor, Formula, Sizes, number, product_of
from translators.emit.general.template import Number, Template
from translators.emit.general.writing import Bounds, General, Taken
from translators.emit.jax import JaxFunction
from translators.general_translation.block_lengths import PLAIN, Lengths
from translators.general_translation.resized import (
    AnotherTextError,
    RefusedError,
    Resized,
    UnlikeError,
    require_as_good,
    template,
)
from translators.resize.choosing import LARGEST, fitting_sizes
from translators.resize.family import Family, block_sizes
from translators.triton.launches import ConstantArgument

_MOST_LITERALS = 8
_FITTED = 4
_MOST_TEXTS = 2


class Fitted:
    """A function for sizes within some bounds.

    Args:
      resized: the launches.
      bounds: of the sizes that it reads off its arguments.
      scale: how much larger the sizes are that formulas are fitted to.
      lengths: how long the blocks of a kernel in Pallas are.

    Attributes:
      resized: the launches, with blocks of these lengths.
      above: what sizes have to exceed for there to be several blocks.
      scale: how much larger the sizes are that formulas are fitted to.
      family: the launches.
      bounds: of the sizes that it reads off its arguments.
      template: its text without numbers.
      launches: the sizes that formulas are fitted to.
      others: sizes of launches whose text is another one by chance.
      written: what each number of the text follows.
      wholes: how long dimensions are that go in blocks, by name.
      named: lengths of blocks that the text has a name for: what they are at most, and how long
        the dimension is.
      reached: how large sizes may get that have a bound which was found.

    Raises:
      UnlikeError: there is no such function.
    """

    def __init__(
        self,
        resized: Resized,
        bounds: Mapping[str, Bounds],
        scale: int = 1,
        lengths: Lengths = PLAIN,
    ) -> None:
        self.resized = resized.with_blocks(lengths.blocks) if lengths.blocks else resized
        self.above = lengths.above
        self.scale = scale
        self.family = resized.family
        self.bounds = dict(bounds)
        self.others: list[Sizes] = []
        self.reached: dict[str, int] = {}
        self.named: dict[str, tuple[int, Formula]] = {}
        self.template, self.launches, numbers = self._texts(self.sizes())
        self._fitter = self._fitter_for(numbers)
        self.wholes = self._lengths_of_dimensions()
        if self.wholes:
            self._fitter = self._fitter_for(numbers, self._counts_of_blocks())
        self.written = self._formulas(numbers)

    def sizes(self) -> list[dict[str, int]]:
        """Sizes of launches to fit formulas to."""
        return fitting_sizes(self.family, self.bounds, self.scale, self.above)

    def with_lengths(self, lengths: Lengths) -> None:
        """Compares with launches whose blocks are of other lengths from now on."""
        self.resized, self.above = self.resized.with_blocks(lengths.blocks), lengths.above

    def _texts(
        self, launches: Sequence[Sizes]
    ) -> tuple[Template, list[Sizes], list[tuple[Number, ...]]]:
        """A text that enough launches have, those launches, and the numbers of each.

        What is 0 or 1 by chance is left out of a text, so that single launches may have others.
        """
        known: dict[tuple[str, ...], list[tuple[Sizes, Template]]] = {}
        for sizes in launches:
            try:
                translation = self.resized.translated(sizes)
            except RefusedError:
                if self.above:
                    continue
                raise
            require_as_good(self.resized.base, translation)
            if translation.function.parameters != self.resized.base.function.parameters:
                self.others.append(sizes)
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
        self.others += [sizes for each in known.values() if each is not same for sizes, _ in each]
        return same[0][1], [sizes for sizes, _ in same], [each.numbers for _, each in same]

    def _lengths_of_dimensions(self) -> dict[str, Formula]:
        """How long dimensions are that go in blocks, by name, where that follows a formula."""
        found: dict[str, Formula] = {}
        launches = [self.resized.translated(sizes).function.blocks for sizes in self.launches]
        for name, length in self.resized.blocks.items():
            values = tuple(
                each.whole
                for blocks in launches
                for each in blocks
                if each.name == name and not each.even
            )
            if length < LARGEST and len(values) == len(launches):
                formula = self._fitter.formula(values)
                if formula is not None:
                    found[name] = formula
        return found

    def _counts_of_blocks(self) -> Iterator[Formula]:
        """The counts of blocks of dimensions that are products of sizes."""
        for name, whole in self.wholes.items():
            match whole:
                case Formula(terms=((factors, 1),), offset=0):
                    sizes = sorted(each for factor in factors for each in factor.sizes)
                    if not any(factor.counts_blocks for factor in factors):
                        count = Factor(tuple(sizes), self.resized.blocks[name])
                        yield product_of((count,))

    def _fitter_for(
        self, numbers: Sequence[tuple[Number, ...]], counts: Iterable[Formula] = ()
    ) -> Fitter:
        blocks = block_sizes(self.family.launch)
        blocks += tuple(each for each in self.resized.blocks.values() if each < LARGEST)
        programs = [each for each in self.family.launch.grid if each > 1]
        # Programs of a fixed number go over the blocks together.
        together = [block * count for block in blocks for count in programs]
        divisors = dict.fromkeys((*blocks, *programs, *together, *_literals(numbers)))
        known = [{**self.family.sizes, **sizes} for sizes in self.launches]
        return Fitter(known, list(divisors), [*counts, *self.family.formulas])

    def _formulas(self, numbers: Sequence[tuple[Number, ...]]) -> list[Formula | Number]:
        """What each number follows."""
        found: list[Formula | Number] = []
        for values in zip(*numbers, strict=True):
            if len(set(map(repr, values))) == 1:
                found.append(values[0])
                continue
            integers = tuple(int(each) for each in values if float(each).is_integer())
            formula = self._fitter.formula(integers) if len(integers) == len(values) else None
            if formula is None:
                shown = ", ".join(map(str, values))
                raise UnlikeError(f"a number follows no formula over the sizes: {shown}")
            found.append(formula)
        return found

    def known(self, sizes: Sizes) -> dict[str, int]:
        """All sizes of a launch, and the lengths of its blocks."""
        known = {**self.family.sizes, **sizes}
        lengths = {
            name: min(length, whole.value(known)) for name, (length, whole) in self.named.items()
        }
        return {**known, **lengths}

    def same_text(self, sizes: Sizes) -> bool:
        """Whether the translation for these sizes is this text, number by number."""
        try:
            found = template(self.resized.translated(sizes).function)
        except RefusedError:
            if self.template.is_pallas:
                return False
            raise
        known = self.known(sizes)
        expected = tuple(
            each.value(known) if isinstance(each, Formula) else each for each in self.written
        )
        if (found.key, found.numbers) != (self.template.key, expected):
            return False
        if found.limit:
            self.template = replace(self.template, limit=found.limit)
        return True

    def function(self) -> JaxFunction:
        """The function."""
        function = self.resized.base.function
        family = self.family
        fixed = {name: each for name, each in family.sizes.items() if name not in self.bounds}
        source = General(
            template=self.template,
            written=self.written,
            taken=[
                Taken(name=name, shape=family.arrays[name].shape) for name in function.parameters
            ],
            fixed=fixed,
            bounds={
                name: replace(each, most=self.reached[name]) if name in self.reached else each
                for name, each in self.bounds.items()
            },
            blocks=self.named,
            promises=list(_promises(family, function, self.bounds)),
        ).source()
        free = ", ".join(f"`{name}`" for name in self.bounds)
        notes = [*function.notes, Note(text=f"holds for other sizes too, of {free}")]
        return replace(function, source=source, notes=tuple(notes), sizes=tuple(self.bounds))


def _literals(numbers: Sequence[tuple[Number, ...]]) -> list[int]:
    """The smallest integers that the text has in all launches."""
    same = {
        one
        for one, *others in zip(*numbers, strict=True)
        if isinstance(one, int) and one > 1 and all(each == one for each in others)
    }
    return sorted(same)[:_MOST_LITERALS]


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
