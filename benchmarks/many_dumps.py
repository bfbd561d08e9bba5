"""How many dumps a second are linted: one process, several, and a Dask cluster of this machine.

    python benchmarks/many_dumps.py DUMPS [--copies 4] [--jobs 1,2,4] [--dask]

DUMPS is a file or a directory, which is linted file by file, `--copies` times over. Prints
files and megabytes a second and the ratio to one process; of all, starting the processes included.
The processors of a shared machine are busy with other things at times, so each row is the best of
`--repeat` runs.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import cpu_count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hlo_tools.cluster import run_on_cluster
from hlo_tools.errors import InputError
from hlo_tools.io import list_inputs
from hlo_tools.settings import Settings
from hlo_tools.unit import FileResult, Unit, lint_unit
from hlo_tools.workers import run_in_processes
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
    print(f"{'':18}{'files/s':>10}{'MB/s':>10}{'ratio':>8}")
    settings = Settings(select=tuple(sorted(BY_ID)), source_root=Path.cwd())
    work = partial(lint_unit, settings=settings, profiled=False)
    first = None
    for job in jobs:
        taken = min(timed(run_in_processes(work, units, job)) for _ in range(options.repeat))
        first = first or taken
        row(f"{job} process{'es' * (job > 1)}", units, size, taken, first)
    if options.dask:
        with cluster(max(jobs)) as address:
            taken = min(timed(run_on_cluster(work, units, address)) for _ in range(options.repeat))
        row(f"{max(jobs)} Dask workers", units, size, taken, first or taken)
    return 0


def units_of(paths: Sequence[str]) -> list[Unit]:
    return [
        Unit(file=file, root=listing.root)
        for listing in list_inputs(paths)
        for file in listing.files
        if not isinstance(file, InputError)
    ]


def timed(results: Iterator[tuple[int, object]]) -> float:
    began = time.perf_counter()
    lost = [result for _, result in results if not isinstance(result, FileResult)]
    assert not lost, lost
    return time.perf_counter() - began


def row(name: str, units: Sequence[Unit], size: float, taken: float, first: float) -> None:
    print(f"{name:18}{len(units) / taken:10.1f}{size / taken:10.2f}{first / taken:8.2f}")


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as found:
        yield found.scheduler_address


if __name__ == "__main__":
    sys.exit(main())
