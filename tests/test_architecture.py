"""The walls between the packages, and what the command loads when it starts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hlo_tools", "passes", "translators")
NUMERICAL = ("jax", "jaxlib", "libtpu", "numpy", "triton")
_LINT_IMPORTS = "from importlinter.cli import lint_imports_command as run; run()"


def check_contracts(directory: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("importlinter")
    return subprocess.run(
        [
            sys.executable,
            "-c",
            _LINT_IMPORTS,
            "--no-cache",
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_import_keeps_to_the_walls() -> None:
    checked = check_contracts(ROOT)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("hlo_tools/hlo/module.py", "import hlo_tools.hardware", "point down"),
        ("hlo_tools/io.py", "import hlo_tools.findings", "point down"),
        ("hlo_tools/findings.py", "def f(): import hlo_tools.settings", "point down"),
        (
            "hlo_tools/settings.py",
            "import passes.catalog",
            "what runs the rules imports",
        ),
        (
            "translators/__init__.py",
            "import passes.rule",
            "what runs the rules imports",
        ),
        ("passes/rule.py", "import hlo_tools.io", "Rules see facts"),
        ("hlo_tools/report/view.py", "import hlo_tools.hlo.module", "Reports see findings only"),
        (
            "hlo_tools/report/diff_text.py",
            "import hlo_tools.diff.kinds",
            "Reports see findings only",
        ),
        ("passes/rule.py", "import hlo_tools.diff.matching", "Rules see facts"),
        ("hlo_tools/hardware.py", "def f(): import numpy", "needs no numerical package"),
        ("hlo_tools/surprise.py", "", "surprise"),
        ("translators/graph/graph.py", "import translators.emit.jax", "translators point down"),
        ("translators/emit/terms.py", "import translators.triton.launches", "Emitters see"),
    ],
)
def test_a_breach_of_a_wall_is_noticed(
    module: str, line: str, contract: str, tmp_path: Path
) -> None:
    """The contracts themselves work: each of these imports breaks the one it should."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / module).open("a") as file:
        file.write(f"\n{line}\n")
    checked = check_contracts(tmp_path)
    assert checked.returncode != 0
    told = [text for text in checked.stdout.split("\n") if contract in text]
    assert any("BROKEN" in text or "surprise" in text for text in told), checked.stdout


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a run of `hlo-lint` loads."""
    program = (
        "import sys, hlo_tools.cli; sys.argv = ['hlo-lint', *sys.argv[1:]]\n"
        "hlo_tools.cli.main()\n"
        "print('\\n', *sys.modules, file=sys.stderr)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(finished.stderr.split("\n")[-2].split())


def test_linting_a_dump_loads_no_numerical_package(tmp_path: Path) -> None:
    dump = min((ROOT / "fixtures" / "planted" / "hlo").glob("*.hlo.txt"))
    loaded = loaded_by("--format", "json", "-o", str(tmp_path / "report.json"), str(dump))
    assert (tmp_path / "report.json").stat().st_size > 0
    assert "hlo_tools.io" in loaded
    assert loaded.isdisjoint(NUMERICAL)


def test_telling_the_version_loads_next_to_nothing() -> None:
    loaded = {name for name in loaded_by("--version") if name.split(".")[0] in PACKAGES}
    assert not {name for name in loaded if name.split(".")[0] == "passes"}
    assert loaded.isdisjoint({"hlo_tools.io", "hlo_tools.analysis", "hlo_tools.hlo.parser"})
