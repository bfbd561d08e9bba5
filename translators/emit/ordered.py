"""Atomic updates whose old values are used: element by element, program by program."""

from collections.abc import Sequence

from translators.emit.accesses import check_flat, indices_of, reread, stored
from translators.emit.emission import Emission
from translators.emit.terms import Term, constant, dtype, typed
from translators.graph.graph import Op
from translators.graph.types import I1, FloatType, shape_of

_CHANGES = {
    "add": "jnp.add",
    "fadd": "jnp.add",
    "and": "jnp.bitwise_and",
    "or": "jnp.bitwise_or",
    "xor": "jnp.bitwise_xor",
    "max": "jnp.maximum",
    "min": "jnp.minimum",
    "umax": "jnp.maximum",
    "umin": "jnp.minimum",
    "exch": "_replaced",
}


def atomic_update(e: Emission, op: Op) -> None:
    """`tt.atomic_rmw`, in the order of the lanes."""
    kind = op.text("atomic_rmw_op")
    mask = e.term(op.operands[2]) if len(op.operands) > 2 else None
    _update(e, op, _CHANGES[kind], (op.operands[1],), mask, bits=kind in ("umax", "umin"))


def compare_and_swap(e: Emission, op: Op) -> None:
    """`tt.atomic_cas`: compares the bits."""
    _update(e, op, "_swapped", tuple(op.operands[1:3]), None, bits=True)


def _update(
    e: Emission,
    op: Op,
    change: str,
    given: Sequence[object],
    mask: Term | None,
    *,
    bits: bool,
) -> None:
    pointer = e.pointer(op.operands[0], op)
    if pointer.alternatives:
        raise e.refuse(op, "updates one array or another")
    state = e.buffers.states[pointer.buffer]
    check_flat(e, op, state)
    shape = shape_of(op.operands[0].type)
    condition = e.both(e.come_here(), mask)
    index = e.spread(e.lifted(indices_of(e, op, pointer, condition), shape))
    if index.batch:
        raise e.refuse(op, "gives what was there before to many iterations at once")
    values = []
    for operand in op.operands[1 : 1 + len(given)]:
        term = stored(e, op, e.lifted(e.term(operand), shape), pointer, state)
        values.append(_whole(e, term))
    flat = e.buffers.flat(pointer.buffer)
    signless = bits and state.element != I1
    if signless:
        width = 8 * _bytes(state.element)
        flat = f"lax.bitcast_convert_type({flat}, jnp.uint{width})"
        values = [f"lax.bitcast_convert_type({each}, jnp.uint{width})" for each in values]
    helper = e.writer.helper("_update_in_order")
    if change.startswith("_"):
        e.writer.helper(change)
    arrays = ", ".join(values)
    text = f"{helper}({flat}, {typed(index)}, ({arrays},), {change})"
    changed, old = e.writer.unpack(text, (f"{state.fact.name}_flat", op.result.name or "old"))
    if signless:
        changed = f"lax.bitcast_convert_type({changed}, {dtype(state.element)})"
        old = e.writer.assign(f"lax.bitcast_convert_type({old}, {dtype(state.element)})")
    e.buffers.update(pointer.buffer, e.buffers.unflattened(pointer.buffer, changed))
    made = Term(
        text=old,
        element=state.element,
        shape=shape,
        dims=(True,) * len(shape),
    )
    if pointer.pointee != state.element:
        made = e.bind(reread(made, pointer), made, element=pointer.pointee)
    if condition is not None:
        zero = constant(0.0 if isinstance(made.element, FloatType) else 0, made.element, shape)
        made = e.chosen(condition, made, zero, op.result.name)
    e.put(op.result, made)


def _bytes(element: object) -> int:
    width = getattr(element, "width", 8)
    return max(1, int(width) // 8)


def _whole(e: Emission, term: Term) -> str:
    whole = e.spread(term)
    return typed(whole)
