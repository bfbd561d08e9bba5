"""How many findings each rule has in a directory of dumps, by backend and severity.

    python benchmarks/findings_table.py DIRECTORY                 # the table, in Markdown
    python benchmarks/findings_table.py DIRECTORY --list HLO603   # one rule's warnings and errors
    python benchmarks/findings_table.py DIRECTORY --list          # those of all rules

Each cell counts errors, warnings and notes. `judged_false.tsv` beside this script lists findings
that a reader of the dump judged false: rule, file, instruction, reason. The last column counts
those among the errors and warnings. Chips are taken from the dumps, or assumed as `hlo-lint` does.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from hlo_tools.errors import InputError  # noqa: E402
from hlo_tools.findings import Finding, Severity  # noqa: E402
from hlo_tools.io import read_inputs  # noqa: E402
from hlo_tools.settings import Settings  # noqa: E402
from passes.catalog import BY_ID, RULES  # noqa: E402
from passes.runner import lint_text  # noqa: E402

JUDGED = Path(__file__).with_name("judged_false.tsv")
SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def judged_false() -> set[tuple[str, str, str]]:
    """Rule, file name and instruction of each finding that was judged false."""
    lines = JUDGED.read_text(encoding="utf-8").split("\n")[1:]
    fields = (line.split("\t") for line in lines if line)
    return {(rule, file, instruction) for rule, file, instruction, _reason in fields}


def findings(directory: str) -> Iterator[tuple[str, Finding]]:
    """Every finding in a directory, with the backend of its module."""
    settings = Settings(select=tuple(sorted(BY_ID)), source_root=Path())
    for item in read_inputs([directory]):
        if isinstance(item, InputError):
            print(f"left out: {item}", file=sys.stderr)
            continue
        result = lint_text(item.text, path=item.path, settings=settings)
        for problem in result.problems:
            print(f"failed: {problem.message} ({problem.path})", file=sys.stderr)
        yield from ((result.summary.backend, finding) for finding in result.findings)


def key(finding: Finding) -> tuple[str, str, str]:
    return finding.id, PurePosixPath(finding.path).name, finding.instruction


def print_list(found: list[tuple[str, Finding]], rule: str) -> None:
    judged = judged_false()
    for backend, finding in found:
        if finding.severity < Severity.WARNING or rule not in ("", finding.id):
            continue
        verdict = " [judged false]" if key(finding) in judged else ""
        place = finding.source and f"{finding.source.file}:{finding.source.line}"
        share = "" if finding.cost.share is None else f" {finding.cost.share:.1%}"
        print(
            f"{finding.id} {finding.severity.label}{share} {backend} "
            f"{PurePosixPath(finding.path).name}:{finding.hlo_line} %{finding.instruction} "
            f"({place}): {finding.message}{verdict}"
        )


def print_table(found: list[tuple[str, Finding]]) -> None:
    counts: dict[tuple[str, str], Counter[Severity]] = defaultdict(Counter)
    false: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    judged = judged_false()
    for backend, finding in found:
        counts[finding.id, backend][finding.severity] += 1
        if finding.severity >= Severity.WARNING:
            shown[finding.id] += 1
            false[finding.id] += key(finding) in judged
    backends = sorted({backend for backend, _ in found})
    print("| rule | " + " | ".join(backends) + " | judged false |")
    print("|---" * (len(backends) + 2) + "|")
    for rule in RULES:
        cells = [" / ".join(str(counts[rule.id, b][s]) for s in SEVERITIES) for b in backends]
        cells = ["" if cell == "0 / 0 / 0" else cell for cell in cells]
        rate = f"{false[rule.id]} of {shown[rule.id]}" if shown[rule.id] else ""
        print(f"| {rule.id} {rule.name} | " + " | ".join(cells) + f" | {rate} |")
    total, wrong = sum(shown.values()), sum(false.values())
    print(f"\n{wrong} of {total} errors and warnings judged false ({wrong / max(total, 1):.1%}).")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory")
    parser.add_argument("--list", nargs="?", const="", metavar="RULE")
    options = parser.parse_args()
    found = list(findings(options.directory))
    if options.list is None:
        print_table(found)
    else:
        print_list(found, options.list)


if __name__ == "__main__":
    main()
