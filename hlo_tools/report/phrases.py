"""The sentences that the formats for people share."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from hlo_tools.budgets import BudgetCheck
from hlo_tools.findings import Finding, ModuleSummary, Outcome, Problem, Severity, UnusedSuppression
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report.escape import visible
from hlo_tools.report.units import count, format_bytes, format_seconds, format_share
from hlo_tools.report.view import ReportOptions, Tally, exceeded

# A baseline that is out of date has many stale entries, which a person need not see one by one.
_MAX_UNUSED_PER_FILE = 5

ModuleKey = tuple[str, str]


def modules_by_key(outcome: Outcome) -> Mapping[ModuleKey, ModuleSummary]:
    """Returns the modules by path and name; the first one where a file repeats a name."""
    modules: dict[ModuleKey, ModuleSummary] = {}
    for module in outcome.modules:
        modules.setdefault((module.path, module.name), module)
    return modules


def dump_path(path: str) -> str:
    """Returns the path of a dump as it is shown."""
    return "<stdin>" if path == "-" else visible(path)


def dump_place(path: str, line: int | None) -> str:
    """Returns `dump.txt:123`."""
    return f"{dump_path(path)}:{line}" if line else dump_path(path)


def source_place(location: SourceLocation, options: ReportOptions) -> str:
    """Returns `model.py:22:8`, as far as it is known."""
    place = visible(options.display(location.file))
    if location.line:
        place += f":{location.line}"
        if location.column:
            place += f":{location.column}"
    return place


def place(finding: Finding, options: ReportOptions) -> str:
    """Returns the place that heads a finding: the user's own, or else that in the dump."""
    if finding.source is None:
        return dump_place(finding.path, finding.hlo_line)
    return source_place(finding.source, options)


def instruction(finding: Finding) -> str:
    """Returns ``instruction `%x` in computation `y` (dump.txt:123)`` without the backticks."""
    name = visible(finding.instruction).removeprefix("%")
    computation = visible(finding.computation).removeprefix("%")
    where = dump_place(finding.path, finding.hlo_line)
    return f"instruction %{name} in computation {computation} ({where})"


def cost(finding: Finding, module: ModuleSummary | None) -> str:
    """Returns `moves 1.2 GB, 900 µs of 14.1 ms per step (6.4 %), v5e`, as far as it is known.

    `Cost.share` may be a share of traffic or memory; it stands with the figure it belongs to.
    """
    spent = finding.cost
    step = module.step_seconds if module else None
    parts: list[str] = []
    time_share = None
    if spent.seconds is not None and step:
        time_share = spent.seconds / step
    share = None if spent.share is None else format_share(spent.share)
    share_is_time = time_share is not None and format_share(time_share) == share
    if spent.bytes:
        amount = f"{visible(spent.effect)} {format_bytes(spent.bytes)}"
        if share is not None and not share_is_time:
            amount += f" ({share}{_OF_WHAT.get(spent.effect, '')})"
        if spent.times_per_step is not None and spent.times_per_step > 1:
            amount += f" in {count(spent.times_per_step, 'execution')}"
        parts.append(amount)
    if spent.seconds is not None:
        time = format_seconds(spent.seconds)
        if step:
            time += f" of {format_seconds(step)}"
        time += " per step"
        if time_share is not None:
            time += f" ({format_share(time_share)})"
        parts.append(time)
    if not spent.bytes and share is not None and not share_is_time:
        parts.append(f"{share} of the step")
    if parts and module and module.chip:
        parts.append(visible(module.chip))
    return ", ".join(parts) if parts else "not established"


_OF_WHAT = {"moves": " of traffic", "holds": " of memory"}


def summary(outcome: Outcome, totals: Tally, options: ReportOptions) -> str:
    """Returns the line that ends a report."""
    numbers = totals.by_severity
    visible_severities = [
        severity
        for severity in sorted(Severity, reverse=True)
        if severity > Severity.NOTE or options.show_notes
    ]
    total = sum(numbers[severity] for severity in visible_severities)
    kinds = [
        count(numbers[severity], severity.label)
        for severity in visible_severities
        if numbers[severity]
    ]
    aside = []
    if numbers[Severity.NOTE] and not options.show_notes:
        aside.append(f"{count(numbers[Severity.NOTE], 'note')} hidden")
    if totals.suppressed > totals.known:
        aside.append(f"{totals.suppressed - totals.known:,} suppressed")
    if totals.known:
        aside.append(f"{totals.known:,} known from the old dumps")
    inside = "; ".join(part for part in (", ".join(kinds), ", ".join(aside)) if part)
    text = count(total, "finding") if total else "No findings"
    if inside:
        text += f" ({inside})"
    text += f" in {_modules(outcome)}"
    if over := exceeded(outcome):
        text += f"; {count(len(over), 'budget')} exceeded"
    if outcome.problems:
        text += f"; {count(len(outcome.problems), 'problem')}"
    return text


