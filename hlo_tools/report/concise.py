"""One line a finding, for editors and for searching."""

from collections.abc import Iterator

from hlo_tools.findings import Outcome
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse, visible
from hlo_tools.report.view import ReportOptions, shown, tally


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces; each finding is `file:line:column: severity ID rule: ...`."""
    for line in _lines(outcome, options):
        yield defuse(line) + "\n"


def _lines(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    modules = phrases.modules_by_key(outcome)
    for finding in shown(outcome, options):
        place = phrases.place(finding, options)
        inferred = " (inferred)" if finding.source and finding.source.inferred else ""
        rule = f"{finding.severity.label} {visible(finding.id)} {visible(finding.rule)}"
        cost = phrases.cost(finding, modules.get((finding.path, finding.module)))
        name = visible(finding.instruction).removeprefix("%")
        yield f"{place}: {rule}{inferred}: {visible(finding.message)} [%{name}; {cost}]"
    for check in outcome.budgets:
        place = phrases.dump_place(check.budget.file, check.budget.line)
        state = "error" if check.exceeded else "kept"
        yield f"{place}: {state} budget: {phrases.budget(check)} [{visible(check.module)}]"
    yield from phrases.remarks(outcome)
    totals = tally(outcome, options.fail_on)
    if options.statistics:
        yield from phrases.statistics(totals)
    yield phrases.summary(outcome, totals, options)
