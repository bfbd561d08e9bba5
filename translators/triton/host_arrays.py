"""Example arrays for host code: torch tensors where torch is installed, NumPy-backed ones if not.

A `HostArray` has what Triton's launcher and most host functions ask of a tensor.
"""

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np

from translators.triton.launches import ArrayArgument, LaunchError

# Triton's short spelling -> NumPy's type; torch spells each as NumPy does.
NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
}


class HostDtype:
    """An element type that spells itself as torch does."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.numpy = dtype
        self.itemsize = dtype.itemsize
        self.is_floating_point = dtype.kind not in "biu"

    def __str__(self) -> str:
        return f"torch.{self.numpy.name}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class HostStorage:
    """The memory of an array."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._values = values

    def data_ptr(self) -> int:
        """The address of the first byte; zero where there is none."""
        return int(self._values.ctypes.data) if self._values.size else 0

    def size(self) -> int:
        """Bytes."""
        return self._values.nbytes

    def cpu(self) -> "HostStorage":
        """A copy."""
        return HostStorage(self._values.copy())

    def copy_(self, other: "HostStorage") -> None:
        """Takes over what the other memory holds."""
        self._values[...] = other._values

    def array(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> "HostArray":
        """A view of this memory, placed in elements."""
        return HostArray(strided(self._values[offset:], shape, strides), self._values)


class HostArray:
    """A NumPy array behind the part of a tensor's interface that host code uses.

    Attributes:
      values: the elements, a view of `memory`.
      memory: the one-dimensional memory that they lie in.
      device: where they are, as a program that runs on a GPU expects it.
    """

    is_cuda = True
    requires_grad = False
    device = "cuda:0"

    def __init__(
        self, values: np.ndarray[Any, Any], memory: np.ndarray[Any, Any] | None = None
    ) -> None:
        self.values = values
        self.memory = values.reshape(-1) if memory is None else memory

    @property
    def dtype(self) -> HostDtype:
        """The element type."""
        return HostDtype(self.values.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements a dimension."""
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.values.ndim

    @property
    def T(self) -> "HostArray":  # the name that tensors have
        """The transpose, in the same memory."""
        return HostArray(self.values.T, self.memory)

    def data_ptr(self) -> int:
        """The address of the first element; zero where there is none."""
        return int(self.values.ctypes.data) if self.values.size else 0

    def untyped_storage(self) -> HostStorage:
        """The memory that the elements lie in."""
        return HostStorage(self.memory)

    def element_size(self) -> int:
        """Bytes an element."""
        return self.values.itemsize

    def stride(self, axis: int | None = None) -> Any:
        """Elements between neighbours, along one dimension or along each."""
        strides = tuple(step // self.values.itemsize for step in self.values.strides)
        return strides if axis is None else strides[axis]

    def size(self, axis: int | None = None) -> Any:
        """Elements along one dimension or along each."""
        return self.shape if axis is None else self.shape[axis]

    def set_(
        self, storage: HostStorage, offset: int, shape: Sequence[int], strides: Sequence[int]
    ) -> None:
        """Becomes a view of that memory."""
        view = storage.array(offset, shape, strides)
        self.values, self.memory = view.values, view.memory

    def storage_offset(self) -> int:
        """Elements from the start of the memory to the first element."""
        return (self.data_ptr() - self.untyped_storage().data_ptr()) // self.values.itemsize

    def dim(self) -> int:
        """The number of dimensions."""
        return self.values.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.values.size

    def get_device(self) -> int:
        """The only device."""
        return 0

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return bool(self.values.flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype.is_floating_point

    def contiguous(self) -> "HostArray":
        """The array itself, or a row-major copy."""
        return self if self.is_contiguous() else HostArray(np.ascontiguousarray(self.values))

    def view(self, *shape: int) -> "HostArray":
        """The same elements in another shape."""
        return self.reshape(*shape)

    def reshape(self, *shape: int) -> "HostArray":
        """The same elements in another shape, copied where the strides do not allow it."""
        values = self.values.reshape(_sizes(shape))
        shares = np.shares_memory(values, self.memory)
        return HostArray(values, self.memory if shares else None)

    def transpose(self, first: int, second: int) -> "HostArray":
        """Two dimensions exchanged, in the same memory."""
        return HostArray(self.values.swapaxes(first, second), self.memory)

    def new_empty(self, *shape: int, dtype: HostDtype | None = None, **kwargs: Any) -> "HostArray":
        """A new array of zeros, of this element type unless another is given."""
        return HostArray(np.zeros(_sizes(shape), dtype.numpy if dtype else self.values.dtype))

    new_zeros = new_empty

    def clone(self) -> "HostArray":
        """A row-major copy."""
        return HostArray(self.values.copy(order="C"))

    def __getitem__(self, index: Any) -> "HostArray":
        values = self.values[index]
        shares = isinstance(values, np.ndarray) and np.shares_memory(values, self.memory)
        return HostArray(np.asarray(values), self.memory if shares else None)

    def __len__(self) -> int:
        return len(self.values)


def strided(
    memory: np.ndarray[Any, Any], shape: Sequence[int], strides: Sequence[int]
) -> np.ndarray[Any, Any]:
    """A view of one-dimensional memory, with strides in elements."""
    size = memory.itemsize
    # NumPy cannot make such views of types that it does not know itself.
    plain = memory.view(f"u{size}")
    steps = tuple(stride * size for stride in strides)
    return np.lib.stride_tricks.as_strided(plain, tuple(shape), steps).view(memory.dtype)


def example_array(argument: ArrayArgument, rng: np.random.Generator) -> Any:
    """An array of that type, shape and strides.

    Floating-point elements are drawn from a normal distribution; integers are zero, which is
    within bounds wherever they are used as indices.

    Raises:
      LaunchError: the strides lead outside an array, or no host type has these elements.
    """
    dtype = _numpy_dtype(argument.dtype)
    if min(argument.strides, default=0) < 0:
        raise LaunchError(f"`{argument.name}` has a negative stride")
    last = sum(
        (size - 1) * stride for size, stride in zip(argument.shape, argument.strides, strict=True)
    )
    count = 0 if math.prod(argument.shape) == 0 else last + 1
    memory = np.zeros(count, dtype)
    if dtype.kind not in "biu":
        memory[:] = rng.standard_normal(count).astype(dtype)
    if find_spec("torch") is not None:
        return _torch_tensor(memory, argument)
    return HostStorage(memory).array(0, argument.shape, argument.strides)


def host_dtype(dtype: str) -> Any:
    """The element type as host code has it: torch's where torch is installed.

    Args:
      dtype: the type in Triton's short spelling, such as `fp16`.

    Raises:
      LaunchError: no array on the host has such elements.
    """
    elements = _numpy_dtype(dtype)
    if find_spec("torch") is None:
        return HostDtype(elements)
    return getattr(import_module("torch"), elements.name)


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    elements = NUMPY_DTYPES.get(dtype)
    if elements is None:
        raise LaunchError(f"no array on the host has elements of the type `{dtype}`")
    return elements


def _torch_tensor(memory: np.ndarray[Any, Any], argument: ArrayArgument) -> Any:
    torch = import_module("torch")
    dtype = getattr(torch, memory.dtype.name)
    if memory.size == 0:
        return torch.empty(argument.shape, dtype=dtype)
    flat = torch.from_numpy(memory.view(np.uint8)).view(dtype)
    return torch.as_strided(flat, argument.shape, argument.strides)


def _sizes(shape: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        return tuple(shape[0])
    return tuple(shape)
