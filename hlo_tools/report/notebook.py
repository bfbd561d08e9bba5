"""The report for a notebook: a table in HTML, in the colours of the page that it stands in."""

from collections.abc import Iterator
from html import escape

from hlo_tools.findings import Finding, ModuleSummary, Outcome, Severity
from hlo_tools.report import phrases
from hlo_tools.report.escape import visible
from hlo_tools.report.view import ReportOptions, shown, tally

MAX_ROWS = 50
"""Findings in the table; the text report has them all."""

_COLOR = {Severity.ERROR: "#c62828", Severity.WARNING: "#b26a00", Severity.NOTE: "#1565c0"}
_CELL = "text-align:left;vertical-align:top;padding:4px 8px"


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces; every name in it is escaped."""
    modules = phrases.modules_by_key(outcome)
    findings = shown(outcome, options)
    summary = phrases.summary(outcome, tally(outcome, options.fail_on), options)
    yield f"<div><p><b>{_text(summary)}</b></p>"
    for remark in phrases.remarks(outcome):
        yield f"<p>{_text(remark)}</p>"
    if findings:
        yield '<table style="border-collapse:collapse"><thead><tr>'
        for heading in ("finding", "place", "what", "cost", "fix"):
            yield f'<th style="{_CELL}">{heading}</th>'
        yield "</tr></thead><tbody>"
        for finding in findings[:MAX_ROWS]:
            yield _row(finding, modules.get((finding.path, finding.module)), options)
        yield "</tbody></table>"
    if len(findings) > MAX_ROWS:
        yield f"<p>{len(findings) - MAX_ROWS:,} more</p>"
    yield "</div>\n"


def _row(finding: Finding, module: ModuleSummary | None, options: ReportOptions) -> str:
    label = f"{finding.severity.label} {finding.id}"
    color = _COLOR[finding.severity]
    place = f"<code>{_text(phrases.place(finding, options))}</code>"
    line = options.source_line(finding.source) if finding.source else None
    if line is not None:
        place += f"<br><code>{_text(line.strip())}</code>"
    cells = (
        f'<b style="color:{color}">{_text(label)}</b><br>{_text(finding.rule)}',
        place,
        _text(finding.message),
        _text(phrases.cost(finding, module)),
        _text(finding.fix),
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _text(text: str) -> str:
    return escape(visible(text))
