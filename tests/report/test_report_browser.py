"""The page in a real browser: no error, no breach of its policy, keys, and both colour schemes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import Page, browser, program
from profiled_dumps import ROOT, outcome_of
from report_cases import HOSTILE, sample_finding

from hlo_tools.findings import Outcome
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.profile import StepProfile
from hlo_tools.report.formats import render
from hlo_tools.report.view import ReportOptions
from hlo_tools.source import SourceTree

pytestmark = pytest.mark.skipif(program() is None, reason="no Chromium is installed")

ATTACKS = (
    *HOSTILE,
    "</script><script>document.title='pwned'</script>",
    '"><img src=x onerror="document.title=\'pwned\'">',
    "</title></style><svg onload=document.title='pwned'>",
    "<iframe src='file:///etc/passwd'></iframe>",
    "{{ 7 * 7 }}{% raw %}",
)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outcome = outcome_of(
        "sync_collective_barrier_v5e_good.hlo.txt",
        "missing_donation_cache_v5e_bad.hlo.txt",
        "layout_copy_prefill_v5e_bad.hlo.txt",
    )
    return write(tmp_path_factory.mktemp("report") / "report.html", outcome)


def write(file: Path, outcome: Outcome) -> Path:
    options = ReportOptions(show_notes=True, sources=SourceTree(root=ROOT, base=ROOT))
    file.write_text("".join(render("html", outcome, options)), encoding="utf-8")
    return file


def opened(window: Page, file: Path, *, dark: bool = False) -> Page:
    window.complaints.clear()
    window.open(file, dark=dark)
    return window


VISIBLE = "Array.from(document.querySelectorAll('.finding')).filter(e => e.offsetHeight)"


@pytest.mark.parametrize("dark", [False, True])
def test_page_opens_without_complaint_in_both_schemes(
    window: Page, report: Path, dark: bool
) -> None:
    page = opened(window, report, dark=dark)
    assert page.evaluate("document.querySelectorAll('.lane').length") >= 3
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = page.evaluate("getComputedStyle(document.body).color")
    light = [sum(map(int, color[4:-1].split(","))) for color in (back, ink)]
    assert (light[0] < light[1]) == dark
    page.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != back
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.complaints == []


def test_search_goes_by_keyboard_alone(window: Page, report: Path) -> None:
    page = opened(window, report)
    before = page.evaluate(f"{VISIBLE}.length")
    page.press("/", "missing-donation")
    assert page.evaluate("document.activeElement.id") == "search"
    texts = page.evaluate(f"{VISIBLE}.map(e => e.textContent)")
    assert 0 < len(texts) < before
    assert all("missing-donation" in text for text in texts)
    assert page.evaluate("document.getElementById('matches').textContent").startswith("1 of ")
    assert page.evaluate("document.querySelectorAll('.mark.dim').length") > 0
    page.press("Escape")
    assert page.evaluate(f"{VISIBLE}.length") == before
    assert page.evaluate("document.querySelectorAll('.mark.dim').length") == 0
    assert page.complaints == []


def test_keys_go_from_finding_to_finding_and_from_mark_to_mark(window: Page, report: Path) -> None:
    page = opened(window, report)
    ids = page.evaluate(f"{VISIBLE}.map(e => e.id)")
    page.press("j")
    assert page.evaluate("document.activeElement.id") == ids[0]
    page.press("j", "k")
    assert page.evaluate("document.activeElement.id") == ids[0]
    page.evaluate("document.querySelector('.lane .marks').focus()")
    detail = "document.querySelector('.lane .detail').textContent"
    hint = page.evaluate(detail)
    page.press("ArrowRight")
    first = page.evaluate(detail)
    page.press("ArrowRight")
    assert len({hint, first, page.evaluate(detail)}) == 3
    width = "document.querySelector('.lane .marks').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.press("+")
    assert page.evaluate(width) == pytest.approx(2 * before, rel=0.01)
    page.press("0")
    assert page.evaluate(width) == pytest.approx(before, rel=0.01)
    page.press("?")
    assert page.evaluate("document.getElementById('help').open")
    page.press("Escape")
    assert not page.evaluate("document.getElementById('help').open")
    assert page.complaints == []


def test_mark_of_a_blamed_instruction_leads_to_its_finding(window: Page, report: Path) -> None:
    page = opened(window, report)
    mark = "document.querySelector('.lane .mark[data-finding]')"
    number = page.evaluate(f"{mark}.dataset.finding")
    page.evaluate(f"{mark}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert page.evaluate("document.activeElement.id") == f"finding-{number}"


def test_table_is_sorted_by_a_click_on_a_head(window: Page, report: Path) -> None:
    page = opened(window, report)
    table = "document.querySelector('table.operations')"
    values = f"Array.from({table}.tBodies[0].rows).map(r => Number(r.cells[0].dataset.value))"
    page.evaluate(f"{table}.querySelector('th button').click()")
    found = page.evaluate(values)
    assert found == sorted(found, reverse=True)
    page.evaluate(f"{table}.querySelector('th button').click()")
    assert page.evaluate(values) == sorted(found)


def hostile_profile(profile: StepProfile, name: str) -> StepProfile:
    location = SourceLocation(file=name, line=3, function=name)

    def spoil(operation: object) -> object:
        changes = dict.fromkeys(("name", "opcode", "computation", "shape", "op_name"), name)
        return replace(operation, source=location, **changes)  # type: ignore[type-var]

    def spoil_lane(lane: object) -> object:
        slices = tuple(
            replace(item, operations=tuple(map(spoil, item.operations)))
            for item in lane.slices  # type: ignore[attr-defined]
        )
        spans = tuple(
            replace(span, operation=spoil(span.operation), kind=name)
            for span in lane.spans  # type: ignore[attr-defined]
        )
        return replace(lane, computation=name, caller=name, slices=slices, spans=spans)  # type: ignore[type-var]

    assert profile.memory is not None
    live = tuple(
        replace(value, name=name, computation=name, shape=name, op_name=name, source=location)
        for value in profile.memory.live
    )
    return replace(
        profile,
        operations=tuple(map(spoil, profile.operations)),
        lanes=tuple(map(spoil_lane, profile.lanes)),
        memory=replace(profile.memory, live=live),
    )


def test_hostile_names_do_nothing(window: Page, tmp_path: Path) -> None:
    outcome = outcome_of("sync_collective_barrier_v5e_good.hlo.txt")
    (module,) = outcome.modules
    assert module.profile is not None
    modules, findings = [], []
    for number, name in enumerate(ATTACKS):
        names = {"name": f"{name}{number}", "path": name, "chip": name}
        profile = hostile_profile(module.profile, name)
        modules.append(replace(module, profile=profile, **names))
        findings.append(
            sample_finding(
                module=names["name"],
                source=SourceLocation(file=name, line=1, function=name),
                **dict.fromkeys(
                    ("path", "rule", "id", "computation", "instruction", "op_name", "message"), name
                ),
            )
        )
    for start in range(0, len(modules), 4):
        part = replace(
            outcome,
            modules=tuple(modules[start : start + 4]),
            findings=tuple(findings[start : start + 4]),
        )
        page = opened(window, write(tmp_path / "report.html", part))
        assert page.evaluate("document.title") == f"hlo-lint: {len(part.modules)} modules"[:80]
        assert page.evaluate("document.scripts.length") == 1
        assert page.evaluate("document.querySelectorAll('img, iframe, object, base').length") == 0
        assert page.evaluate("document.querySelectorAll('.finding').length") == len(part.findings)
        assert page.complaints == []


def test_a_foreign_script_and_style_are_stopped(window: Page, report: Path, tmp_path: Path) -> None:
    """The policy is in force: what the tests above do not find would be seen."""
    spoiled = report.read_text(encoding="utf-8").replace(
        "<footer", "<script>document.title='pwned'</script><p style='color:red'>x</p><footer"
    )
    file = tmp_path / "spoiled.html"
    file.write_text(spoiled, encoding="utf-8")
    page = opened(window, file)
    assert page.evaluate("document.title") != "pwned"
    assert sum("ContentSecurityPolicy" in text for text in page.complaints) >= 2
