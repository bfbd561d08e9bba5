"""What a rule found, and the whole outcome of a run: the only thing reports see."""

import enum
from dataclasses import dataclass

from hlo_tools.budgets import BudgetCheck
from hlo_tools.figures import Figures
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.profile import StepProfile


class Severity(enum.IntEnum):
    """How much of the step a finding costs; ordered, so that thresholds compare."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The lower-case name used in options and reports."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a finding costs in one step (one execution of the entry computation) on one device.

    Attributes:
      effect: what happens to `bytes`: `moves` (memory traffic), `holds` (memory occupied),
        `sends` (bytes on the wire) or `wastes` (padding that is stored or computed on).
      bytes: bytes per step, all executions together; `None` where not established.
      seconds: modelled seconds per step that the remedy would save; `None` where unknown.
      share: the largest of the shares of the step's time, traffic or memory that it takes, 0 to 1.
      times_per_step: executions of the instruction in one step; `None` where unknown.
    """

    effect: str
    bytes: int | None
    seconds: float | None
    share: float | None
    times_per_step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """An instruction that a finding refers to beside the one it names."""

    computation: str
    instruction: str
    hlo_line: int
    message: str
    source: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One defect in one module.

    Attributes:
      rule: rule name, for example `padding-waste`.
      id: rule id, for example `HLO301`.
      module: the module's name.
      path: where the module was read from; `-` is standard input.
      hlo_line: 1-based line of the instruction in the text that was read.
      source: the innermost frame of the user's own code; `None` where the dump names none.
      stack: the whole stack, innermost frame first, library frames included.
      message: one plain sentence: what is slow and why.
      fix: what to do, in the words of the framework.
      fingerprint: 16 hexadecimal digits, stable across renaming, reordering and line shifts.
      suppressed: why it is not reported: the user silenced it (`source`, `config`, `baseline`), or
        the dumps that these are held against have it too (`against`); `None` if it is reported.
    """

    rule: str
    id: str
    severity: Severity
    module: str
    path: str
    computation: str
    instruction: str
    hlo_line: int
    op_name: str | None
    source: SourceLocation | None
    stack: tuple[SourceLocation, ...]
    message: str
    fix: str
    cost: Cost
    related: tuple[Related, ...] = ()
    fingerprint: str = ""
    suppressed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSummary:
    """What a report says about one module that was linted.

    Attributes:
      backend: `tpu`, `gpu`, `cpu`, `neuron` or `unknown`.
      chip: the generation whose figures were used, for example `v5e`; `None` where none applies.
      chip_assumed: the dump did not tell the chip, and the user did not either.
      partitions: the number of devices that the program was partitioned over.
      instructions: instructions in all computations.
      truncated: the text ended in the middle.
      optimized: the text is what the compiler made, not what it was given; only then is it linted.
      step_seconds: modelled seconds of one execution; `None` without a chip, and for a module that
        is not optimised yet.
      peak_hbm_bytes: modelled peak of device memory, arguments and outputs included; `None` for a
        module that is not optimised yet.
      unknown_trip_counts: loops whose number of trips is not in the dump (each counted once).
      opaque_calls: custom calls whose arithmetic the dump does not show, priced by their traffic.
      profile: what the step looks like, where that was asked for and can be told.
      figures: what the step costs in all, where that was asked for and can be told.
    """

    path: str
    name: str
    backend: str
    chip: str | None
    chip_assumed: bool
    partitions: int
    instructions: int
    truncated: bool
    step_seconds: float | None
    peak_hbm_bytes: int | None
    unknown_trip_counts: int = 0
    opaque_calls: int = 0
    optimized: bool = True
    profile: StepProfile | None = None
    figures: Figures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that kept a part of the run from being done: unreadable input, a rule that failed.

    Attributes:
      message: one plain sentence.
      path: the file concerned, if any.
      line: 1-based line in that file, if any.
      rule: the name of the rule that failed, if one did.
    """

    message: str
    path: str | None = None
    line: int | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedSuppression:
    """A suppression that silenced nothing.

    Attributes:
      kind: `source`, `config` or `baseline`.
      text: the suppression as the user wrote it (for a baseline, the fingerprint).
      file: the file that holds it.
      line: 1-based line in that file, where it has one.
    """

    kind: str
    text: str
    file: str
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInfo:
    """What a report may say about a rule without knowing the rule."""

    id: str
    name: str
    summary: str
    documentation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run: the value that every report format renders.

    `findings` is sorted, and includes suppressed ones and notes; which of those to show is
    decided by the report.
    """

    tool_version: str
    modules: tuple[ModuleSummary, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    unused_suppressions: tuple[UnusedSuppression, ...] = ()
    rules: tuple[RuleInfo, ...] = ()
    timings: tuple[tuple[str, float], ...] = ()
    budgets: tuple[BudgetCheck, ...] = ()
