"""The report for people: worst first, each finding with its source line, cost and fix."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hlo_tools.findings import Finding, ModuleSummary, Outcome, Severity
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse, visible, wrap
from hlo_tools.report.excerpt import excerpt
from hlo_tools.report.view import ReportOptions, shown, tally

_MAX_RELATED = 5
_MIN_WIDTH = 40

# Select Graphic Rendition parameters (ECMA-48, 8.3.117).
_BOLD, _DIM, _RED, _YELLOW, _CYAN = "1", "2", "1;31", "1;33", "1;36"
_SEVERITY_COLOR = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.NOTE: _CYAN}


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    modules = phrases.modules_by_key(outcome)
    paint = _Painter(enabled=options.color)
    for finding in shown(outcome, options):
        module = modules.get((finding.path, finding.module))
        yield _paragraph(_finding(finding, module, options, paint))
    yield _paragraph(phrases.remarks(outcome))
    totals = tally(outcome, options.fail_on)
    if options.statistics:
        yield _paragraph(phrases.statistics(totals))
    yield paint(_BOLD, defuse(phrases.summary(outcome, totals, options))) + "\n"


def _paragraph(lines: Iterable[str]) -> str:
    """Joins lines and sets an empty one below them; nothing for no lines."""
    text = "".join(f"{defuse(line)}\n" for line in lines)
    return text + "\n" if text else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Painter:
    """Colours visible text, or leaves it as it is."""

    enabled: bool

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.enabled and text else text


def _finding(
    finding: Finding, module: ModuleSummary | None, options: ReportOptions, paint: _Painter
) -> Iterator[str]:
    width = max(_MIN_WIDTH, options.width)
    color = _SEVERITY_COLOR[finding.severity]
    place = paint(_BOLD, phrases.place(finding, options))
    if finding.source and finding.source.inferred:
        place += " (inferred)"
    label = paint(color, f"{finding.severity.label} {visible(finding.id)}")
    yield f"{place}: {label} {visible(finding.rule)}"
    for line in wrap(visible(finding.message), width - 2):
        yield "  " + line
    yield from _excerpt(finding, options, width, paint)
    at = phrases.instruction(finding)
    if finding.source and finding.source.function:
        at += f", from {visible(finding.source.function)}"
    yield from _labelled("at", at, width, paint)
    yield from _labelled("cost", phrases.cost(finding, module), width, paint)
    yield from _labelled("fix", visible(finding.fix), width, paint)
    for related in finding.related[:_MAX_RELATED]:
        where = f"dump line {related.hlo_line}"
        if related.source is not None:
            where = f"{phrases.source_place(related.source, options)}, {where}"
        name = visible(related.instruction).removeprefix("%")
        text = f"%{name} ({where}): {visible(related.message)}"
        yield from _labelled("see", text, width, paint)
    if len(finding.related) > _MAX_RELATED:
        yield from _labelled("see", f"{len(finding.related) - _MAX_RELATED:,} more", width, paint)


def _excerpt(
    finding: Finding, options: ReportOptions, width: int, paint: _Painter
) -> Iterator[str]:
    if finding.source is None:
        return
    line = options.source_line(finding.source)
    if line is None:
        return
    number = str(finding.source.line)
    shown_line = excerpt(finding.source, line, width - len(number) - 5)
    if shown_line is None:
        return
    bar = paint(_DIM, "|")
    color = _SEVERITY_COLOR[finding.severity]
    yield f"  {paint(_DIM, number)} {bar} {shown_line.text}"
    yield f"  {' ' * len(number)} {bar} {paint(color, shown_line.carets)}"


def _labelled(label: str, text: str, width: int, paint: _Painter) -> Iterator[str]:
    """Yields `  label: text` with the lines after the first hung below the text."""
    lines = wrap(text, width - 8)
    yield "  " + paint(_DIM, f"{label + ':':<6}") + lines[0]
    for line in lines[1:]:
        yield " " * 8 + line
