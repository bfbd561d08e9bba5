"""The hook for pre-commit, run by pre-commit itself from this checkout."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
PLANTED = ROOT / "fixtures" / "planted" / "hlo"


def hook() -> dict[str, Any]:
    (found,) = yaml.safe_load(MANIFEST.read_text())
    return dict(found)


@pytest.mark.parametrize(
    ("name", "is_dump"),
    [
        ("golden/step.hlo", True),
        ("golden/step.hlo.txt", True),
        ("golden/step.hlo.pb.gz", True),
        ("dump/module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt", True),
        ("notes.txt", False),
        ("hlo.py", False),
        ("step.hlo.txt.orig", False),
    ],
)
def test_hook_takes_dumps_by_their_names(name: str, is_dump: bool) -> None:
    assert bool(re.search(hook()["files"], name)) == is_dump


def test_entry_is_the_command_that_is_installed() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hook()["entry"] in project["scripts"]


def test_example_configuration_names_the_hook() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    text = page.split("<!-- pre-commit -->\n```yaml\n", 1)[1].split("```", 1)[0]
    ((ours,),) = [repo["hooks"] for repo in yaml.safe_load(text)["repos"]]
    assert ours["id"] == hook()["id"]


def test_pre_commit_lints_the_dumps_of_a_commit(tmp_path: Path) -> None:
    """All but the installation, which needs a package index: the language is `system` instead."""
    clientlib = pytest.importorskip("pre_commit.clientlib")
    assert [found["id"] for found in clientlib.load_manifest(str(MANIFEST))] == ["hlo-lint"]
    local = {
        **hook(),
        "language": "system",
        "entry": f"{sys.executable} -m hlo_tools",
        "args": ["--chip", "v6e"],
    }
    configuration = {"repos": [{"repo": "local", "hooks": [local]}]}
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump(configuration))
    (tmp_path / "notes.txt").write_text("no dump\n")

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit_of(name: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "step.hlo.txt").write_text((PLANTED / name).read_text())
        git("add", ".")
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--color", "never"],
            cwd=tmp_path,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(tmp_path),
                "PRE_COMMIT_HOME": str(tmp_path / ".cache"),
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    git("init", "--quiet")
    bad = commit_of("fusion_break_barrier_v6e_bad.hlo.txt")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "HLO101 fusion-break" in bad.stdout
    good = commit_of("fusion_break_barrier_v6e_good.hlo.txt")
    assert good.returncode == 0, good.stdout + good.stderr
