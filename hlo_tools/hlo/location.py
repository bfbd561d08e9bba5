"""A place in the user's own program, as compiled HLO records it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """One frame of the Python program that made an instruction.

    Attributes:
      file: the path as the dump spells it.
      line: 1-based; 0 where the dump gives a file only.
      end_line: 1-based last line, where known.
      column: 1-based, where known.
      end_column: 1-based, exclusive, where known.
      function: the name of the enclosing Python function, where known.
      inferred: the instruction itself carries no place; this is that of a neighbour it serves.
    """

    file: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    function: str | None = None
    inferred: bool = False
