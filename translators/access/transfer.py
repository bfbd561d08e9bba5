"""What each op makes of the states of its operands.

An op that is not listed gives a value that is taken as it is.
"""

from collections.abc import Mapping
from types import MappingProxyType

from translators.access import arithmetic, conditions, descriptors, shaping
from translators.access.arithmetic import Transfer
from translators.access.choices import Choice, one_of
from translators.access.division import maximum, minimum
from translators.access.expression import Origin, constant, lane, of
from translators.access.expression import ProgramId as ProgramIdVariable
from translators.access.knowledge import Knowledge, Selection, state_axes
from translators.access.states import (
    ALWAYS,
    Integer,
    Pointer,
    State,
    UnknownPointer,
    merged,
    never,
)
from translators.graph.graph import Op
from translators.graph.types import IntType, PointerType, bit_width, element_of, shape_of


def _attribute(op: Op, name: str) -> int:
    value = op.attributes[name]
    assert isinstance(value, int)
    return value


def _program_id(op: Op, known: Knowledge) -> State:
    axis = _attribute(op, "axis")
    return Integer(expression=of(ProgramIdVariable(axis=axis, extent=known.grid[axis])))


def _num_programs(op: Op, known: Knowledge) -> State:
    return Integer(expression=constant(known.grid[_attribute(op, "axis")]))


def _constant(op: Op, known: Knowledge) -> State | None:
    value = op.attributes["value"]
    element = element_of(op.result.type)
    if not isinstance(element, IntType):
        return None
    if isinstance(value, tuple):
        if len(set(value)) > 1:
            return known.opaque(op, "is a table of constants")
        value = value[0]
    if not isinstance(value, int):
        return None
    if element.width == 1:
        return ALWAYS if value else never()
    return Integer(expression=constant(value))


def _range(op: Op, known: Knowledge) -> State:
    start, end = _attribute(op, "start"), _attribute(op, "end")
    return Integer(expression=lane(0, end - start).plus(start))


def _bitcast(op: Op, known: Knowledge) -> State | None:
    (operand,) = op.operands
    before, after = element_of(operand.type), element_of(op.result.type)
    if isinstance(before, PointerType) and isinstance(after, PointerType):
        state = known.get(operand)
        # `i1` takes a byte in memory.
        widths = [max(8, bit_width(each.pointee)) for each in (before, after)]
        if widths[0] == widths[1] and state is not None:
            return state
        return known.opaque(op, f"points to `{after.pointee}` in an array of `{before.pointee}`")
    if before == after and isinstance(after, IntType):
        return known.get(operand) or known.opaque(op, "reads bits anew", elementwise=True)
    return known.opaque(op, "reads bits anew", elementwise=True)


def _select(op: Op, known: Knowledge) -> State | None:
    chooser, held, otherwise = op.operands
    # A loop's body is walked several times, and what a wrong guess gave must not stay.
    known.selections.pop(op.result, None)
    condition = known.condition(chooser)
    states = known.get(held), known.get(otherwise)
    chosen: State | None = None
    if condition.always or condition.never:
        chosen = states[0] if condition.always else states[1]
    if chosen is not None:
        return chosen
    reason = "chooses by a condition that varies"
    choice = Choice(value=op.result, reason=reason, op=op, moving=state_axes(condition))
    one, other = states
    if isinstance(one, Integer) and isinstance(other, Integer):
        known.selections[op.result] = Selection(condition=condition, held=one, otherwise=other)
    return one_of(choice, states, known)


def _add_pointer(op: Op, known: Knowledge) -> State | None:
    pointer = known.get(op.operands[0])
    if not isinstance(pointer, Pointer):
        return pointer or known.opaque(op, "nothing is known of its pointer")
    offset = known.integer(op.operands[1])
    return Pointer(
        argument=pointer.argument,
        offset=pointer.offset + offset.expression,
        assumptions=merged(pointer.assumptions, offset.assumptions),
    )


