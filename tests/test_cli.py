"""The command's contract: options, exit status, where output goes, and what a failure leaves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hlo_tools.run
from hlo_tools import __version__
from hlo_tools.budgets import BudgetCheck
from hlo_tools.cli import main
from hlo_tools.errors import InputError
from hlo_tools.findings import Cost, Finding, ModuleSummary, Problem, Severity
from hlo_tools.hlo.location import SourceLocation


@dataclass(frozen=True)
class Text:
    path: str
    text: str = "HloModule jit_f\n"
    start_line: int = 1
    truncated: bool = False


@dataclass(frozen=True)
class Spec:
    id: str
    name: str
    summary: str = "What it finds"
    documentation: str = "What it finds.\n\nWhat it does\n  It looks."
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    summary: ModuleSummary
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    timings: tuple[tuple[str, float], ...] = (("parse", 0.25),)
    budgets: tuple[BudgetCheck, ...] = ()


def finding(severity: Severity = Severity.WARNING, **changes: object) -> Finding:
    values: dict[str, object] = {
        "rule": "padding-waste",
        "id": "HLO301",
        "severity": severity,
        "module": "jit_f",
        "path": "dump.txt",
        "computation": "main",
        "instruction": "fusion.1",
        "hlo_line": 3,
        "op_name": None,
        "source": SourceLocation(file="model.py", line=1, column=5),
        "stack": (),
        "message": "It is padded.",
        "fix": "Do not pad.",
        "cost": Cost(effect="moves", bytes=10, seconds=1e-3, share=0.1, times_per_step=1),
        "fingerprint": f"{severity:016x}",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


@dataclass
class Pipeline:
    """What the stand-ins for reading and for the rules will do."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    unreadable: tuple[InputError, ...] = ()
    truncated: bool = False
    lint: Callable[[], None] = lambda: None

    def read_inputs(self, paths: Sequence[str]) -> Iterator[Text | InputError]:
        yield from self.unreadable
        for path in paths[len(self.unreadable) :]:
            yield Text(path=path, truncated=self.truncated)

    def lint_text(
        self,
        text: str,
        *,
        path: str,
        settings: object,
        start_line: int,
        refusal: None,
        profiled: bool,
        measured: bool,
    ) -> Result:
        assert not profiled
        assert not measured
        self.lint()
        summary = ModuleSummary(
            path=path,
            name="jit_f",
            backend="tpu",
            chip="v5e",
            chip_assumed=False,
            partitions=1,
            instructions=7,
            truncated=False,
            step_seconds=0.01,
            peak_hbm_bytes=None,
        )
        return Result(summary, self.findings, self.problems)


def known_chip(name: str) -> None:
    if name != "v5e":
        raise InputError(f"unknown chip `{name}`")


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pipeline:
    """The command with nothing behind it, in an empty directory."""
    stand_in = Pipeline()
    rules = [Spec("HLO201", "layout-copy"), Spec("HLO301", "padding-waste")]
    parts: dict[str, dict[str, Any]] = {
        "passes.catalog": {
            "BY_ID": {rule.id: rule for rule in rules},
            "BY_NAME": {rule.name: rule for rule in rules},
        },
        "passes.runner": {"lint_text": stand_in.lint_text, "ModuleResult": Result},
        "hlo_tools.io": {"read_inputs": stand_in.read_inputs, "ModuleText": Text},
        "hlo_tools.hardware": {"chip": known_chip},
    }
    for name, names in parts.items():
        module = ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
    # Imported anew, with what stands in for the others; the real one comes back afterwards.
    monkeypatch.delitem(sys.modules, hlo_tools.run.__name__)
    monkeypatch.chdir(tmp_path)
    return stand_in


def run_ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("severities", "fail_on", "status"),
    [
        ((), None, 0),
        ((Severity.NOTE,), None, 0),
        ((Severity.NOTE,), "note", 1),
        ((Severity.WARNING,), None, 1),
        ((Severity.WARNING,), "error", 0),
        ((Severity.ERROR,), "error", 1),
        ((Severity.ERROR,), "never", 0),
    ],
)
def test_exit_status(
    pipeline: Pipeline,
    capsys: pytest.CaptureFixture[str],
    severities: tuple[Severity, ...],
    fail_on: str | None,
    status: int,
) -> None:
    pipeline.findings = tuple(finding(severity) for severity in severities)
    arguments = ["dump.txt"] + (["--fail-on", fail_on] if fail_on else [])
    assert run_ok(capsys, *arguments)[0] == status


