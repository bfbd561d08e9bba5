"""Reads whose index along one dimension comes from data: whole rows are taken, not elements."""

from collections.abc import Sequence
from dataclasses import replace

from translators.access.analysis import Access
from translators.access.delinearize import Position
from translators.access.expression import constant
from translators.emit.affine import affine_term
from translators.emit.buffers import BufferState
from translators.emit.emission import Emission
from translators.emit.terms import Term, typed
from translators.emit.tiles import assembled, padded_view, slices
from translators.emit.tiling import Digit, Span, span_of


def taken(e: Emission, access: Access, state: BufferState, shape: tuple[int, ...]) -> Term | None:
    """The elements that an access reads, where it counts along all dimensions but one.

    Lanes that the mask leaves out may hold anything.

    Args:
      e: the emission.
      access: the access.
      state: the array.
      shape: that of the lanes.

    Returns:
      `None` where more dimensions than one are indexed by data, or an axis moves two of them.
    """
    position = access.position
    if not isinstance(position, Position) or position.assumptions:
        return None
    spans = [span_of(e, each) for each in position.dimensions]
    holes = [place for place, span in enumerate(spans) if span is None]
    if len(holes) != 1 or len(spans) == 1:
        return None
    (hole,) = holes
    index = affine_term(e, position.dimensions[hole].index, shape)
    if index.number is not None:
        return None
    rows = _digits_of(index)
    known = [span for span in spans if span is not None]
    axes = [digit.axis for span in known for digit in span.digits]
    if len({*axes, *(each.axis for each in rows)}) != len(axes) + len(rows):
        return None
    if any(sum(span.pads) > 4 * (span.dimension.size + span.length) for span in known):
        return None
    whole = _all_of(position, hole)
    filled = [whole if span is None else span for span in spans]
    state.read = True
    text = padded_view(e, state, filled, 0)
    text = slices(e, text, filled)
    flat = typed(index)
    extents = [each.extent for each in rows]
    if list(index.array_shape) != extents:
        flat = f"({flat}).reshape({', '.join(map(str, extents)) or '()'})"
    options = f'axis={hole}, mode="clip"'
    text = e.writer.assign(f"jnp.take({text}, {flat}, {options})")
    parts: list[Span | Sequence[Digit]] = [rows if span is None else span for span in spans]
    return assembled(e, text, parts, shape, state.element)


def _digits_of(index: Term) -> list[Digit]:
    """What moves the index, in the order of the dimensions of its array."""
    batch = sorted(index.batch, key=lambda each: -each.place)
    found = [Digit(axis=each, unit=1, extent=each.extent) for each in batch]
    for axis, (size, real) in enumerate(zip(index.shape, index.dims, strict=True)):
        if real and size > 1:
            found.append(Digit(axis=axis, unit=1, extent=size))
    return found


def _all_of(position: Position, place: int) -> Span:
    """The dimension as it is."""
    dimension = replace(position.dimensions[place], index=constant(0))
    start = constant(0)
    return Span(
        dimension=dimension,
        start=start,
        interval=start.interval,
        digits=(),
        length=dimension.size,
    )
