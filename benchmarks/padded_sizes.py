"""Padded sizes of buffers: ours against the TPU compiler's own buffer assignment.

    python benchmarks/padded_sizes.py [GENERATION...]

Compiles programs of many element types, ranks and odd sizes for each generation and compares
`Shape.padded_bytes` with the `(size=...)` of every value that XLA assigned to a buffer. Tuples are
left out: their buffer is the table of pointers, whose size says nothing about padding. Needs the
extra `aot`.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from aot_oracle import TOPOLOGIES, compile_for  # noqa: E402
from aot_programs import PADDED_SIZES  # noqa: E402
from buffer_assignment import array_values  # noqa: E402


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("generation", nargs="*", help=", ".join(TOPOLOGIES))
    generations = arguments.parse_args().generation or list(TOPOLOGIES)
    print(
        f"{'chip':>5} {'programs':>8} {'values':>7} {'shapes':>7} {'equal':>7} "
        f"{'padded':>7} {'nominal':>7}"
    )
    for generation in generations:
        programs = compile_for(generation, PADDED_SIZES)
        counts: Counter[str] = Counter()
        distinct: set[str] = set()
        wrong: list[str] = []
        for program in programs:
            for value in array_values(program.files["buffer-assignment.txt"]):
                expected = value.expected_bytes
                counts["values"] += 1
                counts["equal"] += expected == value.size
                counts["padded"] += value.shape.logical_bytes != value.size
                counts["nominal"] += value.shape.padded_bytes != expected
                distinct.add(value.text)
                if expected != value.size:
                    wrong.append(f"  {program.name}: {value.text}: {expected}, XLA {value.size}")
        print(
            f"{generation:>5} {len(programs):8} {counts['values']:7} {len(distinct):7} "
            f"{counts['equal']:7} {counts['padded']:7} {counts['nominal']:7}"
        )
        print("\n".join(wrong[:40]), end="\n" if wrong else "")
    print("padded: larger than the elements alone")
    print("nominal: untiled scalars inside applied computations, booked as one vector register")


if __name__ == "__main__":
    main()
