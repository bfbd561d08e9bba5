"""What a kernel is called with, as plain values; nothing here needs Triton.

A `Launch` says everything that the translation specialises on: the kernel, each argument in the
order of the kernel's parameters, and the grid.
"""

import math
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from hlo_tools.errors import InputError

# How element types are written: Triton's own spelling, then those of XLA, JAX and NumPy.
_SPELLINGS = {
    "i1": ("bool", "pred", "u1", "int1"),
    "i8": ("s8", "int8"),
    "i16": ("s16", "int16"),
    "i32": ("s32", "int32"),
    "i64": ("s64", "int64"),
    "u8": ("uint8",),
    "u16": ("uint16",),
    "u32": ("uint32",),
    "u64": ("uint64",),
    "fp16": ("f16", "float16"),
    "bf16": ("bfloat16",),
    "fp32": ("f32", "float32"),
    "fp64": ("f64", "float64"),
    "fp8e4nv": ("f8e4m3fn", "float8_e4m3fn"),
    "fp8e5": ("f8e5m2", "float8_e5m2"),
    "fp8e4b8": ("f8e4m3fnuz", "float8_e4m3fnuz"),
    "fp8e5b16": ("f8e5m2fnuz", "float8_e5m2fnuz"),
    "fp8e4b15": ("float8_e4b15",),
}
_DTYPES = {name: dtype for dtype, names in _SPELLINGS.items() for name in (dtype, *names)}
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)


