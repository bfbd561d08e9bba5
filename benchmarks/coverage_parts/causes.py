"""Failures as text, grouped by cause: the most frequent first."""

import re
from collections import defaultdict

SHOWN = 3
# Names of element types say what has to be done; names of arrays and numbers do not.
_TYPES = "i1|i8|i16|i32|i64|u8|u16|u32|u64|f16|bf16|f32|f64|fp8\\w*|f8\\w*"
_SPECIFIC = re.compile(
    rf"`(?!(?:{_TYPES})`)[^`]*`|-?\b\d[\d.e+-]*|\([^)]*\)|\[[^\]]*\]|'(?!s\b)[^']*'"
)
_BOILERPLATE = re.compile(
    r"INTERNAL: |Mosaic failed to compile TPU kernel with MLIR module name.*?HLO name[^:]*: "
    r"|Please file an issue at \S+|Please file a bug at \S+( Error details:)?"
)


def by_cause(sections, command, shown=SHOWN):
    """What failed in which way and why.

    Args:
      sections: for each way to fail its name and what is known of each launch that did: its
        `reason`, `place` and, where there is one, the `line` there.
      command: reproduces one, given the name of its stored launch.
      shown: how many kernels of each cause are shown with everything that is known.
    """
    grouped = {title: _groups(rows) for title, rows in sections if rows}
    lines = [*_overview(grouped)]
    for title, groups in grouped.items():
        names = {name for kernels in groups.values() for name in kernels}
        lines += [f"## {title}: {len(names)} kernels", ""]
        for what, kernels in groups.items():
            lines += [f"### {len(kernels)} kernels: {what}", "", *_shown(kernels, command, shown)]
    return "\n".join(lines)


def _groups(rows):
    """By cause, the kernels by their names; the cause of most kernels first."""
    groups = defaultdict(dict)
    for row in rows:
        groups[cause(row["reason"])].setdefault(row["name"], row)
    return dict(sorted(groups.items(), key=lambda each: (-len(each[1]), each[0])))


def _overview(grouped):
    counted = [
        (len(kernels), title, what)
        for title, groups in grouped.items()
        for what, kernels in groups.items()
    ]
    if counted:
        yield from ("| kernels | result | cause |", "|---|---|---|")
        for count, title, what in sorted(counted, key=lambda each: -each[0]):
            yield f"| {count} | {title} | {what} |"
        yield ""


def _shown(kernels, command, shown):
    names = sorted(kernels)
    for name in names[:shown]:
        row = kernels[name]
        yield from (f"- `{name}` {row['place']}", f"  {row['reason'][:400]}")
        if row.get("line"):
            yield f"  `{row['line'][:200]}`"
        yield from (f"  {row['launch'][:300]}", f"  `{command} --only '{row['file']}'`")
    if len(names) > shown:
        yield f"- and {', '.join(f'`{name}`' for name in names[shown:])}"
    yield ""


def cause(reason):
    """A reason without names and numbers, so that the same causes are the same text."""
    plain = _SPECIFIC.sub("…", _BOILERPLATE.sub("", reason))
    return re.sub(r"(…[ ,]*)+", "… ", plain).strip()[:160]
