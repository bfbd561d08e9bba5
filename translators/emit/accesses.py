"""Loads, stores and atomic updates."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.access.analysis import Access
from translators.emit.buffers import BufferState, flat_problem
from translators.emit.emission import Emission, Note, RetryError, Rule
from translators.emit.gathering import taken
from translators.emit.operands import texts
from translators.emit.pointers import pointee_of
from translators.emit.terms import (
    BatchAxis,
    PointerTerm,
    Term,
    common_batch,
    constant,
    dtype,
    typed,
)
from translators.emit.tiles import read, source_of, write
from translators.emit.tiling import Span, spans_of, touched, whole_lanes
from translators.graph.graph import Op
from translators.graph.types import I1, I32, I64, FloatType, shape_of


def buffer_of(e: Emission, pointer: PointerTerm, op: Op) -> BufferState:
    """The array that a pointer leads into."""
    return e.buffers.states[pointer.buffer]


def edges_only(access: Access) -> bool:
    """Whether the mask does no more than keep inside of the array."""
    mask = access.mask
    if mask is None or mask.always:
        return True
    return (
        not mask.never
        and not mask.predicates
        and not mask.leftovers
        and all(each.edge for each in mask.bounds)
    )


def never(e: Emission, op: Op) -> bool:
    """Whether no program comes to an access with a lane that takes part."""
    access = e.accesses.get(op)
    return access is not None and access.never


def tiled(e: Emission, access: Access | None, pointer: PointerTerm) -> tuple[Span, ...] | None:
    """What an access touches, where it counts through the array."""
    if access is None or pointer.pointee != e.buffers.states[pointer.buffer].element:
        return None
    return spans_of(e, access)


def _mask(e: Emission, op: Op, index: int) -> Term | None:
    return e.term(op.operands[index]) if len(op.operands) > index else None


def _load(e: Emission, op: Op) -> None:
    pointer = e.pointer(op.operands[0], op)
    mask = _mask(e, op, 1)
    other = e.term(op.operands[2]) if len(op.operands) > 2 else None
    shape = shape_of(op.operands[0].type)
    element = pointee_of(op.operands[0].type)
    if other is None:
        other = constant(0 if not isinstance(element, FloatType) else 0.0, element, shape)
    if (mask is not None and mask.number == 0) or never(e, op):
        e.put(op.result, other)
        return
    found = _loaded(e, op, pointer.last, mask, other, shape)
    for condition, each in reversed(pointer.alternatives):
        found = e.chosen(condition, _loaded(e, op, each, mask, other, shape), found)
    if found.element == I64 and e.element(op.result) == I32:
        found = e.bind(f"{found.text}.astype(jnp.int32)", found, op.result.name, element=I32)
    e.put(op.result, found)


def _poll(e: Emission, op: Op) -> None:
    """Programs run one after another: what is waited for has come by now, or never will."""
    pointer = e.pointer(op.operands[0], op)
    if pointer.alternatives:
        raise e.refuse(op, "waits for what is in one array or another")
    shape = shape_of(op.operands[0].type)
    zero = constant(0, pointee_of(op.operands[0].type), shape)
    terms = e.alike([_loaded(e, op, pointer.last, None, zero, shape), e.term(op.operands[1])])
    found, expected = texts(terms)
    e.give(op, f"{found} == {expected}", terms)


def _loaded(
    e: Emission,
    op: Op,
    pointer: PointerTerm,
    mask: Term | None,
    other: Term,
    shape: tuple[int, ...],
) -> Term:
    """What one pointer leads to, and `other` where the mask does not hold."""
    access = e.accesses.get(op)
    spans = tiled(e, access, pointer)
    if spans is not None and access is not None:
        edges = edges_only(access) and other.number is not None
        fill = other.number if edges and other.number is not None else 0
        found = read(e, e.buffers.states[pointer.buffer], spans, shape, fill)
        found = found.like(e.writer.assign(found.text, op.result.name))
        if edges:
            mask = None
            if fill == 0:
                e.sources[found.text] = source_of(e.buffers.states[pointer.buffer], spans)
    else:
        found = gathered(e, op, pointer, shape)
    if mask is not None and mask.number is None:
        found = e.chosen(mask, found, other, op.result.name)
    return found


def gathered(e: Emission, op: Op, pointer: PointerTerm, shape: tuple[int, ...]) -> Term:
    """The elements where data say; those that the mask leaves out may be any."""
    state = buffer_of(e, pointer, op)
    access = e.accesses.get(op)
    if access is not None and pointer.pointee == state.element:
        rows = taken(e, access, state, shape)
        if rows is not None:
            return rows.like(e.writer.assign(rows.text, op.results[0].name))
    check_flat(e, op, state)
    offset = pointer.offset
    flat = e.buffers.flat(pointer.buffer)
    flat = e.writer.beside(state.name, flat) if flat != state.name else flat
    index = typed(offset)
    found = Term(
        text=e.writer.assign(f'jnp.take({flat}, {index}, mode="clip")'),
        element=state.element,
        shape=shape,
        dims=offset.dims if shape else (),
        batch=offset.batch,
    )
    if pointer.pointee != state.element:
        return e.bind(reread(found, pointer), found, element=pointer.pointee)
    return found


def reread(found: Term, pointer: PointerTerm) -> str:
    """What the array holds, as what the pointer is taken to point to."""
    if I1 in (found.element, pointer.pointee):
        return f"{found.text}.astype({dtype(pointer.pointee)})"
    return f"lax.bitcast_convert_type({found.text}, {dtype(pointer.pointee)})"


def check_flat(e: Emission, op: Op, state: BufferState) -> None:
    """Refuses arrays that have no flat view."""
    problem = flat_problem(state.fact)
    if problem:
        raise e.refuse(op, f"accesses `{state.fact.name}`, which {problem}")
    if state.size >= 1 << 31:
        raise e.refuse(op, f"accesses `{state.fact.name}`, which has 2**31 elements or more")


def _store(e: Emission, op: Op) -> None:
    pointer = e.pointer(op.operands[0], op)
    value = _element_stored(e, e.term(op.operands[1]), pointer)
    condition = e.both(e.come_here(), None)
    mask = _mask(e, op, 2)
    if 0 in (each.number for each in (mask, condition) if each is not None) or never(e, op):
        return
    for holds, each in pointer.alternatives:
        _stored_to(e, op, each, value, e.both(condition, holds), mask)
        condition = e.both(condition, e.negated(holds))
    _stored_to(e, op, pointer.last, value, condition, mask)


def _stored_to(
    e: Emission,
    op: Op,
    pointer: PointerTerm,
    value: Term,
    here: Term | None,
    mask: Term | None,
) -> None:
    """Writes to where one pointer leads, by the programs that come here."""
    shape = shape_of(op.operands[0].type)
    access = e.accesses.get(op)
    spans = tiled(e, access, pointer)
    if spans is not None and access is not None and separate(e, spans, shape):
        condition = e.both(here, None if edges_only(access) else mask)
        write_tile(e, pointer.buffer, spans, shape, value, condition)
        return
    if any(each in e.axes for each in e.iterations.values()):
        # Iterations may write to one place, and the last one counts.
        raise RetryError
    scatter(e, op, pointer, value, e.both(here, mask), shape)


def _element_stored(e: Emission, value: Term, pointer: PointerTerm) -> Term:
    """An integer that was emitted as a narrower one than memory holds, as wide as that."""
    return e.as_element(value, pointer.pointee) if pointer.pointee == I64 else value


def separate(e: Emission, spans: tuple[Span, ...], shape: tuple[int, ...]) -> bool:
    """Whether every program and lane writes to a place of its own."""
    return touched(spans) == set(e.axes) and whole_lanes(spans, shape)


def write_tile(
    e: Emission,
    buffer: int,
    spans: tuple[Span, ...],
    shape: tuple[int, ...],
    value: Term,
    condition: Term | None,
) -> None:
    """Writes the elements for which the condition holds."""
    if condition is not None:
        old = read(e, e.buffers.states[buffer], spans, shape, 0)
        old = old.like(e.writer.assign(old.text))
        value = e.chosen(condition, value, old)
    write(e, buffer, spans, e.spread(e.lifted(value, shape), batch=e.axes))


def indices_of(e: Emission, op: Op, pointer: PointerTerm, condition: Term | None) -> Term:
    """Where each lane of each program goes, out of range where the condition does not hold."""
    state = buffer_of(e, pointer, op)
    check_flat(e, op, state)
    offset = pointer.offset
    if condition is None:
        return offset
    return e.chosen(condition, offset, constant(state.size, I32, offset.shape))


def scatter(
    e: Emission,
    op: Op,
    pointer: PointerTerm,
    value: Term,
    condition: Term | None,
    shape: tuple[int, ...],
) -> None:
    """Each element on its own, in the order of the programs where they may meet."""
    state = buffer_of(e, pointer, op)
    index = indices_of(e, op, pointer, condition)
    value = e.lifted(stored(e, op, value, pointer, state), shape)
    batch = common_batch((index, value))
    same = value.batch <= index.batch and all(
        have or not real for have, real in zip(index.dims, value.dims, strict=True)
    )
    index = e.spread(e.lifted(index, shape), batch=batch, full=not same)
    if value.number is None:
        value = e.spread(value, batch=index.batch, full=not same)
    where = e.bind(typed(index), index) if index.number is not None else index
    text = where.text
    if not index.bare and value.number is None:
        index, value = in_grid_order(e, index), in_grid_order(e, value)
        text = index.text
        helper = e.writer.helper("_last_writer")
        text = e.writer.assign(f"{helper}({text}, {state.size})")
        e.notes.append(
            Note(
                text="writes where data say: of two writes to one place the later program's counts",
                line=op.location.line if op.location else 0,
            )
        )
    flat = e.buffers.flat(pointer.buffer)
    put = typed(value) if value.number is not None else value.text
    changed = f'({flat}).at[{text}].set({put}, mode="drop")'
    e.buffers.update(pointer.buffer, e.buffers.unflattened(pointer.buffer, changed))


def in_grid_order(e: Emission, term: Term) -> Term:
    """The array with its batch axes in the order of the grid, in which programs run."""
    grid = [each for each in e.programs.values() if isinstance(each, BatchAxis)]
    places = [term.lead - 1 - each.place for each in grid if each.place < term.lead]
    rest = range(term.lead, term.rank)
    if not term.batch or places == sorted(places):
        return term
    axes = ", ".join(map(str, (*places, *rest)))
    return term.like(e.writer.assign(f"{term.text}.transpose({axes})"))


def stored(e: Emission, op: Op, value: Term, pointer: PointerTerm, state: BufferState) -> Term:
    """The value as the array holds it."""
    if value.element != pointer.pointee:
        value = e.bind(
            f"{typed(value)}.astype({dtype(pointer.pointee)})", value, element=pointer.pointee
        )
    if pointer.pointee == state.element:
        return value
    if I1 in (pointer.pointee, state.element):
        text = f"{typed(value)}.astype({dtype(state.element)})"
    else:
        text = f"lax.bitcast_convert_type({typed(value)}, {dtype(state.element)})"
    return e.bind(text, value, element=state.element)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "tt.load": _load,
        "tt.store": _store,
        "tt.atomic_load": _load,
        "tt.atomic_poll": _poll,
        "tt.atomic_store": _store,
    }
)
