"""What `docs/diff.md` shows is what the command prints; `--update-golden` writes it anew."""

import re
import shlex
from pathlib import Path

import pytest

from hlo_tools.cli import main
from hlo_tools.diff.kinds import OPPOSITES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "diff.md"
_OUTPUT = re.compile(r"<!-- output: hlo-lint ([^\n]*) -->\n```\n(.*?)```\n", re.DOTALL)


def test_the_outputs_that_it_shows_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update_golden: bool
) -> None:
    monkeypatch.chdir(ROOT)

    def printed(match: re.Match[str]) -> str:
        main(shlex.split(match[1]))
        return f"<!-- output: hlo-lint {match[1]} -->\n```\n{capsys.readouterr().out}```\n"

    text = PAGE.read_text(encoding="utf-8")
    expected, outputs = _OUTPUT.subn(printed, text)
    if update_golden:
        PAGE.write_text(expected, encoding="utf-8")
        text = expected
    assert outputs == 2
    assert text == expected


def test_its_table_holds_every_kind_once() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| `([\w-]+)` \|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(OPPOSITES)
