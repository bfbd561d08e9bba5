"""Configuration file and options, merged into one value."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hlo_tools.analysis.asynchrony import COLLECTIVES
from hlo_tools.budgets import COLLECTIVES_KEY, KINDS, Budget, parse_limit
from hlo_tools.configuration import Table, read_toml, unknown
from hlo_tools.errors import SettingsError
from hlo_tools.findings import Severity

FAIL_ON_NAMES = ("error", "warning", "note", "never")

_TABLE = ("tool", "hlo-lint")

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class RuleSpec(Protocol):
    """What settings must know of a rule."""

    @property
    def id(self) -> str:
        """The stable code, for example `HLO301`."""

    @property
    def name(self) -> str:
        """The name, for example `padding-waste`."""

    @property
    def options(self) -> Mapping[str, object]:
        """The options by name, each with its default value, which also gives its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpIgnore:
    """Findings to silence by the name of the operation in the user's program.

    Attributes:
      glob: a pattern for `op_name`, as `fnmatch` reads it; case matters.
      rules: the ids of the rules to silence.
      reason: why, in the user's words; never empty.
      file: the configuration file.
      line: 1-based line of the entry in it, where known.
    """

    glob: str
    rules: tuple[str, ...]
    reason: str
    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that configures a run.

    Attributes:
      select: ids of the rules to run.
      ignore: ids of rules not to run although selected.
      fail_on: the severity from which on a finding fails the run; `None` is never.
      min_saving: the share of a step, 0 to 1, below which a finding is a note.
      chip: the chip to model, or `None` to take it from the dump.
      source_root: the directory under which source files may be read.
      baseline: a file of known findings.
      show_notes: show findings of severity note.
      op_ignores: findings silenced by operation.
      rule_options: by rule name, the options that the configuration sets.
      library_paths: further glob patterns for files that are never the user's own code.
      own_paths: glob patterns for files that always are, whatever else matches.
      budgets: what a step may cost at most, in the order of the configuration.
    """

    select: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    fail_on: Severity | None = Severity.WARNING
    min_saving: float = 0.01
    chip: str | None = None
    source_root: Path
    baseline: Path | None = None
    show_notes: bool = False
    op_ignores: tuple[OpIgnore, ...] = ()
    rule_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    library_paths: tuple[str, ...] = ()
    own_paths: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()

    @property
    def enabled(self) -> tuple[str, ...]:
        """The ids of the rules that run, sorted."""
        ignored = set(self.ignore)
        return tuple(rule for rule in self.select if rule not in ignored)

    @property
    def notes_shown(self) -> bool:
        """Whether reports show notes: where asked for, and where a note fails the run."""
        return self.show_notes or self.fail_on == Severity.NOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Options of the command line; `None` leaves the matter to the configuration file.

    `select`, `ignore` and `fail_on` are as the user wrote them, `min_saving` is in per cent.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    fail_on: str | None = None
    min_saving: float | None = None
    chip: str | None = None
    source_root: Path | None = None
    baseline: Path | None = None
    show_notes: bool | None = None


def load_settings(
    config_path: Path | None, overrides: Overrides, known_rules: Mapping[str, RuleSpec]
) -> Settings:
    """Returns the settings of a run.

    Args:
      config_path: a `pyproject.toml`, or a TOML file with the same table or with its keys at the
        top; `None` looks for the nearest `pyproject.toml` with the table from the working
        directory upwards.
      overrides: options, each of which replaces the key of its name.
      known_rules: every rule, by name, by id or by both.

    Raises:
      SettingsError: an unknown key or rule, a value of the wrong type, or a file that cannot be
        read.
    """
    rules = RuleNames(known_rules.values())
    table = _discover(Path.cwd()) if config_path is None else _explicit(config_path)
    changes: dict[str, Any] = {"select": rules.ids, "source_root": Path.cwd()}
    if table is not None:
        changes |= _from_table(table, rules)
    return Settings(**(changes | _from_overrides(overrides, rules)))


class RuleNames:
    """The known rules, and what a user may call them by."""

    def __init__(self, specs: Iterable[RuleSpec]) -> None:
        by_id = {spec.id: spec for spec in specs}
        self.ids: tuple[str, ...] = tuple(sorted(by_id))
        self.by_name: dict[str, RuleSpec] = {by_id[rule].name: by_id[rule] for rule in self.ids}

    def resolve(self, token: str) -> tuple[str, ...]:
        """Returns the ids that a name, an id or the start of an id (`HLO3`) stands for.

        Raises:
          SettingsError: it stands for none.
        """
        if token in self.by_name:
            return (self.by_name[token].id,)
        found = tuple(rule for rule in self.ids if token and rule.startswith(token))
        if not found:
            raise SettingsError(unknown("rule", token, (*self.by_name, *self.ids)))
        return found

    def resolve_all(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Returns the ids that the tokens stand for, each once, sorted."""
        return tuple(sorted({rule for token in tokens for rule in self.resolve(token)}))


