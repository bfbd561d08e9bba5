"""Rules of other distributions, found by their entry points.

A distribution offers rules in its metadata, each entry point naming a `Rule` or several of them:

    [project.entry-points."hlo_tools.rules"]
    acme = "acme_rules:RULES"
"""

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from types import TracebackType

from hlo_tools.errors import SettingsError
from passes.rule import Rule

GROUP = "hlo_tools.rules"

_ID = re.compile(r"(?!HLO)[A-Z]{2,10}\d{3,5}")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def third_party_rules(own: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules that installed distributions offer, sorted by id.

    Args:
      own: the rules of the catalogue, whose ids and names are taken.

    Raises:
      SettingsError: an entry point cannot be loaded, is no rule, or takes the id or name of
        another one.
    """
    taken = {key: "hlo-lint" for rule in own for key in (rule.id, rule.name)}
    found: dict[str, Rule] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        owner = _owner(point)
        for rule in _load(point, owner):
            _check(rule, owner)
            for key in (rule.id, rule.name):
                if key in taken:
                    raise SettingsError(
                        f"rule `{key}` of {owner} has the same name as one of {taken[key]}"
                    )
                taken[key] = owner
            found[rule.id] = rule
    return tuple(found[rule_id] for rule_id in sorted(found))


def _owner(point: EntryPoint) -> str:
    distribution = f"`{point.dist.name}`" if point.dist is not None else "a distribution"
    return f"{distribution} (entry point `{point.name} = {point.value}`)"


def _load(point: EntryPoint, owner: str) -> Sequence[Rule]:
    with _Loading(owner):
        value = point.load()
    rules = (value,) if isinstance(value, Rule) else value
    if not isinstance(rules, tuple | list) or not all(isinstance(rule, Rule) for rule in rules):
        raise SettingsError(
            f"{owner} is no rule: it must name what `passes.rule.rule` makes, or a tuple of these"
        )
    return rules


class _Loading:
    """Within it, whatever another distribution raises is told as its own error."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            raise SettingsError(
                f"the rules of {self._owner} cannot be loaded: {type(error).__name__}: {error}"
            ) from error


def _check(rule: Rule, owner: str) -> None:
    if not _ID.fullmatch(rule.id):
        raise SettingsError(
            f"rule `{rule.name}` of {owner}: the id `{rule.id}` must be capital letters other than "
            "`HLO` and digits, for example `ACME101`"
        )
    if not _NAME.fullmatch(rule.name):
        raise SettingsError(
            f"rule `{rule.id}` of {owner}: the name `{rule.name}` must be lower-case words joined "
            "by dashes"
        )
