"""A launch of a kernel with what it must leave in memory, and the ways to run it.

Arrays are NumPy arrays or views: a view's strides are those of the launch, and views of one array
lie in one memory. What a case does not expect to change must stay as it was, between the elements
of a strided array too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from translators.graph.evaluator import ArrayDescriptor, ArrayPointer, evaluate
from translators.triton.binding import bind
from translators.triton.kernel_graph import kernel_graph, kernel_parameters
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_constant
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    canonical_dtype,
    grid_of_three,
    scalar_argument,
)
from translators.triton.loading import load_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A descriptor that the host makes of an array.

    Attributes:
      shape: elements a dimension that one access moves.
      padding: what is read outside, `zero` or `nan`.
    """

    shape: tuple[int, ...]
    padding: str = "zero"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One launch.

    Attributes:
      name: what it is about; unique.
      file: the file that defines the kernel.
      kernel: the jitted function's name.
      arrays: the array arguments by parameter, before the launch.
      scalars: the other arguments; `(value, type)` where the type is not Triton's own choice.
      constants: constexpr arguments; element types are text such as `tl.float32`.
      grid: programs along each axis.
      expected: arrays after the launch; those not named are as before.
      tolerance: of floats, relative to the magnitude of what is expected; zero means exactly.
      absolute: of floats.
      descriptors: arrays that are given as descriptors.
      interpreted: whether Triton's interpreter can run it and is right.
      refused: what is said where it cannot be evaluated; a regular expression.
      untranslated: what is said where it has no form in JAX.
      unordered: whether it is promised that programs may run in any order, which is worth a test
        where they meet in memory.
    """

    name: str
    file: Path
    kernel: str
    arrays: Mapping[str, np.ndarray[Any, Any]]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] = (1,)
    expected: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 0.0
    absolute: float = 0.0
    descriptors: Mapping[str, Block] = field(default_factory=dict)
    interpreted: bool = True
    refused: str = ""
    untranslated: str = ""
    unordered: bool = False

    def __str__(self) -> str:
        return self.name


class Memories:
    """The memory that arrays lie in, as flat copies, and where each array is in it."""

    def __init__(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.flat: list[np.ndarray[Any, Any]] = []
        self.places: dict[str, tuple[int, int]] = {}
        self._arrays = arrays
        known: dict[int, int] = {}
        for name, array in arrays.items():
            owner = _owner(array)
            if id(owner) not in known:
                known[id(owner)] = len(self.flat)
                self.flat.append(owner.ravel(order="K").copy())
            offset = (array.ctypes.data - owner.ctypes.data) // array.itemsize
            self.places[name] = (known[id(owner)], offset)

    def argument(self, name: str) -> ArrayArgument:
        """The array as an argument of a launch."""
        array, (buffer, offset) = self._arrays[name], self.places[name]
        return ArrayArgument(
            name=name,
            dtype=canonical_dtype(array.dtype.name),
            shape=array.shape,
            strides=tuple(step // array.itemsize for step in array.strides),
            buffer=buffer,
            offset=offset,
        )

    def view(self, name: str, memories: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """The array's elements within given contents of the memories."""
        array, (buffer, offset) = self._arrays[name], self.places[name]
        return strided(memories[buffer], offset, array.shape, array.strides)

    def after(self, expected: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        """What the memories hold when the arrays named hold what is expected."""
        memories = [memory.copy() for memory in self.flat]
        for name, values in expected.items():
            self.view(name, memories)[...] = np.asarray(values).astype(self._arrays[name].dtype)
        return memories


def strided(
    memory: np.ndarray[Any, Any], offset: int, shape: tuple[int, ...], steps: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """A view of a memory from an element on, with steps in bytes."""
    # NumPy views no element type of another library with strides; integers of its size it does.
    plain = memory.view(f"u{memory.itemsize}")[offset:]
    return np.lib.stride_tricks.as_strided(plain, shape, steps).view(memory.dtype)


def scalars_of(case: Case) -> dict[str, Any]:
    """The values of the arguments that are numbers."""
    return {
        name: value[0] if isinstance(value, tuple) else value
        for name, value in case.scalars.items()
    }


def launched(case: Case) -> tuple[Any, Any]:
    """The kernel of a case and its launch."""
    kernel = find_kernel(load_file(case.file), case.kernel)
    memories = Memories(case.arrays)
    arguments: list[Any] = []
    for name in case.arrays:
        array = memories.argument(name)
        block = case.descriptors.get(name)
        if block is not None:
            array = DescriptorArgument(array=array, block_shape=block.shape, padding=block.padding)
        arguments.append(array)
    for name, value in case.scalars.items():
        arguments.append(scalar_argument(name, *(value if isinstance(value, tuple) else (value,))))
    for name, value in case.constants.items():
        is_type = isinstance(value, str) and value.startswith("tl.")
        constant = ConstantArgument(name=name, value=value)
        arguments.append(parse_constant(f"{name}={value}") if is_type else constant)
    return kernel, bind(kernel, arguments, grid=grid_of_three(case.grid))


@cache
def _graph(case: Case) -> tuple[Any, Any]:
    kernel, launch = launched(case)
    return kernel_graph(kernel, launch), launch


def evaluated(case: Case, *, order: Any = None) -> list[np.ndarray[Any, Any]]:
    """What the memories hold after the evaluator has run the kernel's graph.

    Args:
      case: what is launched.
      order: programs in the order in which they run, if not the usual one.
    """
    module, launch = _graph(case)
    memories = Memories(case.arrays)
    values: list[Any] = []
    buffers: list[int] = []
    for parameter in kernel_parameters(launch):
        array = parameter.array if isinstance(parameter, DescriptorArgument) else parameter
        if not isinstance(array, ArrayArgument):
            values.append(parameter.value)
            buffers.append(-1)
            continue
        buffer, offset = memories.places[array.name]
        buffers.append(buffer)
        if isinstance(parameter, DescriptorArgument):
            values.append(
                ArrayDescriptor(
                    array=memories.flat[buffer],
                    shape=array.shape,
                    strides=array.strides,
                    padding=parameter.padding,
                )
            )
        else:
            values.append(ArrayPointer(array=memories.flat[buffer], offset=offset))
    left = evaluate(module, values, launch.grid, order=order, step_limit=30_000).arrays
    found = [memory.copy() for memory in memories.flat]
    for buffer, contents in zip(buffers, left, strict=True):
        if contents is not None:
            found[buffer] = contents
    return found


def translated(case: Case, *, compiled: bool = True) -> list[np.ndarray[Any, Any]]:
    """What the memories hold after the function translated to JAX has run.

    Args:
      case: what is launched.
      compiled: whether it runs under `jax.jit`; if not it is given arrays of NumPy's.
    """
    import jax

    from translators.translation import translate

    translation = translate(*launched(case))
    function = translation.function
    memories = Memories(case.arrays)
    with jax.enable_x64(function.wide):
        given = [np.array(case.arrays[name]) for name in function.parameters]
        run = translation.load()
        found = (jax.jit(run) if compiled else run)(*given)
    found = found if isinstance(found, tuple) else (found,)
    return memories.after(
        {name: np.asarray(each) for name, each in zip(function.results, found, strict=True)}
    )


def assert_left(case: Case, found: list[np.ndarray[Any, Any]], by: str) -> None:
    """Asserts that the memories hold what the case expects."""
    memories = Memories(case.arrays)
    wanted = memories.after(case.expected)
    for index, (each, want) in enumerate(zip(found, wanted, strict=True)):
        names = ", ".join(name for name, (buffer, _) in memories.places.items() if buffer == index)
        difference = differ(each, want, case.tolerance, case.absolute)
        assert not difference, f"{case.name}: {by}: {names}: {difference}"


def differ(
    found: np.ndarray[Any, Any],
    wanted: np.ndarray[Any, Any],
    tolerance: float = 0.0,
    absolute: float = 0.0,
) -> str:
    """Where two arrays differ; empty if nowhere."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind in "biu":
        bad = found != wanted
    else:
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= absolute + tolerance * np.abs(b)
        same_zero = np.signbit(a) == np.signbit(b)
        equal = (a == b) & (same_zero | (a != 0) | (tolerance + absolute > 0))
        bad = ~(equal | near & np.isfinite(b) & (a != b) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return ""
    first = np.argwhere(bad)[0].tolist()
    where = tuple(first)
    return f"{int(bad.sum())} of {bad.size} differ, at {first} {found[where]} for {wanted[where]}"


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of a view with the same type of elements."""
    while isinstance(array.base, np.ndarray) and array.base.dtype == array.dtype:
        array = array.base
    assert array.flags.forc, "memory without gaps"
    return array
