"""Loops: counters and carried values as multiples of the iteration."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from translators.access.division import divide, maximum, minimum
from translators.access.expression import (
    Affine,
    Interval,
    Iteration,
    constant,
    depends_on_data,
    of,
)
from translators.access.knowledge import Knowledge
from translators.access.parts import bounds_of
from translators.access.states import (
    Assumption,
    Assumptions,
    Described,
    Integer,
    Pointer,
    State,
    UnknownPointer,
    merged,
)
from translators.graph.graph import Op, Value
from translators.graph.location import SourceLocation
from translators.graph.types import IntType, element_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A `scf.for` whose counter was followed.

    Attributes:
      number: which loop, in the order of the kernel's text.
      lower: the counter in the first iteration.
      upper: what the counter stays below.
      step: from one iteration to the next.
      trips: how many iterations there are; `None` if that nests too deeply.
      iteration: the variable, 0 in the first iteration.
      location: the kernel's line.
    """

    number: int
    lower: Affine
    upper: Affine
    step: int
    trips: Affine | None
    iteration: Iteration
    location: SourceLocation | None

    @property
    def counter(self) -> Affine:
        """The counter in each iteration."""
        return self.lower + of(self.iteration).times(self.step)

    @property
    def last(self) -> Affine | None:
        """The last iteration; 0 where there is none, `None` if that nests too deeply."""
        # More than there are at most need not be counted, and might have no room in 32 bits.
        span = minimum(self.upper - self.lower, constant(self.iteration.extent * self.step))
        some = None if span is None else maximum(span, constant(1))
        pair = None if some is None else divide(some.plus(-1), constant(self.step))
        return None if pair is None else pair[0]


def loop_of(
    op: Op, number: int, known: Knowledge, limit: int | None = None
) -> tuple[Loop, Assumptions] | None:
    """The loop that a `scf.for` is; `None` if its step is not a positive number.

    Args:
      op: the op.
      number: which loop it is.
      known: what is known of the values around it.
      limit: how many iterations it has at most, where more is known than its bounds say.
    """
    lower, upper, step = (known.integer(each) for each in op.operands[:3])
    stride = step.expression.value
    if stride is None or stride <= 0:
        return None
    span = upper.expression - lower.expression
    if op.attributes.get("unsignedCmp") and (
        min(lower.expression.interval.low, upper.expression.interval.low) < 0
    ):
        return None
    pair = divide(span.plus(stride - 1), constant(stride))
    trips = None if pair is None else maximum(pair[0], constant(0))
    if trips is not None:
        trips = known.laid_out(trips)
    most = -(-bounds_of(span).high // stride)
    if trips is not None:
        most = min(most, bounds_of(trips).high)
    if limit is not None:
        most = min(most, limit)
    iteration = Iteration(loop=number, extent=max(1, most), fixed=not depends_on_data(span))
    loop = Loop(
        number=number,
        lower=lower.expression,
        upper=upper.expression,
        step=stride,
        trips=trips,
        iteration=iteration,
        location=op.location,
    )
    return loop, merged(lower.assumptions, upper.assumptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A guess: the value grows by the same number in each iteration.

    Attributes:
      delta: that number.
    """

    delta: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Varying:
    """A guess: an integer, a pointer that stays in its buffer, or always the same descriptor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfollowed:
    """No guess: only the type is known."""


Guess: TypeAlias = Steady | Varying | Unfollowed


def first_guesses(op: Op, known: Knowledge) -> list[Guess]:
    """The weakest guesses from which the steps can be seen, one for each carried value."""
    initial = (known.get(each) for each in op.operands[3:])
    followed = Integer | Pointer | Described
    return [Varying() if isinstance(each, followed) else Unfollowed() for each in initial]


def unchanging(initial: Iterable[State | None]) -> list[Guess]:
    """For each carried value the guess that it stays what it is."""
    guesses: list[Guess] = []
    for state in initial:
        match state:
            case Integer() | Pointer():
                guesses.append(Steady(delta=0))
            case Described():
                guesses.append(Varying())
            case _:
                guesses.append(Unfollowed())
    return guesses


def assumed(
    guess: Guess,
    value: Value,
    initial: State | None,
    count: Affine | None,
    known: Knowledge,
    op: Op,
) -> State | None:
    """The state of a carried value, if the guess is right.

    Args:
      guess: how it moves.
      value: the argument of the loop's region, or the loop's result.
      initial: the state with which the loop is entered.
      count: how many iterations came before.
      known: what is known so far.
      op: the loop.
    """
    if isinstance(guess, Steady) and count is not None:
        steady = _grown(initial, count.times(guess.delta), value, op)
        if steady is not None:
            return steady
    if isinstance(guess, Steady | Varying):
        reason = "is carried by a loop and does not grow steadily"
        symbol = known.symbol(value, reason, op=op.name, location=op.location)
        if isinstance(initial, Pointer):
            return Pointer(argument=initial.argument, offset=of(symbol))
        if isinstance(initial, Integer):
            return Integer(expression=of(symbol))
        return initial
    return known.bare(value, "is carried by a loop", op=op.name, location=op.location)


def _grown(initial: State | None, growth: Affine, value: Value, op: Op) -> State | None:
    """The initial state moved by `growth`; `None` where that may wrap around."""
    if isinstance(initial, Pointer):
        return replace(initial, offset=initial.offset + growth)
    element = element_of(value.type)
    if not isinstance(initial, Integer) or not isinstance(element, IntType):
        return None
    expression = initial.expression + growth
    limits = Interval(element.smallest, element.largest)
    if expression.interval.within(limits):
        return replace(initial, expression=expression)
    if not depends_on_data(expression):
        return None
    assumption = Assumption(
        expression=expression,
        interval=limits,
        reason=f"`{op.name}` carries what wraps around in `{element}`",
        op=op.name,
        location=op.location,
    )
    return Integer(expression=expression, assumptions=(*initial.assumptions, assumption))


def checked(guess: Guess, entered: State | None, yielded: State | None) -> Guess:
    """The guess if the body bears it out, or the next weaker one.

    Args:
      guess: what was assumed.
      entered: the state of the carried value in the body, under that guess.
      yielded: the state that the body hands to the next iteration.
    """
    step = _step(entered, yielded)
    match guess:
        case Steady(delta=delta):
            return guess if step == delta else Varying()
        case Varying():
            if isinstance(yielded, UnknownPointer):
                return Unfollowed()
            if isinstance(entered, Described):
                return guess if entered == yielded else Unfollowed()
            stays = (
                isinstance(entered, Pointer)
                and isinstance(yielded, Pointer)
                and entered.argument == yielded.argument
            )
            return guess if stays or isinstance(entered, Integer) else Unfollowed()
        case _:
            return guess


def strengthened(guess: Guess, entered: State | None, yielded: State | None) -> Guess:
    """The guess that the value grows steadily, where the body adds a number to it."""
    step = _step(entered, yielded)
    if step is None or not isinstance(guess, Varying):
        return checked(guess, entered, yielded)
    return Steady(delta=step)


def _step(entered: State | None, yielded: State | None) -> int | None:
    match entered, yielded:
        case Integer(), Integer():
            return (yielded.expression - entered.expression).value
        case Pointer(), Pointer() if entered.argument == yielded.argument:
            return (yielded.offset - entered.offset).value
        case _:
            return None
