"""The report of a comparison for people: totals first, then the causes by seconds lost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_tools.comparison import (
    Cause,
    ComparedModule,
    Comparison,
    LiveChange,
    ModuleComparison,
    Side,
)
from hlo_tools.figures import Figures
from hlo_tools.report import phrases
from hlo_tools.report.escape import defuse, visible, wrap
from hlo_tools.report.terminal import (
    BOLD,
    CYAN,
    GREEN,
    MIN_WIDTH,
    RED,
    Painter,
    labelled,
    paragraph,
    source_excerpt,
)
from hlo_tools.report.units import count, format_bytes, format_seconds, format_share
from hlo_tools.report.view import ReportOptions

SMALL = 0.001
"""Causes below this share of the longer step, or without seconds of the traffic, are counted only
unless notes are shown; buffers likewise by the peak."""

NEARLY = 1e-4
"""Totals that differ by less than this share are said to be nearly the same."""

_MAX_SIDES = 3
_MAX_LIVE = 8
_PLURALS = {"argument": "arguments", "output": "outputs", "temporary": "temporaries"}


def render(comparison: Comparison, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces."""
    paint = Painter(enabled=options.color)
    for module in comparison.modules:
        yield from _module(module, options, paint)
    yield paragraph(_alone(comparison))
    yield paint(BOLD, defuse(summary(comparison))) + "\n"


def summary(comparison: Comparison) -> str:
    """Returns the line that ends a report."""
    modules = comparison.modules
    text = f"{count(len(modules), 'module')} compared"
    changed = [m for m in modules if m.causes or m.live]
    text += f", {len(changed):,} changed" if changed else ", no difference"
    if comparison.allowed is not None:
        allowed = format_share(comparison.allowed)
        regressed = comparison.regressed
        if regressed:
            text += f"; {count(len(regressed), 'step')} slower by more than {allowed}"
        else:
            text += f"; no step is slower by more than {allowed}"
    if comparison.problems:
        text += f"; {count(len(comparison.problems), 'problem')}"
    return text


def _alone(comparison: Comparison) -> Iterator[str]:
    for path, name in comparison.only_old:
        yield f"{phrases.dump_path(path)}: module `{visible(name)}` is in the old dumps only"
    for path, name in comparison.only_new:
        yield f"{phrases.dump_path(path)}: module `{visible(name)}` is in the new dumps only"
    for problem in comparison.problems:
        yield phrases.problem(problem)


def _module(module: ModuleComparison, options: ReportOptions, paint: Painter) -> Iterator[str]:
    width = max(MIN_WIDTH, options.width)
    yield paragraph(_head(module, paint))
    floor = _Floor.of(module, show_all=options.show_notes)
    shown = [cause for cause in module.causes if floor.shows(cause)]
    for cause in shown:
        yield paragraph(_cause(cause, module, options, width, paint))
    hidden = [cause for cause in module.causes if not floor.shows(cause)]
    yield paragraph(_hidden(hidden))
    yield paragraph(_memory(module, options, width, paint))


def _head(module: ModuleComparison, paint: Painter) -> Iterator[str]:
    old, new = module.old, module.new
    names = visible(new.name)
    if old.name != new.name:
        names = f"{visible(old.name)} -> {names}"
    yield paint(BOLD, names) + _chips(old, new)
    yield f"  old: {phrases.dump_path(old.path)}"
    yield f"  new: {phrases.dump_path(new.path)}"
    rows = list(_rows(old.figures, new.figures))
    if not module.causes and not module.live:
        paired = new.instructions - new.unmatched
        yield f"  no difference: {count(paired, 'instruction')} that run cost what they did"
        rows = rows[:1]
    name_width = max((len(row.name) for row in rows), default=0)
    old_width = max((len(row.old) for row in rows), default=0)
    new_width = max((len(row.new) for row in rows), default=0)
    for row in rows:
        line = f"  {row.name:<{name_width}}  {row.old:>{old_width}} -> {row.new:>{new_width}}"
        color = {True: RED, False: GREEN, None: ""}[row.worse]
        yield line + (f"  {paint(color, row.change)}" if row.change else "")
    yield from _remarks(old, "old")
    yield from _remarks(new, "new")


