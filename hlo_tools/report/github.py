"""Annotations in a pull request: one GitHub Actions workflow command a finding.

The commands and their escapes are those of "Workflow commands for GitHub Actions" and of
`@actions/core`, `command.ts`.
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding, Outcome, Severity
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse, visible, workflow_data, workflow_property
from hlo_tools.report.view import ReportOptions, exceeded, shown, tally

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    modules = phrases.modules_by_key(outcome)
    for finding in shown(outcome, options):
        cost = phrases.cost(finding, modules.get((finding.path, finding.module)))
        lines = [visible(finding.message)]
        if finding.source is not None:
            lines.append(phrases.instruction(finding))
        lines += [f"cost: {cost}", f"fix: {visible(finding.fix)}"]
        title = f"{visible(finding.id)} {visible(finding.rule)}"
        if finding.source is not None and finding.source.inferred:
            title += " (inferred)"
        properties = {**_place(finding, options), "title": title}
        yield _command(_COMMANDS[finding.severity], properties, "\n".join(lines))
    for check in exceeded(outcome):
        properties = {"file": phrases.dump_path(check.budget.file)}
        if check.budget.line:
            properties["line"] = str(check.budget.line)
        properties["title"] = f"budget {visible(check.budget.key)}"
        module = f"{visible(check.module)} ({phrases.dump_path(check.path)})"
        yield _command("error", properties, f"{module}: {phrases.budget(check)}")
    for problem in outcome.problems:
        where = {} if problem.path is None else {"file": phrases.dump_path(problem.path)}
        if where and problem.line:
            where["line"] = str(problem.line)
        yield _command("error", where, phrases.problem(problem))
    for unused in outcome.unused_suppressions:
        yield _command("notice", {"file": phrases.dump_path(unused.file)}, phrases.unused(unused))
    yield defuse(phrases.summary(outcome, tally(outcome, options.fail_on), options)) + "\n"


def _place(finding: Finding, options: ReportOptions) -> dict[str, str]:
    source = finding.source
    if source is None:
        return {"file": phrases.dump_path(finding.path), "line": str(finding.hlo_line)}
    place = {"file": visible(options.display(source.file))}
    if source.line > 0:
        place["line"] = str(source.line)
        if source.end_line is not None and source.end_line > source.line:
            place["endLine"] = str(source.end_line)
        elif source.column:  # columns are for annotations of one line only
            place["col"] = str(source.column)
    return place


def _command(name: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{key}={workflow_property(value)}" for key, value in properties.items())
    return f"::{name}{' ' if listed else ''}{listed}::{workflow_data(message)}\n"
