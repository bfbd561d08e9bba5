"""Integer expressions: sums of coefficients times variables, plus a constant.

A variable is a program id, a digit of the grid laid out anew (`programs.py`), a lane of the tensor
at hand, an iteration of a loop, a symbol (a scalar argument, a loaded value, or what could not be
analysed), or a derived variable: a floor division, a remainder, a minimum or a maximum whose
operands are expressions again. Expressions are compared by value, and equal expressions are equal
integers in every program and lane.

The value of an expression is a mathematical integer: whoever builds one from machine arithmetic
proves that nothing wraps around (see `transfer.py`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from translators.graph.graph import Value
from translators.graph.location import SourceLocation


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `low` to `high`, both included; `low` is not above `high`."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"an interval is not empty, got {self.low} to {self.high}")

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def scaled(self, factor: int) -> "Interval":
        """The interval of `factor` times each member."""
        ends = (self.low * factor, self.high * factor)
        return Interval(min(ends), max(ends))

    def within(self, other: "Interval") -> bool:
        """Whether every member is one of `other` too."""
        return other.low <= self.low and self.high <= other.high

    def __str__(self) -> str:
        return f"[{self.low}, {self.high}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramId:
    """The id of the program along `axis`, from 0 to `extent - 1`."""

    axis: int
    extent: int

    @property
    def interval(self) -> Interval:
        """What it can be."""
        return Interval(0, self.extent - 1)

    def __str__(self) -> str:
        return f"pid{self.axis}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """The coordinate of the program along an axis of the grid laid out anew.

    Attributes:
      axis: which axis of `ProgramAxes.axes`; not one of the launch's grid.
      extent: how many values it takes, from 0 on.
      name: the kernel's own name for it where known; unique among the axes.
    """

    axis: int
    extent: int
    name: str = field(compare=False)

    @property
    def interval(self) -> Interval:
        """What it can be."""
        return Interval(0, self.extent - 1)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The position along `axis` of the tensor that the expression describes."""

    axis: int
    extent: int

    @property
    def interval(self) -> Interval:
        """What it can be."""
        return Interval(0, self.extent - 1)

    def __str__(self) -> str:
        return f"lane{self.axis}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """How often the body of a loop has run before, in the run at hand.

    Attributes:
      loop: the loop's number, in the order of the kernel's text.
      extent: the most iterations that the loop can have in any program.
      fixed: whether the launch alone fixes how many iterations each program has.
    """

    loop: int
    extent: int
    fixed: bool

    @property
    def interval(self) -> Interval:
        """What it can be."""
        return Interval(0, self.extent - 1)

    def __str__(self) -> str:
        return f"iteration{self.loop}"


class Origin(Enum):
    """Where a symbol comes from."""

    ARGUMENT = "argument"
    LOADED = "loaded"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """The integer that an op or a region gave, taken as it is.

    Attributes:
      value: the value in the graph.
      number: tells symbols apart in text, by the order in which they were met.
      lanes: for each dimension of the value, the axis of the tensor at hand along which it
        moves; `None` where the value is the same all along its dimension.
      interval: what it can be.
      origin: where it comes from.
      op: the op that gave it; empty for an argument of the kernel.
      reason: why it was taken as it is, as a clause.
      location: the kernel's line.
    """

    value: Value
    number: int
    lanes: tuple[int | None, ...] = ()
    interval: Interval = field(compare=False)
    origin: Origin = field(compare=False)
    op: str = field(default="", compare=False)
    reason: str = field(default="", compare=False)
    location: SourceLocation | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The kernel's own name for it where known, made unique."""
        return f"{self.value.name or self.origin.value}.{self.number}"

    def __str__(self) -> str:
        moving = [f"lane{axis}" for axis in self.lanes if axis is not None]
        return f"{self.name}[{', '.join(moving)}]" if moving else self.name


