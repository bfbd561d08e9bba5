"""Atomic updates by all programs at once: their order does not matter where nobody looks."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.accesses import (
    buffer_of,
    indices_of,
    never,
    tiled,
)
from translators.emit.emission import Emission, Rule
from translators.emit.ordered import atomic_update, compare_and_swap
from translators.emit.terms import PointerTerm, Term, constant, dtype, unsigned
from translators.emit.tiles import read, write
from translators.emit.tiling import Span, touched, whole_lanes
from translators.graph.graph import Op
from translators.graph.types import FloatType, shape_of

_ADDING = ("add", "fadd")
_METHODS = {
    "add": "add",
    "fadd": "add",
    "max": "max",
    "min": "min",
    "umax": "max",
    "umin": "min",
}


def _atomic(e: Emission, op: Op) -> None:
    if e.serial:
        atomic_update(e, op)
        return
    if never(e, op):
        return
    pointer = e.pointer(op.operands[0], op)
    if pointer.alternatives:
        raise e.refuse(op, "updates one array or another")
    mask = e.term(op.operands[2]) if len(op.operands) > 2 else None
    condition = e.both(e.come_here(), mask)
    shape = shape_of(op.operands[0].type)
    spans = tiled(e, e.accesses.get(op), pointer)
    value = e.term(op.operands[1])
    kind = op.text("atomic_rmw_op")
    update_at_once(e, op, pointer, spans, shape, value, condition, kind)


def update_at_once(
    e: Emission,
    op: Op,
    pointer: PointerTerm,
    spans: tuple[Span, ...] | None,
    shape: tuple[int, ...],
    value: Term,
    condition: Term | None,
    kind: str,
) -> None:
    """Updates memory by all lanes of all programs where the condition holds.

    Args:
      e: the emission.
      op: the update.
      pointer: where each lane goes.
      spans: the same as slices of the array, where it is that.
      shape: that of the lanes.
      value: what each lane brings.
      condition: which lanes take part; all if `None`.
      kind: how old and new combine, as `tt.atomic_rmw` calls it.

    Raises:
      UnsupportedError: updates of that kind have no form that combines many of them.
    """
    if condition is not None and condition.number == 0:
        return
    if kind in _ADDING and spans is not None and whole_lanes(spans, shape):
        _add_tile(e, pointer.buffer, spans, shape, value, condition)
        return
    if kind not in _METHODS:
        raise e.refuse(op, f"`{kind}` by many programs at once has no form in JAX yet")
    state = buffer_of(e, pointer, op)
    batch = frozenset(e.axes)
    index = e.spread(e.lifted(indices_of(e, op, pointer, condition), shape), batch=batch)
    value = e.spread(e.lifted(value, shape), batch=batch)
    flat, put = e.buffers.flat(pointer.buffer), value.text
    kept, taken = dtype(state.element), dtype(pointer.pointee)
    if kind in ("umax", "umin"):
        taken = unsigned(pointer.pointee)
        put = f"lax.bitcast_convert_type({put}, {taken})"
    if taken != kept:
        flat = f"lax.bitcast_convert_type({flat}, {taken})"
    text = f'({flat}).at[{index.text}].{_METHODS[kind]}({put}, mode="drop")'
    if taken != kept:
        text = f"lax.bitcast_convert_type({text}, {kept})"
    e.buffers.update(pointer.buffer, e.buffers.unflattened(pointer.buffer, text))


def _add_tile(
    e: Emission,
    buffer: int,
    spans: tuple[Span, ...],
    shape: tuple[int, ...],
    value: Term,
    condition: Term | None,
) -> None:
    """What programs add to one place is summed first."""
    zero = constant(0 if not isinstance(value.element, FloatType) else 0.0, value.element, shape)
    value = e.lifted(value, shape)
    if condition is not None:
        value = e.chosen(condition, value, zero)
    value = e.spread(value, batch=e.axes)
    outside = [axis for axis in e.axes if axis not in touched(spans)]
    if outside:
        places = tuple(value.lead - 1 - axis.place for axis in outside)
        kept = value.batch - set(outside)
        made = Term(
            text="", element=value.element, shape=shape, dims=value.dims, batch=frozenset(kept)
        )
        text = f"jnp.sum({value.text}, axis={places}, dtype={dtype(value.element)})"
        if len(places) == 1:
            text = f"jnp.sum({value.text}, axis={places[0]}, dtype={dtype(value.element)})"
        value = made.like(e.writer.assign(f"({text}).reshape{made.array_shape}"))
    old = read(e, e.buffers.states[buffer], spans, shape, 0)
    total = e.bind(f"({old.text}) + {value.text}", value)
    write(e, buffer, spans, total)


RULES: Mapping[str, Rule] = MappingProxyType(
    {"tt.atomic_rmw": _atomic, "tt.atomic_cas": compare_and_swap}
)
