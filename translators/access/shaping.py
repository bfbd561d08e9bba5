"""What ops that only move elements make of the states of their operands."""

from collections.abc import Mapping

from translators.access.choices import Choice, one_of
from translators.access.expression import Affine, Interval, Lane, axes, constant, lane, of
from translators.access.knowledge import Knowledge
from translators.access.lanes import Positions, expanded, moved, reshaped, transposed
from translators.access.states import Assumptions, Integer, Pointer, State, merged
from translators.graph.graph import Op, integers
from translators.graph.types import shape_of

_MIXED = "mixes the axes of an index"


def _move(op: Op, known: Knowledge, positions: Positions | None, result: int = 0) -> State | None:
    state = known.get(op.operands[0])
    if state is None:
        return known.opaque(op, "nothing is known of its operand", result=result)
    found = None if positions is None else moved(state, positions)
    if found is not None:
        return found
    if isinstance(state, Pointer):
        value = op.results[result]
        symbol = known.symbol(value, _MIXED, op=op.name, location=op.location)
        return Pointer(argument=state.argument, offset=of(symbol))
    return known.opaque(op, _MIXED, result=result)


def _unmoved(shape: tuple[int, ...]) -> dict[int, Affine]:
    return {axis: lane(axis, extent) for axis, extent in enumerate(shape)}


def same(op: Op, known: Knowledge) -> State | None:
    """`tt.splat`, `tt.unsplat` and `tt.broadcast`."""
    return _move(op, known, _unmoved(shape_of(op.operands[0].type)))


def expand(op: Op, known: Knowledge) -> State | None:
    """`tt.expand_dims`."""
    return _move(op, known, expanded(shape_of(op.operands[0].type), op.integer("axis")))


def reshape(op: Op, known: Knowledge) -> State | None:
    """`tt.reshape`."""
    shapes = shape_of(op.operands[0].type), shape_of(op.result.type)
    return _move(op, known, reshaped(*shapes))


def trans(op: Op, known: Knowledge) -> State | None:
    """`tt.trans`."""
    order = integers(op.attributes, "order")
    return _move(op, known, transposed(shape_of(op.operands[0].type), order))


def split(op: Op, result: int, known: Knowledge) -> State | None:
    """`tt.split`: one of the two positions along the last axis."""
    shape = shape_of(op.operands[0].type)
    last = len(shape) - 1
    positions: Mapping[int, Affine] = {**_unmoved(shape[:-1]), last: constant(result)}
    return _move(op, known, positions, result)


def join(op: Op, known: Knowledge) -> State | None:
    """`tt.join`: along the new last axis a step from the one to the other."""
    pair = _pair(op, known)
    axis = len(shape_of(op.result.type)) - 1
    if pair is not None:
        one, other = pair
        step = (_number(other) - _number(one)).value
        if step is not None:
            joined = _number(one) + lane(axis, 2).times(step)
            return _with(one, joined, merged(one.assumptions, other.assumptions))
    return _either(op, known, axis, "joins two values")


def cat(op: Op, known: Knowledge) -> State | None:
    """`tt.cat`: the second goes on where the first one ends, in steps of its own."""
    pair = _pair(op, known)
    if pair is not None:
        one, other = pair
        length = shape_of(op.operands[0].type)[0]
        gap = (_number(other) - _number(one)).value
        along = Lane(axis=0, extent=length)
        step = gap if length == 1 else _number(one).coefficient(along)
        if gap is not None and step is not None and gap == step * length:
            rest = _number(one) - lane(0, length).times(step)
            if 0 not in axes(rest):
                whole = rest + lane(0, 2 * length).times(step)
                return _with(one, whole, merged(one.assumptions, other.assumptions))
    return _either(op, known, 0, "puts two values after each other")


def gather(op: Op, known: Knowledge) -> State | None:
    """`tt.gather`: the source at the positions that the indices are."""
    source, indices = (known.get(each) for each in op.operands)
    shape, axis = shape_of(op.operands[0].type), op.integer("axis")
    if isinstance(source, Integer) and isinstance(indices, Integer):
        inside = Interval(0, shape[axis] - 1)
        if not indices.assumptions and indices.expression.interval.within(inside):
            kept = _unmoved(shape_of(op.result.type))
            found = moved(source, {**kept, axis: indices.expression})
            if found is not None:
                return found
    return known.opaque(op, "is gathered from a tensor")


def _pair(op: Op, known: Knowledge) -> tuple[Integer | Pointer, Integer | Pointer] | None:
    """Two integers, or two pointers into one buffer."""
    match tuple(known.get(each) for each in op.operands):
        case Integer() as one, Integer() as other:
            return one, other
        case Pointer() as one, Pointer() as other if one.argument == other.argument:
            return one, other
        case _:
            return None


def _number(state: Integer | Pointer) -> Affine:
    return state.expression if isinstance(state, Integer) else state.offset


def _with(state: Integer | Pointer, number: Affine, assumptions: Assumptions) -> State:
    if isinstance(state, Integer):
        return Integer(expression=number, assumptions=assumptions)
    return Pointer(argument=state.argument, offset=number, assumptions=assumptions)


def _either(op: Op, known: Knowledge, axis: int, reason: str) -> State | None:
    """One of the two, which differ along an axis."""
    choice = Choice(value=op.result, reason=reason, op=op, moving=frozenset({axis}))
    states = [known.get(each) for each in op.operands]
    if states[0] == states[1]:
        return known.opaque(op, reason)
    return one_of(choice, states, known)
