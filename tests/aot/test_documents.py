"""What docs/aot.md shows works as shown."""

import re
from pathlib import Path

import pytest

from aot_oracle import AVAILABLE
from hlo_tools.cli import command, main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "aot.md").read_text()


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
    example = re.search(r"<!-- runs: aot -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    line = re.search(r"^    hlo-lint (--aot .*)$", PAGE, re.MULTILINE)
    assert example and line
    (tmp_path / "train.py").write_text(example[1])
    monkeypatch.chdir(tmp_path)
    assert main([*line[1].split(), "--fail-on", "never"]) == 0
    assert "in 1 module; modelled step" in capsys.readouterr().out
