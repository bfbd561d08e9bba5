"""One run: modules in, what is slow in them out, less what the user has silenced."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_tools import __version__
from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.baseline import Baseline, read_baseline, write_baseline
from hlo_tools.budgets import BudgetCheck
from hlo_tools.console import report_bug
from hlo_tools.errors import InputError
from hlo_tools.findings import Finding, ModuleSummary, Outcome, Problem, RuleInfo, Severity
from hlo_tools.io import ModuleText, read_inputs
from hlo_tools.progress import Progress
from hlo_tools.report.names import MAX_PROFILES
from hlo_tools.settings import RuleNames, Settings
from hlo_tools.source import SourceTree
from hlo_tools.suppression import Suppressed, suppress
from passes.catalog import BY_NAME
from passes.runner import ModuleResult, lint_text

if TYPE_CHECKING:
    from hlo_tools.against import Linted

_NAME = "hlo-lint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A module to lint, and what is known of it beside its text.

    Attributes:
      module: its text.
      chip: what it was compiled for, where that is known; else the settings or the text tell.
      refusal: what the compiler said, if it ran out of device memory.
    """

    module: ModuleText
    chip: str | None = None
    refusal: MemoryRefusal | None = None


def read_subjects(paths: Sequence[str]) -> Iterator[Subject | InputError]:
    """Yields what lies at the paths, as `read_inputs` finds it."""
    for item in read_inputs(paths):
        yield item if isinstance(item, InputError) else Subject(module=item)
        del item  # so that its text is gone while the next one is read


def lint_subjects(
    subjects: Iterable[Subject | InputError],
    settings: Settings,
    tree: SourceTree,
    *,
    progress: Progress,
    new_baseline: Path | None = None,
    profiled: bool = False,
    measured: bool = False,
    against: Iterable[Subject | InputError] | None = None,
) -> Outcome:
    """Lints modules and applies what the user has silenced.

    Args:
      subjects: modules, and errors of those that could not be had.
      settings: what to run and how.
      tree: the user's source.
      progress: told what is being done.
      new_baseline: a file to which the findings that are left go, as a baseline.
      profiled: make profiles of the steps too.
      measured: sum up the figures of the modules too.
      against: other compiles of the same modules, whose findings are known; `None` is none. All
        modules of both sides are then in memory at once.

    Raises:
      SettingsError: the baseline cannot be read, or the chip of the settings is not known.
      OSError: the baseline cannot be written.
    """
    gathered = Gathered()
    gather = partial(
        lint_each,
        settings=settings,
        problems=gathered.problems,
        progress=progress,
        measured=measured,
    )
    others = None if against is None else _Others(gather(against, profiled=False))
    for subject, result in gather(subjects, profiled=profiled):
        if others is not None:
            others.hold(subject, result)
        del subject  # so that its text is gone while the next one is read
        gathered.add(result)
    outcome = conclude(gathered, settings, tree, new_baseline=new_baseline)
    return outcome if others is None else replace(outcome, findings=others.marked(outcome.findings))


