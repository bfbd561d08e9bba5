"""Reductions and scans of integers: what bounds each element, where that bounds the result."""

from translators.access.expression import Interval, of
from translators.access.knowledge import Knowledge, state_axes
from translators.access.states import Integer
from translators.access.transfer import results
from translators.graph.graph import Op, Region, Value
from translators.graph.types import IntType, element_of, shape_of

FOLDS = frozenset(("tt.reduce", "tt.scan"))
_REASON = "combines elements of a tensor"


def fold(op: Op, known: Knowledge) -> None:
    """Takes down the states of the results of a reduction or a scan."""
    spans = [_range(each, known) for each in op.operands]
    kept = _kept(op.regions[0], spans, known)
    moving = _moving(op, known)
    for place, (result, span) in enumerate(zip(op.results, spans, strict=True)):
        interval = span if place in kept else _summed(op, span)
        state = known.bare(
            result, _REASON, op=op.name, location=op.location, moving=moving, interval=interval
        )
        if state is not None:
            known.put(result, state)


def _range(value: Value, known: Knowledge) -> Interval | None:
    element = element_of(value.type)
    if not isinstance(element, IntType) or element.width == 1:
        return None
    return known.range_of(value)


def _kept(region: Region, spans: list[Interval | None], known: Knowledge) -> frozenset[int]:
    """Which results lie between what the elements lie: two such elements give another one.

    It holds of minima, maxima and choices. All are tried together, and then without those that
    failed, until what is assumed of the region's arguments is what it gives.
    """
    count = len(spans)
    inside = [*region.arguments, *(each for op in region.ops for each in op.results)]
    kept = frozenset(place for place, span in enumerate(spans) if span is not None)
    if any(op.regions for op in region.ops):
        return frozenset()
    while kept:
        known.forget(inside)
        for place in sorted(kept):
            for argument in region.arguments[place::count]:
                symbol = known.symbol(argument, "is an element", interval=spans[place])
                known.put(argument, Integer(expression=of(symbol)))
        for op in region.ops[:-1]:
            results(op, known)
        held = frozenset(
            place
            for place, value in enumerate(region.terminator.operands)
            if place in kept and _within(value, spans[place], known)
        )
        if held == kept:
            return kept
        kept = held
    known.forget(inside)
    return kept


def _within(value: Value, span: Interval | None, known: Knowledge) -> bool:
    return span is not None and known.range_of(value).within(span)


def _summed(op: Op, span: Interval | None) -> Interval | None:
    """Between what a sum of the elements lies, unless it wraps around."""
    region = op.regions[0]
    first, *rest = region.ops
    element = element_of(op.operands[0].type)
    adds = (
        first.name == "arith.addi"
        and len(rest) == 1
        and set(first.operands) == set(region.arguments)
        and region.terminator.operands == first.results
    )
    # Whoever sums in 64 bits asked for the width.
    if span is None or not adds or not isinstance(element, IntType) or element.width > 32:
        return None
    count = shape_of(op.operands[0].type)[op.integer("axis")]
    least = 1 if op.name == "tt.scan" else count
    ends = [end * many for end in (span.low, span.high) for many in (least, count)]
    found = Interval(min(ends), max(ends))
    return found if found.within(Interval(element.smallest, element.largest)) else None


def _moving(op: Op, known: Knowledge) -> frozenset[int] | None:
    """The axes along which the results move."""
    axis = op.integer("axis")
    found: set[int] = set()
    for operand in op.operands:
        axes = state_axes(known.get(operand))
        if axes is None:
            return None
        found |= axes
    if op.name == "tt.scan":
        return frozenset((*found, axis))
    return frozenset(each - (each > axis) for each in found if each != axis)
