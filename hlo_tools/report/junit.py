"""JUnit XML, for continuous integration that shows test results.

A module is a test suite, a finding a test case: failed where it fails the run, skipped where it is
suppressed, else passed with the finding in its output. A module without any has one passing case.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from hlo_tools.findings import Finding, ModuleSummary, Outcome, Problem, Severity
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse, xml
from hlo_tools.report.view import ReportOptions, exceeded, fails, worst_first


def render(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    modules = phrases.modules_by_key(outcome)
    by_module: dict[phrases.ModuleKey, list[Finding]] = {key: [] for key in modules}
    for finding in worst_first(outcome.findings):
        if options.show_notes or finding.severity > Severity.NOTE:
            by_module.setdefault((finding.path, finding.module), []).append(finding)
    failures = sum(
        fails(finding, options.fail_on) for finding in chain.from_iterable(by_module.values())
    )
    if options.fail_on is not None:
        failures += len(exceeded(outcome))
    tests = sum(max(1, len(findings)) for findings in by_module.values())
    tests += len(outcome.budgets) + len(outcome.problems)
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield (
        f'<testsuites name="hlo-lint" tests="{tests}" failures="{failures}" '
        f'errors="{len(outcome.problems)}">\n'
    )
    for key, findings in by_module.items():
        yield from _suite(key, findings, modules.get(key), options)
    if outcome.budgets:
        yield from _budgets(outcome, options)
    if outcome.problems:
        yield from _problems(outcome.problems)
    yield "</testsuites>\n"


def _suite(
    key: phrases.ModuleKey,
    findings: Sequence[Finding],
    module: ModuleSummary | None,
    options: ReportOptions,
) -> Iterator[str]:
    path, name = key
    suite = xml(f"{phrases.dump_path(path)}: {name}")
    failures = sum(fails(finding, options.fail_on) for finding in findings)
    skipped = sum(finding.suppressed is not None for finding in findings)
    yield (
        f'  <testsuite name="{suite}" tests="{max(1, len(findings))}" failures="{failures}" '
        f'errors="0" skipped="{skipped}">\n'
    )
    if not findings:
        yield f'    <testcase classname="{suite}" name="no findings"/>\n'
    for finding in findings:
        yield _case(finding, module, options)
    yield "  </testsuite>\n"


def _case(finding: Finding, module: ModuleSummary | None, options: ReportOptions) -> str:
    place = phrases.place(finding, options)
    name = f"{finding.id} {finding.rule} at {place}, %{finding.instruction.removeprefix('%')}"
    classname = f"{phrases.dump_path(finding.path)}: {finding.module}"
    lines = (
        f"{place}: {finding.severity.label} {finding.id} {finding.rule}",
        finding.message,
        phrases.instruction(finding),
        f"cost: {phrases.cost(finding, module)}",
        f"fix: {finding.fix}",
    )
    detail = "\n".join(xml(defuse(line)) for line in lines)
    if finding.suppressed is not None:
        why = phrases.why_suppressed(finding.suppressed)
        body = f'<skipped message="{xml(why)}"/>'
    elif fails(finding, options.fail_on):
        kind, message = finding.severity.label, xml(finding.message)
        body = f'<failure type="{kind}" message="{message}">{detail}</failure>'
    else:
        body = f"<system-out>{detail}</system-out>"
    case = f'<testcase classname="{xml(classname)}" name="{xml(name)}">'
    return f"    {case}{body}</testcase>\n"


def _budgets(outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    failures = len(exceeded(outcome)) if options.fail_on is not None else 0
    yield (
        f'  <testsuite name="budgets" tests="{len(outcome.budgets)}" failures="{failures}" '
        'errors="0">\n'
    )
    for check in outcome.budgets:
        classname = f"{phrases.dump_path(check.path)}: {check.module}"
        text = xml(phrases.budget(check))
        if check.exceeded and options.fail_on is not None:
            body = f'<failure type="budget" message="{text}"/>'
        else:
            body = f"<system-out>{text}</system-out>"
        case = f'<testcase classname="{xml(classname)}" name="budget {xml(check.budget.key)}">'
        yield f"    {case}{body}</testcase>\n"
    yield "  </testsuite>\n"


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
    number = len(problems)
    yield f'  <testsuite name="hlo-lint" tests="{number}" failures="0" errors="{number}">\n'
    for problem in problems:
        where = "hlo-lint" if problem.path is None else phrases.dump_path(problem.path)
        text = xml(phrases.problem(problem))
        case = f'<testcase classname="hlo-lint" name="{xml(where)}">'
        yield f'    {case}<error type="problem" message="{text}"/></testcase>\n'
    yield "  </testsuite>\n"