def _modules(outcome: Outcome) -> str:
    modules = outcome.modules
    truncated = sum(module.truncated for module in modules)
    text = count(len(modules), "module")
    if truncated:
        text += " (truncated)" if len(modules) == 1 else f" ({truncated:,} truncated)"
    assumed = sorted({visible(m.chip) for m in modules if m.chip and m.chip_assumed})
    if len(modules) == 1 and modules[0].step_seconds is not None:
        text += f"; modelled step {format_seconds(modules[0].step_seconds)}"
        if modules[0].chip:
            text += f" on {visible(modules[0].chip)}" + (" (assumed)" if assumed else "")
    elif assumed:
        text += f"; chip {', '.join(assumed)} (assumed)"
    return text


def problem(item: Problem) -> str:
    """Returns `dump.txt:3: error: message`."""
    where = f"{dump_place(item.path, item.line)}: " if item.path is not None else ""
    return f"{where}error: {visible(item.message)}"


def unused(item: UnusedSuppression) -> str:
    """Returns one line about a suppression that silenced nothing."""
    kind = {"source": "comment", "config": "entry", "baseline": "baseline entry"}.get(
        item.kind, visible(item.kind)
    )
    where = dump_place(item.file, item.line)
    return f"{where}: unused suppression: {kind} `{visible(item.text)}` silences nothing"


def remarks(outcome: Outcome) -> Iterator[str]:
    """Yields what a person must know beside the findings, one line each."""
    for module in outcome.modules:
        name = f"{dump_path(module.path)}: module `{visible(module.name)}`"
        if module.truncated:
            yield f"{name} is truncated; what was read of it is linted"
        if not module.optimized:
            yield (
                f"{name} is not optimised yet: lint what the compiler made of it, for example the "
                "`*.after_optimizations.txt` beside it"
            )
        if module.opaque_calls:
            calls = count(module.opaque_calls, "custom call")
            yield f"{name}: {calls} of unknown arithmetic, priced by the bytes moved alone"
        if module.unknown_trip_counts:
            loops = count(module.unknown_trip_counts, "loop")
            yield f"{name}: {loops} of unknown trip count, taken to run once"
    for file, group in groupby(outcome.unused_suppressions, key=lambda item: item.file):
        items = list(group)
        for item in items[:_MAX_UNUSED_PER_FILE]:
            yield unused(item)
        if len(items) > _MAX_UNUSED_PER_FILE:
            more = count(len(items) - _MAX_UNUSED_PER_FILE, "more unused suppression")
            yield f"{dump_path(file)}: {more}"
    for failure in outcome.problems:
        yield problem(failure)


def why_suppressed(reason: str) -> str:
    """Returns why a finding is not reported."""
    if reason == "against":
        return "the dumps that these are held against have it too"
    return f"suppressed by {visible(reason)}"


def budget(check: BudgetCheck) -> str:
    """Returns ``peak-hbm 538 MB of 500 MB, exceeded by 7.6 %`` or how much of it is left."""
    return f"{visible(check.budget.key)} {budget_state(check)}"


def budget_state(check: BudgetCheck) -> str:
    """Returns how a budget stands, without its name."""
    shown, margin = check.budget.shown, check.margin
    text = f"{shown(check.value)} of {shown(check.budget.limit)}, "
    if check.exceeded:
        return text + ("exceeded" if margin is None else f"exceeded by {format_share(-margin)}")
    if not margin:
        return text + ("kept" if margin is None else "used up")
    return text + f"{format_share(margin)} left"


def statistics(totals: Tally) -> Iterator[str]:
    """Yields a table of how often each rule fired and what its findings cost together."""
    rows = sorted(totals.rules, key=lambda rule: (-rule.seconds, -rule.findings, rule.id))
    width = max((len(f"{rule.findings:,}") for rule in rows), default=1)
    for rule in rows:
        seconds = format_seconds(rule.seconds)
        yield f"{rule.findings:>{width},}  {seconds:>8}  {visible(rule.id)} {visible(rule.rule)}"
