"""The GitHub Action, run step by step, with stand-ins for what needs a network."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runner import ROOT, run_action

yaml: Any = pytest.importorskip("yaml")

PLANTED = ROOT / "fixtures" / "planted" / "hlo"
BAD = str(PLANTED / "fusion_break_barrier_v6e_bad.hlo.txt")
GOOD = str(PLANTED / "fusion_break_barrier_v6e_good.hlo.txt")


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return found


def test_action_and_example_workflow_are_what_github_takes(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    workflow = tmp_path / "workflow.yml"
    workflow.write_text(example("workflow").replace("OWNER", "someone"))
    for schema, file in (("github-actions", ROOT / "action.yml"), ("github-workflows", workflow)):
        checked = subprocess.run(
            [
                sys.executable,
                "-m",
                "check_jsonschema",
                "--builtin-schema",
                f"vendor.{schema}",
                file,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr


def example(name: str) -> str:
    page = (ROOT / "docs" / "ci.md").read_text()
    return page.split(f"<!-- {name} -->\n```yaml\n", 1)[1].split("```", 1)[0]


def test_example_workflow_asks_for_what_there_is() -> None:
    workflow = yaml.safe_load(example("workflow"))
    (job,) = workflow["jobs"].values()
    (ours,) = [step for step in job["steps"] if "hlo-tools@" in step.get("uses", "")]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert ours["with"].keys() <= inputs.keys()
    (script,) = [step["run"] for step in job["steps"] if "--aot" in step.get("run", "")]
    checked = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
    assert checked.returncode == 0


def test_no_script_holds_an_expression() -> None:
    """An expression in a script is text that a pull request may have written."""
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) == 6
    assert not any("${{" in script for script in scripts)


def test_findings_are_annotated_uploaded_and_commented_on(tmp_path: Path) -> None:
    run = run_action(tmp_path, {"paths": BAD, "chip": "v6e"})
    assert run.status == 1
    assert "::error file=fixtures/planted/programs/fusion_break.py,line=48" in run.output
    uses = dict(run.used)
    sarif = json.loads(Path(uses["github/codeql-action/upload-sarif@v3"]["sarif_file"]).read_text())
    assert sarif["runs"][0]["results"]
    page = Path(uses["actions/upload-artifact@v4"]["path"])
    assert page.read_text().startswith("<!doctype html>")
    comment = (run.folder / "comment.md").read_text()
    assert comment.startswith("<!-- hlo-lint -->\n")
    assert "HLO101 fusion-break" in comment
    assert (tmp_path / "summary.md").read_text() == comment
    install, asked, posted = run.calls
    assert install == [
        "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)
    ]  # fmt: skip
    assert asked[:4] == ["gh", "api", "--paginate", "repos/someone/model/issues/7/comments"]
    assert "POST" in posted
    assert f"body=@{run.folder}/comment.md" in posted


def test_a_comment_of_before_is_written_anew(tmp_path: Path) -> None:
    run = run_action(tmp_path, {"paths": GOOD, "chip": "v6e"}, comments="4242\n")
    assert run.status == 0
    assert run.calls[-1][:6] == [
        "gh", "api", "--silent", "--method", "PATCH", "repos/someone/model/issues/comments/4242"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "event"),
    [({"comment": "false"}, "pull_request"), ({}, "push")],
)
def test_no_comment_where_none_is_wanted(
    tmp_path: Path, inputs: dict[str, str], event: str
) -> None:
    run = run_action(tmp_path, {"paths": GOOD, "chip": "v6e", **inputs}, event=event)
    assert run.status == 0
    assert [call[0] for call in run.calls] == ["python"]


@pytest.mark.parametrize(("limit", "status"), [("2%", 1), ("", 0)])
def test_what_changed_is_told_and_fails_the_job_beyond_the_limit(
    tmp_path: Path, limit: str, status: int
) -> None:
    inputs = {"paths": BAD, "against": GOOD, "chip": "v6e", "fail-on": "never"}
    run = run_action(tmp_path, {**inputs, "fail-on-regression": limit})
    assert run.status == status
    comment = (run.folder / "comment.md").read_text()
    assert "What changed:" in comment
    assert "fusion-lost" in comment


def test_wrong_options_fail_the_job_and_upload_nothing(tmp_path: Path) -> None:
    run = run_action(tmp_path, {"paths": GOOD, "arguments": "--no-such-option"})
    assert run.status == 2
    assert [name for name, _ in run.used] == ["actions/setup-python@v5"]


def test_options_and_paths_come_one_a_line_whatever_they_are(tmp_path: Path) -> None:
    """Nothing of them is run, split or taken for an option."""
    work = tmp_path / "work"
    work.mkdir()
    hostile = ["a b.hlo.txt", "$(touch pwned).hlo.txt", "`touch pwned`;touch pwned.txt", "-o.hlo"]
    for name in hostile:
        (work / name).write_text(Path(GOOD).read_text())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    inputs = {"paths": "\n".join(hostile), "arguments": "--select=fusion-break\n\n--show-notes"}
    run = run_action(scratch, {**inputs, "chip": "v6e"}, cwd=work)
    assert run.status == 0, run.output
    assert "4 modules" in (run.folder / "findings.txt").read_text()
    assert sorted(path.name for path in work.iterdir()) == sorted(hostile)


def test_a_comment_is_a_code_block_and_of_limited_length(tmp_path: Path) -> None:
    """Whatever the names in it are, and GitHub takes 65,536 characters at most."""
    dump = tmp_path / "dump.hlo.txt"
    text = Path(BAD).read_text()
    dump.write_text(text.replace("fused_computation", "</pre>@someone![x](//y)" + "ü" * 3000))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run = run_action(scratch, {"paths": str(dump), "chip": "v6e"})
    comment = (run.folder / "comment.md").read_text(encoding="utf-8")
    assert len(comment) < 60_000
    inside = comment.split("What is slow:\n\n", 1)[1].rstrip("\n").split("\n")
    assert all(line.startswith("    ") for line in inside)
