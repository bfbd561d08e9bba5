"""The statements of a function that is being written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from translators.graph.location import SourceLocation

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(slots=True)
class Statement:
    """One statement, or a nested function.

    Attributes:
      targets: the names it gives.
      text: the expression on its right; of a function the parameters.
      location: the kernel's line.
      named: whether the person gave it a name; if not, it may stand where it is used.
      body: the statements of a nested function.
      returns: what the nested function gives.
      guard: whether it is needed whatever it gives: a check, or a write to a reference.
      decorator: what a nested function is decorated with.
      pinned: whether it stays where it is, as what it reads is written elsewhere.
    """

    targets: tuple[str, ...]
    text: str
    location: SourceLocation | None = None
    named: bool = False
    body: "list[Statement] | None" = None
    returns: str = ""
    guard: bool = False
    pinned: bool = False
    decorator: str = ""


def names_in(text: str) -> frozenset[str]:
    """The names that an expression uses."""
    return frozenset(NAME.findall(text))


def every(block: list[Statement]) -> Iterator[Statement]:
    """Every statement, a function after those inside it."""
    stack = [iter(block)]
    owners: list[Statement] = []
    while stack:
        statement = next(stack[-1], None)
        if statement is None:
            stack.pop()
            if owners:
                yield owners.pop()
        elif statement.body is not None:
            owners.append(statement)
            stack.append(iter(statement.body))
        else:
            yield statement
