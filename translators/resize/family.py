"""Launches of one kernel that differ in sizes: each of their numbers as a formula."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from translators.emit.general.formula import Formula, Sizes, number
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    ScalarArgument,
    Single,
    TupleArgument,
)

Grid: TypeAlias = tuple[Formula, Formula, Formula]
"""Programs along each axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """An array argument in terms of sizes.

    Attributes:
      shape: elements a dimension.
      strides: elements between neighbours along each dimension.
      offset: elements from the start of the memory.
    """

    shape: tuple[Formula, ...]
    strides: tuple[Formula, ...]
    offset: Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Launches that differ in sizes.

    Attributes:
      launch: one of them.
      sizes: the sizes, by name, with what they are in that launch.
      arrays: each array argument, by name.
      scalars: the integer arguments, by name.
      grid: programs along each axis.
    """

    launch: Launch
    sizes: Sizes
    arrays: Mapping[str, Shaped]
    scalars: Mapping[str, Formula]
    grid: Grid

    def resized(self, sizes: Sizes) -> Launch:
        """The launch with other sizes; those not given are as in `launch`."""
        known = {**self.sizes, **sizes}
        first, second, third = (each.value(known) for each in self.grid)
        return replace(
            self.launch,
            arguments=tuple(self._argument(each, known) for each in self.launch.arguments),
            grid=(first, second, third),
        )

    @property
    def shares_memory(self) -> bool:
        """Whether arguments are different views of one memory."""
        views: dict[int, set[object]] = {}
        for array in self.launch.arrays:
            view = (array.offset, array.shape, array.strides)
            views.setdefault(array.buffer, set()).add(view)
        return any(len(each) > 1 for each in views.values())

    def keeping(self, names: Collection[str]) -> "Family":
        """The launches of the family, with those scalars as they are in `launch`."""
        kept = {
            each.name: number(int(each.value))
            for each in self.launch.singles
            if isinstance(each, ScalarArgument) and each.name in self.scalars and each.name in names
        }
        return replace(self, scalars={**self.scalars, **kept})

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """All formulas of the launches' numbers."""
        arrays = ((*each.shape, *each.strides, each.offset) for each in self.arrays.values())
        return (*chain.from_iterable(arrays), *self.scalars.values(), *self.grid)

    def _argument(self, argument: Argument, sizes: Sizes) -> Argument:
        if isinstance(argument, TupleArgument):
            return replace(
                argument, items=tuple(self._single(each, sizes) for each in argument.items)
            )
        return self._single(argument, sizes)

    def _single(self, argument: Single, sizes: Sizes) -> Single:
        match argument:
            case ArrayArgument(name=name):
                shaped = self.arrays[name]
                return replace(
                    argument,
                    shape=tuple(each.value(sizes) for each in shaped.shape),
                    strides=tuple(each.value(sizes) for each in shaped.strides),
                    offset=shaped.offset.value(sizes),
                )
            case DescriptorArgument(array=array):
                inner = self._single(array, sizes)
                assert isinstance(inner, ArrayArgument)
                return replace(argument, array=inner)
            case ScalarArgument(name=name) if name in self.scalars:
                return replace(argument, value=self.scalars[name].value(sizes))
        return argument


def block_sizes(launch: Launch) -> tuple[int, ...]:
    """The integers above 1 among the constants of a launch, rising."""
    found = {
        argument.value
        for argument in launch.singles
        if isinstance(argument, ConstantArgument)
        and type(argument.value) is int
        and argument.value > 1
    }
    return tuple(sorted(found))
