"""Windows: the block of an array that a step of the grid sees, and where it lies.

A window has a dimension for each dimension of the array that accesses move along. Where steps move
by whole blocks, the block is the window; elsewhere the window is all of the dimension, and the
kernel cuts from it what it needs.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import gcd, prod

from translators.access.expression import Affine, Variable, constant, depends_on_data, total
from translators.emit.buffers import BufferState
from translators.emit.pallas.layout import Layout
from translators.emit.terms import BatchAxis
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


class StraightError(Exception):
    """An array has to be taken in the order of its dimensions.

    Attributes:
      buffer: the number of the array.
    """

    def __init__(self, buffer: int) -> None:
        super().__init__()
        self.buffer = buffer


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

    @property
    def place(self) -> tuple[int, Affine, bool]:
        """Equal for dimensions that are one, wherever in it an access begins."""
        return (self.block, self.index, self.seen)

    @property
    def is_whole(self) -> bool:
        """Whether the window has all of the dimension."""
        return self.seen and self.block >= self.size and self.index == constant(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A dimension of an access as a place in a window.

    Attributes:
      span: what the access touches.
      cut: the dimension of the window.
    """

    span: Span
    cut: Cut


@dataclass(slots=True, kw_only=True, eq=False)
class Window:
    """What a step sees of an array.

    Attributes:
      buffer: the number of the array.
      spans: what the array's dimensions are for the accesses.
      layout: the form of the array that the window is cut from.
      dimensions: the window, dimension by dimension.
      reference: the kernel's name for it.
      element: what it holds.
      scalars: whether it holds numbers that are read one by one, from scalar memory.
      initial: the reference to what was there before the kernel; empty where that does not matter.
    """

    buffer: int
    spans: tuple[Span, ...]
    layout: Layout
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
        """Bytes of the window in vector memory, with the padding of its tiles.

        What the kernel sees as one dimension has tiles of one row.
        """
        bits = max(8, bit_width(self.element))
        if len(self.shape) == 1:
            return -(-self.shape[0] // LANES) * LANES * bits // 8
        *outer, rows, columns = (1, 1, *self.shape)
        rows, columns = (-(-rows // SUBLANES) * SUBLANES, -(-columns // LANES) * LANES)
        return prod(outer) * rows * columns * bits // 8

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for windows that are one."""
        axes = tuple(span.dimension.axes for span in self.spans)
        cuts = tuple(each.place for each in self.dimensions)
        return (self.buffer, axes, self.layout, cuts, self.scalars)


@dataclass(frozen=True, slots=True)
class _Part:
    """A dimension on its way into a window, with what an access touches of it."""

    span: Span | None
    cut: Cut


def window_of(
    buffer: int,
    state: BufferState,
    spans: Sequence[Span],
    grid: Mapping[Variable, int],
    summed: Set[BatchAxis],
    parted: Set[BatchAxis],
    whole: Mapping[int, int],
    *,
    turned: bool = False,
) -> tuple[Window, tuple[Seen, ...]]:
    """The window that an access needs, without a name, and the access's place in it.

    Args:
      buffer: the number of the array.
      state: the array.
      spans: what the access touches.
      grid: the variables that count the steps.
      summed: the axes of the iterations that are computed at once.
      parted: the axes of the iterations of which each step computes a part.
      whole: the dimensions of which the window is to have all, and how many positions at least.
      turned: whether the last two dimensions change places.

    Raises:
      WindowError: there is no such window.
      StraightError: there is none with the last two dimensions in each other's place.
    """
    natural = [
        [
            _Part(part, _cut(part, grid, summed, whole=whole.get(place, 0)))
            for part in _rows(span, summed, parted)
        ]
        for place, span in enumerate(spans)
    ]
    width = max(8, bit_width(state.element))
    only = [part.cut for parts in natural for part in parts]
    flat = len(only) == 1 and _is_flat_block(only[0], width)
    if turned and not _turns(natural, state.fact.shape):
        raise StraightError(buffer)
    if not flat and not turned:
        for from_end, unit in enumerate((LANES, SUBLANES)):
            _fit(natural, from_end, unit, grid, whole)
    parts = [part for parts in natural for part in parts]
    order = list(range(len(parts))) if flat else _order(parts)
    if turned:
        order[-2:] = reversed(order[-2:])
    ordered = [parts[place] for place in order]
    if not flat and not (len(ordered) > 1 and _may_be_rows(ordered[-2].cut)):
        ordered.insert(len(ordered) - 1, _Part(None, _unit()))
    layout = Layout(
        sizes=tuple(span.dimension.size for span in spans),
        parts=tuple(tuple(part.cut.size for part in parts) for parts in natural),
        order=tuple(order),
        shape=tuple(part.cut.size for part in ordered),
    )
    window = Window(
        buffer=buffer,
        spans=tuple(spans),
        layout=layout,
        dimensions=tuple(replace(part.cut, start=constant(0)) for part in ordered),
        reference="",
        element=state.element,
    )
    seen = [Seen(span=part.span, cut=part.cut) for part in ordered if part.span is not None]
    return window, tuple(seen)


def _order(parts: Sequence[_Part]) -> list[int]:
    """The dimensions with those last that the kernel sees, as they are where that is so."""
    seen = [place for place, part in enumerate(parts) if part.cut.seen]
    last = seen[-2:]
    if len(last) == 1 and last[0] == len(parts) - 1:
        return list(range(len(parts)))
    return [*(place for place in range(len(parts)) if place not in last), *last]


def _turns(natural: Sequence[Sequence[_Part]], shape: Sequence[int]) -> bool:
    """Whether the array's last two dimensions are whole tiles, and all, in each other's place."""
    if len(natural) < 2 or any(len(parts) != 1 for parts in natural[-2:]):
        return False
    (rows,), (columns,) = natural[-2:]
    if (rows.cut.size, columns.cut.size) != tuple(shape[-2:]):
        return False
    return rows.cut.seen and _fits(rows.cut, LANES) and columns.cut.is_whole


def _may_be_rows(cut: Cut) -> bool:
    """Whether a dimension can be the last but one of a block."""
    return cut.block % SUBLANES == 0 or cut.block == cut.size


def _fit(
    natural: list[list[_Part]],
    from_end: int,
    unit: int,
    grid: Mapping[Variable, int],
    whole: Mapping[int, int],
) -> None:
    """Makes one of the last dimensions that the kernel sees one of whole tiles, or all of it.

    Where blocks are shorter than a tile, the dimension is taken apart: into blocks, and what is
    in them.
    """
    seen = [
        (outer, inner)
        for outer, parts in enumerate(natural)
        for inner, part in enumerate(parts)
        if part.cut.seen
    ]
    if from_end >= len(seen):
        return
    outer, inner = seen[-1 - from_end]
    part = natural[outer][inner]
    cut, span = part.cut, part.span
    if span is None or _fits(cut, unit):
        return
    single = len(natural[outer]) == 1 and outer not in whole
    apart = _apart(span, grid) if single else None
    if apart is not None:
        natural[outer] = apart
        return
    if from_end == 1 and cut.start.terms and cut.index == constant(0):
        # Each row is a tile of its own, so that any of them may be the first.
        natural[outer] = [*natural[outer][:inner], part, _row(span), *natural[outer][inner + 1 :]]
        return
    if not _fits(replace(cut, start=constant(0)), unit):
        if cut.index != constant(0):
            cut = _all_of(span, frozenset())
        if cut.block != cut.size:
            cut = replace(cut, block=-(-cut.block // unit) * unit, seen=True)
        natural[outer][inner] = _Part(span, cut)


def _row(span: Span) -> _Part:
    """A dimension of one behind another."""
    one = replace(
        span,
        dimension=replace(span.dimension, axes=(), size=1),
        start=constant(0),
        interval=constant(0).interval,
        digits=(),
        length=1,
    )
    return _Part(one, replace(_unit(), seen=True))


def _fits(cut: Cut, unit: int) -> bool:
    """Whether a TPU takes such a block, and can begin to read where the access does."""
    whole = cut.block == cut.size or cut.block % unit == 0
    return whole and (not cut.start.terms or cut.start.divisible_by(unit))


def _apart(span: Span, grid: Mapping[Variable, int]) -> list[_Part] | None:
    """A dimension as blocks and what is in them; `None` where accesses do not go block by block."""
    factors = [factor for _, factor in span.start.terms]
    if not factors:
        return None
    step = gcd(*factors)
    first, inside = divmod(span.start.offset, step)
    if inside + span.length > step or first < 0:
        return None
    size = span.dimension.size
    if not depends_on_data(span.start):
        size = max(size, span.interval.high + span.length)
    count = -(-size // step)
    start = replace(_divided(span.start, step), offset=first)
    blocks = replace(
        span,
        dimension=replace(span.dimension, size=count),
        start=start,
        interval=start.interval,
        digits=(),
        length=1,
    )
    rest = replace(
        span,
        dimension=replace(span.dimension, size=step),
        start=constant(inside),
        interval=constant(inside).interval,
    )
    own = Cut(size=step, block=step, index=constant(0), start=constant(inside))
    return [_Part(blocks, _cut(blocks, grid, frozenset(), whole=0)), _Part(rest, own)]


def _rows(span: Span, summed: Set[BatchAxis], parted: Set[BatchAxis]) -> tuple[Span, ...]:
    """A dimension that is gone through row by row as several: rows, and what is in them."""
    found: list[Span] = []
    if any(each.axis in parted for each in span.digits):
        return (span,)
    while len(span.digits) > 1 and not is_summed(span, summed):
        *outer, inner = span.digits
        width = inner.extent
        if inner.period != 1 or inner.flipped or outer[-1].period % width:
            break
        if not span.start.divisible_by(width) or (span.dimension.size % width and found):
            break
        outer[-1] = replace(outer[-1], period=outer[-1].period // width)
        start = _divided(span.start, width)
        lanes = replace(
            span,
            dimension=replace(span.dimension, size=width),
            start=constant(0),
            interval=constant(0).interval,
            digits=(inner,),
            length=width,
        )
        found.insert(0, lanes)
        span = replace(
            span,
            dimension=replace(span.dimension, size=-(-span.dimension.size // width)),
            start=start,
            interval=start.interval,
            digits=tuple(outer),
            length=-(-span.length // width),
        )
    return (span, *found)


def _divided(start: Affine, divisor: int) -> Affine:
    terms = tuple((variable, factor // divisor) for variable, factor in start.terms)
    return Affine(terms=terms, offset=start.offset // divisor)


def scalars_of(buffer: int, state: BufferState, spans: Sequence[Span]) -> tuple[Window, Affine]:
    """All of an array in scalar memory, and which element of it an access goes to.

    Raises:
      WindowError: the array is too large, or of more than 32 bits.
    """
    sizes = [span.dimension.size for span in spans]
    if bit_width(state.element) > 32:
        raise WindowError(f"it goes to single numbers of `{state.element}`")
    if prod(sizes) > _MOST_SCALARS:
        raise WindowError(f"it goes to single numbers of an array of {prod(sizes)}")
    index = constant(0)
    for span, size in zip(spans, sizes, strict=True):
        index = index.times(size) + span.start
    cut = Cut(size=prod(sizes), block=prod(sizes), index=constant(0), start=constant(0))
    window = Window(
        buffer=buffer,
        spans=tuple(spans),
        layout=Layout(
            sizes=tuple(sizes),
            parts=tuple((size,) for size in sizes),
            order=tuple(range(len(sizes))),
            shape=(prod(sizes),),
        ),
        dimensions=(cut,),
        reference="",
        element=state.element,
        scalars=True,
    )
    return window, index


def _unit() -> Cut:
    return Cut(size=1, block=1, index=constant(0), start=constant(0), seen=False)


def _cut(span: Span, grid: Mapping[Variable, int], summed: Set[BatchAxis], *, whole: int) -> Cut:
    size, length = span.dimension.size, span.length
    if span.interval.low < 0 and not depends_on_data(span.start):
        raise WindowError("it begins in front of the array")
    seen = bool(span.digits)
    moving = [(variable, factor) for variable, factor in span.start.terms if variable in grid]
    rest = total(
        ((variable, factor) for variable, factor in span.start.terms if variable not in grid),
        span.start.offset,
    )
    if whole:
        return _all_of(span, summed, whole)
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


def reach(span: Span) -> int:
    """How many positions a window has at least that has all that an access may touch."""
    size = span.dimension.size
    if depends_on_data(span.start):
        # Data lead to a position of the array, or to nowhere.
        return size + span.length - 1
    return max(size, span.interval.high + span.length)


def _all_of(span: Span, summed: Set[BatchAxis], least: int = 0) -> Cut:
    """All of the dimension, and what lies behind it as far as the access goes."""
    block = span.dimension.size if is_summed(span, summed) else max(least, reach(span))
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