class Derivation(Enum):
    """What a derived variable computes from its two operands."""

    FLOOR_DIVIDE = "//"
    REMAINDER = "%"
    MINIMUM = "min"
    MAXIMUM = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A function of two expressions that is not a sum of multiples.

    Attributes:
      derivation: the function; division rounds down, a remainder lies in `[0, divisor)`.
      left: the dividend.
      right: the divisor, which is positive.
      interval: what it can be.
      size: how many derived variables it is made of, itself included.
      text: how it is written; the same for equal variables.
      op: the op that asked for it.
      location: the kernel's line.
    """

    derivation: Derivation
    left: "Affine"
    right: "Affine"
    interval: Interval = field(compare=False)
    size: int = field(compare=False)
    text: str = field(compare=False)
    op: str = field(default="", compare=False)
    location: SourceLocation | None = field(default=None, compare=False)

    # Both would walk all that is inside, again and again: the text says the same in one piece.
    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


def text_of(derivation: Derivation, left: "Affine", right: "Affine") -> str:
    """How a derived variable is written."""
    sign = derivation.value
    if derivation in (Derivation.MINIMUM, Derivation.MAXIMUM):
        return f"{sign}({left}, {right})"
    return f"({_factor(left)} {sign} {_factor(right)})"


def _factor(expression: "Affine") -> str:
    match expression.terms, expression.offset:
        case ((), number) if number >= 0:
            return str(number)
        case ((variable, 1),), 0:
            return str(variable)
        case _:
            return f"({expression})"


Variable: TypeAlias = ProgramId | Digit | Lane | Iteration | Symbol | Derived
Leaf: TypeAlias = ProgramId | Digit | Lane | Iteration | Symbol

_RANKS: dict[type, int] = {ProgramId: 0, Digit: 0, Iteration: 1, Symbol: 2, Derived: 3, Lane: 4}


def _sort_key(term: tuple[Variable, int]) -> tuple[int, int, str]:
    variable, _ = term
    axis = variable.axis if isinstance(variable, Digit) else 0
    return _RANKS[type(variable)], axis, str(variable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """A sum; make one with `total`, `constant` or `of`, which keep it canonical.

    Attributes:
      terms: variables with their coefficients, none of them zero, in a fixed order.
      offset: the constant.
    """

    terms: tuple[tuple[Variable, int], ...] = ()
    offset: int = 0

    @property
    def interval(self) -> Interval:
        """Between what it lies, each variable taken alone."""
        low = high = self.offset
        for variable, coefficient in self.terms:
            part = variable.interval.scaled(coefficient)
            low += part.low
            high += part.high
        return Interval(low, high)

    @property
    def value(self) -> int | None:
        """The number if it has no variables."""
        return None if self.terms else self.offset

    def coefficient(self, variable: Variable) -> int:
        """What the variable is multiplied with; 0 if it is not there."""
        return next((factor for found, factor in self.terms if found == variable), 0)

    def __add__(self, other: "Affine") -> "Affine":
        return total((*self.terms, *other.terms), self.offset + other.offset)

    def __sub__(self, other: "Affine") -> "Affine":
        return self + other.times(-1)

    def plus(self, number: int) -> "Affine":
        """The sum with a number."""
        return Affine(terms=self.terms, offset=self.offset + number)

    def times(self, factor: int) -> "Affine":
        """The product with a number."""
        if not factor:
            return constant(0)
        terms = tuple((variable, each * factor) for variable, each in self.terms)
        return Affine(terms=terms, offset=self.offset * factor)

    def divisible_by(self, divisor: int) -> bool:
        """Whether each coefficient and the constant are multiples of `divisor`."""
        return self.offset % divisor == 0 and all(each % divisor == 0 for _, each in self.terms)

    def __str__(self) -> str:
        text = ""
        parts = [(abs(each), each < 0, str(variable)) for variable, each in self.terms]
        if self.offset or not parts:
            parts.append((abs(self.offset), self.offset < 0, ""))
        for factor, negative, name in parts:
            word = name if factor == 1 and name else f"{factor}*{name}" if name else str(factor)
            if text:
                text += f" - {word}" if negative else f" + {word}"
            else:
                text = f"-{word}" if negative else word
        return text


def constant(number: int) -> Affine:
    """A number as an expression."""
    return Affine(offset=number)


def of(variable: Variable) -> Affine:
    """A variable as an expression; the only value that it can have where there is only one."""
    interval = variable.interval
    if interval.low == interval.high:
        return constant(interval.low)
    return Affine(terms=((variable, 1),))


def lane(axis: int, extent: int) -> Affine:
    """The position along an axis; 0 where it has one position."""
    return of(Lane(axis=axis, extent=extent))


def total(terms: Iterable[tuple[Variable, int]], offset: int = 0) -> Affine:
    """The canonical sum: like terms added, `n * (x // n) + x % n` put together again."""
    found: dict[Variable, int] = {}
    for variable, coefficient in terms:
        found[variable] = found.get(variable, 0) + coefficient
    pending = [each for each in found if _is(each, Derivation.REMAINDER)]
    while pending:
        rest = pending.pop()
        assert isinstance(rest, Derived)
        factor = found.get(rest, 0)
        divisor = rest.right.value
        if not factor or divisor is None:
            continue
        for other in tuple(found):
            if (
                isinstance(other, Derived)
                and other.derivation is Derivation.FLOOR_DIVIDE
                and (other.left, other.right) == (rest.left, rest.right)
                and found[other] == divisor * factor
            ):
                del found[other], found[rest]
                offset += rest.left.offset * factor
                for variable, coefficient in rest.left.terms:
                    found[variable] = found.get(variable, 0) + coefficient * factor
                    if _is(variable, Derivation.REMAINDER):
                        pending.append(variable)
                break
    kept = sorted(((each, factor) for each, factor in found.items() if factor), key=_sort_key)
    return Affine(terms=tuple(kept), offset=offset)


def _is(variable: Variable, derivation: Derivation) -> bool:
    return isinstance(variable, Derived) and variable.derivation is derivation


def derived_in(expression: Affine) -> list[Derived]:
    """The derived variables inside at any depth, each after those that it is made of."""
    ordered: dict[Derived, None] = {}
    stack: list[tuple[Variable, bool]] = [(variable, False) for variable, _ in expression.terms]
    while stack:
        variable, ready = stack.pop()
        if not isinstance(variable, Derived) or variable in ordered:
            continue
        if ready:
            ordered[variable] = None
            continue
        stack.append((variable, True))
        for operand in (variable.left, variable.right):
            stack.extend((inner, False) for inner, _ in operand.terms)
    return list(ordered)


def leaves(expression: Affine) -> Iterator[Leaf]:
    """Every variable inside at any depth that is not derived; some more than once."""
    sums = [expression]
    for derived in derived_in(expression):
        sums += derived.left, derived.right
    for each in sums:
        for variable, _ in each.terms:
            if not isinstance(variable, Derived):
                yield variable


def axes(expression: Affine | Variable) -> frozenset[int]:
    """The axes of the tensor at hand along which the expression moves."""
    if not isinstance(expression, Affine):
        expression = Affine(terms=((expression, 1),))
    found: set[int] = set()
    for leaf in leaves(expression):
        if isinstance(leaf, Lane):
            found.add(leaf.axis)
        elif isinstance(leaf, Symbol):
            found.update(axis for axis in leaf.lanes if axis is not None)
    return frozenset(found)


def depends_on_data(expression: Affine) -> bool:
    """Whether the launch alone does not fix the value in each program, iteration and lane."""
    return any(
        isinstance(leaf, Symbol) or (isinstance(leaf, Iteration) and not leaf.fixed)
        for leaf in leaves(expression)
    )


def evaluate(expression: Affine, value_of: Callable[[Leaf], int]) -> int:
    """The number that the expression is where the leaves have these values.

    Raises:
      ZeroDivisionError: a divisor is 0 for these values.
    """
    known: dict[Derived, int] = {}

    def number(each: Affine) -> int:
        result = each.offset
        for variable, factor in each.terms:
            here = known[variable] if isinstance(variable, Derived) else value_of(variable)
            result += factor * here
        return result

    for derived in derived_in(expression):
        left, right = number(derived.left), number(derived.right)
        match derived.derivation:
            case Derivation.FLOOR_DIVIDE:
                known[derived] = left // right
            case Derivation.REMAINDER:
                known[derived] = left % right
            case Derivation.MINIMUM:
                known[derived] = min(left, right)
            case Derivation.MAXIMUM:
                known[derived] = max(left, right)
    return number(expression)
