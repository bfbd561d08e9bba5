"""Limits that the user sets to what a step may cost, and whether a module keeps them."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlo_tools.errors import SettingsError
from hlo_tools.figures import Figures

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ%]+)\s*", re.ASCII)

_BYTES = {"B": 1.0, **{f"{letter}B": 10.0 ** (3 * n) for n, letter in enumerate("kMGT", 1)}}
_BYTES |= {f"{letter}iB": 1024.0**n for n, letter in enumerate("KMGT", 1)}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SHARE = {"%": 0.01}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A quantity that can be limited.

    Attributes:
      unit: `bytes`, `seconds`, `share` or `count`.
      factors: what the units are worth that a limit may be written in; empty for a count.
      example: a limit as people write it, with what it is.
      figure: the quantity of a module; `None` where it is not known.
    """

    unit: str
    factors: dict[str, float]
    example: str
    figure: Callable[[Figures], float | None]


def _bytes(figure: Callable[[Figures], float | None]) -> Kind:
    return Kind(unit="bytes", factors=_BYTES, example='an amount such as "12 GiB"', figure=figure)


def _seconds(figure: Callable[[Figures], float | None]) -> Kind:
    return Kind(unit="seconds", factors=_SECONDS, example='a time such as "15 ms"', figure=figure)


def _share(figure: Callable[[Figures], float | None]) -> Kind:
    return Kind(unit="share", factors=_SHARE, example='a share such as "5 %"', figure=figure)


KINDS: dict[str, Kind] = {
    "step-time": _seconds(lambda f: f.step_seconds),
    "peak-hbm": _bytes(lambda f: f.peak_hbm_bytes),
    "hbm-traffic": _bytes(lambda f: f.hbm_bytes),
    "collective-traffic": _bytes(lambda f: f.wire_bytes),
    "exposed-collective-time": _seconds(lambda f: f.exposed_collective_seconds),
    "exposed-collective-share": _share(lambda f: f.exposed_collective_share),
    "padded-share": _share(lambda f: f.padded_share),
    "f32-dot-share": _share(lambda f: f.f32_dot_share),
}
"""The budgets by key; those of numbers of collectives are `collectives.` and a kind besides."""

COLLECTIVES_KEY = "collectives"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit of the user's.

    Attributes:
      key: what is limited: a key of `KINDS`, or `collectives.` and the kind of collective.
      limit: the most that is allowed: bytes, seconds, a share from 0 to 1, or a number.
      written_in: the unit in which the user wrote it, for example `GiB`; empty for a number.
      modules: glob patterns of the names of the modules that it is for; empty for all.
      file: the configuration file.
      line: 1-based line of the budget in it, where known.
    """

    key: str
    limit: float
    written_in: str = ""
    modules: tuple[str, ...] = ()
    file: str
    line: int | None = None

    @property
    def unit(self) -> str:
        """`bytes`, `seconds`, `share` or `count`."""
        return KINDS[self.key].unit if self.key in KINDS else "count"

    def shown(self, value: float) -> str:
        """An amount in the unit in which the limit is written, three significant digits."""
        if not self.written_in:
            return f"{value:,.0f}"
        scaled = value / KINDS[self.key].factors[self.written_in]
        digits = f"{scaled:.3g}" if abs(scaled) < 999.5 else f"{scaled:,.0f}"
        return f"{digits} {self.written_in}"

    def is_for(self, module: str) -> bool:
        """Whether it limits the module of that name."""
        return not self.modules or any(fnmatchcase(module, glob) for glob in self.modules)

    def figure(self, figures: Figures) -> float | None:
        """The limited quantity of a module; `None` where it is not known."""
        if self.key in KINDS:
            return KINDS[self.key].figure(figures)
        kind = self.key.removeprefix(f"{COLLECTIVES_KEY}.")
        return dict(figures.collectives).get(kind, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCheck:
    """A budget held to one module.

    Attributes:
      path: where the module was read from.
      module: its name.
      value: what it takes of the budget, in the budget's unit.
    """

    budget: Budget
    path: str
    module: str
    value: float

    @property
    def exceeded(self) -> bool:
        """Whether it takes more than the limit."""
        return self.value > self.budget.limit

    @property
    def margin(self) -> float | None:
        """What is left as a share of the limit, negative where it is exceeded; `None` of nothing.

        A limit of nothing has no share.
        """
        limit = self.budget.limit
        return (limit - self.value) / limit if limit else None


def parse_limit(key: str, text: str) -> tuple[float, str]:
    """The limit that a key of `KINDS` is given, and the unit that it is written in.

    The limit is in bytes, in seconds or a share from 0 to 1.

    Raises:
      SettingsError: it is no quantity in one of the units of the key.
    """
    kind = KINDS[key]
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in kind.factors:
        units = ", ".join(kind.factors)
        raise SettingsError(f"`{key}` must be {kind.example}, not `{text}`; units are {units}")
    limit = float(match[1]) * kind.factors[match[2]]
    if not math.isfinite(limit):
        raise SettingsError(f"`{key}` is no finite limit: `{text}`")
    return limit, match[2]


def check_budgets(
    budgets: Sequence[Budget], figures: Figures, *, path: str, module: str
) -> tuple[list[BudgetCheck], list[Budget]]:
    """Holds the budgets for a module to its figures.

    Returns:
      The checks, and the budgets that could not be checked because a figure is not known.
    """
    checks, unknown = [], []
    for budget in budgets:
        value = budget.figure(figures)
        if value is None:
            unknown.append(budget)
        else:
            checks.append(BudgetCheck(budget=budget, path=path, module=module, value=value))
    return checks, unknown
