"""What the compiler says when a program needs more device memory than there is."""

import re
from dataclasses import dataclass

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = r"(\d+(?:\.\d+)?)([KMGT]?)i?B?"

# libtpu 0.0.52, and what older ones say: `xla/tsl` prints sizes with binary prefixes.
_REFUSALS = (
    re.compile(rf"out of memory on HBM\b.*?\({_SIZE}\) exceeds available HBM \({_SIZE}\)", re.S),
    re.compile(rf"out of memory in memory space hbm\b.*?Used {_SIZE} of {_SIZE} hbm", re.S),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRefusal:
    """A program that was not compiled because it does not fit into device memory.

    Attributes:
      needed_bytes: what one device would have to hold at the fullest moment.
      available_bytes: what it has for a program.
    """

    needed_bytes: int
    available_bytes: int


def memory_refusal(message: str) -> MemoryRefusal | None:
    """Reads the sizes off the compiler's message; `None` if it says something else.

    Running out of VMEM is something else: it is one kernel that does not fit, not the program.
    """
    for pattern in _REFUSALS:
        if found := pattern.search(message):
            needed, needed_unit, available, available_unit = found.groups()
            return MemoryRefusal(
                needed_bytes=round(float(needed) * _UNITS[needed_unit]),
                available_bytes=round(float(available) * _UNITS[available_unit]),
            )
    return None
