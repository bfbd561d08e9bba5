"""Where in the kernel's own source an op comes from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """A place in the Python file that defines a kernel.

    Attributes:
      file: the path as the front end recorded it.
      line: 1-based line.
      column: 1-based column; 0 where it is not known.
      text: the source line without surrounding blanks; empty where it is not known.
    """

    file: str
    line: int
    column: int = 0
    text: str = ""

    def __str__(self) -> str:
        """`file:line:column`, without the column where it is not known."""
        place = f"{self.file}:{self.line}"
        return f"{place}:{self.column}" if self.column else place
