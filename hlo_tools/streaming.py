"""What a long run has found so far, for programs that read along: a line of JSON for each file."""

from pathlib import Path
from types import TracebackType
from typing import TextIO

from hlo_tools.baseline import read_baseline
from hlo_tools.findings import Finding
from hlo_tools.report.json import (
    budget_object,
    dumps,
    finding_object,
    module_object,
    problem_object,
)
from hlo_tools.run import silenced
from hlo_tools.settings import Settings
from hlo_tools.source import SourceTree
from hlo_tools.unit import FileResult


class Stream:
    """A file that holds one line for each file that has been linted, in the order of their ends.

    A line is an object with the keys `path`, `modules`, `findings`, `budgets` and `problems`, all
    but the first as in the JSON report; it is written as soon as it is complete.

    Args:
      path: where it goes; `None` is nowhere.
      settings: what the user has silenced.
      tree: the user's source.

    Raises:
      SettingsError: the baseline cannot be read.
      OSError: the file cannot be written.
    """

    def __init__(self, path: Path | None, settings: Settings, tree: SourceTree) -> None:
        self._path = path
        self._settings = settings
        self._tree = tree
        self._baseline = read_baseline(settings.baseline) if path and settings.baseline else None
        self._file: TextIO | None = None

    def __enter__(self) -> "Stream":
        if self._path is not None:
            self._file = self._path.open("w", encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, file: str, result: FileResult) -> None:
        """Writes the line of a file, unless that was passed over."""
        if self._file is None or (result.foreign and not result.problems):
            return
        findings = [finding for module in result.modules for finding in module.findings]
        problems = [
            *result.problems,
            *(problem for module in result.modules for problem in module.problems),
        ]
        told = {
            "path": file,
            "modules": [module_object(module.summary) for module in result.modules],
            "findings": [finding_object(finding) for finding in self._marked(findings, result)],
            "budgets": [budget_object(b) for module in result.modules for b in module.budgets],
            "problems": [problem_object(problem) for problem in problems],
        }
        self._file.write(dumps(told) + "\n")
        self._file.flush()

    def _marked(self, findings: list[Finding], result: FileResult) -> tuple[Finding, ...]:
        names = [module.summary.name for module in result.modules]
        return silenced(findings, names, self._settings, self._tree, self._baseline).findings
