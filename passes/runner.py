"""Runs the rules over modules and turns what they say into one result a module."""

import gc
import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hlo_tools.analysis.figures import figures
from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.budgets import BudgetCheck, check_budgets
from hlo_tools.findings import Finding, ModuleSummary, Problem
from hlo_tools.hardware import choose_chip, detect_backend
from hlo_tools.hlo.module import Module
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.provenance import Provenance
from hlo_tools.profile import StepProfile
from hlo_tools.settings import Settings
from passes import out_of_memory
from passes.apportion import apportioned
from passes.catalog import BY_ID
from passes.facts import Facts
from passes.rule import NEGLIGIBLE, RuleContext
from passes.words import nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleResult:
    """What one module gave.

    Attributes:
      summary: the module itself.
      findings: every finding, suppressed ones included, worst first within a place.
      problems: rules that failed.
      timings: seconds by phase and rule.
      budgets: the user's budgets held to it.
    """

    summary: ModuleSummary
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    timings: tuple[tuple[str, float], ...]
    budgets: tuple[BudgetCheck, ...] = ()


def lint_text(
    text: str,
    *,
    path: str,
    settings: Settings,
    start_line: int = 1,
    refusal: MemoryRefusal | None = None,
    profiled: bool = False,
    measured: bool = False,
) -> ModuleResult:
    """Lints the text of one module.

    Args:
      text: HLO, lines ending in a line feed.
      path: where it came from, for the report.
      settings: what to run and how.
      start_line: 1-based line of the file at which `text` begins.
      refusal: what the compiler said, if it ran out of device memory.
      profiled: make a profile of the step too.
      measured: sum up its figures too.

    Raises:
      ParseError: the text holds no computation.
      InputError: `settings.chip` names no known chip.
    """
    clock = _Clock()
    module = parse_module(text, path=path)
    clock.lap("parse")
    # The model is read-only from here on: the collector need not walk it again and again.
    gc.freeze()
    try:
        return _lint(
            module,
            path=path,
            settings=settings,
            start_line=start_line,
            refusal=refusal,
            profiled=profiled,
            measured=measured,
            clock=clock,
        )
    finally:
        gc.unfreeze()


def _lint(
    module: Module,
    *,
    path: str,
    settings: Settings,
    start_line: int,
    refusal: MemoryRefusal | None,
    profiled: bool,
    measured: bool,
    clock: "_Clock",
) -> ModuleResult:
    backend = detect_backend(module)
    chip, assumed = choose_chip(module, settings.chip)
    provenance = Provenance(
        module, library_paths=settings.library_paths, own_paths=settings.own_paths
    )
    facts = Facts(
        module,
        backend=backend,
        chip=chip,
        provenance=provenance,
        floor=settings.min_saving * NEGLIGIBLE,
        refusal=refusal,
    )
    # Of what is not compiled yet, neither the time nor the memory says anything.
    step_seconds = facts.cost.step_seconds if chip and facts.optimized else None
    clock.lap("cost")
    peak = facts.peak_hbm_bytes if facts.optimized else None
    clock.lap("memory")
    findings: list[Finding] = []
    problems: list[Problem] = []
    for rule_id in settings.enabled if facts.optimized else ():
        rule = BY_ID[rule_id]
        context = RuleContext(
            facts=facts,
            rule=rule,
            options={**rule.options, **settings.rule_options.get(rule.name, {})},
            min_saving=settings.min_saving,
            path=path,
        )
        try:
            findings.extend(rule.check(context))
        except Exception as error:
            problems.append(_failed(rule.name, path, error))
        clock.lap(rule.name)
    if refusal is not None and not any(f.id == out_of_memory.check.id for f in findings):
        problems.append(_unreported(refusal, path))
    checks, unchecked = _checked(facts, path=path, settings=settings)
    problems += unchecked
    clock.lap("budgets")
    order = {c.name: number for number, c in enumerate(facts.execution.executed)}
    findings.sort(key=lambda f: (order.get(f.computation, len(order)), f.hlo_line, f.id))
    findings = apportioned(findings, step_seconds)
    findings = _fingerprinted(findings, module)
    if start_line > 1:
        findings = [_shifted(f, start_line - 1) for f in findings]
    findings.sort(key=_place)
    clock.lap("findings")
    profile = None
    if profiled and facts.optimized:
        profile = _profile(facts, start_line)
        clock.lap("profile")
    summary = ModuleSummary(
        path=path,
        name=module.name,
        backend=backend,
        chip=chip.name if chip else None,
        chip_assumed=assumed,
        partitions=module.partitions,
        instructions=module.instruction_count,
        truncated=module.truncated,
        optimized=facts.optimized,
        step_seconds=step_seconds,
        peak_hbm_bytes=peak,
        figures=figures(facts) if measured and facts.optimized else None,
        unknown_trip_counts=len(facts.execution.unknown_loops),
        opaque_calls=facts.cost.opaque_calls if facts.optimized else 0,
        profile=profile,
    )
    return ModuleResult(
        summary=summary,
        findings=tuple(findings),
        problems=tuple(problems),
        timings=tuple(clock.laps),
        budgets=tuple(checks),
    )


