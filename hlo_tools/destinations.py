"""Which report goes where."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hlo_tools.errors import SettingsError
from hlo_tools.report.names import FORMATS, READABLE_FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """One report: a format, and the file that it goes to; `None` is standard output."""

    format: str
    file: Path | None

    @property
    def on_screen(self) -> bool:
        """Whether a person reads it on standard output."""
        return self.file is None and self.format in READABLE_FORMATS


def destinations(
    format_name: str, output: str | None, reports: Sequence[str]
) -> tuple[Destination, ...]:
    """Returns the reports to write, from `--format`, `-o` and each `--report`.

    Raises:
      SettingsError: a value is malformed, two reports would go to the same place, or a file could
        not be written.
    """
    chosen = [Destination(format=format_name, file=_file(output or "-"))]
    for report in reports:
        name, separator, file = report.partition("=")
        if not separator or not file or name not in FORMATS:
            raise SettingsError(
                f"`--report {report}` is not FORMAT=FILE; formats are {', '.join(FORMATS)}"
            )
        chosen.append(Destination(format=name, file=_file(file)))
    seen: set[Path | None] = set()
    for destination in chosen:
        place = destination.file.resolve() if destination.file else None
        if place in seen:
            where = f"`{destination.file}`" if destination.file else "standard output"
            raise SettingsError(f"two reports would go to {where}")
        seen.add(place)
        if place is not None:
            check_writable(place)
    return tuple(chosen)


def check_writable(file: Path) -> None:
    """Tells at the start of a run what would stop it at the end.

    Raises:
      SettingsError: `file` is a directory, or its directory is missing or cannot be written to.
    """
    if file.is_dir():
        raise SettingsError("is a directory", path=str(file))
    folder = file.absolute().parent
    if not folder.is_dir():
        raise SettingsError(f"directory `{folder}` does not exist", path=str(file))
    if not file.exists() and not os.access(folder, os.W_OK):
        raise SettingsError(f"directory `{folder}` cannot be written to", path=str(file))


def _file(name: str) -> Path | None:
    return None if name == "-" else Path(name)
