"""How regular an access is, and what decided that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise

from translators.access.delinearize import Dimension
from translators.access.expression import (
    Affine,
    Derivation,
    Derived,
    Lane,
    Symbol,
    Variable,
    axes,
    derived_in,
    leaves,
    total,
)
from translators.graph.graph import Op
from translators.graph.location import SourceLocation


class AccessClass(IntEnum):
    """From the best to the worst.

    `BLOCK` is a tile whose start is a multiple of its length; `SLICE` starts or steps otherwise,
    but as the launch fixes it; the start of `DATA_START` depends on data; `GATHERED` reads along
    one dimension in an order of its own; `IRREGULAR` is the rest.
    """

    BLOCK = 0
    SLICE = 1
    DATA_START = 2
    GATHERED = 3
    IRREGULAR = 4

    @property
    def label(self) -> str:
        """As reports call it."""
        return _LABELS[self]


_LABELS = {
    AccessClass.BLOCK: "block",
    AccessClass.SLICE: "affine slice",
    AccessClass.DATA_START: "data-dependent start",
    AccessClass.GATHERED: "one gathered dimension",
    AccessClass.IRREGULAR: "irregular",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why an access is not of the best class.

    Attributes:
      text: a clause that names the op.
      op: the op that decided it.
      location: the kernel's line.
    """

    text: str
    op: str
    location: SourceLocation | None

    def __str__(self) -> str:
        return f"{self.text} ({self.location})" if self.location else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A digit of a lane: `lane // unit % extent`.

    Attributes:
      axis: the axis of the access.
      unit: 1 for the lane itself.
      extent: how many values it takes.
    """

    axis: int
    unit: int
    extent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What an access touches along a dimension.

    Attributes:
      kind: the class of the access if this were its only dimension.
      start: the index of the first position; the same in all lanes.
      length: how many positions; 0 if they are gathered.
      step: between one and the next, in runs where there are holes between; 0 if they are gathered.
      parts: the lanes that count the positions, the outermost first.
      steps: for each part, between positions that differ by one in it.
      reason: why it is no block.
    """

    kind: AccessClass
    start: Affine
    length: int
    step: int
    parts: tuple[Part, ...] = ()
    steps: tuple[int, ...] = ()
    reason: Reason | None = None

    @property
    def even(self) -> bool:
        """Whether all positions are `step` apart, so that they are a range."""
        length = 1
        for part, step in zip(reversed(self.parts), reversed(self.steps), strict=True):
            if step != self.step * length:
                return False
            length *= part.extent
        return True


def tile_of(dimension: Dimension, op: Op) -> Tile:
    """The tile of an access along a dimension."""
    index = dimension.index
    moving = [term for term in index.terms if axes(term[0])]
    start = index - total(moving)
    parts: list[tuple[Part, int]] = []
    for variable, coefficient in moving:
        part = part_of(variable)
        if part is None:
            return _gathered(start, _blame(variable, op))
        parts.append((part, coefficient))
    parts.sort(key=lambda each: -abs(each[1]))
    length, reach = 1, 1
    for part, coefficient in reversed(parts):
        if abs(coefficient) < reach:
            text = f"`{op.name}` adds positions `{total(moving)}` that do not count through a range"
            return _gathered(start, Reason(text=text, op=op.name, location=op.location))
        length, reach = length * part.extent, reach + abs(coefficient) * (part.extent - 1)
    tile = Tile(
        kind=AccessClass.SLICE,
        start=start,
        length=length,
        step=parts[-1][1] if parts else 1,
        parts=tuple(part for part, _ in parts),
        steps=tuple(coefficient for _, coefficient in parts),
    )
    kind, reason = _regularity(tile, op)
    return replace(tile, kind=kind, reason=reason)


def _gathered(start: Affine, reason: Reason) -> Tile:
    return Tile(kind=AccessClass.GATHERED, start=start, length=0, step=0, reason=reason)


