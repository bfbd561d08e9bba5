"""The text of a function while it is written: names, statements, and what of them is needed.

Every name is assigned once, so that what nobody uses can be left out at the end, and what is
used once can stand where it is used.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from translators.emit.finishing import TAKEN, finished
from translators.emit.preamble import NEEDS
from translators.emit.statements import Statement
from translators.graph.location import SourceLocation


class Writer:
    """Takes statements down; `lines` gives those that matter."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._used: set[str] = set(taken)
        self._stems: dict[str, str] = {}
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
        while name in self._used or name in TAKEN:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        self._stems[name] = stem
        return name

    def assign(self, text: str, hint: str = "", *, pinned: bool = False) -> str:
        """A new name for an expression; a pinned one is computed where it stands."""
        name = self.fresh(hint or "t")
        self._block.append(Statement((name,), text, self.location, bool(hint), pinned=pinned))
        self._homes[name] = self._block
        return name

    def beside(self, home: str, text: str, hint: str = "") -> str:
        """A name for an expression of nothing but `home`, in the block that `home` is named in.

        What a loop would compute again and again so stands in front of it.
        """
        if text not in self._hoisted:
            name = self.fresh(hint or "t")
            block = self._homes.get(home, self._open[0])
            block.append(Statement((name,), text, self.location))
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
        for each in (*NEEDS.get(name, ()), name):
            self.helpers[each] = None
        return name

    def effect(self, text: str) -> None:
        """A statement that is run for what it does."""
        self._block.append(Statement((), text, self.location, guard=True))

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
            for block, length in zip(self._open, lengths, strict=False):
                del block[length:]
            self._used, self.helpers = used, helpers
            self._homes, self._hoisted = homes, hoisted

    def extend(self, statements: list[Statement]) -> None:
        """Takes statements over that were taken down apart."""
        self._block += statements
        for name, block in self._homes.items():
            if block is statements:
                self._homes[name] = self._block

    def finished(self, returns: str, kept: Iterable[str]) -> tuple[list[str], frozenset[str]]:
        """The body of the function, and the names that it uses without giving them.

        Args:
          returns: what the function gives.
          kept: names that must stay what they are.
        """
        stems = {name: stem for name, stem in self._stems.items() if name not in set(kept)}
        return finished(self._block, returns, stems)
