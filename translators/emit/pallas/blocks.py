"""How long the blocks of a step are: what suits a TPU, in the place of what suited a GPU."""

from collections.abc import Mapping, Sequence

from translators.access.expression import Digit
from translators.emit.merging import Blocks, Chooser
from translators.graph.graph import Module, walk

# Rows and columns of the product of a step: as many as let the matrix unit work for longer than
# the operands take to arrive (docs/kernel-model.md).
_PRODUCT_ROWS, _PRODUCT_COLUMNS = 1024, 512
# Elements of a step's block where a kernel goes through memory once, and its longest row.
_STREAM = 1 << 16
_ROW = 1 << 11
_LANES = 128


def chooser(module: Module) -> Chooser:
    """How to choose blocks for a kernel."""
    products = any(op.name == "tt.dot" for op in walk(module.kernel.body))
    return _of_products if products else _of_streams


def _of_products(blocks: Sequence[Blocks]) -> Mapping[Digit, int]:
    return {
        each.digit: _length(each, _PRODUCT_COLUMNS if each.minor else _PRODUCT_ROWS)
        for each in blocks
    }


def _of_streams(blocks: Sequence[Blocks]) -> Mapping[Digit, int]:
    """Long rows of what lies without gaps, and as many of them as there is room for."""
    found: dict[Digit, int] = {}
    room = _STREAM
    for each in sorted(blocks, key=lambda each: not each.minor):
        wanted = min(room, _ROW) if each.minor and len(blocks) > 1 else room
        found[each.digit] = _length(each, wanted)
        room = max(8, room // found[each.digit])
    return found


def _length(blocks: Blocks, wanted: int) -> int:
    """A multiple of the block near what is wanted, or the whole."""
    if blocks.whole <= wanted:
        return blocks.whole
    times = max(1, wanted // blocks.block)
    if not blocks.bounded:
        times = max(each for each in range(1, times + 1) if blocks.digit.extent % each == 0)
    return blocks.block * times
