"""What is known of a value that is one of several, where it is not known which one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from translators.access.expression import Interval, Symbol, leaves, of
from translators.access.knowledge import Knowledge, state_axes
from translators.access.states import Condition, Described, Integer, Leftover, Pointer, State
from translators.graph.graph import Op, Value
from translators.graph.types import IntType, element_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A value that is one of several.

    Attributes:
      value: the value, of the shape of each of them.
      reason: why it is not known which one, as a clause.
      op: the op that chooses.
      moving: the axes along which that differs; `None` if they are not known.
    """

    value: Value
    reason: str
    op: Op
    moving: frozenset[int] | None = frozenset()


def one_of(choice: Choice, states: Sequence[State | None], known: Knowledge) -> State | None:
    """What the states have in common; they are in terms of the axes of the value chosen."""
    first = states[0] if states else None
    if first is not None and all(each == first for each in states):
        return first
    match first:
        case Pointer(argument=argument) if all(
            isinstance(each, Pointer) and each.argument == argument for each in states
        ):
            return Pointer(argument=argument, offset=of(_symbol(choice, states, known)))
        case Integer() if all(isinstance(each, Integer) for each in states):
            return Integer(expression=of(_symbol(choice, states, known)))
        case Condition() if all(isinstance(each, Condition) for each in states):
            leftover = Leftover(symbol=_symbol(choice, states, known))
            return Condition(leftovers=(leftover,))
        case _:
            return known.bare(
                choice.value, choice.reason, op=choice.op.name, location=choice.op.location
            )


def renamed(choice: Choice, state: State | None, known: Knowledge) -> State | None:
    """What is known of a value that is another one as it was at another time."""
    match state:
        case Pointer(argument=argument):
            return Pointer(argument=argument, offset=of(_symbol(choice, [state], known)))
        case Integer():
            return Integer(expression=of(_symbol(choice, [state], known)))
        case _:
            return known.bare(
                choice.value, choice.reason, op=choice.op.name, location=choice.op.location
            )


def _symbol(choice: Choice, states: Iterable[State | None], known: Knowledge) -> Symbol:
    given = tuple(states)
    return known.symbol(
        choice.value,
        choice.reason,
        op=choice.op.name,
        location=choice.op.location,
        moving=_moving(choice, given),
        interval=_hull(choice.value, given),
    )


def _moving(choice: Choice, states: Iterable[State | None]) -> frozenset[int] | None:
    parts = [choice.moving, *map(state_axes, states)]
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if len(known) == len(parts) else None


def _hull(value: Value, states: Iterable[State | None]) -> Interval | None:
    """Between what all of them lie; `None` if that rests on what the launch does not prove."""
    found: list[Interval] = []
    for state in states:
        match state:
            case Integer(expression=expression, assumptions=()):
                found.append(expression.interval)
            case Integer():
                element = element_of(value.type)
                assert isinstance(element, IntType)
                found.append(Interval(element.smallest, element.largest))
            case Pointer(offset=offset, assumptions=()):
                found.append(offset.interval)
            case _:
                return None
    return Interval(min(each.low for each in found), max(each.high for each in found))


def values_in(op: Op) -> frozenset[Value]:
    """Every value that the regions of an op define."""
    regions = list(op.regions)
    found: set[Value] = set()
    for region in regions:
        found.update(region.arguments)
        for each in region.ops:
            found.update(each.results)
            regions.extend(each.regions)
    return frozenset(found)


def is_free_of(state: State | None, values: frozenset[Value]) -> bool:
    """Whether a state is known and its expressions have no symbol for any of the values."""
    match state:
        case Integer(expression=expression, assumptions=assumptions):
            parts = [expression]
        case Pointer(offset=offset, assumptions=assumptions):
            parts = [offset]
        case Condition(comparisons=comparisons, leftovers=leftovers, assumptions=assumptions):
            parts = [each.expression for each in comparisons]
            parts += [of(each.symbol) for each in leftovers]
        case Described(offset=offset, sizes=sizes, strides=strides, assumptions=assumptions):
            parts = [offset, *sizes, *strides]
        case _:
            return False
    parts += [each.expression for each in assumptions]
    return not any(
        isinstance(leaf, Symbol) and leaf.value in values for part in parts for leaf in leaves(part)
    )
