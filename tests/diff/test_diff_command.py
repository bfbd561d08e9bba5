"""`hlo-lint diff`: what it takes, what it gives back, and how it fails."""

import gzip
import json
from pathlib import Path

import pytest
from comparing import PLANTED, planted

from hlo_tools.cli import main

GOOD = PLANTED / "fusion_break_barrier_v6e_good.hlo.txt"
BAD = PLANTED / "fusion_break_barrier_v6e_bad.hlo.txt"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["diff", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("old", "new", "allowed", "status"),
    [
        (GOOD, BAD, (), 0),
        (GOOD, BAD, ("--fail-on-regression", "2%"), 1),
        (GOOD, BAD, ("--fail-on-regression", "2"), 1),
        (GOOD, BAD, ("--fail-on-regression", "84 %"), 0),
        (GOOD, BAD, ("--fail-on-regression", "83%"), 1),
        (BAD, GOOD, ("--fail-on-regression", "0%"), 0),
        (GOOD, GOOD, ("--fail-on-regression", "0%"), 0),
    ],
)
def test_status_says_whether_the_step_regressed(
    old: Path, new: Path, allowed: tuple[str, ...], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides of the threshold: this pair differs by 83.06 %."""
    assert run(capsys, old, new, *allowed)[0] == status


@pytest.mark.parametrize("share", ["x", "-1%", "nan", "inf%", ""])
def test_a_share_that_is_none_is_wrong_usage(
    share: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, GOOD, BAD, "--fail-on-regression", share)
    assert (status, out) == (2, "")
    assert "is no percentage such as 2%" in err and "hlo-lint diff --help" in err


def test_output_is_the_same_in_a_file_and_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("text", "json"):
        _, out, _ = run(capsys, GOOD, BAD, "--format", name)
        file = tmp_path / name
        assert run(capsys, GOOD, BAD, "--format", name, "-o", file)[1] == ""
        assert file.read_text() == out


def test_packed_dumps_and_directories_are_paired_module_by_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By name, whatever the files are called; what is on one side alone is listed."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    (old / "a.txt").write_text(planted("good_mlp_v5e"))
    (old / "b.txt").write_text(planted("layout_copy_prefill_v5e_good"))
    (new / "x.txt").write_text(planted("high_precision_dot_highest_v5e_good"))
    (new / "z.txt.gz").write_bytes(gzip.compress(planted("good_mlp_v5e").encode()))
    status, out, err = run(capsys, old, new, "--format", "json")
    document = json.loads(out)
    assert (status, err) == (0, "")
    (module,) = document["modules"]
    assert module["old"]["path"].endswith("a.txt") and module["new"]["path"].endswith("z.txt.gz")
    assert not module["causes"]
    assert [item["name"] for item in document["only_old"]] == ["jit_prefill_cache_flat"]
    assert [item["name"] for item in document["only_new"]] == ["jit_dense_default"]


def test_what_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, tmp_path / "missing.txt", BAD)
    assert status == 2 and "missing.txt" in out + err and "cannot be read" in out + err


def test_a_module_that_is_not_compiled_yet_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early = tmp_path / "early.txt"
    early.write_text(
        "HloModule jit_f\n\nENTRY %main (x: f32[8]) -> f32[8] {\n"
        "  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} add(%x, %x)\n}\n"
    )
    status, out, _ = run(capsys, early, early)
    assert status == 2 and "is not optimised yet" in out


def test_a_regression_cannot_be_judged_without_a_chip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A threshold that could not fail would pass everything."""
    plain = tmp_path / "cpu.txt"
    plain.write_text(
        "HloModule jit_f, is_scheduled=true\n\nENTRY %main (x: f32[8]) -> f32[8] {\n"
        "  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} add(%x, %x)\n}\n"
    )
    assert run(capsys, plain, plain)[0] == 0
    status, out, _ = run(capsys, plain, plain, "--fail-on-regression", "2%")
    assert status == 2 and "it has no modelled time" in out
    assert run(capsys, plain, plain, "--fail-on-regression", "2%", "--chip", "v5e")[0] == 0


def test_a_dump_that_is_cut_off_is_compared_but_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its step is shorter than it was; where nothing that runs is left, there is no step."""
    text = BAD.read_text()
    cut = tmp_path / "cut.txt"
    cut.write_text(text[: text.index("  ROOT %fusion =")])
    status, out, _ = run(capsys, BAD, cut)
    assert status == 0 and "the new dump is truncated" in out
    status, out, _ = run(capsys, BAD, cut, "--fail-on-regression", "2%")
    assert status == 2 and "the dump is truncated" in out
    cut.write_text(text[: text.index("\nENTRY ")])
    status, out, _ = run(capsys, cut, BAD)
    assert status == 2 and "is cut off before anything that its step runs" in out


def test_help_of_both_commands_tells_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--help")[0] == 0
    assert main(["--help"]) == 0
    assert "hlo-lint diff OLD NEW" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), (GOOD,), (GOOD, BAD, BAD)])
def test_it_takes_two_paths(
    arguments: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "") and err.startswith("error: ")
