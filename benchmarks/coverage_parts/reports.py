"""The reports of the columns that a run asks for, together."""

from . import pallas_report, report
from .results import in_column

_REPORTS = {"jax": report, "pallas": pallas_report}


def line(column, row):
    """What came of one launch in one column, in one line."""
    return _REPORTS[column].line(row)


def tables(rows, columns):
    """Counts by package, a table for each column."""
    return "\n\n".join(_REPORTS[each].table(in_column(rows, each)) for each in columns)


def failures(rows, columns, command):
    """The tables, and below each what failed, by cause.

    Args:
      rows: all that is known of each launch.
      columns: which columns.
      command: reproduces one, given the name of its stored launch.
    """
    parts = []
    for column in columns:
        own = in_column(rows, column)
        parts += [f"```\n{_REPORTS[column].table(own)}\n```"]
        parts += [_REPORTS[column].causes(own, f"{command} --columns {column}")]
    return "\n\n".join(parts)
