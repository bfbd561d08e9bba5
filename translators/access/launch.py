"""What a launch fixes, as far as addresses depend on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """The array that a pointer argument points to the first element of, or a descriptor describes.

    Attributes:
      name: what to call it.
      shape: elements a dimension.
      strides: elements between neighbours along each dimension.
      padding: `zero` or `nan`, what is read outside of the array through a descriptor argument;
        of no account for a pointer.
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str = "zero"

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise ValueError(
                f"`{self.name}` has {len(self.shape)} dimensions and {len(self.strides)} strides"
            )
        if any(size < 0 for size in self.shape):
            raise ValueError(f"`{self.name}` has a negative dimension: {self.shape}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Specialization:
    """The facts of one launch.

    Attributes:
      grid: programs along each axis, all at least 1.
      buffers: the arrays, by the index of the kernel's argument, which is a pointer or a
        descriptor.
      scalars: the values of scalar integer arguments, by index; others stay symbols.
    """

    grid: tuple[int, int, int]
    buffers: Mapping[int, Buffer] = field(default_factory=lambda: MappingProxyType({}))
    scalars: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if min(self.grid) < 1:
            raise ValueError(f"a grid has a program along each axis, got {self.grid}")
