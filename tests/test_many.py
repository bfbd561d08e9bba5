"""Many dumps at a time: the outcome is that of one after another, though workers die."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hlo_tools.cli import main
from hlo_tools.progress import Progress
from hlo_tools.settings import Settings
from hlo_tools.unit import FileResult, Unit, lint_unit
from hlo_tools.workers import Died, run_in_processes
from passes.catalog import BY_ID

PLANTED = Path(__file__).resolve().parent.parent / "fixtures" / "planted" / "hlo"
DUMPS = ("missing_donation_cache_v5e_bad", "good_mlp_v5e", "layout_copy_kernel_v6e_bad")


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Some dumps in folders, one that is cut off, one that is broken, and two that are none."""
    folder = tmp_path / "dumps"
    (folder / "more").mkdir(parents=True)
    for name in DUMPS:
        shutil.copy(PLANTED / f"{name}.hlo.txt", folder)
        shutil.copy(PLANTED / f"{name}.hlo.txt", folder / "more" / f"again_{name}.hlo.txt")
    text = (PLANTED / f"{DUMPS[0]}.hlo.txt").read_text()
    (folder / "cut.hlo.txt").write_text(text[: len(text) // 2])
    (folder / "notes.txt").write_text("nothing to see here\n")
    (folder / "noise.gz").write_bytes(b"\x1f\x8b\x08\x00 no gzip")
    (folder / "empty.hlo.txt").write_text("HloModule empty\n")
    return folder


def report(dumps: Path, file: Path, *options: str) -> dict[str, Any]:
    main(["--format", "json", "-o", str(file), *options, str(dumps)])
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_several_processes_report_what_one_does(dumps: Path, tmp_path: Path) -> None:
    one = report(dumps, tmp_path / "one.json")
    several = report(dumps, tmp_path / "several.json", "--jobs", "2")
    assert len(one["modules"]) == 2 * len(DUMPS) + 1
    assert one["findings"]
    assert [Path(problem["path"]).name for problem in one["problems"]] == ["empty.hlo.txt"]
    assert several == one


def test_stream_has_a_line_for_each_file_as_the_report_has_it(dumps: Path, tmp_path: Path) -> None:
    stream = tmp_path / "lines.jsonl"
    whole = report(dumps, tmp_path / "whole.json", "--jobs", "2", "--stream", str(stream))
    lines = [json.loads(line) for line in stream.read_text().split("\n")[:-1]]
    for key in ("modules", "findings", "budgets", "problems"):
        told = [json.dumps(item) for line in lines for item in line[key]]
        assert sorted(told) == sorted(json.dumps(item) for item in whole[key])
    files = [path for path in dumps.rglob("*.hlo.txt") if path.is_file()]
    assert sorted(line["path"] for line in lines) == sorted(map(str, files))


def test_directory_without_hlo_is_told_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing to see here\n")
    (tmp_path / "none").mkdir()
    for directory in (folder, tmp_path / "none"):
        one = report(directory, tmp_path / "one.json")
        several = report(directory, tmp_path / "several.json", "--jobs", "2")
        assert "holds no HLO module" in one["problems"][0]["message"]
        assert several == one


def test_many_files_are_linted_in_several_processes_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    for number in range(3):
        shutil.copy(PLANTED / f"{DUMPS[1]}.hlo.txt", folder / f"{number}.hlo.txt")
    asked = []

    def run(work: object, units: list[Unit], jobs: int) -> Iterator[tuple[int, FileResult]]:
        asked.append((len(units), jobs))
        yield from ((number, FileResult()) for number in range(len(units)))

    monkeypatch.setattr("hlo_tools.many.run_in_processes", run)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    main(["-o", str(tmp_path / "report.txt"), str(folder)])
    assert asked == []
    monkeypatch.setattr("hlo_tools.cli._MANY", 3)
    main(["-o", str(tmp_path / "report.txt"), str(folder)])
    assert asked == [(3, 5)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--jobs", "2", "--dask", "tcp://x:1"], "exclude each other"),
        (["--jobs", "2", "--against", "old.txt"], "neither with"),
        (["--jobs", "0"], "not in the range"),
        (["--stream", "/nowhere/lines"], "does not exist"),
    ],
)
def test_wrong_usage_is_told(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, str(PLANTED / f"{DUMPS[1]}.hlo.txt")]) == 2
    assert told in capsys.readouterr().err


