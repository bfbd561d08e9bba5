"""The page: what it holds, that nothing in it comes from elsewhere, and that names cannot act."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from profiled_dumps import lint_profiled, outcome_of
from report_cases import HOSTILE, outcomes, sample_outcome, sample_source
from report_cases import options as report_options

from hlo_tools.budgets import Budget, BudgetCheck
from hlo_tools.findings import Outcome
from hlo_tools.profile import LaneProfile, Operation, Slice, StepProfile
from hlo_tools.profiling import MAX_LANES, PARTS
from hlo_tools.report.escape import visible
from hlo_tools.report.formats import render
from hlo_tools.report.html import MAX_FINDINGS
from hlo_tools.report.names import MAX_PROFILES
from hlo_tools.report.view import ReportOptions

few = settings(max_examples=25)

VOID = frozenset({"meta", "input", "br"})
# Everything that the page is made of. None of these attributes runs a script or fetches anything
# but `href`, which is looked at.
TAGS = frozenset(
    {
        "html", "head", "meta", "title", "style", "body", "a",
        "header", "b", "span", "button", "label", "input", "kbd",
        "output", "dialog", "h1", "h2", "h3", "dl", "dt",
        "dd", "form", "main", "p", "ul", "li", "div",
        "section", "table", "thead", "tbody", "tr", "th", "td",
        "figure", "figcaption", "svg", "g", "rect", "text", "line",
        "polyline", "polygon", "circle", "pre", "article", "details", "summary",
        "ol", "footer", "script",
    }
)  # fmt: skip
ATTRIBUTES = frozenset(
    {
        "lang", "charset", "content", "http-equiv", "name", "class", "href",
        "id", "tabindex", "type", "title", "role", "for", "autocomplete",
        "spellcheck", "placeholder", "aria-label", "aria-live", "aria-describedby",
        "aria-pressed", "aria-roledescription",
        "method", "width", "height", "x", "y", "x1", "x2",
        "y1", "y2", "cx", "cy", "r", "points", "viewbox",
        "transform", "text-anchor", "data-severity", "data-value",
        "data-finding", "data-lane", "data-seconds",
        "data-zoom",
    }
)  # fmt: skip


class Reader(HTMLParser):
    """Takes a page apart, and complains of what should not be there."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.texts: list[str] = []
        self.classes: Counter[str] = Counter()
        self.policy = ""
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        values = dict(attrs)
        assert values.keys() <= ATTRIBUTES, values
        self.ids.update(filter(None, [values.get("id")]))
        self.links += filter(None, [values.get("href")])
        self.classes.update((values.get("class") or "").split())
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        raw = self.raw.get(self.open[-1]) if self.open else None
        (self.texts if raw is None else raw).append(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def page(outcome: Outcome, options: ReportOptions | None = None) -> str:
    return "".join(render("html", outcome, options or ReportOptions()))


def source_expression(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_allows_the_script_and_the_style_of_the_page_and_nothing_else() -> None:
    found = Reader(page(sample_outcome()))
    (script,), (style,) = found.raw["script"], found.raw["style"]
    policy = dict(part.strip().split(" ", 1) for part in found.policy.split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == source_expression(script)
    assert policy["style-src"] == source_expression(style)
    assert {policy[name] for name in ("base-uri", "form-action", "trusted-types")} == {"'none'"}
    for written in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "document.write"):
        assert written not in script
    for fetched in ("url(", "@import", "http:"):
        assert fetched not in style


@few
@given(outcomes, report_options)
def test_names_stay_text_whatever_they_are(outcome: Outcome, options: ReportOptions) -> None:
    text = page(outcome, options)
    assert text.isascii()
    found = Reader(text)
    plain = Reader(page(sample_outcome()))
    assert found.raw == plain.raw
    assert found.policy == plain.policy
    assert all(times == 1 for times in found.ids.values())
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)


@few
@given(outcomes)
def test_no_line_of_a_page_is_a_workflow_command(outcome: Outcome) -> None:
    for line in page(outcome).split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


def test_findings_stand_with_their_source_and_fix(tmp_path: Path) -> None:
    outcome = sample_outcome()
    found = Reader(page(outcome, ReportOptions(sources=sample_source(tmp_path))))
    text = "".join(found.texts)
    assert found.classes["finding"] == 3  # neither the note nor the suppressed one
    assert 'logits = jnp.einsum("btd,dv->btv", größe, params["embedding"])' in text
    for finding in outcome.findings:
        if finding.severity > 1 and finding.suppressed is None:
            assert finding.message in text
            assert finding.fix in text


@pytest.mark.parametrize("module", ["jit_train_step", *HOSTILE])
def test_budgets_stand_in_a_table_those_exceeded_marked(module: str) -> None:
    budget = Budget(key="peak-hbm", limit=100, written_in="B", file="pyproject.toml", line=3)
    checks = tuple(
        BudgetCheck(budget=budget, path="dump.txt", module=module, value=value)
        for value in (90, 110)
    )
    text = page(replace(sample_outcome(), budgets=checks))
    found = Reader(text)
    assert found.classes["state"] == 2
    assert text.count('<tr class="hit error">') == 1
    assert visible(module) in "".join(found.texts)


def test_profile_of_a_compiled_step_is_drawn() -> None:
    outcome = outcome_of("sync_collective_barrier_v5e_good.hlo.txt")
    profile = outcome.modules[0].profile
    assert profile is not None
    found = Reader(page(outcome))
    assert found.classes["lane"] == len(profile.lanes)
    assert found.classes["span"] == sum(len(lane.spans) for lane in profile.lanes) > 0
    assert found.classes["m-argument"]
    text = "".join(found.texts)
    assert profile.memory is not None
    for value in profile.memory.live:
        assert f"%{value.name}" in text
    for operation in profile.operations:
        assert f"%{operation.name}" in text


@pytest.mark.parametrize(
    "name",
    [
        "good_fsdp_scan_v5e.hlo.txt.gz",
        "missing_donation_cache_v5e_bad.hlo.txt",
        "sync_collective_ring_v5p_bad.hlo.txt",
        "host_transfer_weights_v5e_bad.hlo.txt",
    ],
)
def test_profile_adds_up_to_the_step(name: str) -> None:
    summary = lint_profiled(name).summary
    profile = summary.profile
    assert profile is not None
    assert profile.seconds == summary.step_seconds
    assert sum(s for _, s in profile.activities) == pytest.approx(profile.seconds)
    listed = sum(operation.seconds for operation in profile.operations)
    assert listed + profile.more_seconds == pytest.approx(profile.seconds)
    for lane in profile.lanes:
        assert lane.slices[0].begin == 0
        assert lane.slices[-1].end == pytest.approx(lane.seconds)
        assert sum(item.end - item.begin for item in lane.slices) == pytest.approx(lane.seconds)
    memory = profile.memory
    assert memory is not None
    assert memory.peak_bytes == summary.peak_hbm_bytes
    fixed = memory.argument_bytes + memory.output_bytes
    assert fixed + max(held for _, held in memory.curve) == memory.peak_bytes


def many(profile: StepProfile, count: int) -> StepProfile:
    """A profile as full as the builder of profiles lets it become."""
    operation: Operation = replace(profile.operations[0], name="n" * 60, op_name="o" * 200)
    slices = tuple(
        Slice(begin=n / count, end=(n + 1) / count, operations=(operation,)) for n in range(count)
    )
    lane: LaneProfile = replace(profile.lanes[0], seconds=1.0, slices=slices)
    return replace(profile, lanes=(lane,) * MAX_LANES, operations=(operation,) * 200)


def test_page_of_large_programs_stays_small() -> None:
    outcome = outcome_of("good_mlp_v5e.hlo.txt")
    (module,) = outcome.modules
    assert module.profile is not None
    full = replace(module, profile=many(module.profile, 500))
    modules = tuple(replace(full, path=f"{number}.txt") for number in range(50))
    findings = sample_outcome().findings[1:2] * 5000
    text = page(replace(outcome, modules=modules, findings=findings))
    found = Reader(text)
    assert found.classes["lane"] == MAX_LANES * MAX_PROFILES
    assert found.classes["finding"] == MAX_FINDINGS
    assert "4,000 more findings" in "".join(found.texts)
    assert len(text) < 8_000_000


def test_instructions_too_short_to_see_are_drawn_together() -> None:
    adds = "\n".join(
        f"  %a{n} = f32[1024]{{0:T(1024)}} add(%a{n - 1}, %a{n - 1})" for n in range(1, 5000)
    )
    text = (
        "HloModule chain, is_scheduled=true\n\nENTRY %main (a0: f32[1024]) -> f32[1024] {\n"
        f"  %a0 = f32[1024]{{0:T(1024)}} parameter(0)\n{adds}\n"
        "  ROOT %end = f32[1024]{0:T(1024)} negate(%a4999)\n}\n"
    )
    profile = lint_profiled(text=text).summary.profile
    assert profile is not None
    (lane,) = profile.lanes
    assert len(lane.slices) <= 2 * PARTS + 1
    assert sum(item.count for item in lane.slices) == 5000
    assert profile.more_operations == 4800
    assert len(profile.memory.curve if profile.memory else ()) <= 600


def test_module_without_a_chip_has_no_drawing() -> None:
    text = re.sub(
        r"\{0:T\(1024\)\}",
        "",
        "HloModule f, is_scheduled=true\n\nENTRY %m (a: f32[8]) "
        "-> f32[8] {\n  %a = f32[8] parameter(0)\n  ROOT %b = f32[8]{0} negate(%a)\n}\n",
    )
    result = lint_profiled(text=text, chip=None)
    assert result.summary.profile is None
    outcome = replace(sample_outcome(), modules=(result.summary,), findings=())
    assert "no chip is known" in "".join(Reader(page(outcome)).texts)