def _unreported(refusal: MemoryRefusal, path: str) -> Problem:
    """A program that was not compiled, where the rule that says so is off or has failed."""
    rule = out_of_memory.check
    return Problem(
        message=(
            f"this does not fit into device memory: it needs {nbytes(refusal.needed_bytes)} where "
            f"{nbytes(refusal.available_bytes)} are available (`{rule.name}` tells what is live)"
        ),
        path=path,
    )


def _checked(
    facts: Facts, *, path: str, settings: Settings
) -> tuple[list[BudgetCheck], list[Problem]]:
    """The budgets held to a module; one that cannot be checked is a problem, since it says nothing.

    Of a module that is cut off or not compiled yet no figure is what the step will take.
    """
    module = facts.module
    budgets = [budget for budget in settings.budgets if budget.is_for(module.name)]
    if not budgets:
        return [], []
    checks: list[BudgetCheck] = []
    reason = "neither the dump nor `--chip` tells the chip"
    if not facts.optimized or module.truncated:
        unknown = budgets
        reason = "it is truncated" if facts.optimized else "it is not optimised yet"
    else:
        checks, unknown = check_budgets(budgets, figures(facts), path=path, module=module.name)
    if not unknown:
        return checks, []
    keys = ", ".join(f"`{budget.key}`" for budget in unknown)
    message = (
        f"the budgets {keys} of module `{module.name}` cannot be checked: {reason}; "
        "`modules` of the budgets can leave it out"
    )
    return checks, [Problem(message=message, path=path)]


def _profile(facts: Facts, start_line: int) -> StepProfile | None:
    from hlo_tools.profiling import Profiler

    return Profiler(facts, line_offset=start_line - 1).profile()


class _Clock:
    """Wall-clock seconds between laps."""

    def __init__(self) -> None:
        self.laps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Records the time since the last lap under `name`."""
        now = time.perf_counter()
        self.laps.append((name, now - self._last))
        self._last = now


def _failed(rule: str, path: str, error: Exception) -> Problem:
    place = ""
    if error.__traceback__ is not None:
        frame = error.__traceback__
        while frame.tb_next is not None:
            frame = frame.tb_next
        code = frame.tb_frame.f_code
        place = f" at {PurePosixPath(code.co_filename).name}:{frame.tb_lineno}"
    return Problem(
        message=f"rule `{rule}` failed with {type(error).__name__}: {error}{place}",
        path=path,
        rule=rule,
    )


def _place(finding: Finding) -> tuple[str, int, int, str]:
    """The order of reports that go by place; the sort is stable, so that equals stay in order."""
    source = finding.source
    if source is None:
        return ("", 0, 0, finding.id)
    return (source.file, source.line, source.column or 0, finding.id)


def _shifted(finding: Finding, lines: int) -> Finding:
    related = tuple(replace(r, hlo_line=r.hlo_line + lines) for r in finding.related)
    return replace(finding, hlo_line=finding.hlo_line + lines, related=related)


def _fingerprinted(findings: Sequence[Finding], module: Module) -> list[Finding]:
    """The findings with fingerprints.

    A fingerprint does not change when instructions are renamed, computations reordered or lines of
    source added above: it is made of the rule, what the user's program calls the place, and the
    type of the value. Findings that agree in all of that are told apart by a running number, in
    order of execution.
    """
    seen: Counter[str] = Counter()
    return [replace(f, fingerprint=_fingerprint(f, module, seen)) for f in findings]


def _fingerprint(finding: Finding, module: Module, seen: Counter[str]) -> str:
    source = finding.source
    place = (
        (*PurePosixPath(source.file.replace("\\", "/")).parts[-2:], source.function or "")
        if source
        else ()
    )
    key = "\x1f".join(
        [finding.id, module.name, finding.op_name or "", *place, *_value_key(finding, module)]
    )
    seen[key] += 1
    return hashlib.sha256(f"{key}\x1f{seen[key]}".encode("utf-8", "replace")).hexdigest()[:16]


def _value_key(finding: Finding, module: Module) -> Iterator[str]:
    computation = module.computation(finding.computation)
    instruction = computation.instruction(finding.instruction) if computation else None
    if instruction is not None:
        yield instruction.opcode
        yield str(instruction.shape)
