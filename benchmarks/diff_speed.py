"""The whole `hlo-lint diff` process on large modules.

    python benchmarks/diff_speed.py OLD NEW [--megabytes 10 20 40]

Grows both dumps to each size, and compares them in a process of its own: start, read, match,
report. Seconds are those of the processor, on one core. Peak memory is the maximum resident set.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from grow_hlo import grow, read_text
from whole_process import COMMAND


def diff(old: Path, new: Path) -> tuple[float, int]:
    """Seconds of the processor and peak bytes of one run."""
    arguments = ["diff", "--format", "json", "-o", os.devnull, str(old), str(new)]
    process = subprocess.Popen([*COMMAND, *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"hlo-lint failed with status {os.waitstatus_to_exitcode(status)}")
    scale = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("old", type=Path)
    arguments.add_argument("new", type=Path)
    arguments.add_argument("--megabytes", nargs="+", type=float, default=[10, 20, 40])
    options = arguments.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{'MB each':>8} {'instructions each':>18} {'s':>7} {'s/100,000':>10} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as directory:
        for size in options.megabytes:
            paths = []
            for source in (options.old, options.new):
                paths.append(Path(directory, f"{len(paths)}.txt"))
                paths[-1].write_text(grow(read_text(source), int(size * 1e6))[0])
            text = paths[0].read_text()
            number = text.count("\n  %") + text.count("\n  ROOT ")
            seconds, peak = diff(*paths)
            each = seconds * 1e5 / number
            print(
                f"{len(text) / 1e6:8.0f} {number:18,} {seconds:7.2f} {each:10.2f} "
                f"{peak / 1e6:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
