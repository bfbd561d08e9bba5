"""Budgets: read with their line, held to what the compiler made, printed, and failing the run."""

import json
import re
import xml.etree.ElementTree as ElementTree
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.analysis.figures import figures
from hlo_tools.analysis.program import Program
from hlo_tools.budgets import KINDS, Budget, BudgetCheck, parse_limit
from hlo_tools.cli import main
from hlo_tools.errors import SettingsError
from hlo_tools.figures import Figures
from hlo_tools.hardware import chip
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.provenance import Provenance
from hlo_tools.io import ModuleText, read_inputs
from hlo_tools.settings import Overrides, load_settings
from passes.catalog import BY_NAME

ROOT = Path(__file__).resolve().parent.parent
PLANTED = ROOT / "fixtures" / "planted" / "hlo"
MANIFEST = json.loads((PLANTED.parent / "MANIFEST.json").read_text())
BARRIER = PLANTED / "sync_collective_barrier_v5e_bad.hlo.txt"


def figures_of(name: str, generation: str) -> Figures:
    (path,) = PLANTED.glob(f"{name}.hlo.txt*")
    (item,) = read_inputs([str(path)])
    assert isinstance(item, ModuleText)
    module = parse_module(item.text)
    return figures(Program(module, chip=chip(generation), provenance=Provenance(module)))


def budgets_in(tmp_path: Path, text: str) -> tuple[Budget, ...]:
    return load_settings(write(tmp_path, text), Overrides(), BY_NAME).budgets


def write(tmp_path: Path, text: str) -> Path:
    config = tmp_path / "pyproject.toml"
    config.write_text(f"[tool.hlo-lint.budgets]\n{text}\n")
    return config


# What can be limited.


