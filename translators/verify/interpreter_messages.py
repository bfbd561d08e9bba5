"""What the verifier and the process that runs Triton's interpreter say to one another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionReference:
    """A jitted function, by where it is defined.

    Attributes:
      file: the file that defines it.
      line: the 1-based line where it begins, its decorators included.
      name: its qualified name.
    """

    file: str
    line: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayValue:
    """An array argument: a view of the memory of one buffer, in elements."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorValue:
    """A tensor descriptor of an array."""

    array: ArrayValue
    block_shape: tuple[int, ...]
    padding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarValue:
    """A number with its type in Triton's short spelling."""

    dtype: str
    value: int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeValue:
    """An element type, in Triton's short spelling."""

    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A launch to run.

    Attributes:
      kernel: what to run.
      values: an argument for each parameter; a tuple of them for a tuple.
      storages: contents of memory by buffer, with the name of their element type.
      grid: programs along each axis.
    """

    kernel: FunctionReference
    values: Mapping[str, Any]
    storages: Mapping[int, tuple[str, bytes]]
    grid: tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of a launch.

    Attributes:
      storages: the bytes of memory after it, by buffer.
      problem: why there are none.
    """

    storages: Mapping[int, bytes]
    problem: str = ""


def reference_to(function: Any) -> FunctionReference:
    """Where a Python function is defined."""
    code = function.__code__
    return FunctionReference(
        file=code.co_filename, line=code.co_firstlineno, name=function.__qualname__
    )
