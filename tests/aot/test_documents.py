"""What the pages on compiling, on pytest and on Python show works as shown."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import hlo_tools
from aot_oracle import AVAILABLE
from hlo_tools.cli import command, main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "aot.md").read_text()


PYTEST = (ROOT / "docs" / "pytest.md").read_text()
PYTHON = (ROOT / "docs" / "python.md").read_text()


def block(page: str, marker: str) -> str:
    """What stands in the fence below a marker."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", page, re.DOTALL)
    assert found, marker
    return found[1]


def run(*arguments: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join([str(ROOT), str(cwd)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_options_that_it_lists_exist() -> None:
    listed = re.findall(r"^\| `(--[\w-]+)", PAGE, re.MULTILINE)
    known = {option for parameter in command.params for option in parameter.opts}
    assert len(listed) == 4
    assert known.issuperset(listed)


@pytest.mark.skipif(not AVAILABLE, reason="needs jax and libtpu")
def test_the_example_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command that stands above it."""
    line = re.search(r"^    hlo-lint (--aot .*)$", PAGE, re.MULTILINE)
    assert line
    (tmp_path / "train.py").write_text(block(PAGE, "runs: aot"))
    monkeypatch.chdir(tmp_path)
    assert main([*line[1].split(), "--fail-on", "never"]) == 0
    assert "in 1 module; modelled step" in capsys.readouterr().out


@pytest.mark.skipif(not AVAILABLE, reason="needs jax and libtpu")
def test_the_example_for_pytest_passes(tmp_path: Path) -> None:
    (tmp_path / "test_step.py").write_text(block(PYTEST, "runs: pytest"))
    installed = any(p.value == "hlo_tools.pytest_plugin" for p in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "hlo_tools.pytest_plugin")
    done = run("-m", "pytest", *plugin, "-p", "no:cacheprovider", "test_step.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("name", ["check", "peak_hbm", "step_seconds", "exposed_collective_share"])
def test_the_conditions_that_it_lists_exist(name: str) -> None:
    assert name in PYTEST
    assert hasattr(hlo_tools.LintResult, name)


@pytest.mark.skipif(not AVAILABLE, reason="needs jax")
def test_the_example_for_notebooks_works(tmp_path: Path) -> None:
    program = (
        "import jax\nstep, x = jax.numpy.sin, jax.numpy.ones((64, 64))\n"
        f"{block(PYTHON, 'runs: python')}\nprint(result._repr_html_())\n"
    )
    done = run("-c", program, cwd=tmp_path)
    assert done.stdout.startswith("<div><p><b>No findings in 1 module"), done.stderr


def test_the_example_of_a_rule_is_one(tmp_path: Path) -> None:
    (tmp_path / "acme_rules.py").write_text(block(PYTHON, "file: acme_rules.py"))
    entry = re.search(r"```toml\n\[project\.entry-points\.\"(.*)\"\]\n(.*)\n```", PYTHON)
    assert entry
    metadata = tmp_path / "acme-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    text = f"[{entry[1]}]\n{entry[2]}\n".replace('"', "")
    (metadata / "entry_points.txt").write_text(text)
    (tmp_path / "few.toml").write_text("[rules.too-many-devices]\nmost = 2\n")
    dump = ROOT / "fixtures" / "planted" / "hlo" / "sync_collective_ring_v5p_good.hlo.txt"
    done = run(
        "-m", "hlo_tools", "--config", "few.toml", "--select", "ACME", str(dump), cwd=tmp_path
    )
    assert "warning ACME101 too-many-devices" in done.stdout, done.stderr
    assert run("-m", "hlo_tools", "--select", "ACME", str(dump), cwd=tmp_path).returncode == 0
