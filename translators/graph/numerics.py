"""Element types as NumPy holds them, and rounding that NumPy does not do.

`i1` is held as `bool`, other integers sign-extended in the next signed NumPy type, pointers as
`int64` byte addresses, floats in the type of the same name (`ml_dtypes` has those that NumPy
lacks). Conversions here round once; a cast by way of `float32` would round twice.
"""

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from translators.graph.types import (
    F32,
    F64,
    ElementType,
    FloatType,
    IntType,
    PointerType,
    Type,
    element_of,
)

Array: TypeAlias = npt.NDArray[Any]

_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
}


def dtype_of(element: ElementType) -> np.dtype[Any]:
    """The NumPy type that holds one element."""
    if isinstance(element, FloatType):
        held: np.dtype[Any] = np.dtype(_FLOATS[element.name])
        return held
    if isinstance(element, PointerType):
        return np.dtype(np.int64)
    if element.width == 1:
        return np.dtype(np.bool_)
    for signed_type in (np.int8, np.int16, np.int32):
        if element.width <= np.iinfo(signed_type).bits:
            return np.dtype(signed_type)
    return np.dtype(np.int64)


def element_type(type_: Type) -> ElementType:
    """The element type of what is no descriptor."""
    element = element_of(type_)
    if element is None:
        raise TypeError("a descriptor has no elements")
    return element


def signed(values: Array) -> Array:
    """Integers as `int64`; `i1` gives 0 and 1."""
    return values.astype(np.int64)


def unsigned(values: Array, type_: IntType) -> Array:
    """The bits of integers as `uint64`, upper ones clear."""
    wide = values.astype(np.int64).view(np.uint64)
    return wide if type_.width == 64 else wide & np.uint64((1 << type_.width) - 1)


def wrapped(values: Array, type_: IntType) -> Array:
    """The low bits of `int64` or `uint64` values as `type_` holds them."""
    wide = np.asarray(values).astype(np.int64)
    if type_.width == 1:
        return (wide & 1).astype(np.bool_)
    unused = np.int64(64 - type_.width)
    return ((wide << unused) >> unused).astype(dtype_of(type_))


def to_float(values: Array, type_: FloatType, *, toward_zero: bool = False) -> Array:
    """Floats of any type, rounded once to `type_`: to nearest even, or toward zero.

    What is too large for an 8-bit format becomes its largest finite value, infinities included:
    so do the conversions that Triton emits (`cvt.rn.satfinite`, in
    `third_party/nvidia/lib/TritonNVIDIAGPUToLLVM/ElementwiseOpToLLVM.cpp`). Elsewhere it becomes
    infinite, or toward zero the largest finite value.
    """
    target = dtype_of(type_)
    if values.dtype == target:
        return values
    wide = values.astype(np.float64)
    if type_ == F64:
        return wide
    if type_ == F32 and not toward_zero:
        return wide.astype(target)
    _, exponent = np.frexp(wide)
    # A finite value is m * 2**quantum for an integer m once rounded; 0.5 <= |mantissa| < 1.
    quantum = np.maximum(exponent - 1, type_.smallest_exponent) - (type_.precision - 1)
    scaled = np.ldexp(wide, -quantum)
    rounded = np.ldexp(np.trunc(scaled) if toward_zero else np.rint(scaled), quantum)
    limit = type_.largest
    if type_.width == 8:
        rounded = np.clip(rounded, -limit, limit)
    else:
        overflow = np.copysign(limit if toward_zero else np.inf, wide)
        rounded = np.where(np.isfinite(wide) & (np.abs(rounded) > limit), overflow, rounded)
    return np.where(np.isfinite(wide), rounded, np.where(np.isnan(wide), wide, rounded)).astype(
        target
    )


def from_integers(values: Array, type_: FloatType) -> Array:
    """`int64` or `uint64` values, rounded once to nearest even."""
    if type_ in (F32, F64):
        return values.astype(dtype_of(type_))
    # Bits beyond the 53 of `float64` only matter as "not exactly halfway": fold them into one.
    high = values >> values.dtype.type(11)
    sticky = (values & values.dtype.type(0x7FF)) != 0
    large = (high | sticky.astype(values.dtype)).astype(np.float64) * 2048.0
    small = np.abs(values.astype(np.float64)) < 2.0**52
    return to_float(np.where(small, values.astype(np.float64), large), type_)


def to_integers(values: Array, *, smallest: int, largest: int) -> Array:
    """Floats cut toward zero, held between two bounds; NaN gives 0.

    Out of range LLVM gives poison; this is what NVIDIA's `cvt` and XLA do. Gives `uint64` where
    `largest` needs it, else `int64`.
    """
    wide = np.trunc(values.astype(np.float64))
    target = np.dtype(np.int64 if largest < 1 << 63 else np.uint64)
    # float(largest) may round up to a power of two, which is out of range itself.
    above = wide >= float(largest)
    below = wide <= float(smallest)
    inside = np.where(above | below | np.isnan(wide), 0.0, wide).astype(target)
    bounded = np.where(above, target.type(largest), inside)
    return np.where(below, target.type(smallest), bounded)


def keep_bits(values: Array, precision: int) -> Array:
    """`float32` values with only `precision` significant bits, to nearest, ties away from zero.

    So does `cvt.rna.tf32.f32`, with a precision of 11; the exponents stay.
    """
    bits = values.astype(np.float32).view(np.uint32)
    dropped = np.uint32(24 - precision)
    half = np.uint32(1) << (dropped - np.uint32(1))
    kept = ((bits + half) >> dropped) << dropped
    return np.where(np.isfinite(values), kept, bits).astype(np.uint32).view(np.float32)
