"""Accesses to memory through pointers, and the arithmetic on pointers."""

from collections.abc import Callable

import numpy as np

from translators.graph.errors import UndefinedError
from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, dtype_of, element_type, to_float, unsigned, wrapped
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    OPTIONAL_FLAG,
    OPTIONAL_TEXT,
    AttributeSpec,
    Effect,
    OpDefinition,
    Operands,
    Typing,
    one_of,
)
from translators.graph.ops.floats import widened
from translators.graph.types import (
    I1,
    ElementType,
    FloatType,
    IntType,
    PointerType,
    Type,
    bit_width,
    with_element,
)

PADDING = AttributeSpec(kind=str, choices=("zero", "nan"), required=False)
ORDERINGS = AttributeSpec(
    kind=str, choices=("relaxed", "acquire", "release", "acq_rel"), required=False
)
SCOPES = AttributeSpec(kind=str, choices=("gpu", "cta", "sys"), required=False)
# What a cache does with an access changes no value.
_CACHING = {"cache": OPTIONAL_TEXT, "evict": OPTIONAL_TEXT, "isVolatile": OPTIONAL_FLAG}


def pointee_of(type_: Type) -> ElementType:
    """What a verified pointer operand points to."""
    pointer = element_type(type_)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def byte_size(element: ElementType) -> int:
    """Bytes of one element in memory; `i1` fills one."""
    return max(1, bit_width(element) // 8)


def _check_mask(mask: Type, pointer: Type) -> None:
    rules.expect(
        mask == with_element(pointer, I1), f"takes a mask of the shape of `{pointer}`, not `{mask}`"
    )


def _addptr_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2)
    pointer, offset = typing.operands
    rules.pointee(pointer)
    rules.integer(offset)
    rules.same_shape(pointer, offset)
    return (pointer,)


def _addptr(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    size = byte_size(pointee_of(op.operands[0].type))
    return (np.asarray(operands[0] + operands[1].astype(np.int64) * size),)


def _load_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1, 3)
    pointer, *rest = typing.operands
    loaded = with_element(pointer, rules.pointee(pointer))
    if rest:
        _check_mask(rest[0], pointer)
    for other in rest[1:]:
        rules.expect(other == loaded, f"replaces masked elements of `{loaded}` by `{other}`")
    return (loaded,)


def _load(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    element = pointee_of(op.operands[0].type)
    pointers, *rest = operands
    if not rest:
        return (machine.memory.load(pointers, element),)
    mask = rest[0]
    # Without `other` the masked elements are unspecified; zero is what Triton's backends give.
    found = np.zeros(pointers.shape, dtype_of(element)) if len(rest) == 1 else rest[1].copy()
    found[mask] = machine.memory.load(pointers[mask], element)
    return (found,)


def _store_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2, 3)
    pointer, value, *rest = typing.operands
    stored = with_element(pointer, rules.pointee(pointer))
    rules.expect(value == stored, f"stores `{stored}`, not `{value}`")
    for mask in rest:
        _check_mask(mask, pointer)
    return ()


