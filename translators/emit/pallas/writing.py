"""What a step writes: stores, and atomic updates as sums in a block that stays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from translators.emit.accesses import edges_only, never, tiled
from translators.emit.affine import affine_term
from translators.emit.emission import Emission, Rule
from translators.emit.pallas.elements.numbers import as_number
from translators.emit.pallas.emission import StepEmission
from translators.emit.pallas.picking import Pick, pick_of, picks
from translators.emit.pallas.reading import (
    index_of,
    local_spans,
    read,
    spans_for,
    steps,
    window_for,
)
from translators.emit.pallas.windows import Window, WindowError, scalars_of
from translators.emit.terms import BatchAxis, PointerTerm, Term, Tiled, constant, dtype, typed
from translators.emit.tiles import in_place
from translators.emit.tiling import Span, touched, whole_lanes
from translators.graph.graph import Op
from translators.graph.types import I1, I64, ElementType, FloatType, IntType, Number, shape_of

# Numbers that are copied one by one where a kernel begins.
_MOST_KEPT = 32
_SUMMED = {"add": "jnp.sum", "fadd": "jnp.sum", "max": "jnp.max", "min": "jnp.min"}
_JOINED = {
    "add": "{0} + {1}",
    "fadd": "{0} + {1}",
    "max": "jnp.maximum({0}, {1})",
    "min": "jnp.minimum({0}, {1})",
}


def _store(e_: Emission, op: Op) -> None:
    e = steps(e_)
    pointer = e.pointer(op.operands[0], op)
    value = e.term(op.operands[1])
    mask = e.term(op.operands[2]) if len(op.operands) > 2 else None
    if (mask is not None and mask.number == 0) or never(e, op):
        return
    stored(e, op, pointer, shape_of(op.operands[0].type), value, lambda: mask)


def stored(
    e: StepEmission,
    op: Op,
    pointer: PointerTerm,
    shape: tuple[int, ...],
    value: Term,
    mask: Callable[[], Term | None],
) -> None:
    """Writes a value.

    Args:
      e: the emission.
      op: the store.
      pointer: where it goes.
      shape: that of its lanes.
      value: what it writes.
      mask: gives which lanes take part; asked only where that matters.

    Raises:
      UnsupportedError: it does not go to a block of an array, or not one program alone does.
    """
    here = e.come_here()
    if here is not None and here.number == 0:
        return
    state = e.buffers.states[pointer.buffer]
    if state.element == I64:
        raise e.refuse(op, "writes integers of 64 bits")
    pick = None if tiled(e, e.accesses.get(op), pointer) else pick_of(e, op, pointer, shape)
    if pick is not None:
        _write_picked(e, op, pointer.buffer, pick, value, e.both(here, mask()))
        return
    spans = spans_for(e, op, pointer)
    if touched(spans) != set(e.axes) or not whole_lanes(spans, shape):
        raise e.refuse(op, f"writes to one place of `{state.fact.name}` from several programs")
    asked = None if edges_only(e.accesses[op]) else mask()
    condition = e.both(e.both(here, asked), _within(e, spans))
    _write(e, op, pointer.buffer, spans, shape, value, condition)


def _write_picked(
    e: StepEmission, op: Op, buffer: int, pick: Pick, value: Term, condition: Term | None
) -> None:
    """Puts a value at one position of a dimension in each lane."""
    state = e.buffers.states[buffer]
    moved = touched(pick.spans) == set(e.axes)
    if not moved or not whole_lanes(pick.spans, pick.shape):
        raise e.refuse(op, f"writes to one place of `{state.fact.name}` from several lanes")
    shape = pick.shape[:-1]
    value = e.lifted(value, shape)
    wider = replace(value, shape=pick.shape, dims=(*value.dims, False))
    if not value.bare:
        wider = wider.like(e.writer.assign(f"{value.text}[..., None]"))
    here = picks(e, pick)
    if condition is not None:
        condition = e.lifted(condition, shape)
        holds = replace(condition, shape=pick.shape, dims=(*condition.dims, False))
        if not condition.bare:
            holds = holds.like(e.writer.assign(e.indexed(condition, "..., None")))
        here = e.both(here, holds) or here
    _write(e, op, buffer, pick.spans, pick.shape, wider, e.both(here, _within(e, pick.spans)))


def _within(e: StepEmission, spans: Sequence[Span]) -> Term | None:
    """Which programs of a step there are, where the last step has fewer and the edge is no help."""
    found: Term | None = None
    for coordinate, counted in e.programs.items():
        if not isinstance(counted, Tiled):
            continue
        extent = coordinate.interval.high + 1
        rows = counted.axis.extent
        if extent % rows == 0 or any(_ends_with(span, counted, extent) for span in spans):
            continue
        place = e.counted(counted)
        name = e.writer.assign(f"{place.text} < {extent}")
        found = e.both(found, Term(text=name, element=I1, batch=place.batch))
    return found


def _ends_with(span: Span, counted: Tiled, extent: int) -> bool:
    """Whether the dimension ends where the programs do, so that what lies behind is cut off."""
    return (
        span.dimension.size == extent
        and [each.axis for each in span.digits] == [counted.axis]
        and span.digits[0].period == 1
        and span.start.terms == ((counted.step, counted.axis.extent),)
        and span.start.offset == 0
    )


def _write(
    e: StepEmission,
    op: Op,
    buffer: int,
    spans: Sequence[Span],
    shape: tuple[int, ...],
    value: Term,
    condition: Term | None,
) -> None:
    """Puts a value where an access goes, for the lanes for which a condition holds."""
    if not any(span.digits for span in spans):
        _write_number(e, op, buffer, spans, value, condition)
        return
    window, seen = window_for(e, op, buffer, spans, written=True)
    local = local_spans(seen)
    index, left, whole = index_of(e, local)
    reference = f"{window.reference}[{'...' if whole else ', '.join(index)}]"
    if condition is not None or op in e.uncertain or any(each.start.terms for each in local):
        e.keeps(window)
    else:
        e.covers(window, _extents(window, local), [_slice(each) for each in local])
    # What is there may be what a step before wrote.
    e.begun.add(buffer)
    value = e.lifted(_as_held(e, value, window), shape)
    if condition is not None:
        old, _, _ = read(e, window, seen, shape, constant(0, window.element, shape))
        value = e.chosen(condition, value, old)
    text, extents = in_place(e, e.spread(value, batch=e.axes), left)
    lengths = tuple(each.length for each in left)
    if prod(lengths) != prod(extents):
        raise e.refuse(op, "writes to places with gaps between them")
    if tuple(digit.extent for each in left for digit in each.digits) != lengths:
        text = f"({text}).reshape({', '.join(map(str, lengths))})"
    if any(each.length > each.dimension.size for each in left):
        ends = ", ".join(
            ":" if each.length <= each.dimension.size else f":{each.dimension.size}"
            for each in left
        )
        text = f"({text})[{ends}]"
    e.writer.effect(f"{reference} = {text}")


def _write_number(
    e: StepEmission,
    op: Op,
    buffer: int,
    spans: Sequence[Span],
    value: Term,
    condition: Term | None,
) -> None:
    """Puts a number into an array in scalar memory, all of which is there in every step.

    Raises:
      UnsupportedError: the array cannot be there, or has numbers that no program writes.
    """
    state = e.buffers.states[buffer]
    try:
        window, index = scalars_of(buffer, state, spans)
    except WindowError as error:
        raise e.refuse(op, f"is no block of `{state.fact.name}`: {error}") from None
    certain = condition is None and op not in e.uncertain
    if not certain or not e.goes_everywhere(index, window.sizes[0]):
        raise e.refuse(op, f"writes some single numbers of `{state.fact.name}`, and leaves others")
    window = e.output(op, window)
    value = as_number(e, _as_held(e, value, window))
    e.writer.effect(f"{window.reference}[{affine_term(e, index).text}] = {typed(value)}")
    e.begun.add(buffer)


def _extents(window: Window, local: Sequence[Span]) -> tuple[int, ...]:
    """How much of each dimension of a window lies in the array."""
    seen = [each for each in window.dimensions if each.seen]
    return tuple(min(span.dimension.size, cut.size) for span, cut in zip(local, seen, strict=True))


def _slice(span: Span) -> slice:
    return slice(span.start.offset, span.start.offset + span.length)


def _as_held(e: StepEmission, value: Term, window: Window) -> Term:
    """The value as the window holds it."""
    if value.element == window.element:
        return value
    return e.bind(f"{typed(value)}.astype({dtype(window.element)})", value, element=window.element)


def _atomic(e_: Emission, op: Op) -> None:
    e = steps(e_)
    if never(e, op):
        return
    pointer = e.pointer(op.operands[0], op)
    mask = e.term(op.operands[2]) if len(op.operands) > 2 else None
    shape = shape_of(op.operands[0].type)
    value = e.term(op.operands[1])
    updated(e, op, pointer, shape, value, lambda: mask, op.text("atomic_rmw_op"))


def updated(
    e: StepEmission,
    op: Op,
    pointer: PointerTerm,
    shape: tuple[int, ...],
    value: Term,
    mask: Callable[[], Term | None],
    kind: str,
) -> None:
    """Combines a value with what is there, step after step.

    Args:
      e: the emission.
      op: the update.
      pointer: where it goes.
      shape: that of its lanes.
      value: what each lane brings.
      mask: gives which lanes take part.
      kind: how old and new combine, as `tt.atomic_rmw` calls it.

    Raises:
      UnsupportedError: it does not go to a block of an array, or combines in another way.
    """
    here = e.come_here()
    condition = e.both(here, mask())
    if condition is not None and condition.number == 0:
        return
    spans = spans_for(e, op, pointer)
    state = e.buffers.states[pointer.buffer]
    if kind not in _SUMMED or not whole_lanes(spans, shape):
        raise e.refuse(op, f"combines by `{kind}` in another way than block by block")
    neutral = _neutral(kind, state.element)
    if neutral is None:
        raise e.refuse(op, f"combines `{state.element}` by `{kind}`")
    condition = e.both(condition, _within(e, ()))
    value = e.lifted(value, shape)
    if condition is not None:
        value = e.chosen(condition, value, constant(neutral, value.element, shape))
    value = e.spread(value, batch=e.axes)
    value = _over_programs(e, value, touched(spans), _SUMMED[kind])
    if not any(span.digits for span in spans):
        _update_number(e, op, pointer.buffer, spans, value, kind)
        return
    window, seen = window_for(e, op, pointer.buffer, spans, written=True)
    e.keeps(window)
    e.begun.add(pointer.buffer)
    old, _, _ = read(e, window, seen, shape, constant(0, window.element, shape))
    joined = e.bind(_JOINED[kind].format(old.text, value.text), value)
    local = local_spans(seen)
    index, left, whole = index_of(e, local)
    text, extents = in_place(e, joined, left)
    lengths = tuple(each.length for each in left)
    if prod(lengths) != prod(extents):
        raise e.refuse(op, "updates places with gaps between them")
    if tuple(digit.extent for each in left for digit in each.digits) != lengths:
        text = f"({text}).reshape({', '.join(map(str, lengths))})"
    reference = f"{window.reference}[{'...' if whole else ', '.join(index)}]"
    e.writer.effect(f"{reference} = {text}")


def _update_number(
    e: StepEmission, op: Op, buffer: int, spans: Sequence[Span], value: Term, kind: str
) -> None:
    """Combines a number with one in scalar memory, where all of the array is in every step."""
    state = e.buffers.states[buffer]
    try:
        window, index = scalars_of(buffer, state, spans)
    except WindowError as error:
        raise e.refuse(op, f"is no block of `{state.fact.name}`: {error}") from None
    if window.sizes[0] > _MOST_KEPT:
        raise e.refuse(op, f"updates single numbers of `{state.fact.name}`, of {window.sizes[0]}")
    window = e.output(op, window)
    e.keeps(window)
    e.begun.add(buffer)
    value = as_number(e, _as_held(e, value, window))
    place = f"{window.reference}[{affine_term(e, index).text}]"
    e.writer.effect(f"{place} = {_JOINED[kind].format(place, typed(value))}")


def _neutral(kind: str, element: ElementType) -> Number | None:
    """What changes nothing, not even -0.0; `None` where the kind is not for such elements."""
    if kind in ("add", "fadd"):
        return -0.0 if isinstance(element, FloatType) else 0
    if not isinstance(element, IntType):
        return None
    return element.smallest if kind == "max" else element.largest


def _over_programs(e: StepEmission, value: Term, moving: set[BatchAxis], function: str) -> Term:
    """What the programs of a step bring to one place, combined."""
    outside = [axis for axis in e.axes if axis not in moving]
    if not outside:
        return value
    places = tuple(value.lead - 1 - axis.place for axis in outside)
    made = value.like("", batch=frozenset(value.batch - set(outside)))
    exact = f", dtype={dtype(value.element)}" if function == "jnp.sum" else ""
    text = f"{function}({value.text}, axis={places if len(places) > 1 else places[0]}{exact})"
    if made.array_shape:
        text = f"({text}).reshape{made.array_shape}"
    return made.like(e.writer.assign(text))


RULES: Mapping[str, Rule] = MappingProxyType(
    {"tt.store": _store, "tt.atomic_store": _store, "tt.atomic_rmw": _atomic}
)
