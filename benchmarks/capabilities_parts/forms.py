"""What a probe is, apart from what it compiles. Needs no jax."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ONLY = ""
"""The column of a row that has one."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to try in several forms.

    Attributes:
      name: what is tried.
      columns: the forms: mostly element types.
      build: makes the program of a column.
    """

    name: str
    columns: tuple[str, ...]
    build: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """A number up to which programs compile.

    Attributes:
      name: what is counted, with its unit.
      build: makes the program of a number.
      least: a number that is taken to compile; so are the numbers below one that compiles.
      most: the last number that is tried.
      step: what numbers are multiples of.
    """

    name: str
    build: Callable[[float], Any]
    least: float
    most: float
    step: float


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are shown as one table.

    Attributes:
      title: the table's heading.
      about: what the rows have in common.
      rows: in the order in which they are shown; of one kind.
    """

    title: str
    about: str
    rows: tuple[Row, ...] | tuple[Limit, ...]
