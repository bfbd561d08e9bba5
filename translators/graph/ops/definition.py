"""How an op is defined: its attributes, its types, its regions and its meaning."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

from translators.graph.graph import Attributes, AttributeValue, Op
from translators.graph.machine import Enter, Machine
from translators.graph.types import Type


class RuleError(ValueError):
    """Operands, attributes or results that an op cannot have; the message is a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typing:
    """What a typing rule looks at.

    Attributes:
      operands: types of the operands.
      attributes: the op's attributes, already checked against its definition.
      wanted: types of the results where the op exists already or its maker names them.
    """

    operands: tuple[Type, ...]
    attributes: Attributes
    wanted: tuple[Type, ...] | None


Rule: TypeAlias = Callable[[Typing], tuple[Type, ...]]
"""Gives the types that the results must have, or raises `RuleError`."""

Operands: TypeAlias = Sequence[Any]
Results: TypeAlias = Sequence[Any]
Steps: TypeAlias = Generator[Enter, Sequence[Any], Results]
"""A structured op runs by asking for its regions, one `Enter` after another."""

Meaning: TypeAlias = Callable[[Op, Operands, Machine], Results | Steps]


class Effect(Enum):
    """What running an op does besides giving its results."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    READ_WRITE = "read and write"
    RECORD = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeSpec:
    """What an attribute may be.

    Attributes:
      kind: the Python type of its value; `tuple` holds integers.
      choices: the values allowed, all of them where empty.
      required: whether the op must have it.
    """

    kind: type[Any] | None
    choices: tuple[AttributeValue, ...] = ()
    required: bool = True

    def problem(self, value: AttributeValue) -> str | None:
        """What is wrong with `value`, as a clause; `None` if nothing."""
        if self.kind is not None and type(value) is not self.kind:
            return f"must be of type `{self.kind.__name__}`, not `{type(value).__name__}`"
        if isinstance(value, tuple) and self.kind is tuple:
            strange = [each for each in value if type(each) is not int]
            if strange:
                return f"must hold integers, not {strange[0]!r}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(map(repr, self.choices))}, not {value!r}"
        return None


def one_of(*choices: AttributeValue) -> AttributeSpec:
    """An attribute that must be one of these keywords or numbers."""
    return AttributeSpec(kind=type(choices[0]), choices=choices)


INT = AttributeSpec(kind=int)
INTS = AttributeSpec(kind=tuple)
TEXT = AttributeSpec(kind=str)
FLAG = AttributeSpec(kind=bool)
NUMBERS = AttributeSpec(kind=None)
OPTIONAL_FLAG = AttributeSpec(kind=bool, required=False)
OPTIONAL_INT = AttributeSpec(kind=int, required=False)
OPTIONAL_TEXT = AttributeSpec(kind=str, required=False)
OPTIONAL_INTS = AttributeSpec(kind=tuple, required=False)

# What a kernel's author promises of any value (`tl.multiple_of` and its like). Every op may carry
# them; they never change what it means.
HINTS: Mapping[str, AttributeSpec] = MappingProxyType(
    dict.fromkeys(("tt.divisibility", "tt.contiguity", "tt.constancy"), OPTIONAL_INTS)
)


def pass_on(op: Op, operands: Operands, machine: Machine) -> Results:
    """The meaning of a terminator: what it takes is what its region gives."""
    return operands


def no_check(op: Op) -> Iterator[str]:
    """The check of an op about whose regions nothing is to be said."""
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDefinition:
    """One op, whole.

    Attributes:
      name: as in the graph and in Triton IR.
      summary: what it gives, one line.
      rule: the types of its results.
      meaning: runs it on NumPy arrays; scalars are arrays of rank 0.
      attributes: what it may carry; others are errors.
      regions: how many regions it may have.
      ends: the terminators that its regions may end in.
      check: what is wrong with its regions, as clauses.
      terminator: whether it ends a region.
      effect: what it does besides.
    """

    name: str
    summary: str
    rule: Rule
    meaning: Meaning
    attributes: Mapping[str, AttributeSpec] = field(default_factory=lambda: MappingProxyType({}))
    regions: tuple[int, ...] = (0,)
    ends: tuple[str, ...] = ()
    check: Callable[[Op], Iterator[str]] = no_check
    terminator: bool = False
    effect: Effect = Effect.NONE
