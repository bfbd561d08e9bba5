"""Findings that the user has silenced: in the source, by operation, or as a known baseline.

Each kind reports what silenced nothing, so that no suppression outlives its reason. One for a rule
that did not run, or a module that was not linted, is not counted as unused.
"""

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from pathlib import Path

from hlo_tools.baseline import Baseline
from hlo_tools.errors import SettingsError
from hlo_tools.findings import Finding, UnusedSuppression
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.settings import OpIgnore, RuleNames
from hlo_tools.source import SourceTree

# A longer statement is searched for comments in its first lines only.
MAX_STATEMENT_LINES = 200

_COMMENT = re.compile(r"#\s*hlo-lint:\s*(?P<text>ignore\b(?:\s*\[(?P<rules>[^\]]*)\])?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """The findings, silenced ones marked, and the suppressions that silenced nothing."""

    findings: tuple[Finding, ...]
    unused: tuple[UnusedSuppression, ...]


def suppress(
    findings: Sequence[Finding],
    *,
    rules: RuleNames,
    enabled: Collection[str],
    modules: Collection[str],
    tree: SourceTree,
    op_ignores: Sequence[OpIgnore] = (),
    baseline: Baseline | None = None,
) -> Suppressed:
    """Marks the findings that the user has silenced.

    Where several suppressions silence a finding each of them counts as used, and the mark is that
    of the first of source, configuration and baseline.

    Args:
      findings: what the rules found.
      rules: the names of all rules.
      enabled: ids of the rules that ran.
      modules: names of the modules that were linted.
      tree: the user's source, where comments are looked for.
      op_ignores: suppressions by operation.
      baseline: known findings.
    """
    enabled = frozenset(enabled)
    comments = _Comments(tree, rules)
    ignores = _OpIgnores(op_ignores)
    known = _Known(baseline)
    marked = []
    for finding in findings:
        kinds = (
            ("source", comments.silences(finding)),
            ("config", ignores.silences(finding)),
            ("baseline", known.silences(finding)),
        )
        kind = next((kind for kind, silenced in kinds if silenced), None)
        marked.append(finding if kind is None else replace(finding, suppressed=kind))
    unused = (
        *comments.unused(enabled),
        *ignores.unused(enabled),
        *known.unused(enabled, frozenset(modules)),
    )
    return Suppressed(findings=tuple(marked), unused=unused)


@dataclass(slots=True, kw_only=True)
class _Silencer:
    """One rule name in one comment; `ids` is empty where it names no rule."""

    text: str
    line: int
    ids: tuple[str, ...]
    used: bool = False


class _Comments:
    """`# hlo-lint: ignore[rule, rule] why`, on a line of the statement that is blamed."""

    def __init__(self, tree: SourceTree, rules: RuleNames) -> None:
        self._tree = tree
        self._rules = rules
        self._files: dict[Path, dict[int, list[_Silencer]]] = {}

    def silences(self, finding: Finding) -> bool:
        silenced = False
        if finding.source is not None:
            for silencer in self._beside(finding.source):
                if finding.id in silencer.ids:
                    silencer.used = silenced = True
        return silenced

    def unused(self, enabled: Collection[str]) -> Iterator[UnusedSuppression]:
        for path in sorted(self._files):
            # The tree knows real paths as well as those of dumps.
            file = self._tree.display(str(path)) or str(path)
            for line in self._files[path].values():
                for silencer in line:
                    if not silencer.used and not _out_of_run(silencer.ids, enabled):
                        yield UnusedSuppression(
                            kind="source", text=silencer.text, file=file, line=silencer.line
                        )

    def _beside(self, location: SourceLocation) -> Iterator[_Silencer]:
        path = self._tree.path(location.file)
        if path is None:
            return
        if path not in self._files:
            self._files[path] = self._read(path, self._tree.lines(location.file))
        comments = self._files[path]
        if comments:
            last = max(location.line, location.end_line or 0)
            for line in range(location.line, min(last, location.line + MAX_STATEMENT_LINES) + 1):
                yield from comments.get(line, ())

    def _read(self, path: Path, lines: Sequence[str]) -> dict[int, list[_Silencer]]:
        found = {
            number: match
            for number, line in enumerate(lines, start=1)
            if "hlo-lint" in line and (match := _COMMENT.search(line))
        }
        if found and path.suffix.startswith(".py"):
            starts = _comment_starts(lines)
            if starts is not None:
                found = {n: m for n, m in found.items() if n in starts and starts[n] <= m.start()}
        return {number: list(self._silencers(number, match)) for number, match in found.items()}

    def _silencers(self, line: int, match: re.Match[str]) -> Iterator[_Silencer]:
        tokens = [token.strip() for token in (match["rules"] or "").split(",") if token.strip()]
        if not tokens:  # silences nothing, and is reported for it
            yield _Silencer(text=match["text"], line=line, ids=())
        for token in tokens:
            try:
                ids = self._rules.resolve(token)
            except SettingsError:
                ids = ()
            yield _Silencer(text=f"ignore[{token}]", line=line, ids=ids)


def _comment_starts(lines: Sequence[str]) -> dict[int, int] | None:
    """Returns the index at which the comment of a line starts, by line; `None` if not Python."""
    reader = io.StringIO("\n".join(lines) + "\n").readline
    starts = {}
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type == tokenize.COMMENT:
                starts[token.start[0]] = token.start[1]
    except (tokenize.TokenError, SyntaxError):
        return None
    return starts


class _OpIgnores:
    """Entries of the configuration, matched with the name of the operation."""

    def __init__(self, entries: Sequence[OpIgnore]) -> None:
        self._entries = entries
        self._patterns = [re.compile(translate(entry.glob)) for entry in entries]
        self._used = [False] * len(entries)
        self._seen: dict[tuple[str, str], bool] = {}

    def silences(self, finding: Finding) -> bool:
        if finding.op_name is None or not self._entries:
            return False
        key = (finding.id, finding.op_name)
        if key not in self._seen:
            self._seen[key] = self._match(*key)
        return self._seen[key]

    def _match(self, rule: str, op_name: str) -> bool:
        silenced = False
        for index, (entry, pattern) in enumerate(zip(self._entries, self._patterns, strict=True)):
            if rule in entry.rules and pattern.match(op_name):
                self._used[index] = silenced = True
        return silenced

    def unused(self, enabled: Collection[str]) -> Iterator[UnusedSuppression]:
        for entry, used in zip(self._entries, self._used, strict=True):
            if not used and not _out_of_run(entry.rules, enabled):
                yield UnusedSuppression(
                    kind="config", text=entry.glob, file=entry.file, line=entry.line
                )


@dataclass(slots=True)
class _Known:
    """The baseline, and which of its fingerprints have been seen."""

    baseline: Baseline | None
    _seen: set[str] = field(default_factory=set)

    def silences(self, finding: Finding) -> bool:
        if self.baseline is None or finding.fingerprint not in self.baseline.entries:
            return False
        self._seen.add(finding.fingerprint)
        return True

    def unused(
        self, enabled: Collection[str], modules: Collection[str]
    ) -> Iterator[UnusedSuppression]:
        if self.baseline is None:
            return
        for fingerprint, entry in self.baseline.entries.items():
            ran = entry.id in enabled and entry.module in modules
            if ran and fingerprint not in self._seen:
                yield UnusedSuppression(
                    kind="baseline", text=fingerprint, file=self.baseline.file, line=None
                )


def _out_of_run(ids: Iterable[str], enabled: Collection[str]) -> bool:
    """Says whether rules are named and none of them ran."""
    ids = tuple(ids)
    return bool(ids) and not any(rule in enabled for rule in ids)
