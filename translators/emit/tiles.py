"""Reads and writes of tiles, as slices, reshapes and transposes of whole arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from translators.emit.affine import affine_term
from translators.emit.buffers import BufferState, dropped, permuted, regained
from translators.emit.emission import Emission
from translators.emit.terms import BatchAxis, Term, literal
from translators.emit.tiling import Digit, Span
from translators.graph.types import ElementType, Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The part of an array that a value is, element for element.

    Attributes:
      state: the array, with the contents that it had.
      spans: what of it; outside of the array the value is zero.
    """

    state: BufferState
    spans: tuple[Span, ...]


def source_of(state: BufferState, spans: Sequence[Span]) -> Source:
    """The source of a tile that is read now."""
    return Source(state=replace(state), spans=tuple(spans))


def turned(source: Source, order: tuple[int, ...]) -> Source:
    """The source of the transposed value, whose axis `i` was axis `order[i]`."""
    spans = tuple(
        replace(
            span,
            digits=tuple(
                digit
                if isinstance(digit.axis, BatchAxis)
                else replace(digit, axis=order.index(digit.axis))
                for digit in span.digits
            ),
        )
        for span in source.spans
    )
    return replace(source, spans=spans)


def _shape(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"


def _axes_of(state: BufferState, spans: Sequence[Span]) -> list[int]:
    """The axes of the array that matter, in the order of the spans."""
    strides = state.fact.strides
    return [
        axis
        for span in spans
        for axis in span.dimension.axes
        if strides[axis] or state.fact.shape[axis] == 1
    ]


def view(state: BufferState, spans: Sequence[Span]) -> str:
    """The array with a dimension for each span."""
    axes = _axes_of(state, spans)
    text = permuted(dropped(state.name, state.fact, axes), axes)
    sizes = tuple(span.dimension.size for span in spans)
    if tuple(state.fact.shape[axis] for axis in axes) != sizes:
        text = f"{text}.reshape{_shape(sizes)}"
    return text


def unviewed(text: str, state: BufferState, spans: Sequence[Span]) -> str:
    """The array whose view a text is; the inverse of `view`."""
    shape = state.fact.shape
    axes = _axes_of(state, spans)
    sizes = [shape[axis] for axis in axes]
    if tuple(sizes) != tuple(span.dimension.size for span in spans):
        text = f"({text}).reshape{_shape(sizes)}"
    ranked = sorted(axes)
    back = tuple(axes.index(axis) for axis in ranked)
    if list(back) != sorted(back):
        text = f"({text}).transpose({', '.join(map(str, back))})"
    return regained(text, state.fact, axes)


def _digits(spans: Sequence[Span]) -> list[Digit]:
    return [digit for span in spans for digit in span.digits]


def _order(digits: Sequence[Digit]) -> list[int]:
    """The places of the digits in an array: batch axes outside, then the tensor's axes."""

    def key(place: int) -> tuple[int, int, int]:
        axis = digits[place].axis
        if isinstance(axis, BatchAxis):
            return (0, -axis.place, -digits[place].unit)
        return (1, axis, -digits[place].unit)

    return sorted(range(len(digits)), key=key)


def padded_view(e: Emission, state: BufferState, spans: Sequence[Span], fill: Number) -> str:
    """The view, with as much around it as the access leaves it."""
    text = view(state, spans)
    if any(any(span.pads) for span in spans):
        pads = ", ".join(str(span.pads) for span in spans)
        value = "" if fill == 0 else f", constant_values={literal(fill, state.element)}"
        comma = "," if len(spans) == 1 else ""
        padded = f"jnp.pad({text}, ({pads}{comma}){value})"
        return e.writer.beside(state.name, padded, f"{state.fact.name}_padded")
    return e.writer.beside(state.name, text) if text != state.name else text


def sliced(e: Emission, state: BufferState, spans: Sequence[Span], fill: Number) -> str:
    """The part of the array that the access touches, `fill` where it leaves the array."""
    return slices(e, padded_view(e, state, spans, fill), spans)


def slices(e: Emission, text: str, spans: Sequence[Span]) -> str:
    """What the spans cut out of the padded view."""
    static: list[str] = []
    for place, span in enumerate(spans):
        low, high = span.pads
        total = low + span.dimension.size + high
        if span.start.terms:
            start = affine_term(e, span.start.plus(low))
            # The start is never negative, so that nothing has to be made of it that is not.
            options = f"axis={place}, allow_negative_indices=False"
            text = f"lax.dynamic_slice_in_dim({text}, {start.text}, {span.length}, {options})"
            text = e.writer.assign(text)
            static.append(":")
            continue
        begin = span.start.offset + low
        static.append(_slice(begin, begin + span.length, total))
    if any(each != ":" for each in static):
        text = f"{text}[{', '.join(static)}]"
    return text


def _slice(begin: int, end: int, total: int) -> str:
    first = str(begin) if begin else ""
    last = str(end) if end != total else ""
    return f"{first}:{last}"


def _sizes(spans: Sequence[Span]) -> list[int]:
    return [size for span in spans for size in (span.sizes or (1,))]


def _inside(span: Span) -> list[str]:
    """What of a slice, in the shape of `_sizes`, the digits reach."""
    if not span.digits:
        return ["0"]
    extents = [digit.extent for digit in span.digits]
    reached = [
        ":" if extent == size else f":{extent}"
        for extent, size in zip(extents, span.sizes, strict=False)
    ]
    return [*reached, *["0"] * (len(span.sizes) - len(extents))]


def read(
    e: Emission, state: BufferState, spans: Sequence[Span], shape: tuple[int, ...], fill: Number
) -> Term:
    """The elements touched, with the dimensions of the tensor and the batch axes that move it."""
    state.read = True
    return assembled(e, sliced(e, state, spans, fill), spans, shape, state.element)


def assembled(
    e: Emission,
    text: str,
    parts: Sequence[Span | Sequence[Digit]],
    shape: tuple[int, ...],
    element: ElementType,
) -> Term:
    """An array as a tensor.

    Args:
      e: the emission.
      text: the array.
      parts: what each of its dimensions is: a span that has been cut out, or one dimension for
        each of some digits.
      shape: that of the tensor.
      element: what the array holds.
    """
    sizes: list[int] = []
    lengths: list[int] = []
    index: list[str] = []
    digits: list[Digit] = []
    for part in parts:
        if isinstance(part, Span):
            sizes += _sizes([part])
            lengths.append(part.length)
            index += _inside(part)
            digits += part.digits
        else:
            extents = [digit.extent for digit in part]
            sizes += extents
            lengths += extents
            index += [":"] * len(part)
            digits += part
    if sizes != lengths:
        text = f"{text}.reshape{_shape(sizes)}"
    if any(each != ":" for each in index):
        text = f"{text}[{', '.join(index)}]"
    flipped = tuple(place for place, digit in enumerate(digits) if digit.flipped)
    if flipped:
        text = f"{e.function('jnp.flip')}({text}, axis={flipped})"
    order = _order(digits)
    if order != sorted(order):
        text = f"({text}).transpose({', '.join(map(str, order))})"
    found = [digits[place].extent for place in order]
    return _tensor(e, text, found, [digits[place] for place in order], shape, element)


def _tensor(
    e: Emission,
    text: str,
    sizes: list[int],
    digits: list[Digit],
    shape: tuple[int, ...],
    element: ElementType,
) -> Term:
    """An array with a dimension for each digit as that of a tensor."""
    batch = frozenset(each.axis for each in digits if isinstance(each.axis, BatchAxis))
    dims = tuple(any(each.axis == axis for each in digits) for axis in range(len(shape)))
    made = Term(text=text, element=element, shape=shape, dims=dims, batch=batch)
    holes = _with_holes(digits, shape)
    if holes is not None:
        narrow, wide = holes
        front = [each.extent for each in digits if isinstance(each.axis, BatchAxis)]
        sizes = [*front, *wide]
        text = f"({text}).reshape{_shape([*front, *narrow])}"
        text = f"jnp.broadcast_to({text}, {_shape(sizes)})"
    if tuple(sizes) != made.array_shape:
        text = f"({text}).reshape{_shape(made.array_shape)}"
    return made.like(text)


def _with_holes(digits: list[Digit], shape: tuple[int, ...]) -> tuple[list[int], list[int]] | None:
    """The tensor's dimensions digit by digit, where some digits do not move the access.

    Returns:
      The sizes with 1 for those digits, and with their extents; `None` if there are none.
    """
    narrow: list[int] = []
    wide: list[int] = []
    missing = False
    for axis, size in enumerate(shape):
        own = [each for each in digits if each.axis == axis]
        if not own:
            continue
        upper = size
        for digit in own:
            above = upper // (digit.unit * digit.extent)
            if above > 1:
                narrow.append(1)
                wide.append(above)
                missing = True
            narrow.append(digit.extent)
            wide.append(digit.extent)
            upper = digit.unit
        if upper > 1:
            narrow.append(1)
            wide.append(upper)
            missing = True
    return (narrow, wide) if missing else None


def in_place(e: Emission, value: Term, spans: Sequence[Span]) -> tuple[str, list[int]]:
    """A value with a dimension for each digit of the spans, in their order.

    Args:
      e: the emission.
      value: what has all its dimensions.
      spans: where it goes; every digit must be there.

    Returns:
      The array as text, and the extents of the digits in the order that the value had them.
    """
    digits = _digits(spans)
    order = _order(digits)
    text = value.text
    ordered = [digits[place].extent for place in order]
    if tuple(ordered) != value.array_shape:
        text = f"({text}).reshape{_shape(ordered)}"
    back = [order.index(place) for place in range(len(order))]
    if back != sorted(back):
        text = f"({text}).transpose({', '.join(map(str, back))})"
    flipped = tuple(place for place, digit in enumerate(digits) if digit.flipped)
    if flipped:
        text = f"{e.function('jnp.flip')}({text}, axis={flipped})"
    return text, ordered


def write(e: Emission, buffer: int, spans: Sequence[Span], value: Term) -> None:
    """Puts a value, which has all dimensions, where the access goes.

    Every digit must be there, and no two of them may meet.
    """
    state = e.buffers.states[buffer]
    text, ordered = in_place(e, value, spans)
    text = e.writer.assign(text)
    sizes = _sizes(spans)
    index = [each for span in spans for each in _inside(span)]
    lengths = [span.length for span in spans]
    if all(each in (":", "0") for each in index) and prod(sizes) == prod(ordered):
        if ordered != lengths:
            text = f"{text}.reshape{_shape(lengths)}"
    else:
        state.read = True
        old = sliced(e, state, spans, 0)
        text = f"({old}).reshape{_shape(sizes)}.at[{', '.join(index)}].set({text})"
        text = f"{text}.reshape{_shape(lengths)}"
    e.buffers.update(buffer, unviewed(_placed(e, state, spans, text), state, spans))


def _placed(e: Emission, state: BufferState, spans: Sequence[Span], text: str) -> str:
    """The view of the array with the slice in its place."""
    crops, places, whole = [], [], True
    for span in spans:
        size, length, begin = span.dimension.size, span.length, span.start.offset
        if span.start.terms:
            return _placed_where_it_starts(e, state, spans, text)
        low, high = span.pads
        crops.append(_slice(low, length - high, length))
        places.append(_slice(max(0, begin), min(size, begin + length), size))
        whole = whole and begin <= 0 and begin + length >= size
    if any(each != ":" for each in crops):
        text = e.writer.assign(text)
        text = f"{text}[{', '.join(crops)}]"
    if whole:
        return text
    state.read = True
    old = e.writer.beside(state.name, view(state, spans))
    return f"{old}.at[{', '.join(places)}].set({text})"


def _placed_where_it_starts(
    e: Emission, state: BufferState, spans: Sequence[Span], text: str
) -> str:
    """The same where a start is known only when it runs: in the padded view, then cut."""
    state.read = True
    old = padded_view(e, state, spans, 0)
    starts, cuts = [], []
    for span in spans:
        low, high = span.pads
        starts.append(affine_term(e, span.start.plus(low)).text)
        cuts.append(_slice(low, low + span.dimension.size, low + span.dimension.size + high))
    where = f"({', '.join(starts)},), allow_negative_indices=False"
    placed = f"lax.dynamic_update_slice({old}, {text}, {where})"
    if any(each != ":" for each in cuts):
        placed = f"{placed}[{', '.join(cuts)}]"
    return placed