@dataclass(slots=True)
class Gathered:
    """What the modules of a run gave, in their order."""

    modules: list[ModuleSummary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    budgets: list[BudgetCheck] = field(default_factory=list)
    _profiled: list[tuple[float, int]] = field(default_factory=list)

    def add(self, result: ModuleResult) -> None:
        """Adds one module; of the profiles only those that a report would draw are kept."""
        if result.summary.profile is not None:
            heappush(self._profiled, (result.summary.profile.seconds, len(self.modules)))
        self.modules.append(result.summary)
        if len(self._profiled) > MAX_PROFILES:
            _, number = heappop(self._profiled)
            self.modules[number] = replace(self.modules[number], profile=None)
        self.findings += result.findings
        self.problems += result.problems
        self.budgets += result.budgets
        for phase, seconds in result.timings:
            self.timings[phase] = self.timings.get(phase, 0.0) + seconds


def silenced(
    findings: Sequence[Finding],
    modules: Iterable[str],
    settings: Settings,
    tree: SourceTree,
    baseline: Baseline | None,
) -> Suppressed:
    """Marks the findings of the modules of these names that the user has silenced."""
    return suppress(
        findings,
        rules=RuleNames(BY_NAME.values()),
        enabled=settings.enabled,
        modules=set(modules),
        tree=tree,
        op_ignores=settings.op_ignores,
        baseline=baseline,
    )


def conclude(
    gathered: Gathered, settings: Settings, tree: SourceTree, *, new_baseline: Path | None = None
) -> Outcome:
    """Applies what the user has silenced; see `lint_subjects`."""
    baseline = None
    if settings.baseline is not None and new_baseline is None:
        baseline = read_baseline(settings.baseline)
    problems = gathered.problems
    if not gathered.modules and not problems:
        problems.append(Problem(message="there is no HLO module in the input"))
    for budget in settings.budgets if gathered.modules else ():
        if not any(budget.is_for(module.name) for module in gathered.modules):
            message = f"budget `{budget.key}` is for none of the modules: see its `modules`"
            problems.append(Problem(message=message, path=budget.file, line=budget.line))
    silence = partial(
        silenced, gathered.findings, [m.name for m in gathered.modules], settings, tree
    )
    marked = silence(baseline)
    if new_baseline is not None and not problems:
        lowest = Severity.NOTE if settings.notes_shown else Severity.WARNING
        left = [f for f in marked.findings if f.suppressed is None and f.severity >= lowest]
        marked = silence(write_baseline(new_baseline, left))
    return Outcome(
        tool_version=__version__,
        modules=tuple(gathered.modules),
        findings=marked.findings,
        problems=tuple(problems),
        unused_suppressions=marked.unused,
        rules=tuple(
            RuleInfo(id=r.id, name=r.name, summary=r.summary, documentation=r.documentation)
            for r in sorted(BY_NAME.values(), key=lambda rule: rule.id)
        ),
        timings=tuple(gathered.timings.items()),
        budgets=tuple(gathered.budgets),
    )


class _Others:
    """Other compiles of the modules that are linted, and what was found in both.

    Args:
      results: the modules of the other side.
    """

    def __init__(self, results: Iterable[tuple[Subject, ModuleResult]]) -> None:
        self._old = [_kept(*result) for result in results]
        self._new: list[Linted] = []

    def hold(self, subject: Subject, result: ModuleResult) -> None:
        """Holds one more of the modules that are linted against the others."""
        self._new.append(_kept(subject, result))

    def marked(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings of all modules, in their order, those that the others have too marked."""
        from hlo_tools.against import known_findings

        known = [found for module in known_findings(self._old, self._new) for found in module]
        return tuple(
            replace(finding, suppressed="against")
            if is_known and finding.suppressed is None
            else finding
            for finding, is_known in zip(findings, known, strict=True)
        )


def _kept(subject: Subject, result: ModuleResult) -> "Linted":
    from hlo_tools.against import Linted
    from hlo_tools.diff.compare import read_module

    return Linted(module=read_module(subject.module), findings=result.findings)


def lint_each(
    subjects: Iterable[Subject | InputError],
    *,
    settings: Settings,
    problems: list[Problem],
    progress: Progress,
    profiled: bool,
    measured: bool,
) -> Iterator[tuple[Subject, ModuleResult]]:
    """Yields what each module of the input gave; one that cannot be linted is a problem."""
    for item in subjects:
        if isinstance(item, InputError):
            problems.append(problem_of(item))
            continue
        module = item.module
        try:
            progress.update("linting", module.path, len(module.text))
            yield item, _linted(item, settings, profiled=profiled, measured=measured)
        except InputError as error:
            problems.append(problem_of(error))
        except Exception as error:
            # A bug that one module brings out must not keep the others from being reported.
            progress.clear()
            report_bug(error, _NAME)
            message = f"internal error: {type(error).__name__}: {error}"
            problems.append(Problem(message=message, path=module.path))
        del item, module  # so that its text is gone while the next one is read
        progress.update("reading")


def problem_of(error: InputError) -> Problem:
    """What a report says of an input that cannot be used."""
    return Problem(message=error.message, path=error.path, line=error.line)


def _linted(
    subject: Subject, settings: Settings, *, profiled: bool, measured: bool
) -> ModuleResult:
    module = subject.module
    result = lint_text(
        module.text,
        path=module.path,
        settings=settings if subject.chip is None else replace(settings, chip=subject.chip),
        start_line=module.start_line,
        refusal=subject.refusal,
        profiled=profiled,
        measured=measured,
    )
    if module.truncated:
        result = replace(result, summary=replace(result.summary, truncated=True))
    return result
