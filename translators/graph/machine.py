"""What the meaning of an op may ask of the evaluator that runs it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from translators.graph.graph import Function, Op, Region
from translators.graph.memory import Memory


@dataclass(frozen=True, slots=True)
class Enter:
    """A structured op's wish: run `region` with `arguments`, give back what it ends with.

    Attributes:
      region: what to run.
      arguments: one for each argument of the region.
      function: whether the region is a function's body, which `tt.return` ends.
    """

    region: Region
    arguments: Sequence[Any]
    function: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a kernel said while it ran: a print, a failed assertion, a broken assumption.

    Attributes:
      op: the op that said it.
      program: the program's ids.
      message: the kernel's own text; empty for an assumption.
      values: what was printed, or the condition that did not hold.
    """

    op: Op
    program: tuple[int, int, int]
    message: str
    values: tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class Machine:
    """The state of one launch.

    Attributes:
      memory: all buffers.
      grid: programs along each axis.
      functions: what can be called, by name.
      program: ids of the program that runs now.
      records: what the kernel said so far.
    """

    memory: Memory
    grid: tuple[int, int, int]
    functions: dict[str, Function]
    program: tuple[int, int, int] = (0, 0, 0)
    records: list[Record] = field(default_factory=list)
