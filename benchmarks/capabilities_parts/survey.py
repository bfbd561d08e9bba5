"""Asks a compiler about every probe, for every generation."""

from dataclasses import dataclass

from .forms import ONLY, Limit


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a compiler says of a program.

    Attributes:
      compiles: whether it did.
      by: who turned it down: `jax`, `libtpu`, or `end` where the process ended or hung.
      reason: one line that tells why.
    """

    compiles: bool
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a probe for a generation.

    Attributes:
      group: the title of its group.
      row: its name.
      column: its form; `ONLY` for a limit.
      chip: the generation.
      verdict: the compiler's answer; for a limit, its answer to the first number that it refuses.
      number: for a limit, the last number that compiles, in words.
    """

    group: str
    row: str
    column: str
    chip: str
    verdict: Verdict
    number: str = ""


def survey(groups, chips, ask):
    """Gives the results of all probes.

    Args:
      groups: of probes.
      chips: generations.
      ask: takes a generation, the title of a group, the name of a row in it, and a column, or a
        number for a limit; gives a `Verdict`.
    """
    for chip in chips:
        for group in groups:
            for row in group.rows:
                yield from _of_row(chip, group, row, ask)


def _of_row(chip, group, row, ask):
    def asked(column):
        return ask(chip, group.title, row.name, column)

    if isinstance(row, Limit):
        number, verdict = last_that_compiles(row, asked)
        yield Result(group.title, row.name, ONLY, chip, verdict, number)
    else:
        for column in row.columns:
            yield Result(group.title, row.name, column, chip, asked(column))


def last_that_compiles(limit, asked):
    """The last multiple of the limit's step that compiles, in words, and the answer to the next."""
    refused = asked(limit.least)
    if not refused.compiles:
        return "none", refused
    greatest = asked(limit.most)
    if greatest.compiles:
        return f"{limit.most:.10g} or more", greatest
    refused = greatest
    low, high = round(limit.least / limit.step), round(limit.most / limit.step)
    while high - low > 1:
        middle = (low + high) // 2
        verdict = asked(middle * limit.step)
        if verdict.compiles:
            low = middle
        else:
            high, refused = middle, verdict
    return f"{low * limit.step:.10g}", refused
