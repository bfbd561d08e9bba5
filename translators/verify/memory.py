"""The memory of a launch: one flat storage for each buffer, and the arrays that lie in it.

A storage reaches from the lowest to the highest element of the arrays in its buffer and no
further, so that the evaluator reports every access that leaves them. What lies between the
elements of the arrays, where strides leave gaps, belongs to no array: it is filled with a poison
that a run must neither change nor depend on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from translators.graph.evaluator import Argument, ArrayDescriptor, ArrayPointer
from translators.graph.numerics import Array
from translators.triton.host_arrays import NUMPY_DTYPES, strided
from translators.triton.kernel_graph import kernel_parameters
from translators.triton.launches import (
    ArrayArgument,
    DescriptorArgument,
    Launch,
    ScalarArgument,
)
from translators.verify.errors import VerificationError

Storages: TypeAlias = Mapping[int, Array]
"""The flat contents of each buffer, by its number."""

# Two fillings of what is in no array. As a float the first is NaN; as integers both are far from
# anything that a kernel could take for an index.
_POISONED_BYTES = (0xFF, 0xA5)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An array argument as it lies in its storage.

    Attributes:
      array: the argument.
      offset: elements from the start of the storage to the array's first element.
      dtype: NumPy's element type.
    """

    array: ArrayArgument
    offset: int
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        """The kernel's parameter."""
        return self.array.name

    def of(self, storage: Array) -> Array:
        """The array, in its logical shape, as a view of the storage."""
        if 0 in self.array.shape:
            return np.zeros(self.array.shape, storage.dtype)
        return strided(storage[self.offset :], self.array.shape, self.array.strides)

    def values(self, storage: Array) -> Array:
        """A row-major copy of the array."""
        return np.array(self.of(storage), order="C")


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The memory of one buffer.

    Attributes:
      buffer: its number in the launch.
      size: elements.
      dtype: NumPy's element type.
      owned: which elements belong to an array; the others are gaps.
      start: where it starts, in elements from the start of the host's memory.
    """

    buffer: int
    size: int
    dtype: np.dtype[Any]
    owned: Array
    start: int

    @property
    def has_gaps(self) -> bool:
        """Whether strides leave elements that belong to no array."""
        return not self.owned.all()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything lies that a launch is given.

    Attributes:
      launch: the launch.
      storages: by number of the buffer.
      views: the array arguments, by name, in the order of the kernel's parameters.
    """

    launch: Launch
    storages: Mapping[int, Storage]
    views: Mapping[str, View]

    @property
    def has_gaps(self) -> bool:
        """Whether any storage has elements that belong to no array."""
        return any(storage.has_gaps for storage in self.storages.values())

    def arrays(self, storages: Storages) -> dict[str, Array]:
        """A row-major copy of every array argument, by name."""
        return {name: view.values(storages[view.array.buffer]) for name, view in self.views.items()}

    def poisoned(self, storages: Storages, filling: int) -> dict[int, Array]:
        """Copies of the storages whose gaps hold one of two poisons.

        Args:
          storages: contents by buffer.
          filling: which poison, 0 or 1.
        """
        return {
            buffer: fill_with_poison(storages[buffer], ~storage.owned, filling)
            for buffer, storage in self.storages.items()
        }

    def damaged_gap(self, before: Storages, after: Storages) -> str | None:
        """The array beside a gap that a run wrote to; `None` if all gaps are as before."""
        for buffer, storage in self.storages.items():
            gaps = ~storage.owned
            if bits(before[buffer][gaps]) != bits(after[buffer][gaps]):
                beside = (each for each in self.views.values() if each.array.buffer == buffer)
                return next(beside).name
        return None

    def arguments(
        self, storages: Storages, scalars: Mapping[str, float] = MappingProxyType({})
    ) -> list[Argument]:
        """What the evaluator is called with.

        Args:
          storages: contents by buffer; each array of them is one piece of memory.
          scalars: values of float scalars that differ from those of the launch, by name.
        """
        return [self._argument(each, storages, scalars) for each in kernel_parameters(self.launch)]

    def _argument(
        self,
        parameter: ArrayArgument | DescriptorArgument | ScalarArgument,
        storages: Storages,
        scalars: Mapping[str, float],
    ) -> Argument:
        if isinstance(parameter, ScalarArgument):
            return scalars.get(parameter.name, parameter.value)
        view = self.views[parameter.name]
        storage = storages[view.array.buffer]
        if isinstance(parameter, ArrayArgument):
            return ArrayPointer(array=storage, offset=view.offset)
        return ArrayDescriptor(
            array=storage,
            shape=view.array.shape,
            strides=view.array.strides,
            padding=parameter.padding,
            offset=view.offset,
        )


