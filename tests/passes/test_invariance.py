"""What must not change a finding or its fingerprint: names, comments, order, hash seeds."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linting import ROOT, lint, read_dump, settings

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.findings import Finding
from hlo_tools.io import ModuleText, read_inputs
from passes.runner import lint_text

DUMPS = sorted((ROOT / "fixtures" / "planted" / "hlo").glob("*_bad.hlo.txt*"))
CASES: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "fixtures" / "planted" / "MANIFEST.json").read_text()
)
_NAMED = re.compile(r"^(\s+(?:ROOT )?)%(\S+) = ", re.MULTILINE)
_NAME = re.compile(r"%([^\s(),={}\[\]\"]+)")


def findings(dump: Path, text: str) -> tuple[Finding, ...]:
    """What rules find in a text of a case, on its own chip: on another it may be no defect."""
    facts = CASES[dump.name.partition(".")[0]]
    refusal = facts.get("refusal")
    return lint(
        text,
        chip=facts["topology"].partition(":")[0],
        refusal=MemoryRefusal(**refusal) if refusal else None,
    ).findings


def renamed(text: str) -> str:
    """Every instruction under a new name."""
    names = {name: f"i{number}" for number, (_, name) in enumerate(_NAMED.findall(text))}
    return _NAME.sub(lambda m: f"%{names.get(m[1], m[1])}", text)


def commented(text: str) -> str:
    """Comments of both kinds, before, between and behind instructions."""
    lines = text.split("\n")
    for number in range(2, len(lines), 3):
        if lines[number].startswith("  %"):
            lines[number] = f"  // %x = f32[] add(%y, %z)\n{lines[number]} // seen /* here"
    return "/* one\n   two */\n" + "\n".join(lines)


def reordered(text: str) -> str:
    """The computations in the opposite order, the entry first."""
    start = text.index("\n%") + 1 if "\n%" in text else text.index("\nENTRY ") + 1
    head, blocks = text[:start], re.split(r"(?<=^}\n)\n*", text[start:], flags=re.MULTILINE)
    return head + "\n".join(block for block in reversed(blocks) if block.strip())


def essence(found: tuple[Finding, ...]) -> list[tuple[object, ...]]:
    """Findings without the names and HLO lines that a transformation may change."""
    return sorted(
        (
            f.fingerprint, f.id, f.severity, f.source, f.op_name, f.cost,
            re.sub(r"%[^\s`]+", "%", f.message), len(f.related),
        )
        for f in found
    )  # fmt: skip


@pytest.mark.parametrize("transform", [renamed, commented, reordered])
@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.name.partition(".")[0])
def test_findings_do_not_depend_on_how_the_text_is_written(
    dump: Path, transform: Callable[[str], str]
) -> None:
    """The same program gives the same findings with the same fingerprints."""
    text = read_dump(dump)
    changed = transform(text)
    assert changed != text
    expected = findings(dump, text)
    assert essence(findings(dump, changed)) == essence(expected)
    assert expected, "a planted dump without a finding shows nothing"


def test_fingerprints_do_not_depend_on_lines_added_above_in_the_source() -> None:
    """A baseline outlives edits elsewhere in the file."""
    for dump in DUMPS:
        text = read_dump(dump)
        moved = re.sub(r"\b((?:end_)?line)=(\d+)", lambda m: f"{m[1]}={int(m[2]) + 40}", text)
        before, after = (findings(dump, t) for t in (text, moved))
        assert {f.fingerprint for f in before} == {f.fingerprint for f in after}
        assert [f.source for f in before] != [f.source for f in after]


def test_line_ends_of_windows_change_nothing(tmp_path: Path) -> None:
    """CRLF files, as read from disk, give the same findings at the same lines."""
    for dump in DUMPS[:6]:
        text = read_dump(dump)
        path = tmp_path / "dump.txt"
        path.write_bytes(text.replace("\n", "\r\n").encode())
        (item,) = read_inputs([str(path)])
        assert isinstance(item, ModuleText)
        result = lint_text(
            item.text, path="dump.txt", settings=settings(chip="v5e"), start_line=item.start_line
        )
        assert result.findings == lint(text, chip="v5e").findings


def test_fingerprints_are_unique_in_a_module() -> None:
    """A baseline must silence one finding, not its neighbours."""
    for dump in DUMPS:
        fingerprints = [f.fingerprint for f in findings(dump, read_dump(dump))]
        assert len(fingerprints) == len(set(fingerprints))


def test_two_runs_with_different_hash_seeds_are_identical() -> None:
    """Nothing in a report comes out of set or hash order."""
    paths = [str(path) for path in DUMPS[:8]]
    outputs = []
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-m", "hlo_tools", "--format", "json", *paths],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        )
        assert run.returncode == 1, run.stderr.decode()
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["findings"]
