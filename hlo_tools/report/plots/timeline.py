"""One lane of the timeline: what runs in a row, and what is on its way in rows below it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_tools.profile import LaneProfile, Operation, Slice, Span

ROW_TOP, ROW_HEIGHT = 22, 30
SPAN_TOP, SPAN_STRIDE, SPAN_HEIGHT = 60, 17, 13
MAX_ROWS = 12
LABELLED = 0.25
"""Marks narrower than this many per cent of the lane carry no label, however far one zooms in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A rectangle; `x` and `width` are in per cent of the lane, `y` and `height` in pixels.

    Attributes:
      slice: what it stands for, if that is a part of the row.
      span: if that is an asynchronous operation.
      exposed: width of its end that no work hides.
      goes_on: the operation comes from the trip before, or goes on into the next.
    """

    x: float
    width: float
    y: float
    height: float
    slice: Slice | None = None
    span: Span | None = None
    exposed: float = 0.0
    goes_on: bool = False

    @property
    def operation(self) -> Operation:
        """The one that it stands for; the longest, where it stands for several."""
        if self.span is not None:
            return self.span.operation
        assert self.slice is not None
        return self.slice.operations[0]

    @property
    def is_labelled(self) -> bool:
        """Whether there may be room for a name."""
        return self.width >= LABELLED


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePlot:
    """A lane.

    Attributes:
      height: in pixels.
      row: what runs.
      spans: what is on its way.
      unplaced: operations for which there is no row.
    """

    height: float
    row: tuple[Mark, ...]
    spans: tuple[Mark, ...]
    unplaced: int


def lane_plot(lane: LaneProfile) -> LanePlot:
    """Lays out a lane."""
    row = tuple(
        Mark(
            x=_percent(item.begin, lane),
            width=_percent(item.end - item.begin, lane),
            y=ROW_TOP,
            height=ROW_HEIGHT,
            slice=item,
        )
        for item in lane.slices
    )
    rows = _rows(lane.spans)
    placed = [(span, row) for span, row in rows if row < MAX_ROWS]
    used = max((row for _, row in placed), default=-1) + 1
    return LanePlot(
        height=SPAN_TOP + used * SPAN_STRIDE if used else ROW_TOP + ROW_HEIGHT + 6,
        row=row,
        spans=tuple(mark for span, row in placed for mark in _span_marks(span, row, lane)),
        unplaced=len(rows) - len(placed),
    )


def _rows(spans: Sequence[Span]) -> list[tuple[Span, int]]:
    """Each span with the first row in which it has room; one that wraps around takes it whole."""
    ends: list[float] = []
    found = []
    for span in spans:
        wraps = span.end < span.begin
        begin = 0.0 if wraps else span.begin
        row = next((n for n, end in enumerate(ends) if end <= begin), len(ends))
        end = float("inf") if wraps else span.end
        if row == len(ends):
            ends.append(end)
        else:
            ends[row] = end
        found.append((span, row))
    return found


def _span_marks(span: Span, row: int, lane: LaneProfile) -> Iterator[Mark]:
    wraps = span.end < span.begin
    pieces = [(0.0, span.end), (span.begin, lane.seconds)] if wraps else [(span.begin, span.end)]
    for begin, end in pieces:
        waited_for = end == span.end
        yield Mark(
            x=_percent(begin, lane),
            width=_percent(end - begin, lane),
            y=SPAN_TOP + row * SPAN_STRIDE,
            height=SPAN_HEIGHT,
            span=span,
            exposed=_percent(min(span.exposed, end - begin), lane) if waited_for else 0.0,
            goes_on=wraps,
        )


def _percent(seconds: float, lane: LaneProfile) -> float:
    return round(100 * seconds / lane.seconds, 4) if lane.seconds else 0.0