def _discover(directory: Path) -> Table | None:
    for folder in (directory, *directory.parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file():
            table = _our_table(read_toml(candidate))
            if table is not None:
                return table
    return None


def _explicit(path: Path) -> Table:
    document = read_toml(path)
    table = _our_table(document)
    if table is None and path.name == "pyproject.toml":
        raise SettingsError(f"has no table `[{'.'.join(_TABLE)}]`", path=str(path))
    return document if table is None else table


def _our_table(document: Table) -> Table | None:
    table = document
    for key in _TABLE:
        if not table.has(key):
            return None
        table = table.table(key)
    return table


def _from_overrides(overrides: Overrides, rules: RuleNames) -> dict[str, Any]:
    changes = {item.name: getattr(overrides, item.name) for item in fields(overrides)}
    changes = {name: value for name, value in changes.items() if value is not None}
    for key in {"select", "ignore"} & changes.keys():
        changes[key] = rules.resolve_all(changes[key])
    if overrides.select is not None and overrides.ignore is not None:
        ignored = set(changes["ignore"])
        for token in overrides.select:
            if ignored.issuperset(rules.resolve(token)):
                raise SettingsError(f"`{token}` is both selected and ignored")
    if overrides.fail_on is not None:
        changes["fail_on"] = _severity(overrides.fail_on)
    if overrides.min_saving is not None:
        changes["min_saving"] = _fraction(overrides.min_saving)
    return changes


def _from_table(table: Table, rules: RuleNames) -> dict[str, Any]:
    """Returns what a configuration table sets; paths in it are relative to its file."""
    folder = Path(table.file).absolute().parent
    changes: dict[str, Any] = {"source_root": folder}
    for key in ("select", "ignore"):
        if table.has(key):
            changes[key] = _located(table, key, rules.resolve_all, table.strings(key))
    if table.has("fail-on"):
        changes["fail_on"] = _located(table, "fail-on", _severity, table.string("fail-on"))
    if table.has("min-saving"):
        value = table.number("min-saving")
        changes["min_saving"] = _located(table, "min-saving", _fraction, value)
    if table.has("chip"):
        changes["chip"] = table.string("chip")
    for key in ("source-root", "baseline"):
        if table.has(key):
            changes[key.replace("-", "_")] = folder / table.string(key)
    if table.has("show-notes"):
        changes["show_notes"] = table.flag("show-notes")
    for key in ("library-paths", "own-paths"):
        if table.has(key):
            changes[key.replace("-", "_")] = table.strings(key)
    if table.has("op-ignores"):
        entries = table.tables("op-ignores")
        changes["op_ignores"] = tuple(_op_ignore(entry, rules) for entry in entries)
    if table.has("rules"):
        changes["rule_options"] = _rule_options(table.table("rules"), rules)
    if table.has("budgets"):
        changes["budgets"] = _budgets(table.table("budgets"))
    table.finish("key")
    return changes


def _budgets(table: Table) -> tuple[Budget, ...]:
    """Returns the budgets; `modules` says for which modules they are, all of them by default."""
    modules = table.strings("modules") if table.has("modules") else ()
    found = []
    for key in KINDS:
        if table.has(key):
            text = table.values[key]
            if not isinstance(text, str):
                text = str(text)  # a number without a unit is told what units there are
            limit, unit = _located(table, key, partial(parse_limit, key), text)
            found.append(
                Budget(
                    key=key,
                    limit=limit,
                    written_in=unit,
                    modules=modules,
                    file=table.file,
                    line=table.line(key),
                )
            )
    if table.has(COLLECTIVES_KEY):
        counts = table.table(COLLECTIVES_KEY)
        for kind in sorted(COLLECTIVES):
            if counts.has(kind):
                number = counts.like(kind, 0)
                assert isinstance(number, int)
                if number < 0:
                    raise counts.error(f"`{kind}` must be a number of collectives", kind)
                found.append(
                    Budget(
                        key=f"{COLLECTIVES_KEY}.{kind}",
                        limit=number,
                        modules=modules,
                        file=table.file,
                        line=counts.line(kind),
                    )
                )
        counts.finish("kind of collective")
    table.finish("budget")
    return tuple(found)


def _op_ignore(entry: Table, rules: RuleNames) -> OpIgnore:
    for key in ("op-name", "rules", "reason"):
        if not entry.has(key):
            raise entry.error(f"an entry of `op-ignores` needs `{key}`")
    reason = entry.string("reason")
    if not reason.strip():
        raise entry.error("an entry of `op-ignores` needs a `reason` that says something", "reason")
    entry.finish("key")
    return OpIgnore(
        glob=entry.string("op-name"),
        rules=_located(entry, "rules", rules.resolve_all, entry.strings("rules")),
        reason=reason,
        file=entry.file,
        line=entry.line(),
    )


def _rule_options(table: Table, rules: RuleNames) -> dict[str, dict[str, object]]:
    """Returns the options by rule name; in TOML they are spelled with dashes."""
    options: dict[str, dict[str, object]] = {}
    for name, spec in rules.by_name.items():
        if table.has(name):
            chosen = table.table(name)
            options[name] = {
                option: chosen.like(key, default)
                for option, default in spec.options.items()
                if chosen.has(key := option.replace("_", "-"))
            }
            chosen.finish(f"option of `{name}`")
    table.finish("rule")
    return options


def _located(table: Table, key: str, convert: Callable[[_Given], _Made], value: _Given) -> _Made:
    """Converts a value, and gives an error the place of its key."""
    try:
        return convert(value)
    except SettingsError as error:
        raise table.error(error.message, key) from error


def _severity(name: str) -> Severity | None:
    if name not in FAIL_ON_NAMES:
        raise SettingsError(unknown("severity", name, FAIL_ON_NAMES))
    return None if name == "never" else Severity[name.upper()]


def _fraction(percent: float) -> float:
    if not 0 <= percent <= 100:
        raise SettingsError(f"a saving of {percent:g} per cent is not between 0 and 100")
    return percent / 100
