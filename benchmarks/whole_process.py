"""The whole `hlo-lint` process on large modules, against XLA's parser alone.

    python benchmarks/whole_process.py DUMP [--megabytes 50 100 200 400] [--start]

Grows DUMP to each size. For each, `hlo-lint --format json` runs as a process of its own: start,
read, every rule, report. Beside it stands the time that XLA's parser takes for the same text, in a
process of its own, without that process's start; both on one core, in seconds of the processor.
Peak memory is the maximum resident set, also as a multiple of the text. `--start` measures
`hlo-lint --version` against `python -c "import click"` instead, as medians of 20. Needs the extra
`aot`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grow_hlo import grow, read_text

COMMAND = [sys.executable, "-c", "import sys; from hlo_tools.cli import main; sys.exit(main())"]
"""What the installed script does."""
_XLA = """
import sys, time
from jaxlib import _hlo
text = open(sys.argv[1]).read()
start = time.process_time()
module = _hlo.hlo_module_from_text(text)
print(time.process_time() - start)
"""


def lint(path: Path, report: Path) -> tuple[float, int]:
    """Seconds of the processor and peak bytes of one run."""
    arguments = ["--format", "json", "--fail-on", "never", "-o", str(report), str(path)]
    process = subprocess.Popen([*COMMAND, *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if status:
        sys.exit(f"hlo-lint failed with status {os.waitstatus_to_exitcode(status)}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def xla_parse(path: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _XLA, str(path)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def growth(dump: Path, megabytes: list[float]) -> None:
    text = read_text(dump)
    print(f"{'MB':>6} {'hlo-lint s':>10} {'s/100 MB':>8} {'XLA s':>6} {'peak MB':>8} {'x text':>6}")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "grown.txt")
        for size in megabytes:
            grown, _ = grow(text, int(size * 1e6))
            path.write_text(grown)
            length = len(grown)
            del grown
            seconds, peak = lint(path, Path(directory, "report.json"))
            theirs = xla_parse(path)
            print(
                f"{length / 1e6:6.0f} {seconds:10.2f} {seconds * 1e8 / length:8.2f} {theirs:6.2f} "
                f"{peak / 1e6:8.0f} {peak / length:6.2f}",
                flush=True,
            )


def median_seconds(command: list[str], runs: int = 20) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def start_up() -> None:
    click = median_seconds([sys.executable, "-c", "import click"])
    version = median_seconds([*COMMAND, "--version"])
    print(f"import click {click * 1e3:.1f} ms, hlo-lint --version {version * 1e3:.1f} ms", end="")
    print(f", ratio {version / click:.2f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("dump", nargs="?", type=Path)
    arguments.add_argument("--megabytes", nargs="+", type=float, default=[50, 100, 200, 400])
    arguments.add_argument("--start", action="store_true")
    options = arguments.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.start:
        start_up()
    elif options.dump is None:
        arguments.error("which dump?")
    else:
        growth(options.dump, options.megabytes)


if __name__ == "__main__":
    main()