def lay_out(launch: Launch) -> Layout:
    """The memory of a launch.

    Raises:
      VerificationError: an element type that NumPy does not have, or two arrays with different
        element types in one buffer.
    """
    by_buffer: dict[int, list[ArrayArgument]] = {}
    for array in launch.arrays:
        by_buffer.setdefault(array.buffer, []).append(array)
    storages = {buffer: _storage(launch, arrays) for buffer, arrays in by_buffer.items()}
    views = {
        array.name: View(
            array=array,
            offset=max(0, array.offset - storages[array.buffer].start),
            dtype=storages[array.buffer].dtype,
        )
        for array in launch.arrays
    }
    return Layout(launch=launch, storages=storages, views=views)


def fill_with_poison(values: Array, where: Array, filling: int) -> Array:
    """A copy with one of two poisons at the elements chosen: NaN for floats in the first.

    Args:
      values: any array.
      where: which elements, of the same shape.
      filling: which poison, 0 or 1.
    """
    filled = values.copy()
    if values.dtype == np.bool_:
        filled[where] = filling == 0
    else:
        item = np.frombuffer(bytes([_POISONED_BYTES[filling]]) * values.itemsize, values.dtype)
        # The 8-bit float formats have one NaN or few: all bits set is one of them, or finite.
        filled[where] = np.nan if filling == 0 and is_float(values.dtype) else item[0]
    return filled


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether elements are floats, those of `ml_dtypes` included."""
    return dtype.kind not in "biu"


def bits(values: Array) -> bytes:
    """The bytes of an array, for comparison bit by bit."""
    return np.ascontiguousarray(values).tobytes()


def _storage(launch: Launch, arrays: Sequence[ArrayArgument]) -> Storage:
    spelt = {array.dtype for array in arrays}
    names = ", ".join(f"`{array.name}`" for array in arrays)
    if len(spelt) > 1:
        raise VerificationError(
            f"{names} lie in one memory with different element types: {', '.join(sorted(spelt))}",
            path=launch.kernel.file,
            line=launch.kernel.line,
        )
    dtype = NUMPY_DTYPES.get(arrays[0].dtype)
    if dtype is None:
        raise VerificationError(
            f"{names}: there is no NumPy array of `{arrays[0].dtype}`",
            path=launch.kernel.file,
            line=launch.kernel.line,
        )
    reaches = [reach for array in arrays for reach in _reach(array)]
    start, end = (min(reaches), max(reaches) + 1) if reaches else (0, 0)
    owned = np.zeros(end - start, np.bool_)
    for array in arrays:
        if 0 not in array.shape:
            view = View(array=array, offset=array.offset - start, dtype=dtype)
            view.of(owned)[...] = True
    return Storage(buffer=arrays[0].buffer, size=end - start, dtype=dtype, owned=owned, start=start)


def _reach(array: ArrayArgument) -> Iterator[int]:
    """The lowest and the highest element of an array in its memory; nothing if it is empty."""
    if 0 in array.shape:
        return
    spans = [(size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)]
    yield array.offset + sum(span for span in spans if span < 0)
    yield array.offset + sum(span for span in spans if span > 0)
