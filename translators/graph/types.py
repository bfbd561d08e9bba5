"""Types of the values in a graph, compared by value.

A type prints as Triton IR spells its parts: `i32`, `bf16`, `ptr<f32>`, `tensor<16x64xf32>`.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class IntType:
    """Integers of `width` bits without a sign of their own; arithmetic wraps around.

    A value is kept in two's complement, between `smallest` and `largest`; `i1` holds 0 and 1.
    """

    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 64:
            raise ValueError(f"an integer type has 1 to 64 bits, not {self.width}")

    @property
    def smallest(self) -> int:
        """The least value, read as signed."""
        return 0 if self.width == 1 else -(1 << (self.width - 1))

    @property
    def largest(self) -> int:
        """The greatest value, read as signed."""
        return 1 if self.width == 1 else (1 << (self.width - 1)) - 1

    def wrap(self, value: int) -> int:
        """The value of this type that agrees with `value` in its low bits."""
        low = value & ((1 << self.width) - 1)
        return low - (1 << self.width) if low > self.largest else low

    def __str__(self) -> str:
        return f"i{self.width}"


@dataclass(frozen=True, slots=True)
class FloatType:
    """A binary floating-point format.

    Attributes:
      name: as MLIR spells it, such as `bf16` or `f8E4M3FN`.
      width: bits in memory.
      precision: bits of the significand, the leading one included.
      smallest_exponent: `e` of the least normal number `2**e`.
      largest: the greatest finite value.
    """

    name: str
    width: int
    precision: int
    smallest_exponent: int
    largest: float

    def __str__(self) -> str:
        return self.name


I1, I4, I8, I16, I32, I64 = (IntType(width) for width in (1, 4, 8, 16, 32, 64))

F16 = FloatType("f16", 16, 11, -14, 65504.0)
BF16 = FloatType("bf16", 16, 8, -126, float.fromhex("0x1.fep127"))
F32 = FloatType("f32", 32, 24, -126, float.fromhex("0x1.fffffep127"))
F64 = FloatType("f64", 64, 53, -1022, float.fromhex("0x1.fffffffffffffp1023"))
# The 8-bit formats follow the OCP 8-bit floating point specification; the UZ ones have no
# negative zero and no infinity, and a bias larger by one (arXiv 2206.02915).
F8E4M3FN = FloatType("f8E4M3FN", 8, 4, -6, 448.0)
F8E5M2 = FloatType("f8E5M2", 8, 3, -14, 57344.0)
F8E4M3FNUZ = FloatType("f8E4M3FNUZ", 8, 4, -7, 240.0)
F8E5M2FNUZ = FloatType("f8E5M2FNUZ", 8, 3, -15, 57344.0)
F8E4M3B11FNUZ = FloatType("f8E4M3B11FNUZ", 8, 4, -10, 30.0)

FLOAT_TYPES: dict[str, FloatType] = {
    each.name: each
    for each in (F16, BF16, F32, F64, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E4M3B11FNUZ)
}


@dataclass(frozen=True, slots=True)
class PointerType:
    """The address of an element in memory."""

    pointee: "ElementType"

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>"


ElementType: TypeAlias = IntType | FloatType | PointerType


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor of static shape; a shape of rank 0 is written as the element type instead."""

    shape: tuple[int, ...]
    element: ElementType

    def __post_init__(self) -> None:
        if not self.shape:
            raise ValueError("a tensor type has at least one dimension")
        if min(self.shape) < 1:
            raise ValueError(f"a tensor type has no empty dimension, got {self.shape}")

    def __str__(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{self.element}>"


@dataclass(frozen=True, slots=True)
class DescriptorType:
    """A tensor descriptor: a window of `block` moves over an array in memory."""

    block: TensorType

    def __str__(self) -> str:
        shape = "x".join(map(str, self.block.shape))
        return f"desc<{shape}x{self.block.element}>"


Type: TypeAlias = ElementType | TensorType | DescriptorType
Number: TypeAlias = int | float


def element_of(type_: Type) -> ElementType | None:
    """The type of one element; `None` for a descriptor, which has none."""
    if isinstance(type_, TensorType):
        return type_.element
    return None if isinstance(type_, DescriptorType) else type_


def shape_of(type_: Type) -> tuple[int, ...]:
    """The shape; empty for what is not a tensor."""
    return type_.shape if isinstance(type_, TensorType) else ()


def shaped(shape: tuple[int, ...], element: ElementType) -> Type:
    """A tensor of that shape, or the bare element type for rank 0."""
    return TensorType(shape, element) if shape else element


def with_element(type_: Type, element: ElementType) -> Type:
    """The same shape with other elements."""
    return shaped(shape_of(type_), element)


def bit_width(element: ElementType) -> int:
    """Bits of one element; a pointer has 64."""
    return 64 if isinstance(element, PointerType) else element.width
