"""What equal numbers of a launch are, seen from what the kernel does with them.

In a launch whose sizes are all the same, values do not say which scalar is the size of which
dimension, nor which is a stride of which array. The accesses do: a scalar that is a little less
bounds other lanes of the dimension that it is the size of, and moves the accesses to the array
that it is a stride of.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hlo_tools.errors import InputError
from translators.access.analysis import Access, Analysis, analyze
from translators.access.delinearize import Position
from translators.access.states import Pointer
from translators.graph.graph import Module
from translators.specializing import specialization
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    Launch,
    ScalarArgument,
    TupleArgument,
)

# Less is told apart as well by other means, and more takes too long.
_FEWEST, _MOST_SCALARS = 3, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What scalars were seen to be.

    Attributes:
      sizes: for dimensions, by array and axis, the scalar that bounds them.
      strides: for scalars the arrays whose accesses they move.
    """

    sizes: Mapping[tuple[str, int], str] = field(default_factory=lambda: MappingProxyType({}))
    strides: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))


def evidence(module: Module, launch: Launch, data: Collection[str]) -> Evidence:
    """What the scalars are that have the same value as others; nothing where values differ.

    Args:
      module: the kernel's verified graph.
      launch: how it is launched.
      data: scalars that are no sizes.
    """
    scalars = [
        each
        for each in launch.singles
        if isinstance(each, ScalarArgument)
        and isinstance(each.value, int)
        and not isinstance(each.value, bool)
        and each.value >= _FEWEST
        and each.name not in data
    ]
    counts = Counter(each.value for each in scalars)
    alike = [each for each in scalars if counts[each.value] > 1]
    if not alike or len(alike) > _MOST_SCALARS:
        return Evidence()
    usual = _analysis(module, launch)
    sizes: dict[tuple[str, int], str] = {}
    strides: dict[str, frozenset[str]] = {}
    for scalar in alike:
        less = _with_less(launch, scalar)
        try:
            unusual = _analysis(module, less)
        except InputError:
            continue
        moved: set[str] = set()
        for one, two in zip(usual.accesses, unusual.accesses, strict=True):
            if one.buffer is None or _offset(one) is None:
                continue
            if _offset(one) != _offset(two):
                moved.add(one.buffer.name)
                continue
            for axis in _bounded(two, int(scalar.value)):
                sizes.setdefault((one.buffer.name, axis), scalar.name)
        strides[scalar.name] = frozenset(moved)
    for name, moved_arrays in strides.items():
        # A size that is a stride too is that of what lies inside the stride.
        if name in sizes.values():
            value = next(each.value for each in alike if each.name == name)
            for array in launch.arrays:
                inner = _last(array, int(value)) if array.name in moved_arrays else None
                if inner is not None:
                    sizes.setdefault((array.name, inner), name)
    return Evidence(sizes=sizes, strides=strides)


def _analysis(module: Module, launch: Launch) -> Analysis:
    return analyze(module, specialization(module, launch))


def _with_less(launch: Launch, scalar: ScalarArgument) -> Launch:
    """The launch with a scalar that is one less."""

    def changed(argument: Argument) -> Argument:
        if isinstance(argument, TupleArgument):
            items = (
                replace(each, value=scalar.value - 1) if each is scalar else each
                for each in argument.items
            )
            return replace(argument, items=tuple(items))
        return replace(scalar, value=scalar.value - 1) if argument is scalar else argument

    return replace(launch, arguments=tuple(map(changed, launch.arguments)))


def _last(array: ArrayArgument, size: int) -> int | None:
    """The axis without gaps that has that size, where it lies inside a stride of that size."""
    for axis, (count, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        if count == size and stride == 1 and size in array.strides:
            return axis
    return None


def _offset(access: Access) -> object:
    return access.pointer.offset if isinstance(access.pointer, Pointer) else None


def _bounded(access: Access, size: int) -> list[int]:
    """The axes of that size whose last position is masked."""
    if access.mask is None or not isinstance(access.position, Position):
        return []
    found = []
    for bound in access.mask.bounds:
        dimension = access.position.dimensions[bound.dimension]
        if (
            bound.upper
            and dimension.size == size
            and bound.limit.value == size - 1
            and len(dimension.axes) == 1
        ):
            found.append(dimension.axes[0])
    return found
