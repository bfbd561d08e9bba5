"""Processes with all that they started: how much time they took, and their end."""

import contextlib
import os
import signal
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def spent_seconds(pid):
    """Processor time of a process and of those that it started, which live or were waited for."""
    times, children = {}, {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                stat = (directory / "stat").read_text(encoding="utf-8")
            except OSError:
                continue  # it ended in the meantime
            fields = stat.rpartition(")")[2].split()
            number = int(directory.name)
            times[number] = sum(map(int, fields[11:15])) / _TICKS
            children.setdefault(int(fields[1]), []).append(number)
    waiting, total = [pid], 0.0
    while waiting:
        each = waiting.pop()
        total += times.get(each, 0.0)
        waiting += children.get(each, [])
    return total


def end_group(process):
    """Ends a process that was started in a session of its own, and what it started there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
