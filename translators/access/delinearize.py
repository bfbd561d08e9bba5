"""Offsets in memory as indices of an array's dimensions.

An offset is written as the sum of each dimension's stride times an index, as an identity between
expressions. So the addresses are the same in every program and lane; what has to be proved is
that no index leaves its dimension, where it would name an element that the sum does not mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from translators.access.expression import (
    Affine,
    Interval,
    Lane,
    Symbol,
    Variable,
    constant,
    depends_on_data,
    leaves,
    of,
    total,
)
from translators.access.launch import Buffer
from translators.access.ranges import interval_under
from translators.access.states import Assumption, Assumptions
from translators.graph.graph import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A dimension of the array, or several that lie in memory as one.

    Attributes:
      axes: the array's axes that it is made of, the one of the largest stride first.
      size: how many positions it has.
      stride: elements between neighbouring positions; negative where the array runs backwards.
      index: the position.
      proved: whether `0 <= index < size` in every lane that the mask lets through; otherwise
        the kernel leaves the array, or the assumptions do not hold, where it is not so.
    """

    axes: tuple[int, ...]
    size: int
    stride: int
    index: Affine
    proved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where in the array an access goes.

    Attributes:
      dimensions: in the order of the array's first axis in each; the index along axes that are
        in none of them is 0. An array without elements, of which nothing may be accessed, has
        none.
      assumptions: what must hold besides those of the pointer.
    """

    dimensions: tuple[Dimension, ...]
    assumptions: Assumptions = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """That an offset was not taken apart.

    Attributes:
      reason: why, as a clause.
    """

    reason: str


def delinearize(offset: Affine, buffer: Buffer, facts: Sequence[Affine], op: Op) -> Position | Flat:
    """The offset as indices of the buffer's dimensions.

    Args:
      offset: elements from the first element of the array.
      buffer: the array.
      facts: what is at least zero in every lane that takes part.
      op: the access.
    """
    if 0 in buffer.shape:
        return Position(dimensions=())
    levels = _levels(buffer)
    if isinstance(levels, Flat):
        return levels
    # As if every axis ran forwards: from the element of the lowest address.
    backwards = [each for each in levels if buffer.strides[each.axes[0]] < 0]
    lowest = sum(each.stride * (each.size - 1) for each in backwards)
    assigned = _assign(offset.plus(lowest), levels)
    if isinstance(assigned, Flat):
        return assigned
    found = _validated(_moving(assigned, buffer), facts, op)
    return found if isinstance(found, Flat) else _turned(found, buffer)


def _levels(buffer: Buffer) -> list[Dimension] | Flat:
    """The dimensions that matter, the one of the largest stride first, all strides positive."""
    found = [
        Dimension(axes=(axis,), size=size, stride=abs(stride), index=constant(0))
        for axis, (size, stride) in enumerate(zip(buffer.shape, buffer.strides, strict=True))
        if stride
    ]
    found.sort(key=lambda each: (-each.stride, -each.size))
    kept: list[Dimension] = []
    span = 0
    for each in reversed(found):
        if each.stride > span and not (each.size == 1 and _has_stride(found, each.stride)):
            span += each.stride * (each.size - 1)
            kept.insert(0, each)
        elif each.size > 1:
            return Flat(reason=f"elements of `{buffer.name}` overlap in memory")
    return kept


def _has_stride(levels: Sequence[Dimension], stride: int) -> bool:
    """Whether a dimension of several positions has that stride."""
    return any(each.size > 1 and each.stride == stride for each in levels)


def _moving(levels: Sequence[Dimension], buffer: Buffer) -> list[Dimension]:
    """Without dimensions of a single position that is never left; at least one dimension."""
    found = [each for each in levels if each.size > 1 or each.index != constant(0)]
    if not found:
        axes = tuple(range(len(buffer.shape)))
        found.append(Dimension(axes=axes, size=1, stride=1, index=constant(0)))
    return found


def _turned(position: Position, buffer: Buffer) -> Position | Flat:
    """The position with the indices of axes that run backwards counted from their first element."""
    turned: list[Dimension] = []
    for each in position.dimensions:
        signs = {buffer.strides[axis] < 0 for axis in each.axes if buffer.shape[axis] > 1}
        if signs == {False, True}:
            return Flat(
                reason=f"dimensions {', '.join(map(str, each.axes))} of `{buffer.name}` lie in "
                "memory as one, but run in opposite directions"
            )
        if signs == {True}:
            index = each.index.times(-1).plus(each.size - 1)
            each = replace(each, stride=-each.stride, index=index)
        turned.append(each)
    return replace(position, dimensions=tuple(turned))


def _assign(offset: Affine, levels: list[Dimension]) -> list[Dimension] | Flat:
    """Each coefficient as a number in the mixed base of the strides."""
    terms: list[list[tuple[Variable, int]]] = [[] for _ in levels]
    numbers = [0 for _ in levels]
    for variable, coefficient in (*offset.terms, (None, offset.offset)):
        rest = coefficient
        for place, level in enumerate(levels):
            count = abs(rest) // level.stride * (1 if rest > 0 else -1)
            rest -= count * level.stride
            if variable is None:
                numbers[place] += count
            elif count:
                terms[place].append((variable, count))
        if rest:
            what = "the offset" if variable is None else f"`{variable}`"
            return Flat(
                reason=f"{what} moves by {coefficient} elements, which no strides add up to"
            )
    return [
        replace(level, index=total(parts, number))
        for level, parts, number in zip(levels, terms, numbers, strict=True)
    ]


def _validated(levels: list[Dimension], facts: Sequence[Affine], op: Op) -> Position | Flat:
    """Proves from the smallest stride up that no index leaves its dimension, or merges."""
    outer = list(levels)
    done: list[Dimension] = []
    assumptions: list[Assumption] = []
    while outer:
        level = outer.pop()
        interval = interval_under(level.index, facts)
        if interval is None or interval.within(Interval(0, level.size - 1)):
            done.append(replace(level, proved=True))
            continue
        if not outer:
            done.append(level)
            continue
        carried = _carry(outer[-1], level, interval)
        if carried is not None:
            outer[-1:] = carried
            continue
        contiguous = outer[-1].stride == level.stride * level.size
        in_one = contiguous and not (_has_lanes(outer[-1]) and _has_lanes(level))
        loaded = any(isinstance(leaf, Symbol) for leaf in leaves(level.index))
        if depends_on_data(level.index) and not (
            loaded and (in_one or not _may_stay(level, facts))
        ):
            assumptions.append(
                Assumption(
                    expression=level.index,
                    interval=Interval(0, level.size - 1),
                    reason=f"an index leaves dimension {level.axes[0]}",
                    op=op.name,
                    location=op.location,
                )
            )
            done.append(level)
            continue
        if not contiguous:
            return Flat(
                reason=f"`{level.index}` is in {interval} and leaves dimension {level.axes[0]} "
                f"of {level.size}, which is not contiguous with the next one"
            )
        outer[-1] = _merge(outer[-1], level)
    done.sort(key=lambda each: min(each.axes, default=0))
    return Position(dimensions=tuple(done), assumptions=tuple(assumptions))


def _has_lanes(level: Dimension) -> bool:
    return any(isinstance(leaf, Lane) for leaf in leaves(level.index))


def _may_stay(level: Dimension, facts: Sequence[Affine]) -> bool:
    """Whether an index that depends on data may stay in its dimension for more than one of them.

    Otherwise data count through the array as through one of another shape.
    """
    terms = level.index.terms
    led = [each for each in terms if any(isinstance(leaf, Symbol) for leaf in leaves(of(each[0])))]
    rest = total([each for each in terms if each not in led], level.index.offset)
    reach = interval_under(rest, facts)
    if reach is None:
        return True
    step = min(abs(factor) for _, factor in led)
    return reach.high - reach.low + step < level.size


def _carry(
    outer: Dimension, level: Dimension, interval: Interval
) -> tuple[Dimension, Dimension] | None:
    """Whole steps of the outer dimension taken out of the index; `None` if that does not help."""
    if outer.stride % level.stride:
        return None
    ratio = outer.stride // level.stride
    steps = interval.low // ratio
    if not steps or interval.high - steps * ratio >= level.size:
        return None
    return (
        replace(outer, index=outer.index.plus(steps)),
        replace(level, index=level.index.plus(-steps * ratio)),
    )


def _merge(outer: Dimension, level: Dimension) -> Dimension:
    return Dimension(
        axes=(*outer.axes, *level.axes),
        size=outer.size * level.size,
        stride=level.stride,
        index=outer.index.times(level.size) + level.index,
    )


def same_addresses(position: Position, offset: Affine) -> bool:
    """Whether the indices, times the strides, are the offset."""
    parts = constant(0)
    for dimension in position.dimensions:
        parts = parts + dimension.index.times(dimension.stride)
    return parts == offset