def test_every_budget_is_read_with_its_line(tmp_path: Path) -> None:
    text = (
        'step-time = "15 ms"\npeak-hbm = "12 GiB"\nhbm-traffic = "1.5TB"\n'
        'collective-traffic = "300 MB"\nexposed-collective-time = "80us"\n'
        'exposed-collective-share = "10 %"\npadded-share = "2.5%"\nf32-dot-share = "0 %"\n'
        'modules = ["jit_train_*"]\ncollectives.all-gather = 12'
    )
    found = budgets_in(tmp_path, text)
    assert {budget.key for budget in found} == {*KINDS, "collectives.all-gather"}
    limits = {budget.key: budget.limit for budget in found}
    assert limits == pytest.approx(
        {
            "step-time": 0.015,
            "peak-hbm": 12 * 1024**3,
            "hbm-traffic": 1.5e12,
            "collective-traffic": 300e6,
            "exposed-collective-time": 80e-6,
            "exposed-collective-share": 0.1,
            "padded-share": 0.025,
            "f32-dot-share": 0.0,
            "collectives.all-gather": 12,
        }
    )
    lines = text.split("\n")
    for budget in found:
        assert budget.line is not None
        assert lines[budget.line - 2].startswith(f"{budget.key} =")
        assert budget.modules == ("jit_train_*",)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('peak-hmb = "12 GiB"', 2, "unknown budget `peak-hmb`; did you mean `peak-hbm`?"),
        ('\npeak-hbm = "12 ms"', 3, '`peak-hbm` must be an amount such as "12 GiB", not `12 ms`'),
        ('peak-hbm = "12"', 2, "units are B, kB, MB"),
        ("peak-hbm = 12", 2, "not `12`"),
        ('peak-hbm = "-1 GB"', 2, "not `-1 GB`"),
        ('peak-hbm = "1e3 GB"', 2, "not `1e3 GB`"),
        ('peak-hbm = "12 gb"', 2, "not `12 gb`"),
        (f'peak-hbm = "{"9" * 400} GB"', 2, "is no finite limit"),
        ('step-time = "10 %"', 2, '`step-time` must be a time such as "15 ms"'),
        ('padded-share = "0.1"', 2, '`padded-share` must be a share such as "5 %"'),
        ("padded-share = true", 2, "`padded-share` must be a share"),
        ('modules = "jit_f"', 2, "`modules` must be a list of strings"),
        ("collectives = 3", 2, "`collectives` must be a table"),
        ("collectives.all-gater = 3", 2, "unknown kind of collective `all-gater`; did you mean"),
        ('padded-share = "5 %"\ncollectives.all-gather = -1', 3, "must be a number of collectives"),
        ("collectives.all-gather = 1.5", 2, "`all-gather` must be a whole number"),
        ("collectives = { all-gather = true }", 2, "`all-gather` must be a number"),
        ("[tool.hlo-lint.budgets.collectives]\nall-gather = -1", 3, "must be a number of"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(
    text: str, line: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        budgets_in(tmp_path, text)
    assert message in caught.value.message
    assert caught.value.line == line
    assert caught.value.path == str(tmp_path / "pyproject.toml")


@given(text=st.text(max_size=20), key=st.sampled_from(sorted(KINDS)))
def test_any_text_is_a_limit_or_an_error(text: str, key: str) -> None:
    try:
        limit, unit = parse_limit(key, text)
    except SettingsError:
        return
    assert limit >= 0 and unit in KINDS[key].factors


# What a module takes of it.


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_figures_are_those_of_the_compiler(name: str) -> None:
    """Arguments and outputs of `memory_analysis()`, padding included; the rest is consistent."""
    memory = MANIFEST[name].get("memory")
    if memory is None:
        pytest.skip("the compiler gave no figures for this program")
    found = figures_of(name, "v5e")
    assert found.argument_bytes == pytest.approx(memory["argument_bytes"], rel=0.01, abs=1 << 14)
    outputs = memory["output_bytes"] - memory["alias_bytes"]
    assert found.output_bytes == pytest.approx(outputs, rel=0.01, abs=1 << 14)
    assert found.temporary_bytes >= 0
    assert 0 <= found.padded_share < 1
    assert 0 <= found.f32_dot_share <= 1
    assert found.step_seconds is not None and found.exposed_collective_seconds is not None
    assert 0 <= found.exposed_collective_seconds <= found.step_seconds


def test_figures_see_what_was_planted() -> None:
    padded = figures_of("padding_waste_class_token_v5e_bad", "v5e").padded_share
    assert padded > 0.2 > figures_of("padding_waste_class_token_v5e_good", "v5e").padded_share
    waiting = figures_of("sync_collective_barrier_v5e_bad", "v5e").exposed_collective_share
    assert waiting is not None and waiting > 0.1
    assert not figures_of("sync_collective_barrier_v5e_good", "v5e").exposed_collective_share
    assert dict(figures_of("uncombined_collectives_clip_v5p_bad", "v5p").collectives) == {
        "all-reduce": 12
    }
    assert figures_of("high_precision_dot_highest_v5e_bad", "v5e").f32_dot_share == 1
    assert figures_of("good_mlp_v5e", "v5e").f32_dot_share == 0


def check(limit: float, value: float, key: str = "peak-hbm", unit: str = "B") -> BudgetCheck:
    budget = Budget(key=key, limit=limit, written_in=unit, file="pyproject.toml", line=3)
    return BudgetCheck(budget=budget, path="dump.txt", module="jit_f", value=value)


@pytest.mark.parametrize(
    ("limit", "value", "exceeded", "margin"),
    [(100, 99, False, 0.01), (100, 100, False, 0.0), (100, 101, True, -0.01), (0, 0, False, None)],
)
def test_a_budget_may_be_used_up_but_not_exceeded(
    limit: float, value: float, exceeded: bool, margin: float | None
) -> None:
    found = check(limit, value)
    assert found.exceeded == exceeded
    assert found.margin == (None if margin is None else pytest.approx(margin))


def test_amounts_are_shown_in_the_unit_of_the_limit() -> None:
    assert check(1, 1, unit="GiB").budget.shown(12.5 * 1024**3) == "12.5 GiB"
    assert check(1, 1, "step-time", "ms").budget.shown(0.0153) == "15.3 ms"
    assert check(1, 1, "padded-share", "%").budget.shown(0.0) == "0 %"
    assert check(1, 1, "step-time", "us").budget.shown(0.0153) == "15,300 us"
    assert check(1, 1, "collectives.all-gather", "").budget.shown(1234) == "1,234"


# The command.


def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, *arguments: object
) -> tuple[int, str]:
    config = write(tmp_path, text)
    given = ["--config", str(config), "--select", "HLO601", *map(str, arguments)]
    status = main([*given, str(BARRIER)])
    return status, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('peak-hbm = "260046848 B"', 0),
        ('peak-hbm = "260046847 B"', 1),
        ("collectives.all-gather = 3", 0),
        ("collectives.all-gather = 2", 1),
        ("collectives.all-reduce = 0", 0),
        ('exposed-collective-share = "11 %"', 1),
        ('exposed-collective-share = "12 %"', 0),
    ],
)
def test_an_exceeded_budget_fails_the_run_as_an_error_does(
    text: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides of each limit; no finding takes part."""
    assert run(capsys, tmp_path, text)[0] == status
    assert run(capsys, tmp_path, text, "--fail-on", "error")[0] == status
    assert run(capsys, tmp_path, text, "--fail-on", "never")[0] == 0


def test_the_report_says_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'peak-hbm = "1 GB"\nstep-time = "5 ms"\ncollectives.all-reduce = 0'
    _, out = run(capsys, tmp_path, text)
    lines = [re.sub(r"  +", " ", line.strip()) for line in out.split("\n")]
    assert "peak-hbm 0.26 GB of 1 GB, 74 % left" in lines
    assert "step-time 6.53 ms of 5 ms, exceeded by 31 %" in lines
    assert "collectives.all-reduce 0 of 0, kept" in lines
    assert "1 budget exceeded" in out


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ('modules = ["jit_other*"]\npeak-hbm = "1 GB"', (), "is for none of the modules"),
        ('step-time = "1 s"', ("no chip",), "cannot be checked: neither the dump nor `--chip`"),
        ('peak-hbm = "1 TB"', ("truncated",), "cannot be checked: it is truncated"),
    ],
)
def test_a_budget_that_says_nothing_is_a_problem(
    text: str,
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Otherwise it would seem to be kept."""
    dumps = {
        "no chip": "HloModule jit_f, is_scheduled=true\n\nENTRY %main (x: f32[8]) -> f32[8] {\n"
        "  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} add(%x, %x)\n}\n",
        "truncated": BARRIER.read_text().rpartition("\n  ROOT ")[0],
    }
    dump = BARRIER
    if arguments:
        dump = tmp_path / "dump.txt"
        dump.write_text(dumps[arguments[0]])
    config = write(tmp_path, text)
    assert main(["--config", str(config), "--fail-on", "never", str(dump)]) == 2
    assert message in capsys.readouterr().out


def test_budgets_of_some_modules_are_not_held_to_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = PLANTED / "good_mlp_v5e.hlo.txt"
    text = 'modules = ["*barrier"]\npeak-hbm = "1 B"'
    status, out = run(capsys, tmp_path, text, other)
    assert status == 1 and out.count("Budgets of") == 1
    assert "Budgets of jit_gather_after_barrier" in out


@pytest.mark.parametrize("name", ["concise", "github", "junit", "sarif", "json", "html"])
def test_every_format_tells_of_an_exceeded_budget(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'peak-hbm = "1 MB"\ncollectives.all-gather = 3'
    status, out = run(capsys, tmp_path, text, "--format", name)
    assert status == 1
    assert "peak-hbm" in out
    _READ[name](out)


def _concise(out: str) -> None:
    errors = [line for line in out.split("\n") if ": error budget: " in line]
    assert len(errors) == 1 and "pyproject.toml:2: error budget: peak-hbm" in errors[0]


def _github(out: str) -> None:
    commands = [line for line in out.split("\n") if line.startswith("::")]
    assert len(commands) == 1 and commands[0].startswith("::error file=")
    assert ",line=2,title=budget peak-hbm::" in commands[0]


def _junit(out: str) -> None:
    root = ElementTree.fromstring(out.encode())
    assert (root.get("failures"), len(root.findall(".//testcase"))) == ("1", int(root.get("tests")))
    (failure,) = root.findall(".//failure")
    assert "peak-hbm" in (failure.get("message") or "")


def _sarif(out: str) -> None:
    (run_,) = json.loads(out)["runs"]
    (result,) = run_["results"]
    rule = run_["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"], result["level"]) == ("budget", "budget", "error")
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2}


