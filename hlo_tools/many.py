"""A run over many files: several at a time, each reported once, whatever becomes of the others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hlo_tools.errors import InputError
from hlo_tools.findings import Outcome, Problem
from hlo_tools.io import STDIN, list_inputs, nothing_found
from hlo_tools.progress import Progress
from hlo_tools.run import Gathered, conclude, problem_of
from hlo_tools.settings import Settings
from hlo_tools.source import SourceTree
from hlo_tools.streaming import Stream
from hlo_tools.unit import FileResult, Unit, lint_unit
from hlo_tools.workers import Died, run_in_processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What does the work.

    Attributes:
      jobs: processes of this machine.
      scheduler: the address of a Dask scheduler whose workers do it instead.
    """

    jobs: int = 1
    scheduler: str | None = None


def lint_many(
    paths: Sequence[str],
    settings: Settings,
    tree: SourceTree,
    *,
    means: Means,
    progress: Progress,
    stream: Path | None = None,
    new_baseline: Path | None = None,
    profiled: bool = False,
) -> Outcome:
    """Lints all files of the paths; the outcome is that of linting them one after another.

    Args:
      paths: as `read_inputs` takes them.
      settings: what to run and how.
      tree: the user's source.
      means: what does the work.
      progress: told how many files are done.
      stream: a file that gets a line for each file as soon as that is linted.
      new_baseline: a file to which the findings that are left go, as a baseline.
      profiled: make profiles of the steps too.

    Raises:
      SettingsError: the baseline cannot be read, or the chip of the settings is not known.
      InputError: there is no such scheduler.
      OSError: the baseline or the stream cannot be written.
    """
    progress.update("looking for dumps", paths[0])
    work = partial(lint_unit, settings=settings, profiled=profiled)
    survey = _survey(paths, work)
    results = survey.results
    waiting = [number for number, result in enumerate(results) if result is None]
    todo = [survey.units[number] for number in waiting]
    with Stream(stream, settings, tree) as lines:
        for unit, ready in zip(survey.units, results, strict=True):
            if ready is not None:
                lines.write(unit.file, ready)
        for done, (index, given) in enumerate(_run(work, todo, means), start=1):
            result = given if isinstance(given, FileResult) else _lost(todo[index], given)
            results[waiting[index]] = result
            lines.write(todo[index].file, result)
            progress.count("linting", done, len(todo))
    gathered = Gathered()
    for result in filter(None, results):
        gathered.problems += result.problems
        for module in result.modules:
            gathered.add(module)
    gathered.problems += map(problem_of, _empty(survey))
    return conclude(gathered, settings, tree, new_baseline=new_baseline)


@dataclass(slots=True)
class _Survey:
    """The files of a run in their order, each with its result as far as there is one.

    Attributes:
      units: the files; what could not be listed is one too.
      results: by unit; `None` where it is to be linted yet.
      roots: the directories that the user named.
    """

    units: list[Unit] = field(default_factory=list)
    results: list[FileResult | None] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)


def _survey(paths: Sequence[str], work: Callable[[Unit], FileResult]) -> _Survey:
    found = _Survey()
    for listing in list_inputs(paths):
        if listing.root is not None:
            found.roots.append(listing.root)
        for file in listing.files:
            if isinstance(file, InputError):
                found.units.append(Unit(file=file.path or "", root=listing.root))
                found.results.append(FileResult(problems=(problem_of(file),)))
            else:
                unit = Unit(file=file, root=listing.root)
                found.units.append(unit)
                # Standard input is that of this process and no other.
                found.results.append(work(unit) if file == STDIN else None)
    return found


def _run(
    work: Callable[[Unit], FileResult], units: Sequence[Unit], means: Means
) -> Iterator[tuple[int, FileResult | Died]]:
    if means.scheduler is not None:
        from hlo_tools.cluster import run_on_cluster

        return run_on_cluster(work, units, means.scheduler)
    return run_in_processes(work, units, means.jobs)


def _lost(unit: Unit, death: Died) -> FileResult:
    message = f"the process that linted this {death.reason}"
    return FileResult(problems=(Problem(message=message, path=unit.file),))


def _empty(survey: _Survey) -> Iterator[InputError]:
    """The errors of directories in which nothing was HLO."""
    for root in survey.roots:
        below = [
            result
            for unit, result in zip(survey.units, survey.results, strict=True)
            if unit.root == root and result is not None
        ]
        if not any(result.modules or result.problems for result in below):
            foreign = next((r.foreign for r in below if r.foreign is not None), None)
            yield nothing_found(root, foreign)