# What the pool calls in its processes; the number of a call that is none of these comes back.
KILLED, RAISED, LEFT = 3, 5, 7


def deed(number: int) -> int:
    if number == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == RAISED:
        raise ValueError("as the test wants it")
    if number == LEFT:
        os._exit(9)
    return number * number


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_item_is_told_once_though_processes_die(jobs: int) -> None:
    found = list(run_in_processes(deed, range(12), jobs))
    assert sorted(number for number, _ in found) == list(range(12))
    told = dict(found)
    died = {n: result.reason for n, result in told.items() if isinstance(result, Died)}
    assert died == {
        KILLED: "was ended by SIGKILL",
        RAISED: "ended with status 1",
        LEFT: "ended with status 9",
    }
    assert all(told[number] == number * number for number in set(range(12)) - died.keys())


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def test_processes_end_with_the_one_that_asked() -> None:
    running = run_in_processes(sleep, [0.0, 600.0], 2)
    _, first = next(running)
    assert isinstance(first, int)
    running.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def settings() -> Settings:
    return Settings(select=tuple(sorted(BY_ID)), source_root=PLANTED, chip="v5e")


def lint_slowly(unit: Unit) -> FileResult:
    time.sleep(0.2)
    return lint_unit(unit, settings=settings(), profiled=False)


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as found:
        yield found


def test_every_dump_is_told_once_though_a_worker_of_the_cluster_is_killed(cluster: Any) -> None:
    from hlo_tools.cluster import run_on_cluster

    units = [Unit(file=str(PLANTED / f"{name}.hlo.txt"), root=None) for name in DUMPS * 6]
    victims = [worker.pid for worker in cluster.workers.values()]
    found = []
    for number, result in run_on_cluster(lint_slowly, units, cluster.scheduler_address):
        found.append((number, result))
        if len(found) == 4:
            os.kill(victims[0], signal.SIGKILL)
    assert sorted(number for number, _ in found) == list(range(len(units)))
    for number, result in found:
        assert isinstance(result, FileResult)
        other = lint_unit(units[number], settings=settings(), profiled=False)
        (ours,), (theirs,) = other.modules, result.modules
        assert (theirs.summary, theirs.findings) == (ours.summary, ours.findings)
    assert {worker.pid for worker in cluster.workers.values()} != set(victims)


def test_a_dump_that_ends_every_worker_does_not_stop_the_rest(cluster: Any) -> None:
    from hlo_tools.cluster import run_on_cluster

    cluster.scheduler.allowed_failures = 1
    found = dict(run_on_cluster(deed, [1, LEFT, 2], cluster.scheduler_address))
    assert (found[0], found[2]) == (1, 4)
    assert isinstance(found[1], Died)
    assert "KilledWorker" in found[1].reason


def test_command_lints_on_a_cluster(cluster: Any, dumps: Path, tmp_path: Path) -> None:
    one = report(dumps, tmp_path / "one.json")
    there = report(dumps, tmp_path / "there.json", "--dask", cluster.scheduler_address)
    assert there == one


def test_scheduler_that_is_not_there_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("hlo_tools.cluster.CONNECT_SECONDS", 1)
    dump = str(PLANTED / f"{DUMPS[1]}.hlo.txt")
    assert main(["--dask", "tcp://127.0.0.1:9", dump]) == 2
    assert "there is no Dask scheduler at `tcp://127.0.0.1:9`" in capsys.readouterr().err
    assert main(["--dask", "no address", dump]) == 2


def test_bar_tells_how_much_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress(_started=now[0])
    count: Callable[[int], None] = lambda done: progress.count("linting", done, 4000)  # noqa: E731
    count(0)
    now[0] = 110.0
    count(1000)
    assert "linting [######------------------] 1,000 of 4,000, 100 a second, 0:30" in (
        capsys.readouterr().err
    )
    progress.clear()
    assert capsys.readouterr().err == "\r\x1b[2K"
    silent = Progress(silent=True)
    silent.update("linting", "x", 10**9)
    assert capsys.readouterr().err == ""
