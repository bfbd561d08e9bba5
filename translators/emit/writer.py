"""The text of a function while it is written: names, statements, and what of them is needed.

Every name is assigned once, so that what nobody uses can be left out at the end, and what is
used once can stand where it is used.
"""

import ast
import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from translators.emit.layout import laid_out
from translators.graph.location import SourceLocation

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
# Longer expressions get a line of their own.
_INLINE = 72
_TAKEN = frozenset({*keyword.kwlist, *dir(builtins), "jax", "jnp", "lax", "functools", "np"})


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
      guard: whether it is a check, which is needed whatever it gives.
    """

    targets: tuple[str, ...]
    text: str
    location: SourceLocation | None = None
    named: bool = False
    body: "list[Statement] | None" = None
    returns: str = ""
    guard: bool = False
    uses: frozenset[str] = field(default_factory=frozenset)


def names_in(text: str) -> frozenset[str]:
    """The names that an expression uses."""
    return frozenset(_NAME.findall(text))


class Writer:
    """Takes statements down; `lines` gives those that matter."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._used: set[str] = set(taken)
        self._block: list[Statement] = []
        self._open = [self._block]
        self._homes: dict[str, list[Statement]] = {}
        self._hoisted: dict[str, str] = {}
        self.location: SourceLocation | None = None
        self.helpers: dict[str, None] = {}

    def fresh(self, hint: str) -> str:
        """A name that nobody has."""
        stem = re.sub(r"\W", "_", hint) or "value"
        if stem[0].isdigit():
            stem = f"v{stem}"
        name, number = stem, 0
        while name in self._used or name in _TAKEN:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        return name

    def assign(self, text: str, hint: str = "") -> str:
        """A new name for an expression."""
        name = self.fresh(hint or "t")
        self._block.append(Statement((name,), text, self.location, bool(hint)))
        self._homes[name] = self._block
        return name

    def beside(self, home: str, text: str, hint: str = "") -> str:
        """A name for an expression of nothing but `home`, in the block that `home` is named in.

        What a loop would compute again and again so stands in front of it.
        """
        if text not in self._hoisted:
            name = self.fresh(hint or "t")
            block = self._homes.get(home, self._open[0])
            block.append(Statement((name,), text, self.location, bool(hint)))
            self._homes[name] = block
            self._hoisted[text] = name
        return self._hoisted[text]

    def parameter(self, name: str) -> None:
        """Says that a name is given in the block at hand."""
        self._homes[name] = self._block

    def unpack(self, text: str, hints: Sequence[str]) -> tuple[str, ...]:
        """New names for the members of a tuple."""
        if len(hints) == 1:
            return (self.assign(f"({text})[0]", hints[0]),)
        names = tuple(self.fresh(each or "t") for each in hints)
        self._block.append(Statement(names, text, self.location, True))
        return names

    def helper(self, name: str) -> str:
        """The name of a function of the preamble, which is then part of the file."""
        self.helpers[name] = None
        return name

    def define(self, name: str, parameters: str, body: list[Statement], returns: str) -> None:
        """A nested function."""
        self._block.append(
            Statement((name,), parameters, self.location, True, body=body, returns=returns)
        )

    @contextmanager
    def nested(self) -> Iterator[list[Statement]]:
        """Takes statements down apart; the list is what `define` takes, or may be dropped."""
        outer, self._block = self._block, []
        self._open.append(self._block)
        try:
            yield self._block
        finally:
            self._block = outer
            self._open.pop()

    @contextmanager
    def trial(self) -> Iterator[list[Statement]]:
        """Like `nested`, for statements that are dropped; their names are free again."""
        outer, self._block = self._block, []
        used, helpers = set(self._used), dict(self.helpers)
        homes, hoisted = dict(self._homes), dict(self._hoisted)
        lengths = [len(each) for each in self._open]
        self._open.append(self._block)
        try:
            yield self._block
        finally:
            self._block = outer
            self._open.pop()
            for block, length in zip(self._open, lengths, strict=True):
                del block[length:]
            self._used, self.helpers = used, helpers
            self._homes, self._hoisted = homes, hoisted

    def extend(self, statements: list[Statement]) -> None:
        """Takes statements over that were taken down apart."""
        self._block += statements
        for name, block in self._homes.items():
            if block is statements:
                self._homes[name] = self._block

    def lines(self, returns: str, indent: str = "    ") -> list[str]:
        """The body of the function, with comments that name the kernel's lines."""
        _drop_unused(self._block, set(names_in(returns)))
        _inline(self._block, returns)
        lines: list[str] = []
        _print(self._block, indent, lines, None)
        lines += laid_out(f"return {_neat(returns)}", indent)
        return lines


