"""Makes a large module out of a real one, all of it live.

    python benchmarks/grow_hlo.py IN.hlo.txt[.gz] OUT.txt MEGABYTES

Every computation of the module is repeated under new names, and the entry calls every copy of
itself. XLA's own parser accepts the result.
"""

import argparse
import gzip
import re
from pathlib import Path

_DEFINED = re.compile(r"^(?:ENTRY )?\s*(?:ROOT )?%(\S+) (?:=|\()", re.MULTILINE)
_REFERENCE = re.compile(r"%([\w.\-<>]+)")
_PARAMETER = re.compile(r"^\s+%(\S+) = \S+ parameter\((\d+)\)", re.MULTILINE)
_ROOT = re.compile(r"^  ROOT %\S+ = (\(.*?\)|\S+) [\w-]+\(", re.MULTILINE)


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()


def renamed(text: str, names: set[str], suffix: str) -> str:
    """The text with `suffix` behind each of the names."""
    return _REFERENCE.sub(lambda m: m[0] + suffix if m[1] in names else m[0], text)


def grow(text: str, size: int) -> tuple[str, int]:
    """A module of at least `size` characters, and how often it holds what `text` does."""
    entry_at = text.index("\nENTRY ") + 1
    first = re.search(r"^%", text, re.MULTILINE)
    computations_at = first.start() if first else entry_at
    head, computations = text[:computations_at], text[computations_at:entry_at]
    entry = text[entry_at:].rstrip("\n")
    name = re.match(r"ENTRY %(\S+) ", entry)
    root = _ROOT.search(entry)
    if name is None or root is None:
        raise ValueError("the module has no entry computation with a root")
    arguments = ", ".join(
        f"%{p}" for _, p in sorted((int(n), p) for p, n in _PARAMETER.findall(entry))
    )
    defined = set(_DEFINED.findall(text))
    copied = computations + entry.removeprefix("ENTRY ") + "\n\n"
    parts, calls, length, copies = [head], [], len(text), 1
    while length < size:
        suffix = f".r{copies}"
        part = renamed(copied, defined, suffix)
        parts.append(part)
        calls.append(
            f"  %grown.{copies} = {root[1]} call({arguments}), to_apply=%{name[1]}{suffix}\n"
        )
        length += len(part)
        copies += 1
    parts += [computations, entry[: root.start()], *calls, entry[root.start() :], "\n"]
    return "".join(parts), copies


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("source", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("megabytes", type=float)
    options = arguments.parse_args()
    text, copies = grow(read_text(options.source), int(options.megabytes * 1e6))
    options.out.write_text(text)
    print(f"{len(text) / 1e6:.1f} MB, {copies} live copies")


if __name__ == "__main__":
    main()