def _store(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    element = pointee_of(op.operands[0].type)
    pointers, values, *rest = operands
    if rest:
        pointers, values = pointers[rest[0]], values[rest[0]]
    machine.memory.store(pointers, values, element)
    return ()


def _float_add(old: Array, value: Array, type_: ElementType) -> Array:
    assert isinstance(type_, FloatType)
    return to_float(widened(old, type_) + widened(value, type_), type_)


def _integer(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def apply(old: Array, value: Array, type_: ElementType) -> Array:
        assert isinstance(type_, IntType)
        return wrapped(function(old.astype(np.int64), value.astype(np.int64)), type_)

    return apply


def _unsigned(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def apply(old: Array, value: Array, type_: ElementType) -> Array:
        assert isinstance(type_, IntType)
        return wrapped(function(unsigned(old, type_), unsigned(value, type_)), type_)

    return apply


UPDATES: dict[str, Callable[[Array, Array, ElementType], Array]] = {
    "add": _integer(np.add),
    "and": _integer(np.bitwise_and),
    "or": _integer(np.bitwise_or),
    "xor": _integer(np.bitwise_xor),
    "max": _integer(np.maximum),
    "min": _integer(np.minimum),
    "umax": _unsigned(np.maximum),
    "umin": _unsigned(np.minimum),
    "fadd": _float_add,
    "exch": lambda old, value, type_: value,
}


def update(
    machine: Machine,
    pointers: Array,
    element: ElementType,
    change: Callable[[Array, Array], Array],
) -> Array:
    """Changes memory element by element, in row-major order; gives what was there before.

    Args:
      machine: holds the memory.
      pointers: flat addresses.
      element: what they point to.
      change: from the old elements and their positions in `pointers` to the new ones.
    """
    if np.unique(pointers).size == pointers.size:
        every = np.arange(pointers.size)
        old: Array = machine.memory.load(pointers, element)
        machine.memory.store(pointers, change(old, every), element)
        return old
    found = np.zeros(pointers.shape, dtype_of(element))
    for position in range(pointers.size):
        one = slice(position, position + 1)
        found[one] = machine.memory.load(pointers[one], element)
        changed = change(found[one], np.array([position]))
        machine.memory.store(pointers[one], changed, element)
    return found


def _atomic_rule(typing: Typing) -> tuple[Type, ...]:
    _store_rule(typing)
    pointer, value = typing.operands[:2]
    kind = typing.attributes["atomic_rmw_op"]
    stored = rules.pointee(pointer)
    if kind != "exch":
        wanted = FloatType if kind == "fadd" else IntType
        rules.expect(isinstance(stored, wanted), f"cannot `{kind}` elements of `{stored}`")
    return (value,)


def _atomic_rmw(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    element = pointee_of(op.operands[0].type)
    pointers, values, *rest = operands
    mask = rest[0] if rest else np.ones(pointers.shape, np.bool_)
    chosen = values[mask]
    apply = UPDATES[op.text("atomic_rmw_op")]
    old = update(
        machine,
        pointers[mask],
        element,
        lambda found, positions: apply(found, chosen[positions], element),
    )
    # What a masked element gives is unspecified, as with a load.
    result = np.zeros(pointers.shape, dtype_of(element))
    result[mask] = old
    return (result,)


def _cas_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 3)
    pointer, expected, value = typing.operands
    stored = with_element(pointer, rules.pointee(pointer))
    rules.expect(
        expected == stored and value == stored,
        f"compares and stores `{stored}`, not `{expected}` and `{value}`",
    )
    return (stored,)


def _atomic_cas(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    element = pointee_of(op.operands[0].type)
    pointers, expected, values = (np.ascontiguousarray(each).reshape(-1) for each in operands)
    bits = np.dtype(f"u{byte_size(element)}")

    def change(found: Array, positions: Array) -> Array:
        # Bits are compared, so that a NaN equals itself and the zeros differ.
        same = found.view(bits) == expected[positions].view(bits)
        return np.where(same, values[positions], found)

    return (update(machine, pointers, element, change).reshape(operands[0].shape),)


def _atomic_load_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1, 2)
    return _load_rule(typing)


def _poll_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 2, 3)
    pointer, expected = typing.operands[:2]
    wanted = with_element(pointer, rules.pointee(pointer))
    rules.integer(wanted)
    rules.expect(expected == wanted, f"waits for `{wanted}`, not for `{expected}`")
    for timeout in typing.operands[2:]:
        rules.scalar_integer(timeout, "a timeout")
    return (with_element(pointer, I1),)


def _poll(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    pointers, expected, *timeout = operands
    found = machine.memory.load(pointers, pointee_of(op.operands[0].type))
    arrived = np.asarray(found == expected)
    # Programs run one after another: no other one will write what is waited for.
    if not timeout and not arrived.all():
        raise UndefinedError("waits for ever for a value that no program before it wrote")
    return (arrived,)


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.addptr",
        summary="pointers moved by a number of elements",
        rule=_addptr_rule,
        meaning=_addptr,
    ),
    OpDefinition(
        name="tt.load",
        summary="elements in memory; where the mask does not hold `other`, or zero",
        rule=_load_rule,
        meaning=_load,
        attributes={**_CACHING, "padding": PADDING},
        effect=Effect.READ,
    ),
    OpDefinition(
        name="tt.store",
        summary="elements written to memory where the mask holds",
        rule=_store_rule,
        meaning=_store,
        attributes=_CACHING,
        effect=Effect.WRITE,
    ),
    OpDefinition(
        name="tt.atomic_rmw",
        summary="memory changed by a value where the mask holds; gives what was there",
        rule=_atomic_rule,
        meaning=_atomic_rmw,
        attributes={
            "atomic_rmw_op": one_of(*UPDATES),
            "sem": ORDERINGS,
            "scope": SCOPES,
        },
        effect=Effect.READ_WRITE,
    ),
    OpDefinition(
        name="tt.atomic_load",
        summary="elements in memory where the mask holds, else zero",
        rule=_atomic_load_rule,
        meaning=_load,
        attributes={"sem": ORDERINGS, "scope": SCOPES},
        effect=Effect.READ,
    ),
    OpDefinition(
        name="tt.atomic_store",
        summary="elements written to memory where the mask holds",
        rule=_store_rule,
        meaning=_store,
        attributes={"sem": ORDERINGS, "scope": SCOPES},
        effect=Effect.WRITE,
    ),
    OpDefinition(
        name="tt.atomic_poll",
        summary="whether memory holds the expected value in time; an error if it never does",
        rule=_poll_rule,
        meaning=_poll,
        attributes={"sem": ORDERINGS, "scope": SCOPES},
        effect=Effect.READ,
    ),
    OpDefinition(
        name="tt.atomic_cas",
        summary="memory set where it holds the expected bits; gives what was there",
        rule=_cas_rule,
        meaning=_atomic_cas,
        attributes={"sem": ORDERINGS, "scope": SCOPES},
        effect=Effect.READ_WRITE,
    ),
)
