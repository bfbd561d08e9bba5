"""Memory that takes note of which elements a run reads and writes."""

from collections.abc import Iterable

import numpy as np

from translators.graph.memory import SPACING, Memory
from translators.graph.numerics import Array
from translators.graph.types import ElementType, bit_width


class WatchedMemory(Memory):
    """Says after a run which elements of an array were read, and which written."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        given = list(arrays)
        super().__init__(given)
        sizes = {self.address_of(array): array.nbytes for array in given}
        # Of an element its first byte is enough; one that is wider than those given marks more.
        self._itemsize = {self.address_of(array): array.itemsize for array in given}
        self._read = {start: np.zeros(size, np.bool_) for start, size in sizes.items()}
        self._written = {start: np.zeros(size, np.bool_) for start, size in sizes.items()}

    def load(self, addresses: Array, element: ElementType) -> Array:
        """As `Memory.load`."""
        found = super().load(addresses, element)
        self._note(self._read, addresses, element)
        return found

    def store(self, addresses: Array, values: Array, element: ElementType) -> None:
        """As `Memory.store`."""
        super().store(addresses, values, element)
        self._note(self._written, addresses, element)

    def read(self, array: Array) -> Array:
        """Which elements of a flat array were read."""
        return self._elements(self._read, array)

    def written(self, array: Array) -> Array:
        """Which elements of a flat array were written."""
        return self._elements(self._written, array)

    def _elements(self, noted: dict[int, Array], array: Array) -> Array:
        by_element = noted[self.address_of(array)].reshape(-1, array.itemsize)
        return np.asarray(by_element.any(axis=1))

    def _note(self, noted: dict[int, Array], addresses: Array, element: ElementType) -> None:
        size = max(1, bit_width(element) // 8)
        slots = addresses // SPACING
        for slot in np.unique(slots).tolist():
            offsets = addresses[slots == slot] - slot * SPACING
            noted[slot * SPACING][offsets] = True
            for byte in range(self._itemsize[slot * SPACING], size):
                noted[slot * SPACING][offsets + byte] = True
