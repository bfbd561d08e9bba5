"""The states of a kernel's values, as far as the analysis has come."""

from collections.abc import Iterable
from dataclasses import dataclass

from translators.access.expression import (
    Affine,
    Interval,
    Origin,
    Symbol,
    axes,
    depends_on_data,
    of,
)
from translators.access.program_axes import ProgramAxes, rewritten
from translators.access.states import (
    Assumption,
    Assumptions,
    Condition,
    Integer,
    Leftover,
    Pointer,
    State,
    UnknownPointer,
)
from translators.graph.graph import Op, Value
from translators.graph.location import SourceLocation
from translators.graph.types import DescriptorType, IntType, PointerType, element_of, shape_of

# Addresses have 64 bits, and an element takes at least a byte.
_OFFSETS = Interval(-(1 << 63), (1 << 63) - 1)


def state_axes(state: State | None) -> frozenset[int] | None:
    """The axes along which a value moves; `None` if they are not known."""
    match state:
        case Integer(expression=expression):
            return axes(expression)
        case Pointer(offset=offset):
            return axes(offset)
        case Condition(comparisons=comparisons, leftovers=leftovers):
            parts = [axes(each.expression) for each in comparisons]
            parts += [axes(each.symbol) for each in leftovers]
            return frozenset().union(*parts)
        case _:
            return None


def _limits(value: Value) -> Interval:
    """What a value can be by its type alone; of a pointer, the offset is meant."""
    element = element_of(value.type)
    if isinstance(element, IntType):
        return Interval(element.smallest, element.largest)
    return _OFFSETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A choice between two integers, in each lane.

    Attributes:
      condition: where the first is chosen.
      held: the first.
      otherwise: the second.
    """

    condition: Condition
    held: Integer
    otherwise: Integer


class Knowledge:
    """What is known of each value; a value never seen is known by its type alone.

    Attributes:
      grid: programs along each axis.
      axes: the coordinates that everything is in terms of; program ids if there are none.
      selections: the values that are choices and have a symbol of their own.
    """

    def __init__(self, grid: tuple[int, int, int], axes: ProgramAxes | None = None) -> None:
        self.grid = grid
        self.axes = axes
        self.selections: dict[Value, Selection] = {}
        self._states: dict[Value, State] = {}
        self._numbers: dict[Value, int] = {}

    def get(self, value: Value) -> State | None:
        """The state, if one was put."""
        return self._states.get(value)

    def put(self, value: Value, state: State) -> None:
        """Takes down the state of a value, in terms of the programs' axes where there are any."""
        self._states[value] = state if self.axes is None else rewritten(state, self.axes)

    def forget(self, values: Iterable[Value]) -> None:
        """Drops what was taken down of values."""
        for value in values:
            self._states.pop(value, None)

    def laid_out(self, expression: Affine) -> Affine:
        """An expression in terms of the programs' axes where there are any."""
        return expression if self.axes is None else self.axes.rewrite(expression)

    def states(self) -> dict[Value, State]:
        """All states."""
        return dict(self._states)

    def symbol(
        self,
        value: Value,
        reason: str,
        *,
        op: str = "",
        location: SourceLocation | None = None,
        moving: Iterable[int] | None = None,
        interval: Interval | None = None,
        origin: Origin = Origin.OPAQUE,
    ) -> Symbol:
        """The value taken as it is.

        Args:
          value: of integer or pointer type; of a pointer, the offset is meant.
          reason: why, as a clause.
          op: the op that gives it.
          location: the kernel's line.
          moving: the dimensions along which it may differ; all if not given.
          interval: what it can be, where that is less than its type.
          origin: where it comes from.
        """
        shape = shape_of(value.type)
        along = range(len(shape)) if moving is None else frozenset(moving)
        if interval is None:
            interval = _limits(value)
        return Symbol(
            value=value,
            number=self._numbers.setdefault(value, len(self._numbers)),
            lanes=tuple(
                axis if extent > 1 and axis in along else None for axis, extent in enumerate(shape)
            ),
            interval=interval,
            origin=origin,
            op=op,
            reason=reason,
            location=location,
        )

    def range_of(self, value: Value) -> Interval:
        """Between what an integer lies, proved."""
        state = self.integer(value)
        if state.assumptions:
            return _limits(value)
        return state.expression.interval

    def opaque(
        self,
        op: Op,
        reason: str,
        *,
        result: int = 0,
        elementwise: bool = False,
        interval: Interval | None = None,
    ) -> State | None:
        """What a result of an op is where only the op itself tells; `None` if it is no index.

        Args:
          op: the op.
          reason: why nothing else tells, as a clause.
          result: which of its results.
          elementwise: whether each element depends on those of the operands in its place alone.
          interval: between what the result lies unless it wraps around.
        """
        value = op.results[result]
        moving: set[int] | None = None
        if elementwise:
            moving = set()
            for operand in op.operands:
                found = state_axes(self._states.get(operand))
                if found is None and shape_of(operand.type):
                    moving = None
                    break
                moving |= found or set()
        if interval is not None and not interval.within(_limits(value)):
            interval = None
        return self.bare(
            value, reason, op=op.name, location=op.location, moving=moving, interval=interval
        )

    def bare(
        self,
        value: Value,
        reason: str,
        *,
        op: str = "",
        location: SourceLocation | None = None,
        moving: Iterable[int] | None = None,
        interval: Interval | None = None,
        origin: Origin = Origin.OPAQUE,
    ) -> State | None:
        """The state of a value of which only the type is known; arguments as for `symbol`."""
        element = element_of(value.type)
        if isinstance(element, PointerType) or isinstance(value.type, DescriptorType):
            return UnknownPointer(reason=reason, op=op, location=location)
        if not isinstance(element, IntType):
            return None
        symbol = self.symbol(
            value,
            reason,
            op=op,
            location=location,
            moving=moving,
            interval=interval,
            origin=origin,
        )
        if element.width == 1:
            return Condition(leftovers=(Leftover(symbol=symbol),))
        return Integer(expression=of(symbol))

    def integer(self, value: Value) -> Integer:
        """The state of a value of integer type, not `i1`."""
        state = self._states.get(value)
        if isinstance(state, Integer):
            return state
        return Integer(expression=of(self.symbol(value, "nothing is known of it")))

    def condition(self, value: Value) -> Condition:
        """The state of a value of type `i1`."""
        state = self._states.get(value)
        if isinstance(state, Condition):
            return state
        symbol = self.symbol(value, "nothing is known of it")
        return Condition(leftovers=(Leftover(symbol=symbol),))

    def fitted(self, op: Op, expression: Affine, assumptions: Assumptions = ()) -> State | None:
        """The result of machine arithmetic that is `expression` unless it wraps around.

        Where the launch fixes the operands, that it does not wrap is proved, or the result is
        taken as it is. Where they depend on data it is assumed, and the assumption kept.
        """
        element, limits = element_of(op.result.type), _limits(op.result)
        interval = expression.interval
        if interval.within(limits):
            return Integer(expression=expression, assumptions=assumptions)
        apart = interval.low > limits.high or interval.high < limits.low
        if apart or not depends_on_data(expression):
            return self.opaque(op, f"may wrap around in `{element}`", elementwise=True)
        assumption = Assumption(
            expression=expression,
            interval=limits,
            reason=f"`{op.name}` wraps around in `{element}`",
            op=op.name,
            location=op.location,
        )
        return Integer(expression=expression, assumptions=(*assumptions, assumption))
