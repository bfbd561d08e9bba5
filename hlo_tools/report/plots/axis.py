"""Ticks of axes, and numbers as SVG takes them."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis: its position, and what stands beside it."""

    at: float
    label: str


def rounded(number: float) -> float:
    """A coordinate, to a hundredth of a pixel or of a per cent."""
    return round(number, 2)


def nice_step(extent: float, parts: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that splits `extent` into `parts` or less."""
    if not (extent > 0 and math.isfinite(extent)):
        return 1.0
    power = 10.0 ** math.floor(math.log10(extent / parts))
    return next((f * power for f in (1, 2, 5, 10) if extent / (f * power) <= parts), 10 * power)
