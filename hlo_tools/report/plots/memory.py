"""Device memory over a step: arguments and outputs below, temporaries on top."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_tools.profile import MemoryProfile
from hlo_tools.report.plots.axis import Tick, nice_step, rounded
from hlo_tools.report.units import format_bytes, format_seconds

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 78, 16, 16, 44

_CAPACITY_IN_SIGHT = 0.4
"""The chip's capacity is drawn from this share of it on: else all the rest would be flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """An area of the drawing, as the corners of a polygon."""

    kind: str
    bytes: int
    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlot:
    """The drawing, in pixels from the upper left.

    Attributes:
      layers: from the bottom up.
      peak: the fullest moment.
      capacity: height of the chip's capacity, if in sight.
    """

    layers: tuple[Layer, ...]
    peak: tuple[float, float]
    capacity: float | None
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def memory_plot(memory: MemoryProfile, seconds: float) -> MemoryPlot:
    """Lays out the memory of a step that takes `seconds`."""
    seconds = seconds or 1.0
    in_sight = bool(memory.capacity and memory.peak_bytes >= _CAPACITY_IN_SIGHT * memory.capacity)
    top = max(memory.peak_bytes, memory.capacity or 0 if in_sight else 0, 1) * 1.08

    def x(moment: float) -> float:
        return rounded(LEFT + min(1.0, moment / seconds) * (WIDTH - LEFT - RIGHT))

    def y(held: float) -> float:
        return rounded(HEIGHT - BOTTOM - held / top * (HEIGHT - TOP - BOTTOM))

    moments = [moment for moment, _ in memory.curve]
    fixed = memory.argument_bytes + memory.output_bytes
    layers = []
    for kind, low, high, most in (
        ("argument", [0], [memory.argument_bytes], memory.argument_bytes),
        ("output", [memory.argument_bytes], [fixed], memory.output_bytes),
        (
            "temporary",
            [fixed],
            [fixed + held for _, held in memory.curve],
            max((held for _, held in memory.curve), default=0),
        ),
    ):
        if most:
            upper = _stairs(moments if len(high) > 1 else moments[:1], high, seconds)
            corners = [(x(0.0), y(low[0])), *((x(m), y(h)) for m, h in upper)]
            layers.append(Layer(kind=kind, bytes=most, corners=(*corners, (x(seconds), y(low[0])))))
    return MemoryPlot(
        layers=tuple(layers),
        peak=(x(memory.peak_seconds), y(memory.peak_bytes)),
        capacity=y(memory.capacity) if in_sight and memory.capacity else None,
        x_ticks=tuple(
            Tick(at=x(moment), label=format_seconds(moment)) for moment in _steps(seconds, 6)
        ),
        y_ticks=tuple(Tick(at=y(held), label=format_bytes(int(held))) for held in _steps(top, 6)),
    )


def _stairs(
    moments: Sequence[float], heights: Sequence[int], end: float
) -> list[tuple[float, int]]:
    corners = []
    for number, (moment, height) in enumerate(zip(moments, heights, strict=True)):
        following = moments[number + 1] if number + 1 < len(moments) else end
        corners += [(moment, height), (following, height)]
    return corners


def _steps(extent: float, parts: int) -> list[float]:
    step = nice_step(extent, parts)
    return [number * step for number in range(int(extent / step + 1e-9) + 1)]
