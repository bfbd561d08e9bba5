"""What a JAX program gives a kernel -> arguments of a launch."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from translators.triton.binding import Memories, describe
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    DescriptorArgument,
    LaunchError,
    ScalarArgument,
    Single,
    TupleArgument,
    canonical_dtype,
    row_major_strides,
    scalar_argument,
)

_TINY = float(np.finfo(np.float32).tiny)
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What a kernel writes to and nobody gave: an output that is no input.

    Attributes:
      shape: elements a dimension.
      dtype: the type of an element.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Operands:
    """The arguments of a launch, while they are put together.

    Attributes:
      scalars: the numbers, by name.
    """

    scalars: dict[str, Any] = field(default_factory=dict)
    _buffers: dict[str, int] = field(default_factory=dict)
    _references: dict[int, str] = field(default_factory=dict)

    def argument(
        self, parameter: Any, value: Any, *, shares: str | None = None, number: bool = False
    ) -> Argument:
        """What is given for a parameter that is no constant, as an argument of the launch.

        Args:
          parameter: the kernel's.
          value: an array, `Ref`, number, tensor descriptor, tuple of these, or a constant.
          shares: the array whose memory it is, if it is no array of its own.
          number: whether arrays without dimensions are numbers; else they are memory.

        Raises:
          LaunchError: a kernel cannot be given such a value.
        """
        if isinstance(value, tuple | list):
            items = [
                self._single(parameter, name, member, None, number)
                for name, member in leaves_of(parameter.name, value)
            ]
            return TupleArgument(name=parameter.name, items=tuple(items))
        return self._single(parameter, parameter.name, value, shares, number)

    def _single(
        self, parameter: Any, name: str, value: Any, shares: str | None, number: bool
    ) -> Single:
        if isinstance(value, tuple | list):
            raise LaunchError(f"`{name}` is a tuple within a tuple, which is not supported")
        if is_descriptor(value):
            return DescriptorArgument(
                array=self._array(name, value.base, None),
                block_shape=tuple(value.block_shape),
                padding=value.padding,
                round_to_tf32=value.round_f32_to_tf32,
            )
        if is_array(value):
            known_type = parameter.annotation_type and not parameter.annotation_type.startswith("*")
            if (number or known_type) and isinstance(value, jax.Array) and value.ndim == 0:
                return self._array_as_number(name, value)
            return self._array(name, value, shares)
        if isinstance(value, bool | int | float | np.generic):
            argument = _number(name, plain(value))
            self.scalars[name] = argument.value
            return argument
        described = describe(parameter, value, Memories())
        assert not isinstance(described, TupleArgument)
        return described

    def _array(self, name: str, value: Any, shares: str | None) -> ArrayArgument:
        if is_reference(value):
            shares = self._references.setdefault(id(value), name)
            shares = None if shares == name else shares
        number = self._buffers.setdefault(shares or name, len(self._buffers))
        shape = tuple(value.shape)
        return ArrayArgument(
            name=name,
            dtype=canonical_dtype(str(np.dtype(value.dtype))),
            shape=shape,
            strides=row_major_strides(shape),
            buffer=number,
        )

    def _array_as_number(self, name: str, value: Any) -> ScalarArgument:
        """An array without dimensions that is meant as a number."""
        dtype = canonical_dtype(str(np.dtype(value.dtype)))
        if not isinstance(value, jax.core.Tracer):
            known = _number_in(value)
            self.scalars[name] = value
            return scalar_argument(name, known, dtype)
        if not dtype.startswith(("fp", "bf")):
            raise TracedNumberError(
                f"`{name}` is a number of the type `{dtype}` that is not known while JAX traces, "
                "and a kernel is translated for known integers: give a Python number (as by "
                "`static_argnums` of `jax.jit`)"
            )
        self.scalars[name] = value
        return scalar_argument(name, 0.0, dtype)


class TracedNumberError(LaunchError):
    """An integer that is not known while JAX traces."""


def constant_argument(parameter: Any, value: Any) -> Argument:
    """What is given for a parameter that is a constant.

    Raises:
      LaunchError: the value is an array that is no known number.
    """
    if is_array(value):
        if isinstance(value, jax.core.Tracer) or value.ndim != 0:
            raise LaunchError(
                f"the constant `{parameter.name}` is given an array; it takes what is known while "
                "JAX traces, such as a Python number"
            )
        value = _number_in(value)
    return describe(parameter, value, Memories())


def leaves_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is given for one parameter: itself, or the members of a tuple as `name.0`, ..."""
    if isinstance(value, tuple | list):
        for index, member in enumerate(value):
            yield f"{name}.{index}", member
    else:
        yield name, value


def is_reference(value: Any) -> bool:
    """Whether it is a `Ref`, which a kernel may change."""
    return isinstance(value, jax.Ref)


def is_array(value: Any) -> bool:
    """Whether it is memory for a kernel to point to."""
    return isinstance(value, jax.Array | np.ndarray | Space) or is_reference(value)


def is_descriptor(value: Any) -> bool:
    """Whether it is a tensor descriptor, such as `jax_triton.TensorDescriptor`."""
    return hasattr(value, "base") and hasattr(value, "block_shape")


def plain(value: Any) -> Any:
    """A number of any library as Python's own; anything else as it is."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.generic):  # the small floating-point types of `ml_dtypes`
        return float(value)
    return value


def _number_in(array: Any) -> bool | int | float:
    """What a known array without dimensions holds."""
    kind = np.dtype(array.dtype).kind
    return bool(array) if kind == "b" else int(array) if kind in "iu" else float(array)


def _number(name: str, value: bool | int | float) -> ScalarArgument:
    """A Python number, of the type that jax-triton gives it."""
    dtype = None
    if isinstance(value, float) and not _is_normal(value):
        dtype = "fp64"
    elif not isinstance(value, bool) and isinstance(value, int) and 2**31 <= value < 2**32:
        dtype = "u32"
    return scalar_argument(name, value, dtype)


def _is_normal(value: float) -> bool:
    """Whether `float32` has the number, or one near it."""
    return value == 0.0 or not math.isfinite(value) or _TINY <= abs(value) <= _LARGEST
