"""`--against OLD`: what both have is known, what is new or much worse is reported."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from comparing import PLANTED, module_of, pairs, planted, renamed, reordered

from hlo_tools.against import Linted, known_findings
from hlo_tools.cli import main
from hlo_tools.findings import Finding, Severity
from hlo_tools.settings import Settings
from passes.catalog import BY_ID
from passes.runner import lint_text

BAD = sorted(path.name.partition(".")[0] for path in PLANTED.glob("*_bad.hlo.txt*"))


def linted(text: str) -> Linted:
    settings = Settings(select=tuple(sorted(BY_ID)), source_root=Path(), chip="v5e")
    findings = lint_text(text, path="dump.txt", settings=settings).findings
    return Linted(module=module_of(text), findings=findings)


def left(old: Linted, new: Linted) -> list[Finding]:
    (known,) = known_findings([old], [new])
    return [f for f, is_known in zip(new.findings, known, strict=True) if not is_known]


@pytest.mark.parametrize("name", BAD)
def test_a_program_has_nothing_new_against_itself(name: str) -> None:
    """Whatever its instructions, its computations and the function itself are called now.

    The name of the module is a part of every fingerprint: here the matching alone tells.
    """
    text = planted(name)
    other = reordered(renamed(text))
    other = re.sub(r"^HloModule \w+", "HloModule jit_another", other, flags=re.MULTILINE)
    old, new = linted(text), linted(other)
    assert {f.fingerprint for f in old.findings}.isdisjoint(f.fingerprint for f in new.findings)
    assert left(old, new) == []


@pytest.mark.parametrize("name", pairs())
def test_the_planted_defect_is_new_against_its_repaired_twin(name: str) -> None:
    good, bad = linted(planted(f"{name}_good")), linted(planted(f"{name}_bad"))
    guilty = {f.id for f in bad.findings if f.severity > Severity.NOTE}
    guilty -= {f.id for f in good.findings}
    assert guilty <= {f.id for f in left(good, bad)}


def test_each_finding_of_the_old_side_stands_for_one() -> None:
    """Two of a kind where there was one: one of them is new."""
    bad = linted(planted("uncombined_collectives_clip_v5p_bad"))
    assert len(bad.findings) > 1
    fewer = replace(bad, findings=bad.findings[1:])
    assert left(fewer, bad) == [bad.findings[0]]
    assert left(bad, fewer) == []


@pytest.mark.parametrize(("factor", "new"), [(1.2, False), (1.3, True)])
def test_what_became_more_severe_and_dearer_is_new(factor: float, new: bool) -> None:
    """Both sides of the margin by which models differ."""
    bad = linted(planted("high_precision_dot_highest_v5e_bad"))
    (finding,) = bad.findings
    seconds = finding.cost.seconds
    assert seconds is not None and finding.severity == Severity.ERROR
    smaller = replace(
        finding,
        severity=Severity.WARNING,
        cost=replace(finding.cost, seconds=seconds / factor),
    )
    assert bool(left(replace(bad, findings=(smaller,)), bad)) == new
    as_severe = replace(smaller, severity=Severity.ERROR)
    assert left(replace(bad, findings=(as_severe,)), bad) == []


def test_the_command_reports_only_what_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    good = str(PLANTED / "padding_waste_class_token_v5e_good.hlo.txt")
    bad = str(PLANTED / "padding_waste_class_token_v5e_bad.hlo.txt")
    assert main(["--against", bad, bad]) == 0
    assert capsys.readouterr().out.startswith("No findings (")
    assert main(["--against", good, bad]) == 1
    out = capsys.readouterr().out
    assert "HLO301 padding-waste" in out and "1 known from the old dumps" in out


def test_an_old_side_that_cannot_be_read_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise every finding would pass for a new one."""
    bad = str(PLANTED / "padding_waste_class_token_v5e_bad.hlo.txt")
    assert main(["--against", "missing.txt", bad]) == 2
    assert "missing.txt" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "x", "--write-baseline", "b.json", "y"), "exclude each other"),
        (("--against", "-", "-"), "cannot be both"),
        (("diff", "-", "-"), "cannot be both"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