def _json(out: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document: dict[str, Any] = json.loads(out)
    schema = json.loads(
        files("hlo_tools").joinpath("schemas/report.schema.json").read_text(encoding="utf-8")
    )
    jsonschema.Draft202012Validator(schema).validate(document)
    assert [item["exceeded"] for item in document["budgets"]] == [True, False]
    assert document["summary"]["budgets_exceeded"] == 1
    assert document["summary"]["exit_status"] == 1


def _html(out: str) -> None:
    assert '<tr class="hit error"><td>peak-hbm</td>' in out and "1 budget exceeded" in out


_READ = {
    "concise": _concise,
    "github": _github,
    "junit": _junit,
    "sarif": _sarif,
    "json": _json,
    "html": _html,
}


# The page about them.

PAGE = ROOT / "docs" / "budgets.md"


def test_the_page_lists_every_budget_with_units_that_are_read() -> None:
    rows = re.findall(r"^\| `([\w.-]+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert [key for key, _ in rows] == [*KINDS, "collectives.KIND"]
    for key, units in rows[:-1]:
        for unit in re.findall(r"`([A-Za-z%]+)`", units):
            assert parse_limit(key, f"1 {unit}")[1] == unit


def test_the_page_shows_what_its_configuration_gives(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    update_golden: bool,
) -> None:
    """The dump has another module name than the page, whose pattern is made to fit."""
    text = PAGE.read_text()
    config, shown = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(config)
    module = "jit_train_step"
    dump = BARRIER.read_text().replace("jit_gather_after_barrier", module)
    (tmp_path / BARRIER.name).write_text(dump)
    monkeypatch.chdir(tmp_path)
    command = re.search(r"<!-- output: hlo-lint (.*) -->", text)
    assert command
    assert main(command[1].split()) == 1
    out = capsys.readouterr().out
    if update_golden:
        PAGE.write_text(text.replace(f"-->\n```\n{shown}```", f"-->\n```\n{out}```"))
        shown = out
    assert shown == out