class LaunchError(InputError):
    """A launch that cannot be made from what was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """Where a kernel is defined.

    Attributes:
      function: the name of the jitted function.
      file: the path of the file that defines it.
      line: the 1-based line of its `def`.
    """

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeConstant:
    """An element type given as a constant, such as `tl.float32`.

    Attributes:
      dtype: the type in Triton's short spelling, such as `fp32`.
    """

    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayArgument:
    """A pointer argument: the first element of an array.

    Attributes:
      name: the kernel's parameter.
      dtype: the element type in Triton's short spelling, such as `fp32`.
      shape: elements a dimension.
      strides: elements between neighbours along each dimension.
      buffer: arguments with the same number lie in the same memory.
      offset: elements from the start of that memory to the first element.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int
    offset: int = 0

    @property
    def type(self) -> str:
        """The argument's type as Triton's signatures write it."""
        return f"*{_signature_dtype(self.dtype)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorArgument:
    """A tensor descriptor made by the host.

    Attributes:
      array: the array described; its name is that of the parameter.
      block_shape: elements a dimension that one load or store moves.
      padding: what loads read outside the array, `zero` or `nan`.
      round_to_tf32: loads round float32 elements to the precision of tf32.
    """

    array: ArrayArgument
    block_shape: tuple[int, ...]
    padding: str = "zero"
    round_to_tf32: bool = False

    @property
    def name(self) -> str:
        """The kernel's parameter."""
        return self.array.name

    @property
    def type(self) -> str:
        """The argument's type as Triton's signatures write it."""
        return f"tensordesc<{self.array.dtype}[{', '.join(map(str, self.block_shape))}]>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArgument:
    """A number known only when the kernel runs, with the value of this launch.

    Attributes:
      name: the kernel's parameter.
      dtype: its type in Triton's short spelling, such as `i32`.
      value: the value of this launch.
    """

    name: str
    dtype: str
    value: int | float | bool

    @property
    def type(self) -> str:
        """The argument's type as Triton's signatures write it."""
        return _signature_dtype(self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantArgument:
    """A value that Triton's front end folds into the kernel.

    Attributes:
      name: the kernel's parameter.
      value: a number, string, `None`, `TypeConstant`, tuple of these, or a jitted function.
    """

    name: str
    value: object

    @property
    def type(self) -> str:
        """The argument's type as Triton's signatures write it."""
        return "constexpr"


Single: TypeAlias = ArrayArgument | DescriptorArgument | ScalarArgument | ConstantArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleArgument:
    """A tuple of arguments for one parameter.

    Attributes:
      name: the kernel's parameter.
      items: the members, named `name.0`, `name.1` and so on.
    """

    name: str
    items: tuple[Single, ...]

    @property
    def type(self) -> tuple[str, ...]:
        """The members' types as Triton's signatures write them."""
        return tuple(item.type for item in self.items)


Argument: TypeAlias = Single | TupleArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One call `kernel[grid](...)`.

    Attributes:
      kernel: what is called.
      arguments: one for each parameter of the kernel, in their order.
      grid: programs along each of the three axes.
      options: Triton's compile options given with the call (`num_warps`, ...), by name.
    """

    kernel: KernelSource
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    options: tuple[tuple[str, object], ...] = ()

    @property
    def singles(self) -> tuple[Single, ...]:
        """The arguments in order, with the members of a tuple in its place."""
        members = (
            argument.items if isinstance(argument, TupleArgument) else (argument,)
            for argument in self.arguments
        )
        return tuple(chain.from_iterable(members))

    @property
    def arrays(self) -> tuple[ArrayArgument, ...]:
        """The arrays that the kernel is given, by pointer or by descriptor."""
        return tuple(
            argument.array if isinstance(argument, DescriptorArgument) else argument
            for argument in self.singles
            if isinstance(argument, ArrayArgument | DescriptorArgument)
        )

    @property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        """Groups of two or more array arguments that lie in the same memory."""
        groups: dict[int, list[str]] = {}
        for array in self.arrays:
            groups.setdefault(array.buffer, []).append(array.name)
        return tuple(tuple(names) for names in groups.values() if len(names) > 1)

    @property
    def signature(self) -> dict[str, str | tuple[str, ...]]:
        """The type of each argument as Triton's front end wants it."""
        return {argument.name: argument.type for argument in self.arguments}


def canonical_dtype(spelling: str) -> str:
    """The element type in Triton's short spelling.

    Args:
      spelling: a type as Triton, XLA, JAX, NumPy or torch write it.

    Raises:
      LaunchError: no such type is known.
    """
    dtype = _DTYPES.get(spelling.removeprefix("torch.").removeprefix("tl."))
    if dtype is None:
        raise LaunchError(f"`{spelling}` is no element type that Triton has")
    return dtype


def scalar_dtype(value: int | float | bool) -> str:
    """The type that Triton gives to a Python number.

    Raises:
      LaunchError: the integer needs more than 64 bits.
    """
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    for dtype, values in (("i32", _INT32), ("i64", _INT64), ("u64", _UINT64)):
        if value in values:
            return dtype
    raise LaunchError(f"`{value}` needs more than 64 bits")


def scalar_argument(
    name: str, value: int | float | bool, dtype: str | None = None
) -> ScalarArgument:
    """A number of the given type, or of the type that Triton gives it.

    Raises:
      LaunchError: the type cannot hold the value.
    """
    dtype = dtype or scalar_dtype(value)
    if dtype.startswith(("fp", "bf")):
        return ScalarArgument(name=name, dtype=dtype, value=float(value))
    if isinstance(value, float):
        raise LaunchError(f"`{name}` has the integer type `{dtype}` and the value {value}")
    if dtype == "i1":
        return ScalarArgument(name=name, dtype=dtype, value=bool(value))
    bits = int(dtype[1:])
    low, high = (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= value < high:
        raise LaunchError(f"`{name}` is {value}, which `{dtype}` cannot hold")
    return ScalarArgument(name=name, dtype=dtype, value=int(value))


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of an array without gaps whose last dimension runs fastest."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def grid_of_three(grid: tuple[int, ...]) -> tuple[int, int, int]:
    """The grid with the axes that Triton takes as one written out.

    Raises:
      LaunchError: the grid has no axis, more than three, or an empty one.
    """
    if not 1 <= len(grid) <= 3 or min(grid) < 1:
        raise LaunchError(f"the grid {grid} is not one to three positive integers")
    return (*grid, 1, 1)[:3]  # type: ignore[return-value]  # three by construction


def pair_by_name(arguments: list[Argument]) -> dict[str, Argument]:
    """The arguments by name.

    Raises:
      LaunchError: a name is given twice.
    """
    named: dict[str, Argument] = {}
    for argument in arguments:
        if argument.name in named:
            raise LaunchError(f"the argument `{argument.name}` is given twice")
        named[argument.name] = argument
    return named


def _signature_dtype(dtype: str) -> str:
    """Triton's signatures call a boolean `u1`, its IR `i1`."""
    return "u1" if dtype == "i1" else dtype
