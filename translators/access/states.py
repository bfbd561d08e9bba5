"""What the analysis knows of a value of the graph.

A value is an integer, a condition, a pointer or a tensor descriptor; of others nothing is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from translators.access.expression import Affine, Interval, Symbol
from translators.graph.location import SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What the launch alone does not prove, and what the analysis rests on.

    Attributes:
      expression: an integer that depends on data.
      interval: between what it must lie.
      reason: what goes wrong otherwise, as a clause.
      op: the op that needs it.
      location: the kernel's line.
    """

    expression: Affine
    interval: Interval
    reason: str
    op: str
    location: SourceLocation | None

    def __str__(self) -> str:
        return f"`{self.expression}` is in {self.interval}, else {self.reason}"


Assumptions: TypeAlias = tuple[Assumption, ...]


def merged(*groups: Assumptions) -> Assumptions:
    """All of them, each once, in the order in which they came."""
    return tuple(dict.fromkeys(each for group in groups for each in group))


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """An integer, or a tensor of them.

    Attributes:
      expression: what it is in each lane.
      assumptions: what that rests on.
    """

    expression: Affine
    assumptions: Assumptions = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A condition `expression >= 0`.

    Attributes:
      expression: the integer compared with zero.
      op: the op that compares.
      location: the kernel's line.
    """

    expression: Affine
    op: str = ""
    location: SourceLocation | None = None

    def __str__(self) -> str:
        return f"{self.expression} >= 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A condition that is not a comparison of expressions.

    Attributes:
      symbol: the truth value, 0 or 1, with the reason why it is no more than that.
      expected: what the symbol must be for the condition to hold.
    """

    symbol: Symbol
    expected: bool = True

    def __str__(self) -> str:
        return f"{self.symbol}" if self.expected else f"not {self.symbol}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A conjunction: it holds where all its parts hold.

    Attributes:
      comparisons: parts that compare expressions.
      leftovers: parts that do not.
      never: whether it holds nowhere; there are no other parts then.
      assumptions: what it rests on.
    """

    comparisons: tuple[Comparison, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    never: bool = False
    assumptions: Assumptions = ()

    @property
    def always(self) -> bool:
        """Whether it holds everywhere."""
        return not (self.comparisons or self.leftovers or self.never)


ALWAYS = Condition()


def never(assumptions: Assumptions = ()) -> Condition:
    """The condition that holds nowhere."""
    return Condition(never=True, assumptions=assumptions)


def at_least_zero(
    expression: Affine,
    op: str,
    location: SourceLocation | None,
    assumptions: Assumptions = (),
) -> Condition:
    """`expression >= 0`, folded where the interval of the expression decides it."""
    interval = expression.interval
    if interval.low >= 0:
        return Condition(assumptions=assumptions)
    if interval.high < 0:
        return never(assumptions)
    comparison = Comparison(expression=expression, op=op, location=location)
    return Condition(comparisons=(comparison,), assumptions=assumptions)


def both(conditions: Iterable[Condition]) -> Condition:
    """Holds where all hold."""
    given = tuple(conditions)
    assumptions = merged(*(each.assumptions for each in given))
    if any(each.never for each in given):
        return never(assumptions)
    return Condition(
        comparisons=tuple(dict.fromkeys(part for each in given for part in each.comparisons)),
        leftovers=tuple(dict.fromkeys(part for each in given for part in each.leftovers)),
        assumptions=assumptions,
    )


def negated(condition: Condition) -> Condition | None:
    """Holds where `condition` does not; `None` if that is no conjunction."""
    assumptions = condition.assumptions
    if condition.never:
        return Condition(assumptions=assumptions)
    match condition.comparisons, condition.leftovers:
        case (), ():
            return never(assumptions)
        case (part,), ():
            opposite = part.expression.times(-1).plus(-1)
            return at_least_zero(opposite, part.op, part.location, assumptions)
        case (), (leftover,):
            flipped = Leftover(symbol=leftover.symbol, expected=not leftover.expected)
            return Condition(leftovers=(flipped,), assumptions=assumptions)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """The address of an element of a buffer, or a tensor of them.

    The offset is a sum of integers none of which wraps around. The address is taken modulo 2**64,
    which changes nothing where it lies in the buffer, as every address that is accessed must.

    Attributes:
      argument: the index of the kernel's argument that points to the buffer.
      offset: elements from where that argument points.
      assumptions: what that rests on.
    """

    argument: int
    offset: Affine
    assumptions: Assumptions = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownPointer:
    """A pointer, or a descriptor, of which it is not known into which buffer it leads.

    Attributes:
      reason: why, as a clause.
      op: the op that decided it; empty for a region's argument.
      location: the kernel's line.
    """

    reason: str
    op: str
    location: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A tensor descriptor: an array in memory as the host or the kernel describes it.

    Attributes:
      argument: the index of the kernel's argument that points to the buffer, or that is the
        descriptor.
      offset: elements from where that argument points to the first element described.
      sizes: elements along each axis.
      strides: elements from one to the next along each axis.
      padding: `zero` or `nan`, read outside of it.
      assumptions: what that rests on.
    """

    argument: int
    offset: Affine
    sizes: tuple[Affine, ...]
    strides: tuple[Affine, ...]
    padding: str
    assumptions: Assumptions = ()


State: TypeAlias = Integer | Condition | Pointer | UnknownPointer | Described
