"""Windows: the block of an array that a step of the grid sees, and where it lies.

A window has a dimension for each dimension of the array that accesses move along. Where steps move
by whole blocks, the block is the window; elsewhere the window is all of the dimension, and the
kernel cuts from it what it needs.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import gcd, prod

from translators.access.expression import Affine, Variable, constant, total
from translators.emit.buffers import BufferState
from translators.emit.terms import BatchAxis
from translators.emit.tiles import view
from translators.emit.tiling import Span
from translators.graph.types import ElementType, bit_width

# The last two dimensions of a block are multiples of a tile of 32-bit elements, or the whole
# dimension (checked by the probes of docs/pallas-capabilities.md).
SUBLANES, LANES = 8, 128
# Blocks of one dimension are the whole array, multiples of this, or smaller powers of two.
_FLAT = 1024
# Scalar memory has 1 MiB on every generation.
_MOST_SCALARS = 1 << 17


class WindowError(Exception):
    """A part of an array has no form as a window; the message is a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A dimension of a window.

    Attributes:
      size: that of the array's dimension.
      block: how many positions the window has; more than `size` where it reaches over the edge.
      index: which block it is, over the variables of the grid.
      start: where in the window an access begins.
      seen: whether the kernel sees the dimension; if not, it has one position.
    """

    size: int
    block: int
    index: Affine
    start: Affine
    seen: bool = True


@dataclass(slots=True, kw_only=True, eq=False)
class Window:
    """What a step sees of an array.

    Attributes:
      buffer: the number of the array.
      spans: what the array's dimensions are for the accesses.
      view: the array in the shape that the window is cut from, as an expression.
      dimensions: the window, dimension by dimension.
      reference: the kernel's name for it.
      element: what it holds.
      scalars: whether it holds numbers that are read one by one, from scalar memory.
      initial: the reference to what was there before the kernel; empty where that does not matter.
      covered: whether what is written first is all of the window.
    """

    buffer: int
    spans: tuple[Span, ...]
    view: str
    dimensions: tuple[Cut, ...]
    reference: str
    element: ElementType
    scalars: bool = False
    initial: str = ""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape that the window is cut from."""
        return tuple(each.size for each in self.dimensions)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the kernel sees."""
        return tuple(each.block for each in self.dimensions if each.seen)

    @property
    def index(self) -> tuple[Affine, ...]:
        """Which block of each dimension the window is."""
        return tuple(each.index for each in self.dimensions)

    @property
    def bytes(self) -> int:
        """Bytes of the window, without the padding of tiles."""
        return prod(each.block for each in self.dimensions) * bit_width(self.element) // 8

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for windows that are one."""
        cuts = tuple((each.block, each.index, each.seen) for each in self.dimensions)
        return (self.buffer, self.view, cuts, self.scalars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A dimension of an access as a place in a window.

    Attributes:
      span: what the access touches.
      cut: the dimension of the window.
    """

    span: Span
    cut: Cut


def window_of(
    buffer: int,
    state: BufferState,
    spans: Sequence[Span],
    grid: Mapping[Variable, int],
    summed: Set[BatchAxis],
) -> tuple[Window, tuple[Seen, ...]]:
    """The window that an access needs, without a name, and the access's place in it.

    Args:
      buffer: the number of the array.
      state: the array.
      spans: what the access touches.
      grid: the variables that count the steps.
      summed: the axes of the iterations that are computed at once.

    Raises:
      WindowError: there is no such window.
    """
    apart: list[Span | None] = [each for span in spans for each in _rows(span)]
    cuts = [_cut(span, grid, summed) for span in apart if span is not None]
    width = max(8, bit_width(state.element))
    if len(cuts) == 1 and not _is_flat_block(cuts[0], width):
        cuts.insert(0, _unit())
        apart.insert(0, None)
    cuts = _as_tiles(cuts, apart)
    if len(cuts) > 1 and cuts[-2].block == 1 < cuts[-2].size:
        cuts.insert(len(cuts) - 1, _unit())
        apart.insert(len(apart) - 1, None)
    text = view(state, spans)
    sizes = tuple(each.size for each in cuts)
    if sizes != tuple(span.dimension.size for span in spans):
        text = reshaped(text, sizes)
    window = Window(
        buffer=buffer,
        spans=tuple(spans),
        view=text,
        dimensions=tuple(replace(each, start=constant(0)) for each in cuts),
        reference="",
        element=state.element,
    )
    seen = [
        Seen(span=span, cut=cut) for span, cut in zip(apart, cuts, strict=True) if span is not None
    ]
    return window, tuple(seen)


def reshaped(text: str, sizes: tuple[int, ...]) -> str:
    """An array in another shape, whatever shape it is given in."""
    before = re.sub(r"\.reshape\([\d, ()-]*\)$", "", text)
    return f"{before}.reshape({', '.join(map(str, sizes))})"


def _rows(span: Span) -> tuple[Span, ...]:
    """A dimension that is gone through in rows of `LANES` as two: rows, and what is in them."""
    if len(span.digits) < 2 or span.dimension.size % LANES or not span.start.divisible_by(LANES):
        return (span,)
    *outer, inner = span.digits
    if (inner.extent, inner.period) != (LANES, 1) or outer[-1].period % LANES:
        return (span,)
    outer[-1] = replace(outer[-1], period=outer[-1].period // LANES)
    size = span.dimension.size // LANES
    start = _divided(span.start)
    rows = replace(
        span,
        dimension=replace(span.dimension, size=size),
        start=start,
        interval=start.interval,
        digits=tuple(outer),
        length=span.length // LANES,
    )
    lanes = replace(
        span,
        dimension=replace(span.dimension, size=LANES),
        start=constant(0),
        interval=constant(0).interval,
        digits=(inner,),
        length=LANES,
    )
    return (rows, lanes)


def _divided(start: Affine) -> Affine:
    terms = tuple((variable, factor // LANES) for variable, factor in start.terms)
    return Affine(terms=terms, offset=start.offset // LANES)


def scalars_of(buffer: int, state: BufferState, spans: Sequence[Span]) -> tuple[Window, Affine]:
    """All of an array in scalar memory, and which element of it an access reads.

    Raises:
      WindowError: the array is too large, or of another width than 32 bits.
    """
    sizes = [span.dimension.size for span in spans]
    if bit_width(state.element) != 32:
        raise WindowError(f"it reads single numbers of `{state.element}`")
    if prod(sizes) > _MOST_SCALARS:
        raise WindowError(f"it reads single numbers of an array of {prod(sizes)}")
    text = view(state, spans)
    if len(sizes) > 1:
        text = reshaped(text, (-1,))
    index = constant(0)
    for span, size in zip(spans, sizes, strict=True):
        index = index.times(size) + span.start
    cut = Cut(size=prod(sizes), block=prod(sizes), index=constant(0), start=constant(0))
    window = Window(
        buffer=buffer,
        spans=tuple(spans),
        view=text,
        dimensions=(cut,),
        reference="",
        element=state.element,
        scalars=True,
    )
    return window, index


def _unit() -> Cut:
    return Cut(size=1, block=1, index=constant(0), start=constant(0), seen=False)


def _cut(span: Span, grid: Mapping[Variable, int], summed: Set[BatchAxis]) -> Cut:
    size, length = span.dimension.size, span.length
    if span.interval.low < 0:
        raise WindowError("it begins in front of the array")
    seen = bool(span.digits)
    moving = [(variable, factor) for variable, factor in span.start.terms if variable in grid]
    rest = total(
        ((variable, factor) for variable, factor in span.start.terms if variable not in grid),
        span.start.offset,
    )
    if moving:
        step = gcd(*(factor for _, factor in moving))
        first, inside = divmod(rest.offset, step)
        rest = Affine(terms=rest.terms, offset=inside)
        reach = rest.interval
        if reach.low >= 0 and reach.high + length <= step:
            index = total(((each, factor // step) for each, factor in moving), first)
            return Cut(size=size, block=step, index=index, start=rest, seen=seen or step > 1)
    elif not rest.terms and length < size and rest.offset % length == 0:
        index = constant(rest.offset // length)
        return Cut(size=size, block=length, index=index, start=constant(0), seen=seen or length > 1)
    return _all_of(span, summed)


def _all_of(span: Span, summed: Set[BatchAxis]) -> Cut:
    """All of the dimension, and what lies behind it as far as the access goes."""
    block = max(span.dimension.size, span.interval.high + span.length)
    if is_summed(span, summed):
        block = span.dimension.size
    return Cut(
        size=span.dimension.size,
        block=block,
        index=constant(0),
        start=span.start,
        seen=bool(span.digits) or block > 1,
    )


def is_summed(span: Span, summed: Set[BatchAxis]) -> bool:
    """Whether all iterations of a loop are read at once, up to the edge of the array."""
    return not span.start.terms and any(each.axis in summed for each in span.digits)


def _is_flat_block(cut: Cut, width: int) -> bool:
    """Whether a block of an array of one dimension is one that a TPU takes."""
    if cut.block == cut.size or cut.block % _FLAT == 0:
        return True
    return cut.block >= LANES * 32 // width and cut.block & (cut.block - 1) == 0


def _as_tiles(cuts: list[Cut], spans: Sequence[Span | None]) -> list[Cut]:
    """The cuts with the last two of whole tiles or whole dimensions."""
    if len(cuts) == 1:
        return cuts
    found = list(cuts)
    for place, unit in ((len(cuts) - 1, LANES), (len(cuts) - 2, SUBLANES)):
        cut, span = found[place], spans[place]
        if span is None or cut.block % unit == 0 or cut.block == cut.size:
            continue
        if unit == SUBLANES and cut.block == 1:
            continue
        if cut.index != constant(0):
            cut = _all_of(span, frozenset())
        if cut.block != cut.size:
            cut = replace(cut, block=-(-cut.block // unit) * unit, seen=True)
        found[place] = cut
    return found
