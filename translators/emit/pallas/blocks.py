"""How long the blocks of a step are: what suits a TPU, in the place of what suited a GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from translators.access.expression import Digit
from translators.emit.merging import Blocks, Chooser
from translators.graph.graph import Module, walk

_LEAST = 128
_LEAST_STEPS = 4
_INNER = 1024


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
    """

    rows: int = 1024
    columns: int = 512
    elements: int = 1 << 20
    row: int = 1 << 11
    programs: int = 512
    inner: int | None = None

    @property
    def half(self) -> "Room":
        """Half of the room."""
        return Room(
            rows=max(_LEAST, self.rows // 2),
            columns=max(_LEAST, self.columns // 2),
            elements=self.elements // 2,
            row=max(_LEAST, self.row // 2),
            programs=max(8, self.programs // 2),
            inner=self.inner,
        )

    @property
    def in_parts(self) -> "Room":
        """Room for a part of what products sum over."""
        return replace(self, columns=self.rows, inner=_INNER)

    @property
    def least(self) -> bool:
        """Whether there is no less."""
        return self.elements <= _LEAST * 8


def chooser(module: Module, room: Room) -> Chooser:
    """How to choose blocks for a kernel."""
    products = any(op.name == "tt.dot" for op in walk(module.kernel.body))

    def of_products(blocks: Sequence[Blocks]) -> Mapping[Digit, int]:
        # Where one is chosen alone the other is short, as the kernel has it.
        columns = room.rows if len(blocks) == 1 else room.columns
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

    return of_products if products else of_streams


def _length(blocks: Blocks, wanted: int) -> int:
    """A multiple of the block near what is wanted, or the whole."""
    if blocks.whole <= wanted:
        return blocks.whole
    times = max(1, wanted // blocks.block)
    if not blocks.bounded:
        times = max(each for each in range(1, times + 1) if blocks.digit.extent % each == 0)
    return blocks.block * times
