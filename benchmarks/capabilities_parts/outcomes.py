"""Results as lines for other programs, and for a page that compares versions."""

from dataclasses import dataclass

FIELDS = (
    *("group", "probe", "column", "generation", "outcome", "by", "reason"),
    *("jax", "libtpu"),
)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is kept of results.

    Attributes:
      versions: those of `jax` and `libtpu`, by these names.
      found: the outcome by group, row, column and generation.
    """

    versions: dict[str, str]
    found: dict[tuple[str, str, str, str], str]


def outcome(result):
    """What came of a probe, in a word or a number."""
    return result.number or ("yes" if result.verdict.compiles else "no")


def table_lines(results, versions):
    """Tab-separated lines of all results, with a line of names first."""
    yield "\t".join(FIELDS)
    for each in results:
        verdict = each.verdict
        fields = (each.group, each.row, each.column, each.chip, outcome(each))
        said = (verdict.by, verdict.reason.replace("\t", " "))
        yield "\t".join((*fields, *said, versions["jax"], versions["libtpu"]))


def read_lines(lines):
    """The `Outcomes` that `table_lines` has written.

    Raises:
      ValueError: these are other lines, or of several versions.
    """
    heads, *rows = (tuple(line.rstrip("\n").split("\t")) for line in lines)
    if heads != FIELDS or len({row[-2:] for row in rows}) != 1:
        raise ValueError("not the outcomes of one pair of versions")
    versions = dict(zip(FIELDS[-2:], rows[0][-2:], strict=True))
    return Outcomes(versions, {row[:4]: row[4] for row in rows})
