"""What the verifier and the process that runs Triton's interpreter say to one another.

Messages are pickled, with their length before them, between two processes of one program.
"""

import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


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


def send(stream: IO[bytes], message: Request | Reply) -> None:
    """Writes a message."""
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Reads a message; `None` if the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return pickle.loads(data) if len(data) == length else None


def reference_to(function: Any) -> FunctionReference:
    """Where a Python function is defined."""
    code = function.__code__
    return FunctionReference(
        file=code.co_filename, line=code.co_firstlineno, name=function.__qualname__
    )
