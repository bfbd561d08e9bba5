"""The report for programs: one JSON object with a published schema.

All findings are in it, suppressed ones and notes too. Keys stand in a fixed order, each finding
on a line of its own, and the text is ASCII: `json` escapes whatever a name may hold and a reader
gets the exact name back.
"""

import json
import math
from collections.abc import Iterable, Iterator

from hlo_tools.budgets import BudgetCheck
from hlo_tools.findings import Cost, Finding, ModuleSummary, Outcome, Problem, Related, Severity
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report.escape import defuse_json
from hlo_tools.report.view import ReportOptions, exceeded, exit_status, tally, worst_first

SCHEMA_VERSION = 1


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    tool = {"name": "hlo-lint", "version": outcome.tool_version}
    yield f'{{"schema_version": {SCHEMA_VERSION},\n"tool": {dumps(tool)},\n"modules": '
    yield from array(module_object(module) for module in outcome.modules)
    yield ',\n"findings": '
    yield from array(finding_object(finding) for finding in worst_first(outcome.findings))
    yield ',\n"budgets": '
    yield from array(map(budget_object, outcome.budgets))
    yield ',\n"problems": '
    yield from array(map(problem_object, outcome.problems))
    yield ',\n"unused_suppressions": '
    yield from array(
        {"kind": item.kind, "text": item.text, "file": item.file, "line": item.line}
        for item in outcome.unused_suppressions
    )
    yield f',\n"summary": {dumps(_summary(outcome, options))}}}\n'


def array(items: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yields a JSON array with one item a line."""
    separator = "[\n"
    for item in items:
        yield separator + dumps(item)
        separator = ",\n"
    yield "[]" if separator == "[\n" else "\n]"


_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def dumps(value: object) -> str:
    """JSON on one line, harmless in the log of a workflow."""
    return defuse_json(_encode(value))


def module_object(module: ModuleSummary) -> dict[str, object]:
    """Returns what the report says about a module."""
    return {
        "path": module.path,
        "name": module.name,
        "backend": module.backend,
        "chip": module.chip,
        "chip_assumed": module.chip_assumed,
        "partitions": module.partitions,
        "instructions": module.instructions,
        "truncated": module.truncated,
        "optimized": module.optimized,
        "step_seconds": finite(module.step_seconds),
        "peak_hbm_bytes": module.peak_hbm_bytes,
        "unknown_trip_counts": module.unknown_trip_counts,
        "opaque_calls": module.opaque_calls,
    }


def problem_object(problem: Problem) -> dict[str, object]:
    """Returns what the report says about something that could not be done."""
    return {
        "message": problem.message,
        "path": problem.path,
        "line": problem.line,
        "rule": problem.rule,
    }


def finding_object(finding: Finding) -> dict[str, object]:
    """Returns what the report says about a finding."""
    return {
        "rule": finding.rule,
        "id": finding.id,
        "severity": finding.severity.label,
        "module": finding.module,
        "path": finding.path,
        "hlo_line": finding.hlo_line,
        "computation": finding.computation,
        "instruction": finding.instruction,
        "op_name": finding.op_name,
        "source": source(finding.source),
        "stack": [source(frame) for frame in finding.stack],
        "message": finding.message,
        "fix": finding.fix,
        "cost": _cost(finding.cost),
        "related": [_related(related) for related in finding.related],
        "fingerprint": finding.fingerprint,
        "suppressed": finding.suppressed,
    }


def source(location: SourceLocation | None) -> dict[str, object] | None:
    """A place in the user's source."""
    if location is None:
        return None
    return {
        "file": location.file,
        "line": location.line,
        "end_line": location.end_line,
        "column": location.column,
        "function": location.function,
        "inferred": location.inferred,
    }


def _cost(cost: Cost) -> dict[str, object]:
    return {
        "effect": cost.effect,
        "bytes": cost.bytes,
        "seconds": finite(cost.seconds),
        "share": finite(cost.share),
        "times_per_step": cost.times_per_step,
    }


def _related(related: Related) -> dict[str, object]:
    return {
        "computation": related.computation,
        "instruction": related.instruction,
        "hlo_line": related.hlo_line,
        "message": related.message,
        "source": source(related.source),
    }


def budget_object(check: BudgetCheck) -> dict[str, object]:
    """Returns what the report says about a budget."""
    budget = check.budget
    return {
        "budget": budget.key,
        "unit": budget.unit,
        "limit": finite(budget.limit),
        "value": finite(check.value),
        "margin": finite(check.margin),
        "exceeded": check.exceeded,
        "path": check.path,
        "module": check.module,
        "file": budget.file,
        "line": budget.line,
    }


def _summary(outcome: Outcome, options: ReportOptions) -> dict[str, object]:
    totals = tally(outcome, options.fail_on)
    return {
        "modules": len(outcome.modules),
        "truncated_modules": sum(module.truncated for module in outcome.modules),
        "findings": sum(totals.by_severity.values()),
        "errors": totals.by_severity[Severity.ERROR],
        "warnings": totals.by_severity[Severity.WARNING],
        "notes": totals.by_severity[Severity.NOTE],
        "notes_hidden": False,
        "suppressed": totals.suppressed,
        "rules": [
            {
                "rule": rule.rule,
                "id": rule.id,
                "findings": rule.findings,
                "seconds": finite(rule.seconds),
            }
            for rule in totals.rules
        ],
        "budgets": len(outcome.budgets),
        "budgets_exceeded": len(exceeded(outcome)),
        "problems": len(outcome.problems),
        "unused_suppressions": len(outcome.unused_suppressions),
        "fail_on": "never" if options.fail_on is None else options.fail_on.label,
        "failing": totals.failing,
        "exit_status": exit_status(outcome, options.fail_on),
    }


def finite(number: float | None) -> float | None:
    """Returns `None` for what JSON has no number for."""
    return number if number is not None and math.isfinite(number) else None
