"""HBM temporaries: ours against the TPU compiler's own buffer assignment.

    python benchmarks/memory_model.py                   # the planted programs, nothing compiled
    python benchmarks/memory_model.py GENERATION...     # compiles varied programs for each

The first compares with what `compiled.memory_analysis()` said when the planted dumps were made,
the second with the `preallocated-temp` allocation of the same compilation (needs the extra `aot`).
Programs whose temporaries are below a mebibyte are left out: a few hundred small buffers and
tables of addresses, which the model does not count one by one, make up most of those.
"""

import gzip
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "analysis")]

from hlo_tools.analysis.execution import Execution  # noqa: E402
from hlo_tools.analysis.liveness import Liveness  # noqa: E402
from hlo_tools.hlo.parser import parse_module  # noqa: E402

PLANTED = ROOT / "fixtures" / "planted"
LEAST_BYTES = 1 << 20
TOLERANCE = 0.05
TEMP = re.compile(r"^allocation \d+: size (\d+), page 0, preallocated-temp:", re.MULTILINE)


def temp_bytes(text: str) -> int:
    module = parse_module(text)
    return Liveness(module, Execution(module)).temp_peak_bytes()


def compare(rows: list[tuple[str, int, int]]) -> None:
    large = [row for row in rows if max(row[1:]) >= LEAST_BYTES]
    print(f"{'program':56} {'ours':>13} {'compiler':>13} {'error':>8}")
    for name, ours, theirs in large:
        print(f"{name:56} {ours:13,} {theirs:13,} {ours / max(theirs, 1) - 1:+8.2%}")
    close = sum(abs(ours - theirs) <= TOLERANCE * theirs for _, ours, theirs in large)
    print(f"{close} of {len(large)} within {TOLERANCE:.0%}; {len(rows) - len(large)} below 1 MiB")


def planted() -> list[tuple[str, int, int]]:
    rows = []
    for name, case in json.loads((PLANTED / "MANIFEST.json").read_text()).items():
        if case["memory"] is None:
            continue
        data = (PLANTED / case["file"]).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
        rows.append((name, temp_bytes(text), case["memory"]["temp_bytes"]))
    return rows


def compiled(generation: str) -> list[tuple[str, int, int]]:
    from memory_programs import VARIED

    from aot_oracle import compile_for

    rows = []
    for program in compile_for(generation, VARIED):
        found = TEMP.search(program.files["buffer-assignment.txt"])
        theirs = int(found[1]) if found else 0
        rows.append((f"{generation} {program.name}", temp_bytes(program.text), theirs))
    return rows


def main() -> None:
    if len(sys.argv) > 1:
        compare([row for generation in sys.argv[1:] for row in compiled(generation)])
    else:
        compare(planted())


if __name__ == "__main__":
    main()
