"""What reports say: units, places, order, counts, limits."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import findings, outcomes, sample_finding, sample_outcome, sample_source, texts

from hlo_tools.findings import Cost, Finding, Outcome, Severity, UnusedSuppression
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report import phrases
from hlo_tools.report.escape import columns
from hlo_tools.report.excerpt import excerpt
from hlo_tools.report.formats import render
from hlo_tools.report.sarif import MAX_RESULTS
from hlo_tools.report.units import format_bytes, format_seconds, format_share
from hlo_tools.report.uri import path_uri
from hlo_tools.report.view import ReportOptions, exit_status, shown, tally, worst_first

# An outcome is a large example to make.
few = settings(max_examples=25)

SCALE = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}
TIMES = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@given(st.integers(0, 10**20))
def test_bytes_are_right_to_three_digits(count: int) -> None:
    digits, unit = format_bytes(count).split(" ")
    assert math.isclose(float(digits) * SCALE[unit], count, rel_tol=0.005)
    assert unit == "EB" or float(digits) < 1000
    assert "e" not in digits


@given(st.floats(1e-9, 900))
def test_seconds_are_right_to_three_digits(seconds: float) -> None:
    digits, unit = format_seconds(seconds).split(" ")
    assert math.isclose(float(digits) * TIMES[unit], seconds, rel_tol=0.005)
    assert float(digits) < 1000


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.00 %"), (0.00001, "< 0.01 %"), (0.0064, "0.64 %"), (0.064, "6.4 %"), (0.64, "64 %")],
)
def test_shares(share: float, text: str) -> None:
    assert format_share(share) == text


def cost_of(**changes: object) -> str:
    fields: dict[str, object] = {
        "effect": "moves",
        "bytes": 1_200_000_000,
        "seconds": 0.0009,
        "share": 0.0009 / 0.0141,
        "times_per_step": 1,
    }
    finding = sample_finding(cost=Cost(**(fields | changes)))  # type: ignore[arg-type]
    return phrases.cost(finding, sample_outcome().modules[0])


def test_cost_gives_time_as_a_share_of_the_step() -> None:
    assert cost_of() == "moves 1.2 GB, 900 µs of 14.1 ms per step (6.4 %), v5e"


def test_cost_gives_a_share_of_memory_with_the_bytes_it_belongs_to() -> None:
    text = cost_of(effect="holds", share=0.25, seconds=None)
    assert text == "holds 1.2 GB (25 % of memory), v5e"


def test_cost_says_nothing_that_is_not_known() -> None:
    unknown = cost_of(bytes=None, seconds=None, share=None, times_per_step=None)
    assert unknown == "not established"
    assert cost_of(share=None, times_per_step=None).startswith("moves 1.2 GB, ")


@few
@given(st.lists(findings, max_size=6))
def test_worst_first_is_one_order_whatever_the_input_order(given: list[Finding]) -> None:
    distinct = [replace(item, instruction=str(number)) for number, item in enumerate(given)]
    ordered = worst_first(distinct)
    assert worst_first(distinct[::-1]) == ordered
    severities = [finding.severity for finding in ordered]
    assert severities == sorted(severities, reverse=True)


def test_a_truncated_module_is_named() -> None:
    outcome = sample_outcome()
    lines = list(phrases.remarks(outcome))
    assert any("`jit_train_step` is truncated" in line for line in lines)
    whole = replace(outcome, modules=(replace(outcome.modules[0], truncated=False),))
    assert not any("truncated" in line for line in phrases.remarks(whole))


def summary(outcome: Outcome, **changes: object) -> str:
    options = ReportOptions(**changes)  # type: ignore[arg-type]
    return phrases.summary(outcome, tally(outcome, options.fail_on), options)


def test_summary_counts_what_is_shown_and_says_what_is_not() -> None:
    outcome = replace(sample_outcome(), problems=())
    where = "in 1 module (truncated); modelled step 14.1 ms on v5e (assumed)"
    assert summary(outcome) == (
        f"3 findings (1 error, 2 warnings; 1 note hidden, 1 suppressed) {where}"
    )
    assert summary(outcome, show_notes=True) == (
        f"4 findings (1 error, 2 warnings, 1 note; 1 suppressed) {where}"
    )
    assert summary(replace(outcome, findings=())) == f"No findings {where}"


@few
@given(outcomes, st.none() | st.sampled_from(Severity))
def test_exit_status_follows_the_threshold(outcome: Outcome, fail_on: Severity | None) -> None:
    worst = max((f.severity for f in outcome.findings if not f.suppressed), default=0)
    expected = 2 if outcome.problems else int(fail_on is not None and worst >= fail_on)
    assert exit_status(outcome, fail_on) == expected


def test_suppressed_findings_are_not_shown() -> None:
    assert all(f.suppressed is None for f in shown(sample_outcome(), ReportOptions()))


@given(
    line=st.text(st.characters(exclude_characters="\r\n"), max_size=60),
    location=st.builds(
        SourceLocation,
        file=st.just("x.py"),
        line=st.just(1),
        end_line=st.none() | st.integers(0, 3),
        column=st.none() | st.integers(0, 80),
        end_column=st.none() | st.integers(0, 80),
    ),
    width=st.integers(20, 80),
)
def test_carets_stay_below_the_line(line: str, location: SourceLocation, width: int) -> None:
    shown_line = excerpt(location, line, width)
    if shown_line is None:
        assert not line.strip()
        return
    assert columns(shown_line.text) <= width
    assert "^" in shown_line.carets
    assert len(shown_line.carets) <= max(columns(shown_line.text), 1)


@pytest.mark.parametrize(
    ("before", "marked"),
    [("y = ", "f(x)"), ("größe = ", "f(größe)"), ("日本 = ", "f(日)"), ("\ty = ", "f(x)")],
)
def test_carets_underline_the_call(before: str, marked: str) -> None:
    """Columns are bytes of UTF-8, as CPython counts; carets are columns of a terminal."""
    start = len(before.encode()) + 1
    location = SourceLocation(
        file="x.py", line=1, column=start, end_column=start + len(marked.encode())
    )
    shown_line = excerpt(location, f"{before}{marked} + z", 80)
    assert shown_line is not None
    assert shown_line.carets == " " * columns(before.strip() + " ") + "^" * columns(marked)


def test_a_long_line_is_cut_around_the_carets() -> None:
    line = "a" * 300 + " target " + "b" * 300
    location = SourceLocation(file="x.py", line=1, column=302, end_column=308)
    shown_line = excerpt(location, line, 60)
    assert shown_line is not None
    start = shown_line.carets.index("^")
    assert shown_line.text[start : start + shown_line.carets.count("^")] == "target"
    assert columns(shown_line.text) <= 60


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("model/layers.py", ("model/layers.py", True)),
        ("./a b.py", ("a%20b.py", True)),
        ("/home/é/x.py", ("file:///home/%C3%A9/x.py", False)),
        ("C:\\a\\x.py", ("file:///C:/a/x.py", False)),
        ("//host/x.py", ("file:///host/x.py", False)),
        ("a:b.py", ("a%3Ab.py", True)),
        ("../x.py", ("../x.py", True)),
        ("50%.py", ("50%25.py", True)),
        ("", (".", True)),
    ],
)
def test_paths_become_uris(path: str, uri: tuple[str, bool]) -> None:
    assert path_uri(path) == uri


@given(texts)
def test_any_path_becomes_an_ascii_uri(path: str) -> None:
    assert path_uri(path)[0].isascii()


def sarif(outcome: Outcome, **changes: object) -> dict[str, Any]:
    text = "".join(render("sarif", outcome, ReportOptions(**changes)))  # type: ignore[arg-type]
    (run,) = json.loads(text)["runs"]
    return dict(run)


def test_sarif_keeps_the_worst_and_says_how_many_are_left_out() -> None:
    low = [
        sample_finding(instruction=f"low.{number}", severity=Severity.WARNING, fingerprint="f")
        for number in range(MAX_RESULTS)
    ]
    silenced = sample_finding(severity=Severity.ERROR, suppressed="baseline")
    high = sample_finding(severity=Severity.ERROR, instruction="high")
    outcome = replace(sample_outcome(), findings=(*low, silenced, high), problems=())
    run = sarif(outcome)
    results = run["results"]
    assert len(results) == MAX_RESULTS
    assert results[0]["level"] == "error"
    assert not any("suppressions" in result for result in results)
    (invocation,) = run["invocations"]
    assert "2 results left out" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_tells_equal_fingerprints_apart() -> None:
    """Code scanning would merge them into one alert."""
    twins = tuple(sample_finding(instruction=f"fusion.{n}") for n in range(3))
    results = sarif(replace(sample_outcome(), findings=twins))["results"]
    hashes = {r["partialFingerprints"]["primaryLocationLineHash"] for r in results}
    assert len(hashes) == 3


def test_sarif_without_source_points_into_the_dump() -> None:
    outcome = replace(sample_outcome(), findings=(sample_finding(source=None, hlo_line=77),))
    (result,) = sarif(outcome)["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "dumps/train.txt"
    assert place["region"] == {"startLine": 77}


def test_sarif_marks_where_a_suppression_is() -> None:
    findings = (sample_finding(suppressed="source"), sample_finding(suppressed="baseline"))
    results = sarif(replace(sample_outcome(), findings=findings))["results"]
    kinds = {result["suppressions"][0]["kind"] for result in results}
    assert kinds == {"inSource", "external"}


def test_sarif_columns_are_characters(tmp_path: Path) -> None:
    """`größe` before the call takes two bytes more than characters, twice."""
    source = SourceLocation(file="layers.py", line=13, column=37, end_column=95, end_line=13)
    outcome = replace(sample_outcome(), findings=(sample_finding(source=source),))
    sources = sample_source(tmp_path)
    (result,) = sarif(outcome)["results"]
    raw = result["locations"][0]["physicalLocation"]["region"]["startColumn"]
    located = replace(source, file="model/layers.py")
    outcome = replace(sample_outcome(), findings=(sample_finding(source=located),))
    (result,) = sarif(outcome, sources=sources)["results"]
    column = result["locations"][0]["physicalLocation"]["region"]["startColumn"]
    line = sources.line("model/layers.py", 13)
    assert raw == 37
    assert line is not None
    assert column == len(line.encode()[:36].decode()) + 1 == 33


def test_many_stale_baseline_entries_are_one_remark() -> None:
    stale = tuple(
        UnusedSuppression(kind="baseline", text=f"{n:016x}", file="base.json", line=None)
        for n in range(100)
    )
    outcome = replace(sample_outcome(), unused_suppressions=stale)
    lines = [line for line in phrases.remarks(outcome) if line.startswith("base.json")]
    assert len(lines) == 6
    assert lines[-1] == "base.json: 95 more unused suppressions"