def _load(op: Op, known: Knowledge) -> State | None:
    pointer = known.get(op.operands[0])
    moving: set[int] | None = None
    if isinstance(pointer, Pointer):
        moving = set(state_axes(pointer) or ())
        for operand in op.operands[1:]:
            found = state_axes(known.get(operand))
            if found is None and shape_of(operand.type):
                moving = None
                break
            moving |= found or set()
    return known.bare(
        op.result,
        "is loaded from memory",
        op=op.name,
        location=op.location,
        moving=moving,
        origin=Origin.LOADED,
    )


def _load_described(op: Op, known: Knowledge) -> State | None:
    return known.bare(
        op.result,
        "is loaded from memory",
        op=op.name,
        location=op.location,
        origin=Origin.LOADED,
    )


def _made_pointer(op: Op, known: Knowledge) -> State:
    return UnknownPointer(reason="is an integer made a pointer", op=op.name, location=op.location)


TRANSFERS: Mapping[str, Transfer] = MappingProxyType(
    {
        "arith.addi": arithmetic.linear(lambda left, right: left + right),
        "arith.andi": arithmetic.conjoin,
        "arith.bitcast": _bitcast,
        "arith.ceildivsi": arithmetic.division(remainder=False, floor=True, up=True),
        "arith.ceildivui": arithmetic.division(remainder=False, up=True),
        "arith.cmpi": conditions.comparison,
        "arith.constant": _constant,
        "arith.divsi": arithmetic.division(remainder=False),
        "arith.divui": arithmetic.division(remainder=False),
        "arith.extsi": arithmetic.extend,
        "arith.extui": arithmetic.extend,
        "arith.floordivsi": arithmetic.division(remainder=False, floor=True),
        "arith.maxsi": arithmetic.extreme(maximum, False),
        "arith.maxui": arithmetic.extreme(maximum, True),
        "arith.minsi": arithmetic.extreme(minimum, False),
        "arith.minui": arithmetic.extreme(minimum, True),
        "arith.muli": arithmetic.multiply,
        "arith.ori": arithmetic.disjoin,
        "arith.remsi": arithmetic.division(remainder=True),
        "arith.remui": arithmetic.division(remainder=True),
        "arith.select": _select,
        "arith.shli": arithmetic.shift_left,
        "arith.shrsi": arithmetic.shift_right,
        "arith.shrui": arithmetic.shift_right,
        "arith.subi": arithmetic.linear(lambda left, right: left - right),
        "arith.trunci": arithmetic.truncate,
        "arith.xori": arithmetic.differ,
        "math.absi": arithmetic.magnitude,
        "tt.addptr": _add_pointer,
        "tt.atomic_cas": _load,
        "tt.atomic_rmw": _load,
        "tt.bitcast": _bitcast,
        "tt.broadcast": shaping.same,
        "tt.cat": shaping.cat,
        "tt.descriptor_gather": _load_described,
        "tt.descriptor_load": _load_described,
        "tt.expand_dims": shaping.expand,
        "tt.gather": shaping.gather,
        "tt.get_num_programs": _num_programs,
        "tt.get_program_id": _program_id,
        "tt.int_to_ptr": _made_pointer,
        "tt.join": shaping.join,
        "tt.load": _load,
        "tt.make_range": _range,
        "tt.make_tensor_descriptor": descriptors.make,
        "tt.reshape": shaping.reshape,
        "tt.splat": shaping.same,
        "tt.trans": shaping.trans,
        "tt.unsplat": shaping.same,
    }
)


def results(op: Op, known: Knowledge) -> None:
    """Takes down the states of all results of an op without regions."""
    transfer = TRANSFERS.get(op.name)
    if transfer is not None and len(op.results) == 1:
        state = transfer(op, known)
        if state is not None:
            known.put(op.result, state)
        return
    if op.name == "tt.split":
        for index, result in enumerate(op.results):
            half = shaping.split(op, index, known)
            if half is not None:
                known.put(result, half)
        return
    elementwise = op.name.startswith(("arith.", "math."))
    for index, result in enumerate(op.results):
        state = known.opaque(
            op, "gives no index that is followed", result=index, elementwise=elementwise
        )
        if state is not None:
            known.put(result, state)
