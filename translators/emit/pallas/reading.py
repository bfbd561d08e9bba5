"""What a step reads of the arrays: windows, and what is cut from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from translators.access.analysis import Access
from translators.access.delinearize import Dimension
from translators.access.expression import Affine, Interval, Lane, depends_on_data, leaves
from translators.emit.accesses import never, tiled
from translators.emit.affine import affine_term
from translators.emit.buffers import BufferState
from translators.emit.emission import Emission, Rule
from translators.emit.facts import ArrayFact
from translators.emit.pallas.emission import StepEmission
from translators.emit.pallas.picking import pick_of, picked
from translators.emit.pallas.windows import (
    Seen,
    Window,
    WindowError,
    is_summed,
    scalars_of,
    window_of,
)
from translators.emit.pointers import pointee_of
from translators.emit.terms import PointerTerm, Term, constant
from translators.emit.tiles import assembled, source_of
from translators.emit.tiling import Span
from translators.graph.graph import Op
from translators.graph.types import I32, I64, FloatType, shape_of


def steps(e: Emission) -> StepEmission:
    """The emission as one of steps, which it is."""
    assert isinstance(e, StepEmission)
    return e


def spans_for(e: StepEmission, op: Op, pointer: PointerTerm) -> tuple[Span, ...]:
    """What an access touches.

    Raises:
      UnsupportedError: it does not count through the array.
    """
    if pointer.alternatives:
        raise e.refuse(op, "leads into one array or another")
    access = e.accesses.get(op)
    spans = tiled(e, access, pointer)
    if spans is None:
        raise e.refuse(op, _why(e, access, pointer))
    if access is not None and _may_begin_in_front(access, spans):
        name = e.buffers.states[pointer.buffer].fact.name
        raise e.refuse(op, f"may begin in front of `{name}`, as data say")
    return spans


def _may_begin_in_front(access: Access, spans: Sequence[Span]) -> bool:
    """Whether data may put the first lane in front of the array, and a mask only others inside."""
    mask = access.mask
    if mask is None or not any(each.digits and depends_on_data(each.start) for each in spans):
        return False
    comparisons = [each.comparison for each in mask.bounds]
    rising = any(
        isinstance(leaf, Lane) and factor > 0
        for comparison in (*comparisons, *mask.predicates)
        for leaf, factor in comparison.expression.terms
    )
    return rising or bool(mask.leftovers)


def _why(e: StepEmission, access: Access | None, pointer: PointerTerm) -> str:
    state = e.buffers.states[pointer.buffer]
    if pointer.pointee != state.element:
        return f"takes `{state.fact.name}` to hold `{pointer.pointee}`"
    if access is not None and access.reasons:
        return f"is no block of `{state.fact.name}`: {access.reasons[0].text}"
    return f"is no block of `{state.fact.name}`"


def _load(e_: Emission, op: Op) -> None:
    e = steps(e_)
    pointer = e.pointer(op.operands[0], op)
    mask = e.term(op.operands[1]) if len(op.operands) > 1 else None
    other = e.term(op.operands[2]) if len(op.operands) > 2 else None
    shape = shape_of(op.operands[0].type)
    element = pointee_of(op.operands[0].type)
    if other is None:
        other = constant(0 if not isinstance(element, FloatType) else 0.0, element, shape)
    if (mask is not None and mask.number == 0) or never(e, op):
        e.put(op.result, other)
        return
    e.put(op.result, loaded(e, op, pointer, shape, lambda: mask, other))


def loaded(
    e: StepEmission,
    op: Op,
    pointer: PointerTerm,
    shape: tuple[int, ...],
    mask: Callable[[], Term | None],
    other: Term,
) -> Term:
    """What a load finds.

    Args:
      e: the emission.
      op: the load.
      pointer: where it goes.
      shape: that of its lanes.
      mask: gives which lanes take part; asked only where that matters.
      other: what the other lanes are.

    Raises:
      UnsupportedError: it does not go to a block of an array.
    """
    access = e.accesses.get(op)
    found_spans = tiled(e, access, pointer)
    state = e.buffers.states[pointer.buffer]
    single = found_spans is not None and not any(span.digits for span in found_spans)
    pick = None
    if found_spans is None or (single and not _is_for_scalars(e, pointer.buffer, found_spans)):
        pick = pick_of(e, op, pointer, shape)
    asked = True
    if pick is not None:
        window, seen = window_for(e, op, pointer.buffer, pick.spans, written=False)
        nothing = constant(0, state.element, pick.shape)
        whole, _, _ = read(e, window, seen, pick.shape, nothing)
        found = picked(e, pick, whole, op.result.name)
    elif single and found_spans is not None:
        found = _scalar(e, op, pointer.buffer, state, found_spans, shape)
    else:
        found_spans = spans_for(e, op, pointer)
        asked = _asked(e, e.accesses[op], found_spans, other)
        found = _block(e, op, pointer.buffer, found_spans, shape, other, whole=not asked)
    if found.element == I64:
        raise e.refuse(op, "reads integers of 64 bits")
    holds = mask() if asked else None
    if holds is not None and holds.number is None:
        e.steering.pop(op.result, None)
        found = e.chosen(holds, found, other, op.result.name)
    return found


def _is_for_scalars(e: StepEmission, buffer: int, spans: Sequence[Span]) -> bool:
    """Whether single numbers of an array can be read from scalar memory."""
    if e.is_written(buffer):
        return False
    try:
        scalars_of(buffer, e.buffers.states[buffer], spans)
    except WindowError:
        return False
    return True


def _scalar(
    e: StepEmission,
    op: Op,
    buffer: int,
    state: BufferState,
    spans: Sequence[Span],
    shape: tuple[int, ...],
) -> Term:
    try:
        window, index = scalars_of(buffer, state, spans)
    except WindowError as error:
        raise e.refuse(op, f"is no block of `{state.fact.name}`: {error}") from None
    if buffer in e.outputs:
        raise e.refuse(op, f"reads single numbers of `{state.fact.name}`, which is written")
    window = e.window(window)
    inside = index.interval.within(Interval(0, window.sizes[0] - 1))
    known = all(leaf in e.grid for leaf in leaves(index))
    if known and inside and state.element == I32 and not shape:
        e.steering[op.result] = (window, index)
    place = affine_term(e, index).text
    if not inside:
        place = f"jnp.clip({place}, 0, {window.sizes[0] - 1})"
    text = e.writer.assign(f"{window.reference}[{place}]", op.result.name)
    return e.lifted(Term(text=text, element=state.element), shape)


def _asked(e: StepEmission, access: Access, spans: Sequence[Span], other: Term) -> bool:
    """Whether the mask has parts that matter: no edges that are cut off, nothing that is needless.

    Where all iterations of a loop are read at once, the window ends with the array, and what lies
    beyond is filled with `other`.
    """
    mask = access.mask
    if mask is None or mask.always:
        return False
    if mask.leftovers or mask.never:
        return True
    needless = e.needless.get(access.op, frozenset())
    if any(each.expression not in needless for each in mask.predicates):
        return True
    return any(
        each.comparison.expression not in needless
        and not (
            each.edge and other.number is not None and is_summed(spans[each.dimension], e.summed)
        )
        for each in mask.bounds
    )


def _block(
    e: StepEmission,
    op: Op,
    buffer: int,
    spans: Sequence[Span],
    shape: tuple[int, ...],
    other: Term,
    *,
    whole: bool,
) -> Term:
    window, seen = window_for(e, op, buffer, spans, written=False)
    found, local, state = read(e, window, seen, shape, other, op.result.name)
    if whole and other.number == 0 and local is not None:
        e.sources[found.text] = source_of(state, local)
    return found


def window_for(
    e: StepEmission, op: Op, buffer: int, spans: Sequence[Span], *, written: bool
) -> tuple[Window, tuple[Seen, ...]]:
    """The window of an access, which may be one that others have too."""
    state = e.buffers.states[buffer]
    try:
        moving = e.grid if written or e.is_written(buffer) else e.counters(spans)
        whole = e.whole.get(buffer, {})
        turned = buffer in e.turned
        window, seen = window_of(
            buffer, state, spans, moving, e.summed, e.parted, whole, turned=turned
        )
    except WindowError as error:
        raise e.refuse(op, f"is no block of `{state.fact.name}`: {error}") from None
    if written or buffer in e.outputs or e.is_written(buffer):
        return e.output(op, window), seen
    return e.window(window), seen


def local_spans(seen: Sequence[Seen]) -> tuple[Span, ...]:
    """What an access touches of its window, along the dimensions that the kernel sees."""
    local: list[Span] = []
    for each in seen:
        if not each.cut.seen:
            continue
        start = each.cut.start
        dimension = Dimension(axes=(len(local),), size=each.cut.block, stride=1, index=start)
        local.append(replace(each.span, dimension=dimension, start=start, interval=start.interval))
    return tuple(local)


def index_of(e: StepEmission, local: Sequence[Span]) -> tuple[list[str], list[Span], bool]:
    """How a reference is indexed, which spans are left, and whether that is all of it."""
    index: list[str] = []
    left: list[Span] = []
    for span in local:
        start = affine_term(e, span.start).text
        last = span.dimension.size - span.length
        if depends_on_data(span.start) and not span.interval.within(Interval(0, last)):
            # What data say where no lane takes part may be anything.
            start = f"jnp.clip({start}, 0, {last})"
        if not span.digits:
            index.append(start)
            continue
        left.append(span)
        size = span.dimension.size
        if span.start.terms:
            index.append(f"pl.ds({start}, {span.length})")
        elif span.start.offset == 0 and span.length >= size:
            index.append(":")
        else:
            first = str(span.start.offset) if span.start.offset else ""
            end = span.start.offset + span.length
            index.append(f"{first}:{end if end < size else ''}")
    return index, left, all(each == ":" for each in index)


def read(
    e: StepEmission,
    window: Window,
    seen: Sequence[Seen],
    shape: tuple[int, ...],
    other: Term,
    hint: str = "",
) -> tuple[Term, tuple[Span, ...] | None, BufferState]:
    """What an access reads of a window.

    Returns:
      The value; where it is all of the window, its spans there; and the window as an array.
    """
    local = local_spans(seen)
    index, left, whole = index_of(e, local)
    reference, pinned = window.reference, False
    if e.outputs.get(window.buffer) is window:
        if window.buffer in e.begun or any(
            isinstance(each, Term) for each in e.iterations.values()
        ):
            e.keeps(window)
            pinned = True
        else:
            reference = e.initial(window)
    text = f"{reference}[{'...' if whole else ', '.join(index)}]"
    name = e.writer.assign(text, "" if whole else hint, pinned=pinned)
    if not whole:
        parts = [
            replace(
                each,
                start=Affine(),
                interval=Affine().interval,
                dimension=replace(each.dimension, size=each.length),
            )
            for each in left
        ]
        found = assembled(e, name, parts, shape, window.element)
        return _named(e, found, name, hint), None, _as_state(e, window, name)
    state = _as_state(e, window, name)
    text = name
    pads = [each.pads for each in local]
    if any(any(each) for each in pads):
        fill = "" if other.number in (0, None) else f", constant_values={other.text}"
        comma = "," if len(pads) == 1 else ""
        text = e.writer.assign(f"jnp.pad({name}, ({', '.join(map(str, pads))}{comma}){fill})")
    parts = [replace(each, dimension=replace(each.dimension, size=each.length)) for each in local]
    found = assembled(e, text, parts, shape, window.element)
    return _named(e, found, name, hint), local, state


def _named(e: StepEmission, found: Term, name: str, hint: str) -> Term:
    return found.like(e.writer.assign(found.text, hint))


def _as_state(e: StepEmission, window: Window, name: str) -> BufferState:
    """What was read of a window as an array."""
    shape = window.shape
    strides = tuple(prod(shape[place + 1 :]) for place in range(len(shape)))
    fact = ArrayFact(
        name=e.buffers.states[window.buffer].fact.name,
        dtype="",
        shape=shape,
        strides=strides,
        alias=-1,
    )
    return BufferState(fact, window.element, name)


RULES: Mapping[str, Rule] = MappingProxyType({"tt.load": _load, "tt.atomic_load": _load})