def test_a_failed_rule_is_reported_beside_the_findings_and_is_status_2(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.findings = (finding(),)
    pipeline.problems = (Problem(message="rule `x` failed with KeyError", rule="x"),)
    status, out, _ = run_ok(capsys, "dump.txt")
    assert status == 2
    assert "HLO301" in out
    assert "rule `x` failed" in out


def test_unreadable_input_does_not_stop_the_rest(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.findings = (finding(),)
    pipeline.unreadable = (InputError("is StableHLO", path="a.mlir", line=2),)
    status, out, err = run_ok(capsys, "a.mlir", "dump.txt", "--format", "json")
    report = json.loads(out)
    assert status == 2
    assert report["problems"] == [
        {"message": "is StableHLO", "path": "a.mlir", "line": 2, "rule": None}
    ]
    assert len(report["findings"]) == 1
    assert "a.mlir:2: error: is StableHLO" in err


def test_a_bug_in_one_module_is_reported_and_the_rest_is_linted(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = iter([KeyError("boom\x1b[31m")])

    def fail_once() -> None:
        for failure in failures:
            raise failure

    pipeline.lint = fail_once
    status, out, err = run_ok(capsys, "a.txt", "b.txt")
    assert status == 2
    assert "in 1 module" in out
    assert "internal error: KeyError" in out
    assert "Traceback" in err
    assert "\x1b" not in out + err


def test_no_module_at_all_is_an_error(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["hlo_tools.io"], "read_inputs", lambda paths: iter(()))
    assert run_ok(capsys, "empty")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no PATH"),
        (["x", "--format", "yaml"], "yaml"),
        (["x", "--nonsense"], "--nonsense"),
        (["x", "--format", "json", "--format", "text"], "`--format` is given 2 times"),
        (["x", "-o", "a", "--output", "b"], "`--output` is given 2 times"),
        (["x", "--report", "json"], "is not FORMAT=FILE"),
        (["x", "--report", "yaml=a"], "is not FORMAT=FILE"),
        (["x", "--report", "json=-"], "two reports would go to standard output"),
        (["x", "-o", "a", "--report", "json=./a"], "two reports would go to `a`"),
        (["x", "-o", "none/a"], "does not exist"),
        (["x", "-o", "."], "is a directory"),
        (["x", "--write-baseline", "none/a"], "does not exist"),
        (["x", "--baseline", "none"], "cannot be read"),
        (["x", "--baseline", "a", "--write-baseline", "b"], "exclude each other"),
        (["x", "--explain", "HLO301"], "take no PATH"),
        (["--list-rules", "--explain", "HLO301"], "exclude each other"),
        (["--explain", "padding-wate"], "did you mean `padding-waste`?"),
        (["x", "--select", "HLO3O1"], "did you mean `HLO301`?"),
        (["x", "--select", ","], "names no rule"),
        (["x", "--select", "HLO301", "--ignore", "padding-waste"], "both selected and ignored"),
        (["x", "--min-saving", "200"], "between 0 and 100"),
        (["x", "--min-saving", "nan"], "between 0 and 100"),
        (["x", "--chip", "v99"], "unknown chip `v99`"),
        (["x", "--config", "none.toml"], "cannot be read"),
        (["x", "--source-root", "none"], "no directory"),
    ],
)
def test_a_mistake_in_usage_is_one_clear_line_and_status_2(
    pipeline: Pipeline,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    status, out, err = run_ok(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_reports_go_to_files_and_nothing_to_the_screen(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pipeline.findings = (finding(),)
    status, out, err = run_ok(
        capsys, "dump.txt", "-o", "a.txt", "--report", "json=b.json", "--report", "sarif=c.sarif"
    )
    assert (status, out, err) == (1, "", "")
    assert "HLO301" in (tmp_path / "a.txt").read_text()
    assert json.loads((tmp_path / "b.json").read_text())["summary"]["failing"] == 1
    assert json.loads((tmp_path / "c.sarif").read_text())["version"] == "2.1.0"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.json", "c.sarif"]


def test_one_more_report_may_take_standard_output(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run_ok(capsys, "dump.txt", "-o", "a.txt", "--report", "json=-")
    assert json.loads(out)["schema_version"] == 1


def test_the_source_line_is_shown_and_its_comment_obeyed(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pipeline.findings = (finding(),)
    (tmp_path / "model.py").write_text("y = f(x)\n")
    status, out, _ = run_ok(capsys, "dump.txt")
    assert status == 1
    assert "  1 | y = f(x)\n    |     ^\n" in out
    (tmp_path / "model.py").write_text("y = f(x)  # hlo-lint: ignore[padding-waste] small\n")
    status, out, _ = run_ok(capsys, "dump.txt")
    assert status == 0
    assert "No findings (1 suppressed)" in out


def test_a_baseline_makes_the_next_run_clean(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pipeline.findings = (finding(), finding(Severity.NOTE))
    assert run_ok(capsys, "dump.txt", "--write-baseline", "base.json")[0] == 0
    assert run_ok(capsys, "dump.txt", "--baseline", "base.json")[0] == 0
    entries = json.loads((tmp_path / "base.json").read_text())["findings"]
    assert len(entries) == 1, "a hidden note is not taken into a baseline"
    pipeline.findings = (finding(fingerprint="new"),)
    status, out, _ = run_ok(capsys, "dump.txt", "--baseline", "base.json")
    assert status == 1
    assert "unused suppression" in out


def test_an_incomplete_run_leaves_the_baseline_alone(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "base.json").write_text("old")
    pipeline.problems = (Problem(message="failed"),)
    assert run_ok(capsys, "dump.txt", "--write-baseline", "base.json")[0] == 2
    assert (tmp_path / "base.json").read_text() == "old"


def test_configuration_is_found_and_options_win(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.hlo-lint]\nfail-on = "error"\n')
    pipeline.findings = (finding(),)
    assert run_ok(capsys, "dump.txt")[0] == 0
    assert run_ok(capsys, "dump.txt", "--fail-on", "warning")[0] == 1


def test_a_file_cut_short_is_reported_as_truncated(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.truncated = True
    status, out, _ = run_ok(capsys, "dump.txt")
    assert status == 0
    assert "is truncated" in out


def test_color_is_for_those_who_ask(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.findings = (finding(),)
    assert "\x1b[" not in run_ok(capsys, "dump.txt")[1]
    assert "\x1b[" in run_ok(capsys, "dump.txt", "--color", "always")[1]


def test_color_on_a_terminal_heeds_no_color(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.findings = (finding(),)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b[" in run_ok(capsys, "dump.txt")[1]
    assert "\x1b[" not in run_ok(capsys, "dump.txt", "--color", "never")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run_ok(capsys, "dump.txt")[1]


def test_statistics_and_timings(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.findings = (finding(), finding(Severity.ERROR))
    _, out, err = run_ok(capsys, "dump.txt", "--statistics", "--timings")
    assert "2      2 ms  HLO301 padding-waste" in out
    assert "0.250 s  parse" in err
    assert "total" in err
    _, out, err = run_ok(capsys, "dump.txt", "--statistics", "--format", "json")
    assert json.loads(out)["summary"]["rules"][0]["findings"] == 2
    assert "HLO301 padding-waste" in err


def test_notes_are_hidden_until_asked_for(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.findings = (finding(Severity.NOTE),)
    assert "No findings (1 note hidden)" in run_ok(capsys, "dump.txt")[1]
    assert "note HLO301" in run_ok(capsys, "dump.txt", "--show-notes")[1]


def test_rules_are_listed_and_explained(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run_ok(capsys, "--list-rules")
    assert status == 0
    assert out.splitlines() == [
        "HLO201  layout-copy    What it finds",
        "HLO301  padding-waste  What it finds",
    ]
    for name in ("HLO301", "padding-waste"):
        status, out, _ = run_ok(capsys, "--explain", name)
        assert status == 0
        assert out.startswith("HLO301 padding-waste\n\nWhat it finds.\n\nWhat it does\n")


def test_progress_is_shown_on_a_terminal_for_large_input_only(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hlo_tools.progress.LARGE_INPUT", 1)
    assert run_ok(capsys, "dump.txt")[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    err = run_ok(capsys, "du\x1bmp.txt")[2]
    assert "linting du\\x1bmp.txt" in err
    assert err.endswith("\r\x1b[2K"), "the line is gone at the end"
    monkeypatch.setattr("hlo_tools.progress.LARGE_INPUT", 10**9)
    assert run_ok(capsys, "dump.txt")[2] == ""


def test_an_interrupt_is_status_130_and_leaves_no_file(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    pipeline.lint = interrupt
    status, out, err = run_ok(capsys, "dump.txt", "-o", "a.txt")
    assert status == 130
    assert out == ""
    assert "interrupted" in err
    assert list(tmp_path.iterdir()) == []


def command(*arguments: str, **changes: object) -> "subprocess.Popen[bytes]":
    script = "import sys; from hlo_tools.cli import main; sys.exit(main())"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", script, *arguments], **(pipes | changes))  # type: ignore[call-overload,no-any-return]


def test_version_needs_click_only() -> None:
    script = (
        "import sys; import click; before = set(sys.modules)\n"
        "from hlo_tools.cli import main; main(['--version'])\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"hlo-lint {__version__}\n"
    ours = {name for name in done.stderr.split() if name.startswith(("hlo_tools", "passes"))}
    assert ours == {
        "hlo_tools",
        "hlo_tools.cli",
        "hlo_tools.console",
        "hlo_tools.report",
        "hlo_tools.report.names",
    }
    assert not {"importlib.metadata", "jax", "numpy", "json"} & set(done.stderr.split())


def test_a_reader_that_leaves_is_no_error() -> None:
    """As in `hlo-lint --list-rules | head -0`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stream:
        process = command("--list-rules", stdout=stream)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == b""


def test_interrupting_the_process_is_status_130() -> None:
    process = command("-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    # More than a pipe holds: once this returns, the process is reading.
    process.stdin.write(b"HloModule m\n" + b"\n" * 200_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in err
    assert b"Traceback" not in err
