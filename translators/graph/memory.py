"""Memory that a kernel touches: flat buffers at addresses far from one another."""

from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np

from translators.graph.errors import UndefinedError
from translators.graph.numerics import Array, dtype_of
from translators.graph.types import ElementType, IntType, bit_width

# Each buffer starts at a multiple of this, so that no offset a kernel can sensibly compute leads
# from one into the next, and the first is far from the null pointer.
SPACING = 1 << 44


class Memory:
    """Buffers in one address space, each a copy of the array that was given.

    Arrays are told apart by identity: an array given twice is one buffer at one address.
    """

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._bytes: list[Array] = []
        self._dtypes: list[np.dtype[np.generic]] = []
        self._index: dict[int, int] = {}
        # Holds the arrays, so that no two of them can have the same identity.
        self._given = list(arrays)
        for array in self._given:
            if id(array) in self._index:
                continue
            self._index[id(array)] = len(self._bytes)
            flat = np.ascontiguousarray(array).reshape(-1)
            self._bytes.append(flat.view(np.uint8).copy())
            self._dtypes.append(array.dtype)

    def address_of(self, array: Array) -> int:
        """The byte address of the first element."""
        return (self._index[id(array)] + 1) * SPACING

    def contents(self, array: Array) -> Array:
        """What the buffer of `array` holds now, flat."""
        index = self._index[id(array)]
        return self._bytes[index].view(self._dtypes[index]).copy()

    def load(self, addresses: Array, element: ElementType) -> Array:
        """The elements at `addresses`, all of which must be in bounds."""
        found = np.zeros(addresses.shape, _stored_dtype(element))
        for elements, chosen, indices in self._resolve(addresses, element):
            found[chosen] = elements[indices]
        return found.astype(np.bool_) if element == IntType(1) else found

    def store(self, addresses: Array, values: Array, element: ElementType) -> None:
        """Writes `values`; of several to one address the last stays."""
        stored = values.astype(_stored_dtype(element))
        for elements, chosen, indices in self._resolve(addresses, element):
            elements[indices] = stored[chosen]

    def _resolve(
        self, addresses: Array, element: ElementType
    ) -> Iterator[tuple[Array, Array, Array]]:
        """For each buffer touched: its elements, which addresses are its own, their indices.

        Raises:
          UndefinedError: an address in no buffer, or not a multiple of the element's size.
        """
        size = _stored_dtype(element).itemsize
        # A buffer's slot reaches as far below its start as above.
        slots = (addresses + SPACING // 2) // SPACING - 1
        for slot in np.unique(slots).tolist():
            chosen = slots == slot
            if not 0 <= slot < len(self._bytes):
                first = int(addresses[chosen].flat[0])
                raise UndefinedError(f"touches address {first}, where no buffer is")
            offsets = addresses[chosen] - (slot + 1) * SPACING
            length = self._bytes[slot].size
            outside = (offsets < 0) | (offsets + size > length)
            if outside.any():
                self._out_of_bounds(int(offsets[outside].flat[0]), size, length)
            if (offsets % size).any():
                raise UndefinedError(f"is not aligned to the {size} bytes of `{element}`")
            usable = self._bytes[slot][: length - length % size]
            yield usable.view(_stored_dtype(element)), chosen, offsets // size

    @staticmethod
    def _out_of_bounds(offset: int, size: int, length: int) -> NoReturn:
        index, rest = divmod(offset, size)
        place = f"byte {offset}" if rest else f"element {index}"
        raise UndefinedError(f"touches {place} of a buffer of {length // size} elements")


def _stored_dtype(element: ElementType) -> np.dtype[np.generic]:
    if bit_width(element) not in (1, 8, 16, 32, 64):
        raise UndefinedError(f"accesses `{element}`, which no memory holds")
    return np.dtype(np.uint8) if element == IntType(1) else dtype_of(element)
