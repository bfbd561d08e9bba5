"""What two compiles of a program differ in: the only thing that reports of a comparison see."""

from dataclasses import dataclass

from hlo_tools.figures import Figures
from hlo_tools.findings import Problem
from hlo_tools.hlo.location import SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """An instruction of one of the two programs, and what it costs there.

    Attributes:
      opcode: as in the text; of a collective, in whatever form, that of the collective.
      hlo_line: 1-based line in the file that was read.
      shape: of the result, with its layout.
      seconds: modelled seconds per step, all executions together; 0 without a chip.
      hbm_bytes: bytes through device memory per step.
      times_per_step: executions in one step, a loop of unknown length counted once.
    """

    computation: str
    instruction: str
    opcode: str
    hlo_line: int
    shape: str
    seconds: float
    hbm_bytes: int
    times_per_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An instruction that is in one program only, or costs or does something else in the other."""

    old: Side | None
    new: Side | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Changes that belong together, and why they are there.

    Attributes:
      kind: what the compiler did differently, for example `fusion-lost`.
      message: one plain sentence about it.
      source: the innermost frame of the user's own code behind it; `None` where the dumps name
        none.
      source_is_new: `source` and `op_name` are those of the new program.
      op_name: the name of the operation in the user's program.
      seconds: modelled seconds per step that the new program takes more; negative if less.
      hbm_bytes: bytes through device memory per step that it moves more.
      changes: the instructions, the most expensive first.
    """

    kind: str
    message: str
    source: SourceLocation | None
    source_is_new: bool
    op_name: str | None
    seconds: float
    hbm_bytes: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChange:
    """Buffers of one type that take more or less of the fullest moment than before.

    Attributes:
      shape: with its layout.
      kind: `argument`, `output` or `temporary`.
      old_count: how many of them are live at the old program's fullest moment.
      new_count: likewise, at the new program's.
      old_bytes: what they take together at the old program's fullest moment.
      new_bytes: likewise, at the new program's.
      instruction: one that makes such a buffer on the side that has more, and the other has not.
      source: where that comes from.
    """

    shape: str
    kind: str
    old_count: int
    new_count: int
    old_bytes: int
    new_bytes: int
    instruction: str
    source: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedModule:
    """One of the two programs.

    Attributes:
      path: where it was read from; `-` is standard input.
      name: the module's name.
      chip: the generation whose figures were used; `None` where none applies.
      chip_assumed: the dump did not tell the chip, and the user did not either.
      truncated: the text ended in the middle.
      instructions: in the computations that run.
      unmatched: of those, how many have no counterpart in the other program.
      donated: outputs that lie in the buffer of an argument.
      unknown_trip_counts: loops whose number of trips is not in the dump (each counted once).
      figures: what it costs.
    """

    path: str
    name: str
    chip: str | None
    chip_assumed: bool
    truncated: bool
    instructions: int
    unmatched: int
    donated: int
    unknown_trip_counts: int
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleComparison:
    """Two compiles of one program.

    Attributes:
      causes: most seconds lost first, then by bytes, then by place; their seconds add up to the
        difference of the steps.
      live: what takes more or less of the memory at the fullest moment, the largest growth first.
    """

    old: ComparedModule
    new: ComparedModule
    causes: tuple[Cause, ...]
    live: tuple[LiveChange, ...]

    @property
    def regression(self) -> float | None:
        """By what share the modelled step got slower; negative if faster, `None` if unknown."""
        before, after = self.old.figures.step_seconds, self.new.figures.step_seconds
        if before is None or after is None:
            return None
        if not before:
            return float("inf") if after else 0.0
        return after / before - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One run of `hlo-lint diff`.

    Attributes:
      modules: the programs that both sides have, in the order of the new side.
      only_old: path and name of the modules that the old side alone has.
      only_new: likewise, the new side.
      problems: what could not be read or compared.
      allowed: the share by which a step may get slower before the run fails; `None` is any.
    """

    tool_version: str
    modules: tuple[ModuleComparison, ...]
    only_old: tuple[tuple[str, str], ...] = ()
    only_new: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    allowed: float | None = None

    @property
    def regressed(self) -> tuple[ModuleComparison, ...]:
        """The programs whose step got slower by more than is allowed."""
        if self.allowed is None:
            return ()
        return tuple(m for m in self.modules if (m.regression or 0.0) > self.allowed)

    @property
    def exit_status(self) -> int:
        """2 if something could not be compared, 1 if a step regressed, else 0."""
        return 2 if self.problems else int(bool(self.regressed))
