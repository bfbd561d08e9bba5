"""How the tests of comparisons read dumps, compare texts and change how a text is written."""

import re
from itertools import pairwise
from pathlib import Path
from random import Random

from hlo_tools.comparison import ModuleComparison
from hlo_tools.diff.compare import Modelling, ReadModule, compare, read_module
from hlo_tools.io import ModuleText, read_inputs

ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = ROOT / "fixtures" / "planted" / "hlo"

_NAMED = re.compile(r"^(\s+(?:ROOT )?)%(\S+) = ", re.MULTILINE)
_COMPUTATION = re.compile(r"^(?:ENTRY )?%(\S+) \(", re.MULTILINE)
_NAME = re.compile(r"%([^\s(),={}\[\]\"]+)")
_BLOCK = re.compile(r"^((?:ENTRY )?%.*\{\n)(.*?)^(\}.*\n?)", re.MULTILINE | re.DOTALL)
_FREE = re.compile(
    r"^ +%\S+ = .*? (?:parameter|constant|get-tuple-element|bitcast|iota|partition-id)\("
)


def text_of(path: Path) -> str:
    """The text of the one module in a file."""
    (item,) = read_inputs([str(path)])
    assert isinstance(item, ModuleText), item
    return item.text


def module_of(text: str, path: str = "dump.txt") -> ReadModule:
    return read_module(ModuleText(path=path, text=text))


def compared(old: str, new: str, chip: str | None = None) -> ModuleComparison:
    """The comparison of two texts."""
    return compare(module_of(old, "old.txt"), module_of(new, "new.txt"), Modelling(chip=chip))


def renamed(text: str) -> str:
    """Every instruction and computation under a new name, and channels under new numbers."""
    names = [name for _, name in _NAMED.findall(text)] + _COMPUTATION.findall(text)
    numbers = {name: f"n{number * 7919 % 1000003}" for number, name in enumerate(names)}
    text = _NAME.sub(lambda m: f"%{numbers.get(m[1], m[1])}", text)
    return re.sub(r"channel_id=(\d+)", lambda m: f"channel_id={int(m[1]) + 90}", text)


def reordered(text: str) -> str:
    """The computations in the opposite order, the entry first."""
    start = text.index("\n%") + 1 if "\n%" in text else text.index("\nENTRY ") + 1
    head, blocks = text[:start], re.split(r"(?<=^}\n)\n*", text[start:], flags=re.MULTILINE)
    return head + "\n".join(block for block in reversed(blocks) if block.strip())


def shuffled(text: str, seed: int, *, everything: bool) -> str:
    """The instructions of each computation in another order, operands still before their users.

    Args:
      text: the module.
      seed: which order.
      everything: move all; otherwise what takes neither time nor memory of its own, so that the
        schedule stays the same.
    """
    random = Random(seed)

    def body(match: re.Match[str]) -> str:
        lines = match[2].splitlines(keepends=True)
        return match[1] + "".join(_shuffled(lines, random, everything)) + match[3]

    return _BLOCK.sub(body, text)


def _shuffled(lines: list[str], random: Random, everything: bool) -> list[str]:
    defined = {m[2]: n for n, line in enumerate(lines) if (m := _NAMED.match(line))}
    needs = [
        {defined[name] for name in _NAME.findall(line) if name in defined} - {number}
        for number, line in enumerate(lines)
    ]
    fixed = [n for n, line in enumerate(lines) if not everything and not _FREE.match(line)]
    for before, after in pairwise(fixed):
        needs[after].add(before)
    done: list[int] = []
    waiting = list(range(len(lines)))
    while waiting:
        ready = [n for n in waiting if needs[n] <= set(done)]
        chosen = random.choice(ready)
        done.append(chosen)
        waiting.remove(chosen)
    return [lines[n] for n in done]


def pairs() -> list[str]:
    """The planted programs that have a defect and a repaired twin."""
    bad = {path.name.partition("_bad.")[0] for path in PLANTED.glob("*_bad.hlo.txt*")}
    good = {path.name.partition("_good.")[0] for path in PLANTED.glob("*_good.hlo.txt*")}
    return sorted(bad & good)


def planted(name: str) -> str:
    """The text of a planted program."""
    (path,) = PLANTED.glob(f"{name}.hlo.txt*")
    return text_of(path)