def _regularity(tile: Tile, op: Op) -> tuple[AccessClass, Reason | None]:
    start, length = tile.start, tile.length
    # How often a loop runs may depend on data all the same: that is for the loop to say.
    symbol = next((each for each in leaves(start) if isinstance(each, Symbol)), None)
    if symbol is not None:
        return AccessClass.DATA_START, _blame(symbol, op)
    if not tile.even:
        text = f"`{op.name}` leaves holes between the positions that it counts through"
        return AccessClass.SLICE, Reason(text=text, op=op.name, location=op.location)
    if tile.step != 1:
        text = f"`{op.name}` steps by {tile.step} along the dimension"
        return AccessClass.SLICE, Reason(text=text, op=op.name, location=op.location)
    if not start.divisible_by(length):
        text = f"`{op.name}` starts at `{start}`, which is not a multiple of {length}"
        return AccessClass.SLICE, Reason(text=text, op=op.name, location=op.location)
    return AccessClass.BLOCK, None


def part_of(variable: Variable) -> Part | None:
    """The digit of a lane that a variable is; `None` if it is none."""
    chain: list[Derived] = []
    while isinstance(variable, Derived):
        chain.append(variable)
        match variable.left:
            case Affine(terms=((inner, 1),), offset=0):
                variable = inner
            case _:
                return None
    if not isinstance(variable, Lane):
        return None
    unit, extent = 1, variable.extent
    for each in reversed(chain):
        divisor = each.right.value
        if divisor is None or extent % divisor:
            return None
        if each.derivation is Derivation.FLOOR_DIVIDE:
            unit, extent = unit * divisor, extent // divisor
        elif each.derivation is Derivation.REMAINDER:
            extent = divisor
        else:
            return None
    return Part(axis=variable.axis, unit=unit, extent=extent)


def _blame(variable: Variable, op: Op) -> Reason:
    """The op behind a variable that is no lane."""
    inside = Affine(terms=((variable, 1),))
    symbols = [each for each in leaves(inside) if isinstance(each, Symbol)]
    if symbols:
        symbol = symbols[0]
        named = f"`{symbol.op}`: " if symbol.op else ""
        return Reason(
            text=f"{named}`{symbol.name}` {symbol.reason}",
            op=symbol.op or op.name,
            location=symbol.location or op.location,
        )
    derived = derived_in(inside)[-1]
    text = f"`{derived.op}`: `{derived}` does not run through the lanes in order"
    return Reason(text=text, op=derived.op, location=derived.location)


def classify(
    tiles: Sequence[Tile], dimensions: Sequence[Dimension], op: Op
) -> tuple[AccessClass, tuple[Reason, ...]]:
    """The class of an access with these tiles, and what decided it."""
    worst = max((each.kind for each in tiles), default=AccessClass.BLOCK)
    reasons = tuple(each.reason for each in tiles if each.kind is worst and each.reason is not None)
    gathered = [each for each in tiles if each.kind is AccessClass.GATHERED]
    if len(gathered) > 1:
        return AccessClass.IRREGULAR, reasons
    for axis in _shared_axes(tiles, dimensions):
        text = f"`{op.name}` moves along several dimensions at once with axis {axis} of its lanes"
        shared = Reason(text=text, op=op.name, location=op.location)
        return AccessClass.IRREGULAR, (*reasons, shared)
    return worst, reasons


def _shared_axes(tiles: Sequence[Tile], dimensions: Sequence[Dimension]) -> Iterator[int]:
    """Axes that move several dimensions, other than by digits that are independent."""
    users: dict[int, list[Part | None]] = {}
    for tile, dimension in zip(tiles, dimensions, strict=True):
        if tile.kind is AccessClass.GATHERED:
            for axis in sorted(axes(dimension.index)):
                users.setdefault(axis, []).append(None)
        for part in tile.parts:
            users.setdefault(part.axis, []).append(part)
    for axis, parts in users.items():
        digits = sorted((each.unit, each.unit * each.extent) for each in parts if each)
        apart = all(end <= start for (_, end), (start, _) in pairwise(digits))
        if len(parts) > 1 and (None in parts or not apart):
            yield axis
