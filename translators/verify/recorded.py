"""What host code had in memory when it launched a kernel."""

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from translators.graph.numerics import Array
from translators.verify.memory import Layout, View


def recorded_storages(layout: Layout, values: Mapping[str, Any]) -> dict[int, Array]:
    """Copies of the memory that the arrays of a recorded launch lie in.

    Args:
      layout: that of the launch.
      values: what host code passed for each parameter; arrays must be on the CPU.
    """
    found: dict[int, Array] = {}
    for name, view in layout.views.items():
        buffer = view.array.buffer
        storage = layout.storages[buffer]
        if buffer not in found:
            found[buffer] = _copied(_passed(values, name), view, storage.size)
    return found


def _passed(values: Mapping[str, Any], name: str) -> Any:
    """The array that was passed for a parameter, or for a member of a tuple, as `name.0`."""
    parameter, _, member = name.partition(".")
    value = values[parameter]
    if member:
        value = value[int(member)]
    if not hasattr(value, "data_ptr"):
        value = value.base  # a tensor descriptor
    return value


def _copied(value: Any, view: View, size: int) -> Array:
    """The whole storage that a view of it lies in."""
    if size == 0:
        return np.zeros(0, view.dtype)
    start = value.data_ptr() - view.offset * view.dtype.itemsize
    # Of a torch tensor, NumPy takes neither gaps between elements nor every element type.
    memory = (ctypes.c_char * (size * view.dtype.itemsize)).from_address(start)
    return np.frombuffer(bytes(memory), view.dtype).copy()
