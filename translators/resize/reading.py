"""The launches that are like a given one, of other sizes.

A launch alone does not say how its numbers depend on one another, so that is guessed: a number
that occurs as a dimension and as a scalar is one size; strides are those of arrays without gaps,
or with the gaps that they have; programs along an axis of the grid are as many as a size, or as
its blocks. Where the same host code made several launches, only what holds in all of them counts.
What follows from such guesses is to be tried on the kernel, and told to whoever uses it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations, combinations_with_replacement, islice, product
from math import prod
from typing import TypeAlias

from translators.emit.general.formula import Factor, Formula, number, product_of, size
from translators.resize.evidence import Evidence
from translators.resize.family import Family, Grid, Shaped, block_sizes
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    ScalarArgument,
    Single,
)

Values: TypeAlias = tuple[int, ...]
"""A number of the launch, in each of the launches that are known."""

Key: TypeAlias = tuple[Values, str]
"""What is one size: the same numbers, with the scalar that they were seen to be, if any."""

_MOST_GRIDS = 6
_MOST_ALONG = 4


def families(
    launch: Launch,
    others: Sequence[Launch] = (),
    data: Collection[str] = (),
    seen: Evidence | None = None,
) -> Iterator[Family]:
    """Ways in which the numbers of a launch may depend on its sizes, likely ones first.

    Args:
      launch: the launch.
      others: other launches by the same host code, whose numbers must follow too; those with
        other constants or types are left out.
      data: scalars that are no sizes, and stay as they are.
      seen: what equal numbers were seen to be.
    """
    launches = [launch, *(each for each in others if _alike(each, launch))]
    plain = Evidence()
    known = [seen] if seen is not None and seen != plain else []
    for each in (*known, plain):
        reader = _Reader(launches, data, each)
        for grid in islice(reader.grids(), _MOST_GRIDS):
            yield Family(
                launch=launch,
                sizes=reader.sizes,
                arrays=reader.arrays,
                scalars=reader.scalars,
                grid=grid,
            )


def _alike(launch: Launch, other: Launch) -> bool:
    """Whether launches differ in shapes, strides, integers and the grid alone."""

    def rest(argument: Single) -> object:
        match argument:
            case ArrayArgument(name=name, dtype=dtype, shape=shape):
                return (name, dtype, len(shape))
            case DescriptorArgument(array=array):
                return (rest(array), argument.block_shape, argument.padding)
            case ScalarArgument(name=name, dtype=dtype, value=value):
                return (name, dtype) if _is_integer(argument) else (name, dtype, repr(value))
            case ConstantArgument(name=name, value=value):
                return (name, repr(value))

    return (
        launch.kernel == other.kernel
        and launch.options == other.options
        and list(map(rest, launch.singles)) == list(map(rest, other.singles))
        and launch.aliases == other.aliases
    )


def _is_integer(argument: ScalarArgument) -> bool:
    return argument.dtype[0] in "iu" and argument.dtype != "i1"


class _Reader:
    """Reads the numbers of some launches as formulas over sizes."""

    def __init__(self, launches: Sequence[Launch], data: Collection[str], seen: Evidence) -> None:
        self._launches = launches
        self._seen = seen
        self._data = data
        self._ones = (1,) * len(launches)
        self._dimensions = self._values_of_dimensions()
        self._integers = self._values_of_scalars()
        self._names: dict[Key, str] = {}
        self._taken: set[str] = set()
        self.arrays: dict[str, Shaped] = {}
        self._choose_sizes()
        for array in launches[0].arrays:
            self.arrays[array.name] = self._shaped(array)
        self.scalars = {name: self._scalar(name, each) for name, each in self._integers.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes, with what they are in the first launch."""
        return {name: values[0] for (values, _), name in self._names.items()}

    def grids(self) -> Iterator[Grid]:
        """What the grid may be, likely ones first."""
        axes = list(zip(*(launch.grid for launch in self._launches), strict=True))
        alone = all(max(values) == 1 for values in axes)
        choices = [
            list(islice(self._programs(values, alone and not axis), _MOST_ALONG))
            for axis, values in enumerate(axes)
        ]
        ranked = product(*(list(enumerate(each)) for each in choices))
        for first, second, third in sorted(ranked, key=_likelihood):
            yield first[1], second[1], third[1]

    # Sizes

    def _values_of_dimensions(self) -> dict[str, list[Key]]:
        """The dimensions of each array."""
        names = [array.name for array in self._launches[0].arrays]
        shapes = zip(
            *([array.shape for array in each.arrays] for each in self._launches), strict=True
        )
        return {
            name: [
                (values, self._seen.sizes.get((name, axis), ""))
                for axis, values in enumerate(zip(*each, strict=True))
            ]
            for name, each in zip(names, shapes, strict=True)
        }

    def _values_of_scalars(self) -> dict[str, Values]:
        found: dict[str, Values] = {}
        for place, argument in enumerate(self._launches[0].singles):
            if (
                isinstance(argument, ScalarArgument)
                and _is_integer(argument)
                and argument.name not in self._data
            ):
                same = [launch.singles[place] for launch in self._launches]
                found[argument.name] = tuple(
                    int(each.value) for each in same if isinstance(each, ScalarArgument)
                )
        return found

    def _choose_sizes(self) -> None:
        """A size for each dimension that is not 1 and no product of others."""
        for array, dimensions in self._dimensions.items():
            for axis, key in enumerate(dimensions):
                if (
                    key not in self._names
                    and not self._fixed(key[0])
                    and self._flattened(array, key[0]) is None
                ):
                    self._names[key] = self._name(array, axis, key)

    def _fixed(self, values: Values) -> bool:
        """Whether a number seems to be the same whatever the sizes."""
        return max(values) <= 1 or (len(values) > 1 and len(set(values)) == 1)

    def _flattened(self, array: str, values: Values) -> Formula | None:
        """A dimension that is several dimensions of another array that is as large."""
        count = _count(self._dimensions[array])
        for other, dimensions in self._dimensions.items():
            if other == array or _count(dimensions) != count:
                continue
            for start, end in combinations(range(len(dimensions) + 1), 2):
                part = [each for each in dimensions[start:end] if max(each[0]) > 1]
                if len(part) > 1 and _count(part) == values:
                    return _product(map(self._size, part))
        return None

    def _name(self, array: str, axis: int, key: Key) -> str:
        """What to call a size: as a scalar of the kernel if it is one."""
        values, scalar = key
        same = [name for name, each in self._integers.items() if each == values]
        if scalar:
            same = [scalar]
        strides = {each.name for each in self._launches[0].singles if "stride" in each.name.lower()}
        rank = len(self._dimensions[array])
        words = {1: ("size",), 2: ("rows", "columns")}.get(rank)
        described = words[axis] if words else f"{array.removesuffix('_ptr')}_size_{axis}"
        choices = [*(each for each in same if each not in strides), described]
        stem = choices[0].replace(".", "_")
        name, count = stem, 1
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name

    # Formulas

    def _size(self, key: Key) -> Formula:
        name = self._names.get(key)
        return number(key[0][0]) if name is None else size(name)

    def _shaped(self, array: ArrayArgument) -> Shaped:
        dimensions = self._dimensions[array.name]
        shape = tuple(
            self._size(key)
            if key in self._names
            else self._flattened(array.name, key[0]) or number(key[0][0])
            for key in dimensions
        )
        strides, whole = self._strides(array, shape)
        return Shaped(shape=shape, strides=strides, offset=_multiple(array, strides, whole))

    def _strides(
        self, array: ArrayArgument, shape: Sequence[Formula]
    ) -> tuple[tuple[Formula, ...], tuple[Formula, int]]:
        """Each stride as what lies inside it, times a number or with a gap; and the whole array."""
        found = [number(stride) for stride in array.strides]
        inside, reach = number(1), 1
        order = sorted(range(len(shape)), key=lambda axis: (array.strides[axis], -axis))
        for axis in order:
            stride = array.strides[axis]
            if stride < 1:
                continue
            if stride % reach == 0:
                found[axis] = inside.times(number(stride // reach))
            elif stride > reach:
                found[axis] = inside.plus(stride - reach)
            inside, reach = found[axis].times(shape[axis]), stride * array.shape[axis]
        return tuple(found), (inside, reach)

    def _scalar(self, name: str, values: Values) -> Formula:
        """A scalar as a size, a stride or a number of elements."""
        if self._fixed(values):
            return number(values[0])
        if (values, name) in self._names:
            return self._size((values, name))
        moved = [self.arrays[array] for array in sorted(self._seen.strides.get(name, ()))]
        choices: Iterator[Formula]
        if moved:
            choices = (each for array in moved for each in array.strides if not each.constant)
        else:
            sizes = (self._size(key) for key in self._names if key[0] == values)
            choices = chain(sizes, self._measures())
        return next((each for each in choices if self._holds(each, values)), number(values[0]))

    def _measures(self) -> Iterator[Formula]:
        """What else a scalar may say: strides, sizes of parts of arrays, counts of blocks."""
        for shaped in self.arrays.values():
            yield from (each for each in shaped.strides if not each.constant)
        for shaped in self.arrays.values():
            for start, end in combinations(range(len(shaped.shape) + 1), 2):
                formula = _product(shaped.shape[start:end])
                if not formula.constant:
                    yield formula
        for divisor in block_sizes(self._launches[0]):
            yield from (product_of((Factor((name,), divisor),)) for name in self._names.values())

    def _holds(self, formula: Formula, values: Values) -> bool:
        return all(
            formula.value({name: each[place] for (each, _), name in self._names.items()}) == value
            for place, value in enumerate(values)
        )

    def _programs(self, values: Values, few: bool) -> Iterator[Formula]:
        """What the number of programs along an axis may be.

        Args:
          values: what it is.
          few: whether sizes that fit into one block may be why it is 1.
        """
        found: dict[Formula, None] = {}
        one = number(values[0]) if len(set(values)) == 1 else None
        if one is not None and values[0] == 1 and not few:
            found[one] = None
        for formula in self._counts():
            if formula not in found and self._holds(formula, values):
                found[formula] = None
        if one is not None:
            found[one] = None
        yield from found

    def _counts(self) -> Iterator[Formula]:
        names = list(self._names.values())
        parts = [Factor((name,)) for name in names]
        blocks = [
            Factor((name,), divisor) for divisor in block_sizes(self._launches[0]) for name in names
        ]
        yield from (product_of((each,)) for each in blocks)
        yield from (product_of((each,)) for each in parts)
        for divisor in block_sizes(self._launches[0]):
            for shaped in self.arrays.values():
                for factors, coefficient in _product(shaped.shape).terms:
                    names_ = sorted(name for each in factors for name in each.sizes)
                    if len(names_) > 1 and coefficient == 1:
                        yield product_of((Factor(tuple(names_), divisor),))
        # A factor of 1 would say nothing.
        several = [
            each for each in (*parts, *blocks) if not self._holds(product_of((each,)), self._ones)
        ]
        for count in (2, 3):
            yield from map(product_of, combinations_with_replacement(several, count))


def _likelihood(grid: Sequence[tuple[int, Formula]]) -> tuple[int, int]:
    """Less is likelier: no size along two axes, and the likeliest along each of them."""
    names = [name for _, formula in grid for name in formula.names]
    return len(names) - len(set(names)), sum(place for place, _ in grid)


def _count(dimensions: Sequence[Key]) -> Values:
    """The number of elements, in each launch."""
    return tuple(map(prod, zip(*(values for values, _ in dimensions), strict=True)))


def _product(formulas: Iterable[Formula]) -> Formula:
    found = number(1)
    for each in formulas:
        found = found.times(each)
    return found


def _multiple(
    array: ArrayArgument, strides: Sequence[Formula], whole: tuple[Formula, int]
) -> Formula:
    """The array's offset as a multiple of its size or of one of its strides."""
    pairs = [
        (stride, formula) for formula, stride in [whole, *zip(strides, array.strides, strict=True)]
    ]
    for stride, formula in sorted(pairs, key=lambda each: -each[0]):
        if array.offset and 0 < stride <= array.offset and array.offset % stride == 0:
            return formula.times(number(array.offset // stride))
    return number(array.offset)
