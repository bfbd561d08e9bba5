"""As much of a GitHub Actions runner as a composite action of shell steps needs.

Expressions are looked-ups, quoted strings and the operators `==`, `!=`, `&&`, `||`; steps that use
other actions are written down, not run.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

yaml: Any
try:
    import yaml
except ImportError:
    yaml = None

ROOT = Path(__file__).resolve().parents[2]
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


@dataclass(slots=True, kw_only=True)
class Run:
    """What became of the steps.

    Attributes:
      used: the other actions that steps use, with their inputs.
      calls: what the stand-ins for other programs were called with.
      output: of the steps' shells, together.
      status: exit status of the first step that failed; 0 if none did.
      steps: the outputs of the steps, by id.
      folder: what the action says it wrote to.
    """

    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    output: str = ""
    status: int = 0
    steps: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    folder: Path = Path()


def run_action(
    scratch: Path,
    inputs: Mapping[str, str],
    *,
    event: str = "pull_request",
    comments: str = "",
    cwd: Path = ROOT,
) -> Run:
    """Runs the action of this repository.

    Args:
      scratch: an empty directory for what the runner keeps.
      inputs: those that the workflow gives.
      event: the name of the event.
      comments: what the stand-in for `gh` says when it is asked for comments.
      cwd: where the workflow runs.
    """
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    run = Run()
    given = {name: str(value.get("default", "")) for name, value in action["inputs"].items()}
    required = {name for name, value in action["inputs"].items() if value.get("required")}
    assert required <= inputs.keys() <= given.keys()
    context: dict[str, Any] = {
        "inputs": {**given, **inputs},
        "github": {
            "action_path": str(ROOT),
            "token": "secret",
            "event_name": event,
            "repository": "someone/model",
            "event": {"number": "7"},
        },
        "steps": run.steps,
    }
    for name, value in context["inputs"].items():
        context["inputs"][name] = _filled(value, context)
    programs = _stand_ins(scratch, comments)
    for step in action["runs"]["steps"]:
        if "if" in step and not _truth(_value(step["if"], context)):
            continue
        if "uses" in step:
            values = {k: _filled(str(v), context) for k, v in step.get("with", {}).items()}
            run.used.append((step["uses"], values))
            continue
        assert step["shell"] == "bash"
        outputs = scratch / "outputs"
        outputs.write_text("")
        environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(scratch),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(scratch / "summary.md"),
            **{k: _filled(str(v), context) for k, v in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env=environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )
        run.output += done.stdout + done.stderr
        lines = outputs.read_text().split("\n")
        if "id" in step:
            outputs_by_name = dict(line.split("=", 1) for line in lines if line)
            run.steps[step["id"]] = {"outputs": outputs_by_name}
        if done.returncode:
            run.status = done.returncode
            break
    log = scratch / "calls"
    if log.exists():
        run.calls = [line.split("\x1f")[:-1] for line in log.read_text().split("\x1e")[:-1]]
    run.folder = Path(run.steps["lint"]["outputs"]["folder"])
    return run


def _stand_ins(scratch: Path, comments: str) -> Path:
    """Programs that write down how they are called, and `hlo-lint` of this checkout."""
    folder = scratch / "programs"
    folder.mkdir()
    (scratch / "comments").write_text(comments)
    note = f'{{ printf "%s\\037" "${{0##*/}}" "$@"; printf "\\036"; }} >> "{scratch}/calls"'
    asked = f'case "$*" in *--paginate*) cat "{scratch}/comments";; esac'
    for name, body in (
        ("gh", f"{note}\n{asked}"),
        ("python", note),
        ("hlo-lint", f'exec "{sys.executable}" -m hlo_tools "$@"'),
    ):
        program = folder / name
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)
    return folder


def _filled(text: str, context: Mapping[str, Any]) -> str:
    return _EXPRESSION.sub(lambda match: _value(match[1], context), text)


def _truth(value: str) -> bool:
    return value not in ("", "false")


def _value(expression: str, context: Mapping[str, Any]) -> str:
    """The value of an expression; truth as `true` and `false`."""
    found = ""
    for choice in expression.split("||"):
        for term in choice.split("&&"):
            found = _comparison(term, context)
            if not _truth(found):
                break
        if _truth(found):
            return found
    return found


def _comparison(term: str, context: Mapping[str, Any]) -> str:
    sides = re.split(r"(==|!=)", term)
    if len(sides) == 1:
        return _looked_up(term.strip(), context)
    left, operator, right = (_looked_up(side.strip(), context) for side in sides)
    return str((left == right) == (operator == "==")).lower()


def _looked_up(name: str, context: Mapping[str, Any]) -> str:
    if name in ("==", "!="):
        return name
    if name.startswith("'"):
        return name.strip("'")
    value: Any = context
    for key in name.split("."):
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return str(value)
