"""How many dumps a second are linted: one process, several, and a Dask cluster of this machine.

    python benchmarks/many_dumps.py DUMPS [--copies 4] [--jobs 1,2,4] [--dask]

DUMPS is a file or a directory, which is linted file by file, `--copies` times over. Prints
files and megabytes a second, the ratio to one process, and the seconds of processors that all took
together; starting the processes is included in all of them. On a machine that is busy with other
things the last figure is the one to look at: its growth is what doing several at a time costs.
Each row is the fastest of `--repeat` runs.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import cpu_count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hlo_tools.cluster import run_on_cluster
from hlo_tools.errors import InputError
from hlo_tools.io import list_inputs
from hlo_tools.settings import Settings
from hlo_tools.unit import FileResult, Unit, lint_unit
from hlo_tools.workers import Died, run_in_processes
from passes.catalog import BY_ID


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--jobs", default="")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dask", action="store_true")
    options = parser.parse_args(arguments)
    units = units_of(options.dumps) * options.copies
    if not units:
        parser.error("there is no file in the input")
    size = sum(Path(unit.file).stat().st_size for unit in units) / 1e6
    cores = cpu_count() or 1
    jobs = [int(job) for job in options.jobs.split(",") if job] or sorted({1, 2, cores})
    print(f"{len(units)} files, {size:.0f} MB, {cores} processors")
    print(f"{'':18}{'files/s':>10}{'MB/s':>10}{'ratio':>8}{'processor':>12}")
    settings = Settings(select=tuple(sorted(BY_ID)), source_root=Path.cwd())
    work = partial(lint_unit, settings=settings, profiled=False)
    first = None
    for job in jobs:
        pool = partial(run_in_processes, work, units, job)
        best = min(timed(pool) for _ in range(options.repeat))
        first = first or best
        row(f"{job} process{'es' * (job > 1)}", units, size, best, first)
    if options.dask:
        there = partial(on_a_cluster, work, units, max(jobs))
        best = min(timed(there) for _ in range(options.repeat))
        row(f"{max(jobs)} Dask workers", units, size, best, first or best)
    return 0


def units_of(paths: Sequence[str]) -> list[Unit]:
    return [
        Unit(file=file, root=listing.root)
        for listing in list_inputs(paths)
        for file in listing.files
        if not isinstance(file, InputError)
    ]


def timed(run: Callable[[], Iterator[tuple[int, object]]]) -> tuple[float, float]:
    """Seconds, and seconds of processors, of this process and of those that it has waited for."""
    began, spent = time.perf_counter(), processors()
    lost = [result for _, result in run() if not isinstance(result, FileResult)]
    assert not lost, lost
    return time.perf_counter() - began, processors() - spent


def processors() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def row(
    name: str,
    units: Sequence[Unit],
    size: float,
    best: tuple[float, float],
    first: tuple[float, float],
) -> None:
    taken, spent = best
    speed = f"{len(units) / taken:10.1f}{size / taken:10.2f}{first[0] / taken:8.2f}"
    print(f"{name:18}{speed}{spent:10.1f} s")


def on_a_cluster(
    work: Callable[[Unit], FileResult], units: Sequence[Unit], workers: int
) -> Iterator[tuple[int, FileResult | Died]]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as found:
        yield from run_on_cluster(work, units, found.scheduler_address)


if __name__ == "__main__":
    sys.exit(main())
