"""One page for people to keep open: what the step looks like, and every finding with its source.

The page is one file that needs nothing else. Its content security policy allows the one script and
the one style sheet in it, by their hashes, and nothing from elsewhere. All text goes through
`escape.xml`, whatever the template does.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hlo_tools.findings import Finding, ModuleSummary, Outcome, Severity
from hlo_tools.profile import Operation
from hlo_tools.report import phrases
from hlo_tools.report.escape import xml
from hlo_tools.report.excerpt import Excerpt, excerpt
from hlo_tools.report.names import MAX_PROFILES
from hlo_tools.report.plots.memory import memory_plot
from hlo_tools.report.plots.roofline import roofline_plot
from hlo_tools.report.plots.timeline import lane_plot
from hlo_tools.report.units import count, format_bytes, format_seconds, format_share, format_si
from hlo_tools.report.view import ReportOptions, shown, tally

MAX_FINDINGS = 1000
MAX_OVERVIEW = 2000
_EXCERPT_WIDTH = 140
_BRIEF = 120

OperationKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """A finding and its number on the page."""

    number: int
    finding: Finding
    excerpt: Excerpt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleView:
    """A module, what was found in it, and the findings by the instruction that they blame."""

    number: int
    key: phrases.ModuleKey
    summary: ModuleSummary | None
    findings: tuple[FindingView, ...]
    blamed: Mapping[OperationKey, FindingView]
    is_drawn: bool
    has_section: bool

    def blame(self, operation: Operation) -> FindingView | None:
        """The worst finding about an operation."""
        return self.blamed.get((operation.computation, operation.name))


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    script, style = _asset("page.js"), _asset("page.css")
    findings = shown(outcome, options)
    totals = tally(outcome, options.fail_on)
    template = _environment(options).get_template("page.html")
    return template.generate(
        version=outcome.tool_version,
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
        modules=_modules(outcome, findings[:MAX_FINDINGS], options),
        max_overview=MAX_OVERVIEW,
        cut_findings=len(findings[MAX_FINDINGS:]),
        counts=totals.by_severity,
        severities=sorted(Severity, reverse=True),
        summary=phrases.summary(outcome, totals, options),
        remarks=list(phrases.remarks(outcome)),
        budgets=outcome.budgets,
        rules=_rules(outcome, findings),
    )


def _modules(outcome: Outcome, findings: list[Finding], options: ReportOptions) -> list[ModuleView]:
    """The modules, those with the longest steps first; one that is known by findings only, last."""
    summaries = phrases.modules_by_key(outcome)
    by_module: dict[phrases.ModuleKey, list[FindingView]] = {key: [] for key in summaries}
    for number, finding in enumerate(findings):
        view = FindingView(number=number, finding=finding, excerpt=_excerpt(finding, options))
        by_module.setdefault((finding.path, finding.module), []).append(view)
    views = []
    order = sorted(by_module, key=lambda key: -(_step_seconds(summaries.get(key))))
    for number, key in enumerate(order):
        summary = summaries.get(key)
        blamed: dict[OperationKey, FindingView] = {}
        for view in by_module[key]:
            blamed.setdefault((view.finding.computation, view.finding.instruction), view)
        views.append(
            ModuleView(
                number=number,
                key=key,
                summary=summary,
                findings=tuple(by_module[key]),
                blamed=blamed,
                is_drawn=bool(summary and summary.profile and number < MAX_PROFILES),
                has_section=bool(by_module[key]) or number < MAX_PROFILES,
            )
        )
    return views


def _step_seconds(summary: ModuleSummary | None) -> float:
    seconds = summary.step_seconds if summary else None
    return seconds if seconds is not None and seconds == seconds else 0.0


def _excerpt(finding: Finding, options: ReportOptions) -> Excerpt | None:
    if finding.source is None:
        return None
    line = options.source_line(finding.source)
    return excerpt(finding.source, line, _EXCERPT_WIDTH) if line is not None else None


def _rules(outcome: Outcome, findings: list[Finding]) -> list[tuple[str, str, str]]:
    """Id, name and page of each rule that found something, in the order of the ids."""
    used = {finding.id for finding in findings}
    return [(rule.id, rule.name, rule.documentation) for rule in outcome.rules if rule.id in used]


def _asset(name: str) -> str:
    return files("hlo_tools.report").joinpath("page", name).read_text(encoding="ascii")


def _hash(text: str) -> str:
    """The source expression by which a content security policy allows `text` (CSP Level 3)."""
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return Markup(f"'sha256-{base64.b64encode(digest).decode('ascii')}'")


def _environment(options: ReportOptions) -> Environment:
    environment = Environment(
        loader=PackageLoader("hlo_tools.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_text,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    environment.globals.update(
        count=count,
        seconds=format_seconds,
        bytes=format_bytes,
        si=format_si,
        share=format_share,
        cost=phrases.cost,
        instruction=phrases.instruction,
        budget_state=phrases.budget_state,
        dump_place=phrases.dump_place,
        place=lambda finding: phrases.place(finding, options),
        source_place=lambda location: phrases.source_place(location, options),
        lane_plot=lane_plot,
        roofline_plot=roofline_plot,
        memory_plot=memory_plot,
    )
    environment.filters["brief"] = _brief
    environment.filters["lines"] = lambda text: str(text).split("\n")
    return environment


def _brief(text: str) -> str:
    """A name that stands in thousands of places, cut in its middle if it is very long."""
    half = _BRIEF // 2
    return text if len(text) <= _BRIEF else f"{text[:half]}...{text[-half:]}"


def _text(value: object) -> Markup:
    """What any expression of the template becomes, markup of the template's own apart."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(f"{value:g}")
    return Markup(xml(str(value)))
