"""Conditions on what was found, and the words in which they fail."""

from collections.abc import Collection, Sequence
from textwrap import indent

from hlo_tools.findings import Finding, Outcome, Severity
from hlo_tools.quantities import Bytes, Seconds, Share, explained
from hlo_tools.report import phrases
from hlo_tools.report.escape import visible, wrap
from hlo_tools.report.excerpt import excerpt
from hlo_tools.report.view import ReportOptions, worst_first

_WIDTH = 92


class Breaches:
    """What of an outcome is not as it should be.

    Args:
      outcome: what was found.
      options: how places are shown.
    """

    def __init__(self, outcome: Outcome, options: ReportOptions) -> None:
        self._outcome = outcome
        self._options = options
        self._told = [phrases.problem(problem) for problem in outcome.problems]

    def count_findings(self, ids: Collection[str], at_least: Severity) -> None:
        """Counts the findings of some rules, from a severity on, as breaches."""
        found = [
            f
            for f in self._outcome.findings
            if f.id in ids and f.severity >= at_least and f.suppressed is None
        ]
        self.found(worst_first(found))

    def found(self, findings: Sequence[Finding], mark: str = "") -> None:
        """Counts findings as breaches.

        Args:
          findings: in the order in which they are listed.
          mark: what stands before each.
        """
        self._told += [mark + describe(f, self._outcome, self._options) for f in findings]

    def tell(self, breach: str) -> None:
        """Counts something else as a breach."""
        self._told.append(breach)

    def limit(self, figure: Bytes | Share | Seconds, most: float) -> None:
        """Counts a figure above its limit as a breach."""
        if figure > most:
            self._told.append(explained(figure, "<=", most)[-1])

    def raise_any(self, what: str = "") -> None:
        """Raises an `AssertionError` that lists the breaches, if there are any.

        Args:
          what: of what they are; by default they are counted.
        """
        __tracebackhide__ = True
        if self._told:
            names = ", ".join(f"`{visible(m.name)}`" for m in self._outcome.modules)
            told = indent("\n".join(self._told), "  ")
            raise AssertionError(f"{names} {what or self._counted()}\n{told}")

    def _counted(self) -> str:
        number = len(self._told)
        return "breaks one condition:" if number == 1 else f"breaks {number} conditions:"


def describe(finding: Finding, outcome: Outcome, options: ReportOptions) -> str:
    """A finding on a few lines: place, message, source line, cost and fix."""
    module = phrases.modules_by_key(outcome).get((finding.path, finding.module))
    lines = [
        f"{phrases.place(finding, options)}: {finding.severity.label} {visible(finding.id)} "
        f"{visible(finding.rule)}"
    ]
    lines += [f"  {line}" for line in wrap(visible(finding.message), _WIDTH)]
    source = options.source_line(finding.source) if finding.source else None
    if finding.source is not None and source is not None:
        shown = excerpt(finding.source, source, _WIDTH)
        if shown is not None:
            lines += [f"  > {shown.text}"]
    lines += [f"  cost: {phrases.cost(finding, module)}"]
    first, *rest = wrap(visible(finding.fix), _WIDTH - 6)
    lines += [f"  fix:  {first}", *(f"        {line}" for line in rest)]
    return "\n".join(lines)
