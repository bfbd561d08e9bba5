"""What the emitter is told of a kernel's arguments."""

from dataclasses import dataclass
from typing import TypeAlias

from translators.graph.types import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFact:
    """A pointer argument.

    Attributes:
      name: the kernel's parameter.
      dtype: the element type as `jax.numpy` names it, such as `uint8`.
      shape: elements a dimension.
      strides: elements between neighbours along each dimension.
      alias: the index of the first argument that is the same array; its own if it is the first.
      word: which half of 64-bit integers it is, 0 the lower one; `None` if it is whole elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    alias: int
    word: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFact:
    """A number known only when the kernel runs.

    Attributes:
      name: the kernel's parameter.
      dtype: its type as `jax.numpy` names it, such as `uint32`.
      value: that of the launch.
      free: whether the function takes it as an argument, rather than being made for its value.
      word: which half of a 64-bit integer it is, 0 the lower one; `None` if it is all of it.
    """

    name: str
    dtype: str
    value: Number
    free: bool
    word: int | None = None


ArgumentFact: TypeAlias = ArrayFact | ScalarFact
