"""A file of known findings, so that a run reports only new ones."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hlo_tools.errors import SettingsError
from hlo_tools.findings import Finding
from hlo_tools.output import write_whole

VERSION = 1
MAX_BASELINE_BYTES = 256_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEntry:
    """One known finding; all but the fingerprint is there for people, and to tell what is stale."""

    fingerprint: str
    id: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The known findings by fingerprint, in the order of the file."""

    file: str
    entries: dict[str, BaselineEntry]


def read_baseline(path: Path) -> Baseline:
    """Reads a baseline.

    Raises:
      SettingsError: the file cannot be read, or is no baseline of a version that is known.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BASELINE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"baseline cannot be read: {error.strerror}", path=file) from error
    if len(data) > MAX_BASELINE_BYTES:
        raise SettingsError(f"baseline is larger than {MAX_BASELINE_BYTES:,} bytes", path=file)
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"baseline is not JSON: {error.msg}", path=file, line=error.lineno, column=error.colno
        ) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise SettingsError("baseline is not JSON that can be read", path=file) from error
    if not isinstance(document, dict) or document.get("hlo_lint_baseline") != VERSION:
        raise SettingsError(f"not a baseline of version {VERSION}", path=file)
    listed = document.get("findings")
    if not isinstance(listed, list):
        raise SettingsError("baseline has no list `findings`", path=file)
    entries = [_entry(item, number, file) for number, item in enumerate(listed, start=1)]
    return Baseline(file=file, entries={entry.fingerprint: entry for entry in entries})


def write_baseline(path: Path, findings: Iterable[Finding]) -> Baseline:
    """Writes the findings as a baseline, sorted, one a line, and returns it.

    The file is replaced as a whole or left as it was.

    Raises:
      OSError: the file cannot be written.
    """
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.fingerprint, finding)
    listed = [first[fingerprint] for fingerprint in sorted(first)]
    write_whole(path, _lines(listed))
    entries = {
        item.fingerprint: BaselineEntry(
            fingerprint=item.fingerprint, id=item.id, module=item.module
        )
        for item in listed
    }
    return Baseline(file=str(path), entries=entries)


def _lines(findings: list[Finding]) -> Iterator[str]:
    yield f'{{"hlo_lint_baseline": {VERSION},\n"findings": ['
    for number, finding in enumerate(findings):
        entry = {
            "fingerprint": finding.fingerprint,
            "id": finding.id,
            "rule": finding.rule,
            "module": finding.module,
            "message": finding.message,
        }
        yield (",\n" if number else "\n") + json.dumps(entry)
    yield "\n]}\n"


def _entry(item: object, number: int, file: str) -> BaselineEntry:
    if isinstance(item, dict):
        match item:
            case {"fingerprint": str(fingerprint), "id": str(rule), "module": str(module)}:
                return BaselineEntry(fingerprint=fingerprint, id=rule, module=module)
    raise SettingsError(
        f"baseline entry {number} needs the strings `fingerprint`, `id` and `module`", path=file
    )
