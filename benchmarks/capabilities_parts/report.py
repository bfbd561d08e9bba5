"""Results as a page of tables."""

from .forms import ONLY, Limit
from .outcomes import outcome
from .probe import TYPES

OTHER = "Other versions"
_WHO = {"jax": "jax", "libtpu": "libtpu", "end": "libtpu ends the process"}


class Reasons:
    """Numbers for the reasons, in the order in which they are first met."""

    def __init__(self):
        self._numbers = {}

    def number(self, verdict):
        return self._numbers.setdefault((verdict.by, verdict.reason), len(self._numbers) + 1)

    def lines(self):
        return [
            f"{number}. {_WHO[by]}: {_code(reason)}"
            for (by, reason), number in self._numbers.items()
        ]


def _code(text):
    return "`" + text.replace("`", "'") + "`"


def _escaped(text):
    return text.replace("|", "\\|")


HEAD = """\
# What Pallas for TPU compiles

Small kernels, compiled ahead of time with jax {jax} and libtpu {libtpu} for TPU {chips}.
To write this page again, which takes some minutes and no TPU:

    python benchmarks/capabilities.py --write [--against FILE]

The file has outcomes to compare with; `--tsv FILE` writes it where other versions are installed.

{counts}

In the tables, "yes" is a kernel that compiles for all of these generations; where only some are
named, it compiles for those. Numbers in brackets are [reasons](#reasons). Empty cells were not
tried. The kernels are in `benchmarks/capabilities_parts/`.

What "compiles" does not mean:

- that it is right: nothing here has run, and no value was compared;
- that it is fast: the compiler may write hundreds of instructions for one that a chip lacks, or
  move every element;
- that other shapes compile, or kernels that do several of these things at once: each was tried
  alone, in the shape that is given;
- that other versions of jax and libtpu agree{seen}.

What is refused may compile in another form: an operation on 8-bit integers after a cast, say.
"""


def page(groups, results, chips, versions, other=None):
    """The whole page.

    Args:
      groups: the probes.
      results: of all of them, for all of the generations.
      chips: the generations, in order.
      versions: those of `jax` and `libtpu`, by these names.
      other: an `Outcomes` of other versions to compare with.
    """
    found = {(each.group, each.row, each.column, each.chip): each for each in results}
    reasons = Reasons()
    lines = [
        HEAD.format(
            **versions,
            chips=_listed(chips),
            counts="\n".join(_counts(results, chips)),
            seen="" if other is None else f" ([these](#{OTHER.lower().replace(' ', '-')}) do not)",
        )
    ]
    for group in groups:
        lines += [f"## {group.title}", "", group.about, ""]
        if isinstance(group.rows[0], Limit):
            lines += _limits(group, found, chips)
        else:
            lines += _table(group, found, chips, reasons)
        lines.append("")
    if other is not None:
        lines += [f"## {OTHER}", "", *_differences(results, other), ""]
    lines += ["## Reasons", "", "The first line of what is said, by whom.", "", *reasons.lines()]
    return "\n".join(lines) + "\n"


def _listed(names):
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _counts(results, chips):
    """How many of the kernels compile, for each generation."""
    tried = [each for each in results if not each.number]
    able = {
        chip: sum(each.verdict.compiles for each in tried if each.chip == chip) for chip in chips
    }
    return _grid(
        ["", *chips], [[f"of {len(tried) // len(chips)}, compile", *map(str, able.values())]]
    )


def _grid(heads, rows):
    """Lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def _limits(group, found, chips):
    rows = (
        [row.name, *(found[group.title, row.name, ONLY, chip].number for chip in chips)]
        for row in group.rows
    )
    return _grid(["", *chips], rows)


def _table(group, found, chips, reasons):
    columns = _columns(group)
    rows = (
        [
            _escaped(row.name),
            *(
                _cell([found[group.title, row.name, column, chip] for chip in chips], reasons)
                if column in row.columns
                else ""
                for column in columns
            ),
        ]
        for row in group.rows
    )
    return _grid(["", *(f"`{column}`" if column else "" for column in columns)], rows)


def _columns(group):
    """The columns of all rows, element types first, in their order."""
    columns = dict.fromkeys(column for row in group.rows for column in row.columns)
    others = [column for column in columns if column not in TYPES]
    return [*(name for name in TYPES if name in columns), *others]


def _cell(results, reasons):
    able = [each.chip for each in results if each.verdict.compiles]
    if len(able) == len(results):
        return "yes"
    refused = (each.verdict for each in results if not each.verdict.compiles)
    numbers = dict.fromkeys(str(reasons.number(each)) for each in refused)
    return f"{', '.join(able) or 'no'} [{', '.join(numbers)}]"


def _differences(results, other):
    """What another compiler makes of the same probes, where it is not the same."""
    common, rows = {}, {}
    for each in results:
        theirs = other.found.get((each.group, each.row, each.column, each.chip))
        if theirs is None:
            continue
        common[each.chip] = None
        if theirs != outcome(each):
            changed = (each.group, each.row, each.column, outcome(each), theirs)
            rows.setdefault(changed, []).append(each.chip)
    versions = f"jax {other.versions['jax']} and libtpu {other.versions['libtpu']}"
    yield f"What {versions} make of it for {_listed(list(common))}, where that differs."
    yield ""
    heads = ["", "", "", "this page", "they", "for"]
    yield from _grid(
        heads,
        (
            [group, _escaped(row), f"`{column}`" if column else "", ours, theirs, ", ".join(chips)]
            for (group, row, column, ours, theirs), chips in rows.items()
        ),
    )
