"""Operations by how much they compute for each byte of device memory, under the chip's roof."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_tools.profile import Operation, StepProfile
from hlo_tools.report.plots.axis import Tick, rounded

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 78, 16, 16, 44
BAND = 52
"""Width of the strip on the right for operations all of whose data lie on the chip."""

_LEAST_RADIUS, _MOST_RADIUS = 3.0, 16.0
_MOST_TICKS = 8
_VISIBLE = 0.0005
"""Operations with a smaller share of the step than this are left out."""

_DEPTH = 1e6
"""Operations that reach less than this fraction of the peak are left out."""

_MARGIN = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One operation: a circle whose area is its share of the step."""

    operation: Operation
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePlot:
    """The drawing, in pixels from the upper left.

    Attributes:
      roof: corners of the line that no operation can be above.
      ridge: the corner between what memory and what the matrix unit limits.
      ridge_intensity: operations a byte there.
      x_ticks: operations a byte of device memory.
      y_ticks: operations a second.
      points: the largest first, so that small ones lie on top.
      vector: height of the vector unit's peak.
      left_out: operations that hardly compute, or take next to no time.
      band: left end of the strip for those that touch no device memory.
      left_out_seconds: what those take.
      above: operations clearly above the roof, of which the chip does less than HLO says.
    """

    roof: tuple[tuple[float, float], ...]
    ridge: tuple[float, float]
    ridge_intensity: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    points: tuple[Point, ...]
    vector: float | None
    left_out: int
    band: float
    left_out_seconds: float
    above: int


def roofline_plot(profile: StepProfile) -> RooflinePlot:
    """Lays out the operations of a step."""
    least = _VISIBLE * profile.seconds
    roof = profile.roof
    drawn: list[Operation] = []
    left_out: list[Operation] = []
    for operation in profile.operations:
        computes = operation.seconds > 0 and _rate(operation) >= roof.flops / _DEPTH
        seen = computes and operation.seconds >= least
        (drawn if seen else left_out).append(operation)
    ridge = roof.flops / roof.hbm_bandwidth
    x = _LogAxis(
        [ridge / 10, ridge * 10, *(_intensity(o) for o in drawn if o.hbm_bytes)],
        start=LEFT,
        end=WIDTH - RIGHT - BAND,
    )
    y = _LogAxis(
        [roof.flops * 2, roof.flops / 100, *map(_rate, drawn)], start=HEIGHT - BOTTOM, end=TOP
    )
    return RooflinePlot(
        roof=_roof_line(x, y, roof.flops, roof.hbm_bandwidth),
        ridge=(x.at(ridge), y.at(roof.flops)),
        ridge_intensity=ridge,
        x_ticks=tuple(x.ticks()),
        y_ticks=tuple(y.ticks()),
        points=tuple(
            Point(
                operation=operation,
                x=x.at(_intensity(operation)) if operation.hbm_bytes else WIDTH - RIGHT - BAND / 2,
                y=y.at(_rate(operation)),
                radius=_radius(operation.seconds / profile.seconds),
            )
            for operation in drawn
        ),
        vector=y.at(roof.vector_flops) if roof.vector_flops else None,
        left_out=len(left_out),
        band=WIDTH - RIGHT - BAND,
        left_out_seconds=sum(operation.seconds for operation in left_out),
        above=sum(_rate(o) > _MARGIN * _limit(o, profile) for o in drawn),
    )


class _LogAxis:
    """A logarithmic axis over whole decades that holds all of some numbers above 0."""

    def __init__(self, numbers: Sequence[float], *, start: float, end: float) -> None:
        self.low = math.floor(math.log10(min(numbers)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(numbers))))
        self._start, self._end = start, end

    def at(self, number: float) -> float:
        share = (math.log10(number) - self.low) / (self.high - self.low)
        return rounded(self._start + share * (self._end - self._start))

    def ticks(self) -> Iterator[Tick]:
        every = -(-(self.high - self.low) // _MOST_TICKS)
        for power in range(self.low, self.high + 1, every):
            yield Tick(at=self.at(10.0**power), label=_power(power))


def _roof_line(
    x: _LogAxis, y: _LogAxis, flops: float, bandwidth: float
) -> tuple[tuple[float, float], ...]:
    """From where memory's slope enters the drawing to the ridge, and on to the right."""
    left = max(10.0**x.low, 10.0**y.low / bandwidth)
    ridge = flops / bandwidth
    return (
        (x.at(left), y.at(left * bandwidth)),
        (x.at(ridge), y.at(flops)),
        (WIDTH - RIGHT, y.at(flops)),
    )


def _intensity(operation: Operation) -> float:
    return (operation.flops or 0) / operation.hbm_bytes


def _limit(operation: Operation, profile: StepProfile) -> float:
    peak = profile.roof.flops
    if not operation.hbm_bytes:
        return peak
    return min(peak, _intensity(operation) * profile.roof.hbm_bandwidth)


def _rate(operation: Operation) -> float:
    return (operation.flops or 0) / operation.seconds


def _radius(share: float) -> float:
    return rounded(max(_LEAST_RADIUS, _MOST_RADIUS * math.sqrt(min(1.0, share))))


_PREFIXES = {0: "1", 1: "10", 2: "100"}
_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")


def _power(power: int) -> str:
    """A power of ten, for example `100 G`."""
    if 0 <= power < 3 * len(_SUFFIXES):
        return f"{_PREFIXES[power % 3]} {_SUFFIXES[power // 3]}".rstrip()
    return f"1e{power}"
