"""Linting from Python: for notebooks, and for tests.

import hlo_tools

result = hlo_tools.lint(jax.jit(step).lower(*args).compile())
result                     # in a notebook: a table of the findings
print(result)              # what the command prints
result.peak_hbm < 12 * hlo_tools.GiB
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Protocol, Self, TypeVar, runtime_checkable

from hlo_tools.conditions import Breaches
from hlo_tools.configuration import unknown
from hlo_tools.errors import InputError, SettingsError
from hlo_tools.figures import Figures
from hlo_tools.findings import Finding, ModuleSummary, Outcome, Severity
from hlo_tools.hardware import chip as known_chip
from hlo_tools.io import STDIN, read_inputs
from hlo_tools.progress import Progress
from hlo_tools.quantities import Bytes, Quantity, Seconds, Share
from hlo_tools.report.formats import render
from hlo_tools.report.view import ReportOptions, worst_first
from hlo_tools.run import Subject, lint_subjects, read_subjects
from hlo_tools.settings import FAIL_ON_NAMES, Overrides, RuleNames, Settings, load_settings
from hlo_tools.source import SourceTree
from passes.catalog import BY_NAME

_Quantity = TypeVar("_Quantity", bound=Quantity)


@runtime_checkable
class CompiledProgram(Protocol):
    """What `jax.jit(f).lower(...).compile()` returns, as far as it is looked at."""

    def as_text(self) -> str | None:
        """The optimised HLO."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LintResult:
    """What `lint` found.

    Attributes:
      outcome: everything, as reports see it.
      options: how reports show it.
    """

    outcome: Outcome
    options: ReportOptions

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is not suppressed, worst first; notes are among it."""
        return tuple(worst_first([f for f in self.outcome.findings if f.suppressed is None]))

    @property
    def module(self) -> ModuleSummary:
        """The module that was linted.

        Raises:
          InputError: there are several; `outcome.modules` has them.
        """
        if len(self.outcome.modules) != 1:
            raise InputError(f"there are {len(self.outcome.modules)} modules, not one")
        return self.outcome.modules[0]

    @property
    def figures(self) -> Figures:
        """What the step costs in all.

        Raises:
          InputError: the module is not optimised, or there are several.
        """
        figures = self.module.figures
        if figures is None:
            raise InputError(f"`{self.module.name}` is not optimised: it has no figures")
        return figures

    @property
    def step_seconds(self) -> Seconds:
        """Modelled time of one execution.

        Raises:
          InputError: there are no figures, or there is no chip to model.
        """
        return self._named("the modelled step", Seconds(self._timed(self.figures.step_seconds)))

    @property
    def peak_hbm(self) -> Bytes:
        """Modelled peak of device memory, arguments and results included.

        Raises:
          InputError: there are no figures.
        """
        return self._named("the peak of device memory", Bytes(self.figures.peak_hbm_bytes))

    @property
    def exposed_collective_share(self) -> Share:
        """The share of the modelled step in which the device only waits for collectives.

        Raises:
          InputError: there are no figures, or there is no chip to model.
        """
        self._timed(self.figures.exposed_collective_seconds)
        share = Share(self.figures.exposed_collective_share or 0.0)
        return self._named("the share of exposed collectives", share)

    @property
    def padded_share(self) -> Share:
        """The share of the bytes of all buffers in device memory that is tile padding.

        Raises:
          InputError: there are no figures.
        """
        return self._named("the share of padding", Share(self.figures.padded_share))

    @property
    def f32_dot_share(self) -> Share:
        """The share of the operations of dots that have an operand of f32 or wider.

        Raises:
          InputError: there are no figures.
        """
        return self._named("the share of f32 dots", Share(self.figures.f32_dot_share))

    def _timed(self, seconds: float | None) -> float:
        if seconds is None:
            raise InputError(f'`{self.module.name}` has no times: name the chip, as `chip="v5e"`')
        return seconds

    def _named(self, figure: str, quantity: _Quantity) -> _Quantity:
        chip = f" on {self.module.chip}" if self.module.chip else ""
        quantity.of = f"{figure} of `{self.module.name}`{chip}"
        return quantity

    def has_no(self, *rules: str, notes: bool = False) -> Self:
        """Asserts that no rule of these found anything.

        Args:
          rules: names, ids or beginnings of ids (`HLO4`).
          notes: count findings too small for a warning as well.

        Returns:
          This result, so that conditions can follow one another.

        Raises:
          AssertionError: one did; the message lists the findings.
          SettingsError: there is no such rule.
        """
        __tracebackhide__ = True
        breaches = Breaches(self.outcome, self.options)
        breaches.count_findings(_ids(rules), Severity.NOTE if notes else Severity.WARNING)
        breaches.raise_any()
        return self

    def check(
        self,
        *,
        allow: Iterable[str] = (),
        fail_on: str = "warning",
        peak_hbm: int | None = None,
        step_seconds: float | None = None,
        exposed_collective_share: float | None = None,
        padded_share: float | None = None,
        f32_dot_share: float | None = None,
    ) -> Self:
        """Asserts that nothing was found, and that figures are within limits, all at once.

        Args:
          allow: rules that may find something: names, ids or beginnings of ids.
          fail_on: severity from which on a finding counts: `error`, `warning`, `note` or `never`.
          peak_hbm: the most bytes of device memory at the fullest moment.
          step_seconds: the longest modelled time of a step.
          exposed_collective_share: the largest share of the step that only waits for collectives.
          padded_share: the largest share of buffers that is padding.
          f32_dot_share: the largest share of the operations of dots that are in f32.

        Returns:
          This result.

        Raises:
          AssertionError: with everything that is not as it should be.
          SettingsError: there is no such rule or severity.
        """
        __tracebackhide__ = True
        breaches = Breaches(self.outcome, self.options)
        if fail_on not in FAIL_ON_NAMES:
            raise SettingsError(unknown("severity", fail_on, FAIL_ON_NAMES))
        if fail_on != "never":
            counted = {rule.id for rule in BY_NAME.values()} - set(_ids(allow))
            breaches.count_findings(counted, Severity[fail_on.upper()])
        limits = {
            "peak_hbm": peak_hbm,
            "step_seconds": step_seconds,
            "exposed_collective_share": exposed_collective_share,
            "padded_share": padded_share,
            "f32_dot_share": f32_dot_share,
        }
        for name, most in limits.items():
            if most is not None:
                breaches.limit(getattr(self, name), most)
        breaches.raise_any()
        return self

    def report(self, format_name: str = "text") -> str:
        """The report that the command writes, in one of its formats."""
        return "".join(render(format_name, self.outcome, self.options))

    def __str__(self) -> str:
        return self.report().rstrip("\n")

    def __repr__(self) -> str:
        last = self.report().rstrip("\n").rpartition("\n")[2]
        return f"<LintResult: {last}>"

    def _repr_html_(self) -> str:
        return "".join(render("notebook", self.outcome, self.options))


def lint(
    program: "str | os.PathLike[str] | CompiledProgram",
    *,
    chip: str | None = None,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    min_saving: float | None = None,
    show_notes: bool | None = None,
    config: "str | os.PathLike[str] | None" = None,
    source_root: "str | os.PathLike[str] | None" = None,
) -> LintResult:
    """Lints a compiled program.

    What is not given is as `[tool.hlo-lint]` of the nearest `pyproject.toml` has it, budgets apart:
    `LintResult.check` has limits.

    Args:
      program: HLO text; the path of a dump or of a directory of dumps; or a compiled program, such
        as `jax.jit(f).lower(...).compile()` returns.
      chip: what to model, for example `v5e`; by default as the program tells.
      select: names or ids of the rules to run.
      ignore: names or ids of rules not to run.
      min_saving: per cent of a step below which a finding is a note.
      show_notes: show notes in reports.
      config: a configuration file.
      source_root: the directory of the source that reports may quote.

    Raises:
      InputError: the program cannot be read, or a rule, a chip or the configuration is not known.
    """
    overrides = Overrides(
        select=None if select is None else tuple(select),
        ignore=None if ignore is None else tuple(ignore),
        min_saving=min_saving,
        chip=chip,
        source_root=None if source_root is None else Path(source_root),
        show_notes=show_notes,
    )
    settings = load_settings(None if config is None else Path(config), overrides, BY_NAME)
    return lint_with(settings, subjects_of(program))


def lint_with(settings: Settings, subjects: Iterable[Subject | InputError]) -> LintResult:
    """Lints modules under settings that are made already.

    The budgets in them are for the modules of a whole run, and are left out.

    Raises:
      InputError: one of the modules cannot be had or read.
    """
    if settings.chip is not None:
        known_chip(settings.chip)
    tree = SourceTree.open(settings.source_root)
    settings = replace(settings, budgets=())
    outcome = lint_subjects(subjects, settings, tree, progress=Progress(), measured=True)
    for problem in outcome.problems:
        if problem.rule is None:
            raise InputError(problem.message, path=problem.path, line=problem.line)
    options = ReportOptions(show_notes=settings.notes_shown, fail_on=settings.fail_on, sources=tree)
    return LintResult(outcome=outcome, options=options)


def subjects_of(
    program: "str | os.PathLike[str] | CompiledProgram",
) -> Iterator[Subject | InputError]:
    """What `lint` takes, ready to be linted.

    Raises:
      InputError: it is none of that, or not compiled yet.
    """
    if isinstance(program, os.PathLike):
        return read_subjects([os.fspath(program)])
    if isinstance(program, str):
        if "\n" in program or program.startswith("HloModule"):
            return _text_subjects(program, "<text>", None)
        return read_subjects([program])
    if not isinstance(program, CompiledProgram):
        raise InputError(
            f"a `{type(program).__name__}` cannot be linted: give HLO text, a path or what "
            "`jax.jit(f).lower(...).compile()` returns"
        )
    if hasattr(program, "compile"):
        raise InputError("this is not compiled yet: lint what its method `compile()` returns")
    text = program.as_text()
    if not text:
        raise InputError("this compiled program has no text")
    return _text_subjects(text, "<compiled>", compiled_chip(program))


def _text_subjects(text: str, name: str, chip: str | None) -> Iterator[Subject | InputError]:
    stream = BytesIO(text.encode("utf-8", "surrogatepass"))
    for item in read_inputs([STDIN], stdin=stream):
        if isinstance(item, InputError):
            yield InputError(item.message, path=name, line=item.line)
        else:
            yield Subject(module=replace(item, path=name), chip=chip)


def compiled_chip(program: object) -> str | None:
    """The chip for which a program was compiled, by the devices of its shardings."""
    pending = [getattr(program, name, None) for name in ("input_shardings", "output_shardings")]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, tuple | list):
            pending += value
        for device in getattr(value, "device_set", ()):
            try:
                return known_chip(device.device_kind).name
            except SettingsError:  # a CPU, or a device that nobody knows
                return None
    return None


def _ids(rules: Iterable[str]) -> tuple[str, ...]:
    __tracebackhide__ = True
    try:
        return RuleNames(BY_NAME.values()).resolve_all(rules)
    except SettingsError as error:  # a test's own mistake: where we noticed it tells nothing
        raise error.with_traceback(None) from None
