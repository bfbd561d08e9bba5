"""What Pallas for TPU can do: small kernels, compiled for each generation without a TPU.

    python benchmarks/capabilities.py [--chip CHIP] [--only REGEX] [--tsv FILE] [--against FILE]
    python benchmarks/capabilities.py --write [--against FILE]

Prints a page of tables; `--write` writes it to `docs/pallas-capabilities.md`. `--tsv` writes every
outcome on a line of its own; such a file, written with other versions of jax and libtpu, is what
`--against` compares with. "Compiles" means neither right nor fast: nothing is run.

Needs jax and libtpu.
"""

import argparse
import importlib.metadata
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.coverage_parts.tpu import use_environment  # noqa: E402

use_environment()

from benchmarks.capabilities_parts.compiler import TOPOLOGIES  # noqa: E402
from benchmarks.capabilities_parts.outcomes import read_lines, table_lines  # noqa: E402
from benchmarks.capabilities_parts.report import page  # noqa: E402
from benchmarks.capabilities_parts.survey import survey  # noqa: E402
from benchmarks.capabilities_parts.table import GROUPS  # noqa: E402
from benchmarks.capabilities_parts.worker import Worker  # noqa: E402

PAGE = ROOT / "docs" / "pallas-capabilities.md"


def asked(groups, chips):
    """The results of all probes; says on the console how far it is."""
    results = []
    worker = Worker()
    try:
        for chip in chips:
            for group in groups:
                start = time.monotonic()
                results += survey([group], [chip], worker.ask)
                seconds = time.monotonic() - start
                print(f"{chip}: {group.title}, {seconds:.0f} s", file=sys.stderr)
    finally:
        worker.close()
    return results


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--chip", action="append", choices=tuple(TOPOLOGIES), help="this one; may be repeated"
    )
    options.add_argument("--only", default="", help="groups whose titles match, an expression")
    options.add_argument("--tsv", type=Path, help="a file for all outcomes")
    options.add_argument("--against", type=Path, help="compare with that file of other versions")
    options.add_argument("--write", action="store_true", help=f"to {PAGE.relative_to(ROOT)}")
    chosen = options.parse_args()
    if chosen.write and (chosen.chip or chosen.only):
        options.error("--write takes all generations and all groups")
    chips = tuple(chip for chip in TOPOLOGIES if chip in (chosen.chip or TOPOLOGIES))
    groups = tuple(group for group in GROUPS if re.search(chosen.only, group.title))
    if not groups:
        options.error(f"no group's title matches {chosen.only!r}")
    other = None
    if chosen.against:
        other = read_lines(chosen.against.read_text(encoding="utf-8").splitlines())
    results = asked(groups, chips)
    versions = {name: importlib.metadata.version(name) for name in ("jax", "libtpu")}
    if chosen.tsv:
        lines = table_lines(results, versions)
        chosen.tsv.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = page(groups, results, chips, versions, other)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