def _chips(old: ComparedModule, new: ComparedModule) -> str:
    def told(module: ComparedModule) -> str:
        assumed = " (assumed)" if module.chip_assumed else ""
        return f"{visible(module.chip)}{assumed}" if module.chip else ""

    if told(old) == told(new):
        return f", {told(new)}" if new.chip else ", no chip: give one with --chip to have seconds"
    return f", {told(old) or 'no chip'} -> {told(new) or 'no chip'}: two chips, not one"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A line of the totals; `worse` is `None` where it is neither better nor worse."""

    name: str
    old: str
    new: str
    change: str = ""
    worse: bool | None = None


def _rows(old: Figures, new: Figures) -> Iterator[_Row]:
    """The step, the peak of memory, and what else changed."""
    if old.step_seconds is not None and new.step_seconds is not None:
        yield _row("modelled step", old.step_seconds, new.step_seconds, seconds=True)
    exposed = old.exposed_collective_seconds, new.exposed_collective_seconds
    if exposed[0] is not None and exposed[1] is not None and exposed[0] != exposed[1]:
        yield _row("waiting for collectives", exposed[0], exposed[1], seconds=True)
    for name, before, after in (
        ("peak memory", old.peak_hbm_bytes, new.peak_hbm_bytes),
        ("HBM traffic", old.hbm_bytes, new.hbm_bytes),
        ("sent in collectives", old.wire_bytes, new.wire_bytes),
        ("padding in HBM", old.padding_bytes, new.padding_bytes),
    ):
        if before != after or name == "peak memory":
            yield _row(name, before, after)
    before_kinds, after_kinds = dict(old.collectives), dict(new.collectives)
    for kind in sorted(before_kinds | after_kinds):
        a, b = before_kinds.get(kind, 0), after_kinds.get(kind, 0)
        if a != b:
            yield _Row(name=f"{visible(kind)} in the text", old=f"{a:,}", new=f"{b:,}")


def _row(name: str, before: float, after: float, *, seconds: bool = False) -> _Row:
    if seconds:
        texts = format_seconds(before), format_seconds(after)
    else:
        texts = format_bytes(int(before)), format_bytes(int(after))
    return _Row(
        name=name,
        old=texts[0],
        new=texts[1],
        change=_change(before, after),
        worse=None if before == after else after > before,
    )


def _change(before: float, after: float) -> str:
    if before == after:
        return "as before"
    if not before:
        return "from nothing"
    share = after / before - 1.0
    if abs(share) < NEARLY:
        return "nearly as before"
    return ("+" if share > 0 else "-") + format_share(abs(share))


def _remarks(module: ComparedModule, side: str) -> Iterator[str]:
    if module.truncated:
        yield f"  the {side} dump is truncated: its totals are of what was read"
    if module.unknown_trip_counts:
        loops = count(module.unknown_trip_counts, "loop")
        yield f"  {side}: {loops} of unknown trip count, taken to run once"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Floor:
    """What is too small to be shown."""

    seconds: float
    bytes: float

    @classmethod
    def of(cls, module: ModuleComparison, *, show_all: bool) -> "_Floor":
        if show_all:
            return cls(seconds=0.0, bytes=0.0)
        steps = (module.old.figures.step_seconds or 0.0, module.new.figures.step_seconds or 0.0)
        moved = max(module.old.figures.hbm_bytes, module.new.figures.hbm_bytes)
        no_chip = not any(steps)
        return cls(
            seconds=float("inf") if no_chip else SMALL * max(steps),
            bytes=SMALL * moved if no_chip else float("inf"),
        )

    def shows(self, cause: Cause) -> bool:
        return abs(cause.seconds) >= self.seconds or abs(cause.hbm_bytes) >= self.bytes


def _cause(
    cause: Cause, module: ModuleComparison, options: ReportOptions, width: int, paint: Painter
) -> Iterator[str]:
    worse = cause.seconds > 0 or (not cause.seconds and cause.hbm_bytes > 0)
    color = RED if worse else GREEN
    amount, place = paint(color, _amount(cause, module)), _place(cause, module, options, paint)
    yield f"{amount}  {place}: {paint(CYAN, visible(cause.kind))}"
    for line in wrap(visible(cause.message), width - 2):
        yield "  " + line
    if cause.source_is_new:
        yield from source_excerpt(cause.source, options, width=width, paint=paint, color=color)
    if cause.op_name:
        yield from labelled("op", visible(cause.op_name), width, paint)
    if cause.hbm_bytes and cause.seconds:
        more = "more" if cause.hbm_bytes > 0 else "less"
        text = f"{format_bytes(abs(cause.hbm_bytes))} {more} through device memory"
        yield from labelled("hbm", text, width, paint)
    for label, sides in (
        ("old", [change.old for change in cause.changes if change.old is not None]),
        ("new", [change.new for change in cause.changes if change.new is not None]),
    ):
        if sides:
            yield from labelled(label, _sides(sides), width, paint)


def _amount(cause: Cause, module: ModuleComparison) -> str:
    step = module.old.figures.step_seconds
    if not cause.seconds:
        sign = "+" if cause.hbm_bytes > 0 else "-" if cause.hbm_bytes < 0 else ""
        return f"{sign}{format_bytes(abs(cause.hbm_bytes))}"
    sign = "+" if cause.seconds > 0 else "-"
    text = f"{sign}{format_seconds(abs(cause.seconds))}"
    return f"{text} ({sign}{format_share(abs(cause.seconds) / step)})" if step else text


def _place(cause: Cause, module: ModuleComparison, options: ReportOptions, paint: Painter) -> str:
    if cause.source is not None:
        place = paint(BOLD, phrases.source_place(cause.source, options))
        if cause.source.inferred:
            place += " (inferred)"
        return place if cause.source_is_new else f"{place} (old)"
    change = cause.changes[0]
    side, name = (change.new, "new") if change.new is not None else (change.old, "old")
    return paint(BOLD, f"line {side.hlo_line if side is not None else 0} of the {name} dump")


def _sides(sides: Sequence[Side]) -> str:
    parts = []
    for side in sides[:_MAX_SIDES]:
        told = [format_seconds(side.seconds)] if side.seconds else []
        told += [format_bytes(side.hbm_bytes)] if side.hbm_bytes else []
        told += [f"{side.times_per_step:,} runs"] if side.times_per_step != 1 else []
        told.append(f"line {side.hlo_line}")
        parts.append(f"%{visible(side.instruction)} ({', '.join(told)})")
    if len(sides) > _MAX_SIDES:
        parts.append(f"{len(sides) - _MAX_SIDES:,} more")
    return "; ".join(parts)


def _hidden(causes: Sequence[Cause]) -> Iterator[str]:
    if not causes:
        return
    lost = sum(cause.seconds for cause in causes if cause.seconds > 0)
    won = -sum(cause.seconds for cause in causes if cause.seconds < 0)
    text = f"{count(len(causes), 'smaller change')} hidden (--show-notes shows them)"
    yield f"{text}: +{format_seconds(lost)}, -{format_seconds(won)}" if lost or won else text


def _memory(
    module: ModuleComparison, options: ReportOptions, width: int, paint: Painter
) -> Iterator[str]:
    before, after = module.old.figures.peak_hbm_bytes, module.new.figures.peak_hbm_bytes
    least = 0.0 if options.show_notes else SMALL * max(before, after)
    live = [c for c in module.live if abs(c.new_bytes - c.old_bytes) >= least]
    if not live:
        return
    yield paint(
        BOLD, f"Live at the fullest moment: {format_bytes(before)} -> {format_bytes(after)}"
    )
    donated = module.old.donated, module.new.donated
    if donated[0] != donated[1]:
        outputs = count(donated[1], "output")
        yield f"  {outputs} in the place of donated arguments, it was {donated[0]:,}"
    for change in live[:_MAX_LIVE]:
        yield from _live(change, options, width)
    if len(live) > _MAX_LIVE:
        yield f"  {count(len(live) - _MAX_LIVE, 'more type')} of buffers"


def _live(change: LiveChange, options: ReportOptions, width: int) -> Iterator[str]:
    grown = change.new_bytes - change.old_bytes
    amount = ("+" if grown > 0 else "-") + format_bytes(abs(grown))
    many = f"no {change.kind}"
    if change.new_count:
        kind = change.kind if change.new_count == 1 else _PLURALS.get(change.kind, change.kind)
        many = f"{change.new_count:,} {kind}"
    text = f"{many} `{visible(change.shape)}`"
    if change.new_count != change.old_count:
        text += f", it was {change.old_count:,}" if change.old_count else ", there was none"
    text += f": %{visible(change.instruction)}"
    if change.source is not None:
        text += f", {phrases.source_place(change.source, options)}"
    lines = wrap(text, width - 12)
    yield f"  {amount:>8}  {lines[0]}"
    for line in lines[1:]:
        yield " " * 12 + line
