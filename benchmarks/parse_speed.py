"""How fast HLO text becomes a linked model, against XLA's own parser.

    python benchmarks/parse_speed.py DUMP_OR_DIRECTORY... [--min-kb 100] [--rounds 5]

Both parsers read the same text in the same process on one core, in turn; the best of some rounds
counts, in seconds of the processor, which other work on the machine disturbs least. Our time
includes the whole model: computations, instructions, parsed shapes and operand
edges. `+edges` is the time in which the users and called computations of every instruction are
resolved as well, which XLA's parser does while parsing.

Files that XLA refuses (dumps that were cut off, newer or older syntax) are listed apart: there is
nothing to compare with. Needs the extra `aot`.
"""

import argparse
import contextlib
import gc
import gzip
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hlo_tools.errors import InputError
from hlo_tools.hlo.module import Module
from hlo_tools.hlo.parser import parse_module


def read_text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace")


def dumps(paths: list[Path], min_bytes: int) -> Iterator[tuple[Path, str]]:
    files = (f for p in paths for f in (sorted(p.rglob("*.txt*")) if p.is_dir() else [p]))
    for path in files:
        text = read_text(path)
        if len(text) >= min_bytes:
            yield path, text


def resolve_edges(module: Module) -> None:
    for instruction in module.instructions():
        _ = instruction.users, instruction.called_computations


def best_of(rounds: int, *functions: Callable[[], object]) -> list[float]:
    """The shortest time of each function, taken in turn so that all meet the same machine."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for index, function in enumerate(functions):
            gc.collect()
            start = time.thread_time()
            result = function()
            best[index] = min(best[index], time.thread_time() - start)
            del result
    return best


@contextlib.contextmanager
def silenced_stderr() -> Iterator[None]:
    """XLA logs what it refuses from C++, past `sys.stderr`."""
    saved = os.dup(2)
    with Path(os.devnull).open("w") as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("paths", nargs="+", type=Path, metavar="DUMP_OR_DIRECTORY")
    arguments.add_argument("--min-kb", type=float, default=100, help="skip smaller files")
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()

    from jaxlib import _hlo

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'ours':>8} {'+edges':>8} {'XLA':>8} {'ratio':>6} {'+edges':>6}   MB   file")
    totals = [0.0, 0.0, 0.0]
    ratios: list[tuple[float, float]] = []
    size_sum = 0.0
    refused: list[str] = []
    for path, text in dumps(options.paths, int(options.min_kb * 1000)):
        size = len(text) / 1e6
        try:
            with silenced_stderr():
                _hlo.hlo_module_from_text(text)
            parse_module(text)
        except (InputError, RuntimeError, ValueError) as error:
            refused.append(f"{path.name}: {str(error).splitlines()[0]}")
            continue
        with silenced_stderr():
            ours, linked, theirs = best_of(
                options.rounds,
                lambda text=text: parse_module(text),
                lambda text=text: resolve_edges(parse_module(text)),
                lambda text=text: _hlo.hlo_module_from_text(text),
            )
        for index, seconds in enumerate((ours, linked, theirs)):
            totals[index] += seconds
        size_sum += size
        ratios.append((theirs / ours, theirs / linked))
        print(
            f"{size / ours:8.1f} {size / linked:8.1f} {size / theirs:8.1f} "
            f"{theirs / ours:6.2f} {theirs / linked:6.2f} {size:6.2f} {path.name}"
        )
    if not ratios:
        sys.exit("no file that both parsers read")
    ours, linked, theirs = totals
    print(
        f"{size_sum / ours:8.1f} {size_sum / linked:8.1f} {size_sum / theirs:8.1f} "
        f"{theirs / ours:6.2f} {theirs / linked:6.2f} {size_sum:6.2f} total of {len(ratios)} files"
    )
    median, median_linked = (statistics.median(column) for column in zip(*ratios, strict=True))
    lowest, lowest_linked = (min(column) for column in zip(*ratios, strict=True))
    print(f"{'median ratio':>26} {median:6.2f} {median_linked:6.2f}")
    print(f"{'lowest ratio':>26} {lowest:6.2f} {lowest_linked:6.2f}")
    print("MB/s: ours, ours with user and call edges, XLA; ratio: XLA's time over ours")
    for line in refused:
        print(f"not compared: {line}")


if __name__ == "__main__":
    main()
