"""The unit of work of a run over many files: one file, on this machine or another."""

from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.errors import InputError
from hlo_tools.findings import Problem
from hlo_tools.io import NotHloError, read_file
from hlo_tools.progress import Progress
from hlo_tools.run import Subject, lint_each
from hlo_tools.settings import Settings
from passes.runner import ModuleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One file to lint.

    Attributes:
      file: its path or URL.
      root: the directory that the user named, if it was found in one.
    """

    file: str
    root: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What one file gave.

    Attributes:
      modules: those in it, in order.
      problems: what kept a part of it from being linted.
      foreign: why it is no HLO, if it was found in a directory: such a file is passed over.
    """

    modules: tuple[ModuleResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    foreign: NotHloError | None = None


def lint_unit(unit: Unit, *, settings: Settings, profiled: bool = False) -> FileResult:
    """Lints one file, whatever is in it; needs nothing of the process that it runs in.

    Args:
      unit: the file.
      settings: what to run and how.
      profiled: make profiles of the steps too.
    """
    foreign: list[NotHloError] = []

    def subjects() -> Iterator[Subject | InputError]:
        for item in read_file(unit.file):
            if unit.root is not None and isinstance(item, NotHloError):
                foreign.append(item)
            else:
                yield item if isinstance(item, InputError) else Subject(module=item)
            del item  # so that its text is gone while the next one is read

    problems: list[Problem] = []
    results = lint_each(
        subjects(),
        settings=settings,
        problems=problems,
        progress=Progress(silent=True),
        profiled=profiled,
        measured=False,
    )
    modules = tuple(result for _, result in results)
    return FileResult(
        modules=modules, problems=tuple(problems), foreign=foreign[0] if foreign else None
    )
