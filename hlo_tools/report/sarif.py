"""SARIF 2.1.0, as GitHub code scanning accepts it.

The primary location is in the user's source, the HLO instruction is a related one; a finding
without source has the dump for its primary location. What code scanning reads, and its limit of
5,000 results a run, is in GitHub's "SARIF support for code scanning".
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from hlo_tools.findings import Finding, Outcome, Problem, Severity
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse_json, visible
from hlo_tools.report.excerpt import character_column
from hlo_tools.report.units import count
from hlo_tools.report.uri import path_uri
from hlo_tools.report.view import ReportOptions, exceeded, exit_status, worst_first

MAX_RESULTS = 5_000

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# The base that GitHub takes for the root of the checkout.
_SOURCE_ROOT = "%SRCROOT%"
_BUDGET = "budget"
_SUPPRESSION_KINDS = {"source": "inSource"}
_PROBLEM_SEVERITY = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "recommendation",
}

JsonObject = dict[str, object]


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    candidates = [f for f in outcome.findings if options.show_notes or f.severity > Severity.NOTE]
    # A suppressed result must not push out one that a person has still to see.
    ordered = sorted(worst_first(candidates), key=lambda finding: finding.suppressed is not None)
    results = ordered[: max(0, MAX_RESULTS - len(exceeded(outcome)))]
    rules = _rules(outcome, results)
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hlo-lint",
                        "version": outcome.tool_version,
                        "rules": list(rules.values()),
                    }
                },
                "invocations": [_invocation(outcome, options, len(ordered) - len(results))],
                "originalUriBaseIds": {
                    _SOURCE_ROOT: {
                        "description": {"text": "The directory in which the linter was started."}
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    *_budget_results(outcome, list(rules)),
                    *_results(outcome, results, list(rules), options),
                ],
            }
        ],
    }
    yield defuse_json(json.dumps(log, ensure_ascii=True, allow_nan=False)) + "\n"


def _rules(outcome: Outcome, results: Sequence[Finding]) -> dict[str, JsonObject]:
    """Returns the descriptors of the known rules, and of those that a result names, by id."""
    rules: dict[str, JsonObject] = {}
    for rule in outcome.rules:
        summary = {"text": visible(rule.summary)}
        # Documentation is prose with paragraphs; its line ends stay.
        documentation = "\n".join(map(visible, rule.documentation.split("\n")))
        rules[visible(rule.id)] = {
            "id": visible(rule.id),
            "name": visible(rule.name),
            "shortDescription": summary,
            "fullDescription": summary,
            "help": {"text": documentation, "markdown": documentation},
            "properties": {"tags": ["performance"]},
        }
    for finding in results:
        rule_id = visible(finding.id)
        if rule_id not in rules:
            rules[rule_id] = {"id": rule_id, "name": visible(finding.rule)}
    if exceeded(outcome):
        text = {"text": "A module takes more than its budget"}
        rules[_BUDGET] = {"id": _BUDGET, "name": _BUDGET, "shortDescription": text}
    return rules


def _invocation(outcome: Outcome, options: ReportOptions, left_out: int) -> JsonObject:
    notifications = [_notification(problem) for problem in outcome.problems]
    if left_out:
        text = (
            f"{count(left_out, 'result')} left out: a run holds at most {MAX_RESULTS:,}, "
            "the costliest ones are here"
        )
        notifications.append({"level": "warning", "message": {"text": text}})
    notifications += [
        {"level": "note", "message": {"text": _plain(phrases.unused(item))}}
        for item in outcome.unused_suppressions
    ]
    return {
        "executionSuccessful": not outcome.problems,
        "exitCode": exit_status(outcome, options.fail_on),
        "toolExecutionNotifications": notifications,
    }


def _notification(problem: Problem) -> JsonObject:
    notification: JsonObject = {
        "level": "error",
        "message": {"text": _plain(phrases.problem(problem))},
    }
    if problem.path is not None:
        notification["locations"] = [_dump_location(problem.path, problem.line)]
    return notification


def _results(
    outcome: Outcome, findings: Sequence[Finding], rule_ids: Sequence[str], options: ReportOptions
) -> list[JsonObject]:
    modules = phrases.modules_by_key(outcome)
    rule_index = {rule_id: index for index, rule_id in enumerate(rule_ids)}
    # Code scanning merges results of equal fingerprint, so each repetition gets its number.
    repetitions: Counter[str] = Counter()
    results = []
    for finding in findings:
        repetitions[finding.fingerprint] += 1
        cost = phrases.cost(finding, modules.get((finding.path, finding.module)))
        text = f"{_plain(finding.message)}\nCost: {cost}.\nFix: {_plain(finding.fix)}"
        result: JsonObject = {
            "ruleId": visible(finding.id),
            "ruleIndex": rule_index[visible(finding.id)],
            "level": finding.severity.label,
            "message": {"text": text},
            "locations": [_primary(finding, options)],
            "relatedLocations": _related(finding, options),
        }
        if finding.fingerprint:
            fingerprint = visible(finding.fingerprint)
            result["partialFingerprints"] = {
                "primaryLocationLineHash": f"{fingerprint}:{repetitions[finding.fingerprint]}",
                "hloLint/v1": fingerprint,
            }
        if finding.suppressed is not None:
            kind = _SUPPRESSION_KINDS.get(finding.suppressed, "external")
            justification = phrases.why_suppressed(finding.suppressed)
            result["suppressions"] = [{"kind": kind, "justification": justification}]
        result["properties"] = _properties(finding)
        results.append(result)
    return results


def _budget_results(outcome: Outcome, rule_ids: Sequence[str]) -> Iterator[JsonObject]:
    for check in exceeded(outcome)[:MAX_RESULTS]:
        module = f"{check.module} ({phrases.dump_path(check.path)})"
        yield {
            "ruleId": _BUDGET,
            "ruleIndex": rule_ids.index(_BUDGET),
            "level": "error",
            "message": {"text": _plain(f"{module}: {phrases.budget(check)}")},
            "locations": [_dump_location(check.budget.file, check.budget.line or 1)],
        }


def _properties(finding: Finding) -> JsonObject:
    cost = finding.cost
    figures = {"bytes": cost.bytes, "seconds": cost.seconds, "share": cost.share}
    known: JsonObject = {
        name: value for name, value in figures.items() if value is not None and math.isfinite(value)
    }
    return {"problem.severity": _PROBLEM_SEVERITY[finding.severity], **known}


def _primary(finding: Finding, options: ReportOptions) -> JsonObject:
    if finding.source is None:
        location = _dump_location(finding.path, finding.hlo_line)
    else:
        location = _source_location(finding.source, options)
    name = f"%{visible(finding.instruction).removeprefix('%')}"
    qualified = f"{visible(finding.module)}/{visible(finding.computation)}/{name}"
    return {
        **location,
        "logicalLocations": [{"name": name, "fullyQualifiedName": qualified, "kind": "member"}],
    }


def _related(finding: Finding, options: ReportOptions) -> list[JsonObject]:
    locations: list[JsonObject] = []

    def add(location: JsonObject, text: str) -> None:
        locations.append({"id": len(locations) + 1, **location, "message": {"text": text}})

    if finding.source is not None:
        text = _plain(phrases.instruction(finding))
        add(_dump_location(finding.path, finding.hlo_line), text)
    for related in finding.related:
        name = related.instruction.removeprefix("%")
        text = _plain(f"%{name}: {related.message}")
        if related.source is not None:
            add(_source_location(related.source, options), text)
        add(_dump_location(finding.path, related.hlo_line), text)
    return locations


def _plain(text: str) -> str:
    """Returns visible `text` in which nothing is a link, `[text](target)`, to a SARIF viewer."""
    return visible(text).replace("](", "] (")


def _artifact(path: str) -> JsonObject:
    uri, relative = path_uri(path)
    return {"uri": uri, "uriBaseId": _SOURCE_ROOT} if relative else {"uri": uri}


def _dump_location(path: str, line: int | None) -> JsonObject:
    physical: JsonObject = {"artifactLocation": _artifact("stdin" if path == "-" else path)}
    if line is not None and line > 0:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def _source_location(source: SourceLocation, options: ReportOptions) -> JsonObject:
    # Code scanning wants a line of every location; where only the file is known, its first.
    region: JsonObject = {"startLine": max(1, source.line)}
    text = options.source_line(source)
    last = source.line if source.end_line is None else max(source.line, source.end_line)
    if last > source.line:
        region["endLine"] = last
    if source.column is not None and source.column > 0:
        start = _column(text, source.column)
        region["startColumn"] = start
        if source.end_column is not None and last == source.line:
            end = _column(text, source.end_column)
            if end > start:
                region["endColumn"] = end
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(options.display(source.file)),
            "region": region,
        }
    }


def _column(line: str | None, column: int) -> int:
    return column if line is None else character_column(line, column)
