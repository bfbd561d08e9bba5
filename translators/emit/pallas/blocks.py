"""How long the blocks of a step are: what suits a TPU, in the place of what suited a GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from translators.access.analysis import Access, Analysis
from translators.access.expression import Affine, Digit, Iteration, leaves, total
from translators.access.states import Pointer
from translators.emit.merging import Blocks, Chooser
from translators.graph.graph import Module, walk
from translators.graph.types import (
    ElementType,
    FloatType,
    IntType,
    PointerType,
    bit_width,
    element_of,
)

_LEAST = 128
_LEAST_STEPS = 4
_INNER = 1024
# What the blocks of a step take where nothing is multiplied: larger steps win nothing, and the
# first of them is waited for.
_STREAMED_BYTES = 4 << 20
_MOST_ELEMENTS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How large a step may be: halved until what it needs fits into vector memory.

    The figures are where the model of docs/kernel-model.md is flat: larger steps win nothing.

    Attributes:
      rows: of the product of a step.
      columns: of the product of a step.
      elements: of a block where a kernel goes through memory once.
      row: elements of the longest row of such a block.
      programs: how many programs a step has at the most.
      inner: of what the products of a step sum over; all of it where it is not said.
      carried: how many iterations of a loop a step does that carries more than sums; 0 for all.
    """

    rows: int = 2048
    columns: int = 512
    elements: int = 1 << 19
    row: int = 1 << 11
    programs: int = 512
    inner: int | None = None
    carried: int = 0

    @property
    def half(self) -> "Room":
        """Half of the room."""
        return replace(
            self,
            rows=max(_LEAST, self.rows // 2),
            columns=max(_LEAST, self.columns // 2),
            elements=self.elements // 2,
            row=max(_LEAST, self.row // 2),
            programs=max(8, self.programs // 2),
        )

    @property
    def in_parts(self) -> "Room":
        """Room for a part of what products sum over."""
        return replace(self, rows=2 * self.columns, columns=2 * self.columns, inner=_INNER)

    def in_iterations(self, count: int) -> "Room":
        """Room for some iterations of a loop, of each of which there are values."""
        return replace(self, rows=self.columns, columns=self.columns // 2, carried=count)

    @property
    def least(self) -> bool:
        """Whether there is no less."""
        return self.elements <= _LEAST * 8


def room_for(module: Module, analysis: Analysis) -> Room:
    """How large the steps of a kernel may be, if they fit into vector memory.

    Args:
      module: the kernel.
      analysis: its accesses.
    """
    if _multiplies(module):
        return Room()
    streams: dict[tuple[int, Affine], tuple[int, int]] = {}
    for access in analysis.accesses:
        pointee = _pointee(access)
        if isinstance(access.pointer, Pointer) and pointee is not None:
            offset = access.pointer.offset
            # Places of memory that several loops go through are counted once.
            key = (access.pointer.argument, _without_loops(offset))
            streams[key] = (_places(offset), bit_width(pointee))
    most = max((places for places, _ in streams.values()), default=0)
    bits = sum(bits for places, bits in streams.values() if places == most)
    if not bits:
        return Room()
    return Room(elements=min(_MOST_ELEMENTS, 1 << (_STREAMED_BYTES * 8 // bits).bit_length() - 1))


def _places(offset: Affine) -> int:
    """Through how many places of memory the whole grid goes."""
    return prod(leaf.interval.high - leaf.interval.low + 1 for leaf in set(leaves(offset)))


def _without_loops(offset: Affine) -> Affine:
    kept = [(each, by) for each, by in offset.terms if not isinstance(each, Iteration)]
    return total(kept).plus(offset.offset)


def _pointee(access: Access) -> ElementType | None:
    pointer = element_of(access.op.operands[0].type)
    pointee = pointer.pointee if isinstance(pointer, PointerType) else None
    return pointee if isinstance(pointee, IntType | FloatType) else None


def _multiplies(module: Module) -> bool:
    return any(op.name == "tt.dot" for op in walk(module.kernel.body))


def chooser(module: Module, room: Room) -> Chooser:
    """How to choose blocks for a kernel."""

    def of_products(blocks: Sequence[Blocks]) -> Mapping[Digit, int]:
        # Where one is chosen alone the other is short, as the kernel has it.
        columns = 2 * room.columns if len(blocks) == 1 else room.columns
        found = {each.digit: _length(each, columns if each.minor else room.rows) for each in blocks}
        steps = prod(-(-each.whole // found[each.digit]) for each in blocks)
        if steps < _LEAST_STEPS and room.rows > room.columns:
            # The first step waits for its blocks to arrive: with few steps that is most of all.
            found |= {each.digit: _length(each, room.columns) for each in blocks}
        return found

    def of_streams(blocks: Sequence[Blocks]) -> Mapping[Digit, int]:
        """Long rows of what lies without gaps, and as many of them as there is room for."""
        found: dict[Digit, int] = {}
        left = room.elements
        for each in sorted(blocks, key=lambda each: not each.minor):
            wanted = min(left, room.row) if each.minor and len(blocks) > 1 else left
            found[each.digit] = _length(each, wanted)
            left = max(8, left // found[each.digit])
        return found

    return of_products if _multiplies(module) else of_streams


def _length(blocks: Blocks, wanted: int) -> int:
    """A multiple of the block near what is wanted, or the whole."""
    if blocks.whole <= wanted:
        return blocks.whole
    times = max(1, wanted // blocks.block)
    if not blocks.bounded:
        times = max(each for each in range(1, times + 1) if blocks.digit.extent % each == 0)
    return blocks.block * times
