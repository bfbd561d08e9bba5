"""Accesses whose indices count: what they touch is a slice of the array in another shape.

Along each dimension of the array an index is a start plus digits times their weights; a digit is
a program id, an iteration, a lane or a part of one. Where the weights nest, the positions touched
are a slice, and the slice, reshaped, has a dimension for each digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from translators.access.analysis import Access
from translators.access.classify import part_of
from translators.access.delinearize import Dimension, Position
from translators.access.expression import (
    Affine,
    Interval,
    Iteration,
    Lane,
    ProgramId,
    Symbol,
    Variable,
    leaves,
    total,
)
from translators.access.expression import Digit as Coordinate
from translators.emit.emission import Emission
from translators.emit.terms import BatchAxis, PointerTerm, Term, Tiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """What counts positions along a dimension.

    Attributes:
      axis: the batch axis, or the axis of the tensor.
      unit: which part of it: `lane // unit % extent`.
      extent: how many values it takes.
      period: positions from one value to the next, in those of the digit inside it.
      flipped: whether the index falls as it rises.
    """

    axis: BatchAxis | int
    unit: int
    extent: int
    period: int = 1
    flipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A dimension of the array as an access touches it.

    Attributes:
      dimension: the dimension.
      start: the first position: an expression over scalars of the emitted text.
      interval: between what it lies.
      digits: the outermost first; each digit's `period` counts in units of the next one's span.
      length: positions from the start to the end of the outermost digit's last period.
    """

    dimension: Dimension
    start: Affine
    interval: Interval
    digits: tuple[Digit, ...]
    length: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The slice's shape: first the outermost digit, then each period."""
        if not self.digits:
            return ()
        periods = [each.period for each in self.digits]
        if periods[-1] == 1:
            del periods[-1]
        return (self.digits[0].extent, *periods)

    @property
    def pads(self) -> tuple[int, int]:
        """How far the access leaves the dimension before and behind it."""
        low = max(0, -self.interval.low)
        high = max(0, self.interval.high + self.length - self.dimension.size)
        return low, high


def spans_of(e: Emission, access: Access) -> tuple[Span, ...] | None:
    """How an access touches each dimension; `None` where it is not by counting."""
    if not isinstance(access.position, Position):
        return None
    if access.position.assumptions and not e.blocked:
        # A slice would begin elsewhere where they do not hold; a block is read where it holds.
        return None
    found: list[Span] = []
    seen: set[tuple[BatchAxis | int, int]] = set()
    for dimension in access.position.dimensions:
        span = span_of(e, dimension)
        if span is None:
            return None
        for digit in span.digits:
            if (digit.axis, digit.unit) in seen:
                return None
            seen.add((digit.axis, digit.unit))
        low, high = span.pads
        if low + high > 4 * (dimension.size + span.length) and not e.blocked:
            return None
        found.append(span)
    if _overlapping_parts(found):
        return None
    return tuple(found)


def _overlapping_parts(spans: Sequence[Span]) -> bool:
    """Whether two digits are no independent parts of one axis."""
    by_axis: dict[int, list[Digit]] = {}
    for span in spans:
        for digit in span.digits:
            if isinstance(digit.axis, int):
                by_axis.setdefault(digit.axis, []).append(digit)
    for digits in by_axis.values():
        digits.sort(key=lambda each: each.unit)
        for inner, outer in pairwise(digits):
            if inner.unit * inner.extent > outer.unit:
                return True
    return False


def span_of(e: Emission, dimension: Dimension) -> Span | None:
    """How an access touches a dimension; `None` where it is not by counting."""
    start: list[tuple[Variable, int]] = []
    digits: list[tuple[Digit, int]] = []
    offset = dimension.index.offset
    for variable, factor in dimension.index.terms:
        digit = _digit(e, variable)
        if digit is not None:
            if factor < 0:
                # The last value of the digit comes first.
                offset += factor * (digit.extent - 1)
                digit = replace(digit, flipped=True)
            digits.append((digit, abs(factor)))
            tiled = _tiled(e, variable)
            if tiled is not None:
                start.append((tiled.step, factor * tiled.axis.extent))
        elif _is_scalar(e, variable):
            start.append((variable, factor))
        else:
            return None
    digits.sort(key=lambda each: -each[1])
    placed: list[Digit] = []
    for index, (digit, weight) in enumerate(digits):
        inner = digits[index + 1][1] if index + 1 < len(digits) else 1
        reach = inner * digits[index + 1][0].extent if index + 1 < len(digits) else 1
        if weight % inner or weight < reach:
            return None
        placed.append(replace(digit, period=weight // inner))
    length = digits[0][0].extent * digits[0][1] if digits else 1
    first = total(start, offset)
    return Span(
        dimension=dimension,
        start=first,
        interval=first.interval,
        digits=tuple(placed),
        length=length,
    )


def _tiled(e: Emission, variable: Variable) -> Tiled | None:
    found = e.iterations.get(variable.loop) if isinstance(variable, Iteration) else None
    found = found or e.programs.get(variable)
    return found if isinstance(found, Tiled) else None


def _digit(e: Emission, variable: Variable) -> Digit | None:
    match variable:
        case ProgramId() | Coordinate():
            batch = e.programs.get(variable)
            if isinstance(batch, Tiled):
                batch = batch.axis
            if isinstance(batch, BatchAxis):
                return Digit(axis=batch, unit=1, extent=batch.extent)
            return None
        case Iteration(loop=loop):
            counted = e.iterations.get(loop)
            if isinstance(counted, Tiled):
                counted = counted.axis
            if isinstance(counted, BatchAxis):
                return Digit(axis=counted, unit=1, extent=counted.extent)
            return None
    part = part_of(variable)
    if part is None:
        return None
    return Digit(axis=part.axis, unit=part.unit, extent=part.extent)


def _is_scalar(e: Emission, variable: Variable) -> bool:
    """Whether a variable is the same in all lanes and programs."""
    for leaf in leaves(Affine(terms=((variable, 1),))):
        match leaf:
            case Lane():
                return False
            case ProgramId() | Coordinate():
                if not isinstance(e.programs.get(leaf), Term):
                    return False
            case Iteration(loop=loop):
                if not isinstance(e.iterations.get(loop), Term):
                    return False
            case Symbol(value=value):
                emitted = e.found(value)
                if emitted is None and e.number(value) is None:
                    return False
                term = emitted.offset if isinstance(emitted, PointerTerm) else e.term(value)
                if not term.bare:
                    return False
    return True


def touched(spans: Sequence[Span]) -> set[BatchAxis]:
    """The batch axes that move the access."""
    axes = (digit.axis for span in spans for digit in span.digits)
    return {each for each in axes if isinstance(each, BatchAxis)}


def whole_lanes(spans: Sequence[Span], shape: tuple[int, ...]) -> bool:
    """Whether every lane has a place of its own."""
    counts = [1] * len(shape)
    for span in spans:
        for digit in span.digits:
            if isinstance(digit.axis, int):
                counts[digit.axis] *= digit.extent
    return counts == list(shape)


def volume(spans: Sequence[Span]) -> int:
    """The number of positions in the slice."""
    return prod(span.length for span in spans)
