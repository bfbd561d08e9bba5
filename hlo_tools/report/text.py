"""The report for people: worst first, each finding with its source line, cost and fix."""

from collections.abc import Iterator
from itertools import groupby

from hlo_tools.findings import Finding, ModuleSummary, Outcome, Severity
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse, visible, wrap
from hlo_tools.report.terminal import (
    BOLD,
    CYAN,
    MIN_WIDTH,
    RED,
    YELLOW,
    Painter,
    labelled,
    paragraph,
    source_excerpt,
)
from hlo_tools.report.view import ReportOptions, shown, tally

_MAX_RELATED = 5
_SEVERITY_COLOR = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: CYAN}


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    modules = phrases.modules_by_key(outcome)
    paint = Painter(enabled=options.color)
    for finding in shown(outcome, options):
        module = modules.get((finding.path, finding.module))
        yield paragraph(_finding(finding, module, options, paint))
    yield paragraph(_budgets(outcome, paint))
    yield paragraph(phrases.remarks(outcome))
    totals = tally(outcome, options.fail_on)
    if options.statistics:
        yield paragraph(phrases.statistics(totals))
    yield paint(BOLD, defuse(phrases.summary(outcome, totals, options))) + "\n"


def _budgets(outcome: Outcome, paint: Painter) -> Iterator[str]:
    for (path, module), group in groupby(outcome.budgets, key=lambda c: (c.path, c.module)):
        checks = list(group)
        yield paint(BOLD, f"Budgets of {visible(module)}") + f" ({phrases.dump_path(path)})"
        width = max(len(visible(check.budget.key)) for check in checks)
        for check in checks:
            state = phrases.budget_state(check)
            state = paint(RED, state) if check.exceeded else state
            yield f"  {visible(check.budget.key):<{width}}  {state}"


def _finding(
    finding: Finding, module: ModuleSummary | None, options: ReportOptions, paint: Painter
) -> Iterator[str]:
    width = max(MIN_WIDTH, options.width)
    color = _SEVERITY_COLOR[finding.severity]
    place = paint(BOLD, phrases.place(finding, options))
    if finding.source and finding.source.inferred:
        place += " (inferred)"
    label = paint(color, f"{finding.severity.label} {visible(finding.id)}")
    yield f"{place}: {label} {visible(finding.rule)}"
    for line in wrap(visible(finding.message), width - 2):
        yield "  " + line
    yield from source_excerpt(finding.source, options, width=width, paint=paint, color=color)
    at = phrases.instruction(finding)
    if finding.source and finding.source.function:
        at += f", from {visible(finding.source.function)}"
    yield from labelled("at", at, width, paint)
    yield from labelled("cost", phrases.cost(finding, module), width, paint)
    yield from labelled("fix", visible(finding.fix), width, paint)
    for related in finding.related[:_MAX_RELATED]:
        where = f"dump line {related.hlo_line}"
        if related.source is not None:
            where = f"{phrases.source_place(related.source, options)}, {where}"
        name = visible(related.instruction).removeprefix("%")
        text = f"%{name} ({where}): {visible(related.message)}"
        yield from labelled("see", text, width, paint)
    if len(finding.related) > _MAX_RELATED:
        yield from labelled("see", f"{len(finding.related) - _MAX_RELATED:,} more", width, paint)
