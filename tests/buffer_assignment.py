"""Reads XLA's `*-buffer-assignment.txt`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.hlo.shape import Shape, parse_shape

_LINE = re.compile(
    r"^(allocation \d+: .*)$|^ value: <\d+ .* @\d+> \(size=(\d+),offset=\d+\): (.*)$"
)

NOMINAL_ELEMENTS = 1024
"""What XLA books for a scalar without a tile, the value of an applied computation such as the `add`
of a reduction: one vector register. It is never in memory."""

_COMPUTED_SPACES = (0, 6)
"""Where such a scalar is booked: nowhere in particular, or with the scalar core. Semaphores
(`S(2)`, `S(8)`), which applied computations hold as well, have their own four bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value that was given a place in a buffer.

    Attributes:
      text: its shape as printed.
      size: bytes.
      thread_local: it belongs to an applied computation and never lies in HBM.
    """

    text: str
    size: int
    thread_local: bool

    @property
    def shape(self) -> Shape:
        shape = parse_shape(self.text)
        assert shape is not None, self.text
        return shape

    @property
    def expected_bytes(self) -> int:
        """What our layout arithmetic says that it takes."""
        shape = self.shape
        is_tiled = shape.layout is not None and shape.layout.tiles
        is_register = self.thread_local and shape.memory_space in _COMPUTED_SPACES
        if is_register and not is_tiled and not shape.dimensions:
            return NOMINAL_ELEMENTS * shape.padded_bytes
        return shape.padded_bytes


def array_values(text: str) -> Iterator[Value]:
    """Every value but tuples, whose buffer is a table of pointers."""
    thread_local = False
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        if match[1]:
            thread_local = "thread-local" in match[1]
        elif not match[3].startswith("("):
            yield Value(text=match[3], size=int(match[2]), thread_local=thread_local)