def _all(block: list[Statement]) -> Iterator[Statement]:
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


def _drop_unused(block: list[Statement], needed: set[str]) -> None:
    """Removes the statements whose names nobody uses, from the end."""
    pending = [(block, len(block) - 1)]
    while pending:
        current, index = pending.pop()
        if index < 0:
            continue
        statement = current[index]
        pending.append((current, index - 1))
        if not statement.guard and needed.isdisjoint(statement.targets):
            del current[index]
            continue
        if statement.body is None:
            needed |= names_in(statement.text)
        else:
            needed |= names_in(statement.returns)
            pending.append((statement.body, len(statement.body) - 1))


def _inline(block: list[Statement], returns: str) -> None:
    """Puts what is used once, and has no name of the person's, where it is used."""
    counts: Counter[str] = Counter(_NAME.findall(returns))
    for statement in _all(block):
        counts.update(
            _NAME.findall(statement.text if statement.body is None else statement.returns)
        )
    pending = [(block, "")]
    while pending:
        current, _ = pending.pop()
        known: dict[str, str] = {}
        kept: list[Statement] = []
        for statement in current:
            if statement.body is not None:
                pending.append((statement.body, statement.returns))
                kept.append(statement)
                continue
            for name in sorted(names_in(statement.text) & known.keys()):
                put = f"({known[name]})"
                merged = re.sub(rf"(?<![\w.]){name}\b", put.replace("\\", r"\\"), statement.text)
                if len(merged) <= _INLINE:
                    statement.text = merged
                    kept = [each for each in kept if each.targets != (name,)]
                    del known[name]
            kept.append(statement)
            (target, *more) = statement.targets
            if not statement.named and not more and counts[target] == 1:
                known[target] = statement.text
        current[:] = kept


def _neat(text: str) -> str:
    """The expression without needless parentheses."""
    if not text:
        return text
    return ast.unparse(ast.parse(text, mode="eval")).replace("'", '"')


def _print(
    block: list[Statement], indent: str, lines: list[str], told: SourceLocation | None
) -> None:
    stack: list[tuple[Iterator[Statement], str, Statement | None]] = [(iter(block), indent, None)]
    while stack:
        statements, indent, owner = stack[-1]
        statement = next(statements, None)
        if statement is None:
            stack.pop()
            if owner is not None:
                lines += laid_out(f"return {_neat(owner.returns)}", indent)
                lines.append("")
            continue
        place = statement.location
        if (
            place is not None
            and place.text
            and (told is None or (place.file, place.line) != (told.file, told.line))
        ):
            lines.append(f"{indent}# {place.line}: {_short(place.text, 94 - len(indent))}")
            told = place
        if statement.body is not None:
            if lines and lines[-1].strip():
                lines.append("")
            lines.append(f"{indent}def {statement.targets[0]}({statement.text}):")
            stack.append((iter(statement.body), indent + "    ", statement))
            continue
        if statement.guard:
            lines += [f"{indent}{each}" for each in statement.text.split("\n")]
            continue
        lines += laid_out(f"{', '.join(statement.targets)} = {_neat(statement.text)}", indent)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
