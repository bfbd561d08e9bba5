"""Digits of program ids: coordinates in which what a kernel computes of its ids is a sum.

The candidates are what the kernel computes: `pid // n`, `pid % n`, or the sums that a grouped
order of tiles is made of. Whether some of them count through all programs, and whether all that
matters is a sum of them, is tried on every program.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from translators.access.enumeration import Array, Enumeration, slopes, spread
from translators.access.expression import Affine

MOST_DIGITS = 5
# Layouts tried take time in proportion to the programs.
_EFFORT = 1 << 25
_MOST_CANDIDATES = 32
_LEAST_TRIALS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An integer in each program that may be a digit.

    Attributes:
      extent: it takes each value from 0 to `extent - 1` equally often.
      values: in each program.
      name: the kernel's name for it; may be empty.
    """

    extent: int
    values: Array
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """An order of the programs.

    Attributes:
      extents: of each digit.
      names: the kernel's name for each digit; may be empty.
      order: for each place, the last digit moving fastest, which program stands there.
    """

    extents: tuple[int, ...]
    names: tuple[str, ...]
    order: Array


@dataclass(slots=True)
class Pool:
    """The candidates among some expressions, each once, in the order in which they were named.

    Attributes:
      programs: the programs.
      found: the candidates.
    """

    programs: Enumeration
    found: list[Candidate] = field(default_factory=list)
    _places: dict[bytes, int] = field(default_factory=dict)

    def add(self, expression: Affine, name: str = "") -> None:
        """Takes in an expression if it is a multiple of a digit, shifted."""
        values = self.programs.values(expression)
        if values is None:
            return
        digit, factor, start = spread(values)
        extent = int(digit.max()) + 1
        count = self.programs.count
        if extent == 1 or count % extent:
            return
        own = name if (factor, start) == (1, 0) else ""
        key = blake2b(np.ascontiguousarray(digit).data).digest()
        place = self._places.get(key)
        if place is not None:
            if place >= 0 and own and not self.found[place].name:
                known = self.found[place]
                self.found[place] = Candidate(extent=extent, values=known.values, name=own)
            return
        even = bool((np.bincount(digit, minlength=extent) == count // extent).all())
        if not even or len(self.found) == _MOST_CANDIDATES:
            self._places[key] = -1
            return
        self._places[key] = len(self.found)
        self.found.append(Candidate(extent=extent, values=digit, name=own))


def best_layout(
    programs: Enumeration,
    pool: Sequence[Candidate],
    plain: Layout,
    needed: Sequence[Affine],
    wanted: Sequence[Affine],
) -> Layout:
    """The layout of fewest digits in which most of what is needed is a sum of digits.

    Args:
      programs: the programs.
      pool: what may be a digit, the likeliest first.
      plain: the layout by the ids themselves, which is as good as any other.
      needed: expressions that should be sums of digits.
      wanted: the same, but of less account.
    """
    vectors = [
        [values for each in group if (values := programs.values(each)) is not None]
        for group in (needed, wanted)
    ]

    def score(layout: Layout) -> tuple[int, int]:
        counts = [
            sum(slopes(values[layout.order], layout.extents) is not None for values in group)
            for group in vectors
        ]
        return counts[0], counts[1]

    best, reached = plain, score(plain)
    trials = max(_LEAST_TRIALS, _EFFORT // programs.count)
    for count in range(1, MOST_DIGITS + 1):
        if reached[0] == len(vectors[0]):
            break
        for chosen in _independent(pool, count, programs.count):
            trials -= 1
            if trials < 0:
                return _with_names(best, pool)
            layout = _complete(chosen, programs.count)
            found = score(layout)
            if found > reached:
                best, reached = layout, found
    return _with_names(best, pool)


def _with_names(layout: Layout, pool: Sequence[Candidate]) -> Layout:
    """The layout with the kernel's names also for the digit that completed it."""
    names = list(layout.names)
    digits = np.indices(layout.extents).reshape(len(layout.extents), -1)
    for place, digit in enumerate(digits):
        for each in pool:
            if not names[place] and np.array_equal(each.values[layout.order], digit):
                names[place] = each.name
    return replace(layout, names=tuple(names))


def _independent(
    pool: Sequence[Candidate], count: int, programs: int
) -> Iterator[tuple[Candidate, ...]]:
    """Every choice of `count` digits all of whose combinations are equally frequent."""
    pending: list[tuple[tuple[Candidate, ...], int, Array, int]] = [
        ((), 0, np.zeros(programs, np.int64), 1)
    ]
    while pending:
        chosen, start, code, size = pending.pop()
        if len(chosen) == count:
            yield chosen
            continue
        longer = []
        for place in range(start, len(pool)):
            candidate = pool[place]
            product = size * candidate.extent
            if programs % product:
                continue
            joint = code * candidate.extent + candidate.values
            if bool((np.bincount(joint, minlength=product) == programs // product).all()):
                longer.append(((*chosen, candidate), place + 1, joint, product))
        pending.extend(reversed(longer))


def _complete(chosen: tuple[Candidate, ...], programs: int) -> Layout:
    """The layout by these digits, and by the order of the programs where they leave it open."""
    ordered = sorted(chosen, key=lambda each: -int((each.values != each.values[0]).argmax()))
    code: Array = np.zeros(programs, np.int64)
    size = 1
    for each in ordered:
        code = code * each.extent + each.values
        size *= each.extent
    extents = tuple(each.extent for each in ordered)
    names = tuple(each.name for each in ordered)
    if size < programs:
        extents, names = (*extents, programs // size), (*names, "")
    return Layout(extents=extents, names=names, order=np.argsort(code, kind="stable"))
