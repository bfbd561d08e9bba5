"""How the positions in a tensor follow from those in the tensor that it was made of."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from translators.access.division import divide, substitute
from translators.access.expression import (
    Affine,
    Lane,
    Leaf,
    Symbol,
    constant,
    lane,
    leaves,
    of,
)
from translators.access.states import (
    Assumptions,
    Condition,
    Integer,
    Leftover,
    Pointer,
    State,
    at_least_zero,
    both,
)

Positions: TypeAlias = Mapping[int, Affine]
"""For each axis of the operand, its position in terms of the result's axes."""


def expanded(shape: tuple[int, ...], axis: int) -> Positions:
    """The positions where a dimension of 1 is put in at `axis` of a tensor of `shape`."""
    return {each: lane(each + (each >= axis), extent) for each, extent in enumerate(shape)}


def transposed(shape: tuple[int, ...], order: tuple[int, ...]) -> Positions:
    """The positions where axis `i` of the result is axis `order[i]` of a tensor of `shape`."""
    return {source: lane(axis, shape[source]) for axis, source in enumerate(order)}


def reshaped(old: tuple[int, ...], new: tuple[int, ...]) -> Positions | None:
    """The positions where the elements stay in row-major order; `None` if it nests too deeply."""
    linear = constant(0)
    for axis, extent in enumerate(new):
        linear = linear.times(extent) + lane(axis, extent)
    found: dict[int, Affine] = {}
    for axis in reversed(range(len(old))):
        pair = divide(linear, constant(old[axis]))
        if pair is None:
            return None
        linear, found[axis] = pair
    return found


def moved(state: State, positions: Positions) -> State | None:
    """The state seen from the result; `None` where it cannot be told.

    That is where a symbol would have to be read at a position that is no axis of the result, or
    the expression would nest too deeply.
    """
    match state:
        case Integer(expression=expression, assumptions=assumptions):
            new, kept = _move(expression, positions), _keep(assumptions, positions)
            if new is None or kept is None:
                return None
            return Integer(expression=new, assumptions=kept)
        case Pointer(argument=argument, offset=offset, assumptions=assumptions):
            new, kept = _move(offset, positions), _keep(assumptions, positions)
            if new is None or kept is None:
                return None
            return Pointer(argument=argument, offset=new, assumptions=kept)
        case Condition():
            return _move_condition(state, positions)
        case _:
            return state


def _move(expression: Affine, positions: Positions) -> Affine | None:
    for leaf in leaves(expression):
        if isinstance(leaf, Symbol) and _move_symbol(leaf, positions) is None:
            return None

    def put(leaf: Leaf) -> Affine:
        if isinstance(leaf, Lane):
            return positions[leaf.axis]
        if isinstance(leaf, Symbol):
            symbol = _move_symbol(leaf, positions)
            assert symbol is not None
            return of(symbol)
        return of(leaf)

    return substitute(expression, put)


def _move_symbol(symbol: Symbol, positions: Positions) -> Symbol | None:
    lanes: list[int | None] = []
    for axis in symbol.lanes:
        if axis is None:
            lanes.append(None)
            continue
        match positions[axis]:
            case Affine(terms=((Lane(axis=new), 1),), offset=0):
                lanes.append(new)
            case _:
                return None
    return replace(symbol, lanes=tuple(lanes))


def _keep(assumptions: Assumptions, positions: Positions) -> Assumptions | None:
    kept = []
    for each in assumptions:
        expression = _move(each.expression, positions)
        if expression is None:
            return None
        kept.append(replace(each, expression=expression))
    return tuple(kept)


def _move_condition(condition: Condition, positions: Positions) -> Condition | None:
    assumptions = _keep(condition.assumptions, positions)
    if assumptions is None:
        return None
    parts = [Condition(never=condition.never, assumptions=assumptions)]
    for comparison in condition.comparisons:
        expression = _move(comparison.expression, positions)
        if expression is None:
            return None
        parts.append(at_least_zero(expression, comparison.op, comparison.location))
    for leftover in condition.leftovers:
        symbol = _move_symbol(leftover.symbol, positions)
        if symbol is None:
            return None
        kept = Leftover(symbol=symbol, expected=leftover.expected)
        parts.append(Condition(leftovers=(kept,)))
    return both(parts)
