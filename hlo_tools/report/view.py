"""What all formats agree on: options, order, which findings to show, and the counts."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hlo_tools.budgets import BudgetCheck
from hlo_tools.findings import Finding, Outcome, Severity
from hlo_tools.hlo.location import SourceLocation


class SourceReader(Protocol):
    """Gives reports the user's own source, as far as it may be read."""

    def display(self, file: str) -> str | None:
        """Returns where `file`, as a dump spells it, lies on this machine, or `None`."""

    def line(self, file: str, number: int) -> str | None:
        """Returns the text of a 1-based line, without its line end, or `None`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """How to render an outcome.

    Attributes:
      show_notes: show findings of severity note in formats for people.
      fail_on: the severity from which on a finding makes the run fail; `None` is never.
      statistics: add a table of counts per rule, in the formats for people.
      color: use SGR colours, in the formats for people.
      width: columns to wrap at.
      sources: the user's source, if it may be read.
    """

    show_notes: bool = False
    fail_on: Severity | None = Severity.WARNING
    statistics: bool = False
    color: bool = False
    width: int = 100
    sources: SourceReader | None = None

    def display(self, file: str) -> str:
        """Returns the path to show for a source file: where it lies here, or as in the dump."""
        found = self.sources.display(file) if self.sources else None
        return file if found is None else found

    def source_line(self, location: SourceLocation) -> str | None:
        """Returns the text of the first line that `location` names, if it can be read."""
        if self.sources is None or location.line < 1:
            return None
        return self.sources.line(location.file, location.line)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings by severity, share, seconds, then place; ties by every other name."""
    return sorted(findings, key=_badness)


def _badness(finding: Finding) -> tuple[object, ...]:
    source, cost = finding.source, finding.cost
    return (
        -finding.severity,
        -_known(cost.share),
        -_known(cost.seconds),
        source.file if source else "",
        source.line if source else 0,
        (source.column or 0) if source else 0,
        finding.id,
        finding.path,
        finding.module,
        finding.hlo_line,
        finding.computation,
        finding.instruction,
        finding.message,
        finding.fingerprint,
    )


def _known(number: float | None) -> float:
    """Returns 0 for what is unknown; a NaN among sort keys would leave no order at all."""
    return 0.0 if number is None or math.isnan(number) else number


def shown(outcome: Outcome, options: ReportOptions) -> list[Finding]:
    """Returns the findings that a person should see, worst first: no suppressed, no hidden ones."""
    return worst_first(
        [
            finding
            for finding in outcome.findings
            if finding.suppressed is None
            and (options.show_notes or finding.severity > Severity.NOTE)
        ]
    )


def fails(finding: Finding, fail_on: Severity | None) -> bool:
    """Says whether a finding makes the run fail."""
    return fail_on is not None and finding.suppressed is None and finding.severity >= fail_on


def exit_status(outcome: Outcome, fail_on: Severity | None) -> int:
    """Returns 2 if a part of the run could not be done, else 1 if it fails, else 0.

    It fails by a finding, or by a budget that is exceeded, which counts as an error.
    """
    if outcome.problems:
        return 2
    if fail_on is not None and exceeded(outcome):
        return 1
    return int(any(fails(finding, fail_on) for finding in outcome.findings))


def exceeded(outcome: Outcome) -> list[BudgetCheck]:
    """Returns the budgets that are exceeded, in their order."""
    return [check for check in outcome.budgets if check.exceeded]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How often a rule fired, and the seconds per step of its findings together."""

    id: str
    rule: str
    findings: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of an outcome; suppressed findings are counted in `suppressed` alone.

    Those of them that older dumps have as well are counted in `known` too.
    """

    by_severity: dict[Severity, int] = field(default_factory=lambda: dict.fromkeys(Severity, 0))
    suppressed: int = 0
    known: int = 0
    failing: int = 0
    rules: list[RuleCount] = field(default_factory=list)


def tally(outcome: Outcome, fail_on: Severity | None) -> Tally:
    """Counts the findings of an outcome, in one pass; rules are in the order of their ids."""
    result = Tally()
    numbers: Counter[tuple[str, str]] = Counter()
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    for finding in outcome.findings:
        if finding.suppressed is not None:
            result.suppressed += 1
            result.known += finding.suppressed == "against"
            continue
        result.by_severity[finding.severity] += 1
        result.failing += fails(finding, fail_on)
        key = (finding.id, finding.rule)
        numbers[key] += 1
        seconds[key] += finding.cost.seconds or 0.0
    result.rules = [
        RuleCount(id=key[0], rule=key[1], findings=numbers[key], seconds=seconds[key])
        for key in sorted(numbers)
    ]
    return result
