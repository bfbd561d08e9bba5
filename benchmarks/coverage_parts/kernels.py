"""Launches brought together to the kernels of which they are."""

from collections import defaultdict


def kernels_of(rows, results):
    """For each kernel, by package and name, the row with its worst result, and all its rows.

    Args:
      rows: what is known of launches.
      results: every result, the worst first.
    """
    groups = defaultdict(list)
    for row in rows:
        groups[row["package"], row["name"]].append(row)
    for _, group in sorted(groups.items()):
        yield min(group, key=lambda row: results.index(row["result"])), group


def by_package(kernels):
    """(package, its kernels) of each package, and at last (`all`, all kernels)."""
    for package in sorted({row["package"] for row in kernels}):
        yield package, [row for row in kernels if row["package"] == package]
    yield "all", kernels
