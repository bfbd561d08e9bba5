"""The branches of an early return: where the two sides of a conditional branch meet again."""

from collections.abc import Sequence
from typing import Any


def meeting_block(first: Any, second: Any) -> Any | None:
    """The first block that both sides of a branch lead to; `None` if they never meet.

    A side leads to its own first block too. A block that only returns is no meeting: each side
    can return by itself. Where several blocks are common, the meeting block is
    the one that leads to all others.

    Args:
      first: the block of one side, in jaxlib's MLIR.
      second: the block of the other.
    """
    others = set(reachable(second))
    common = [block for block in reachable(first) if block in others and not only_returns(block)]
    for block in common:
        onward = set(reachable(block))
        if all(other in onward for other in common):
            return block
    return None


def reachable(start: Any) -> list[Any]:
    """The blocks that a block leads to, itself first."""
    found: dict[Any, None] = {}
    pending = [start]
    while pending:
        block = pending.pop()
        if block not in found:
            found[block] = None
            pending.extend(reversed(successors(block)))
    return list(found)


def only_returns(block: Any) -> bool:
    """Whether a block does nothing but return."""
    operations = list(block.operations)
    return len(operations) == 1 and operations[0].operation.name == "tt.return"


def successors(block: Any) -> Sequence[Any]:
    """Where a block may go on."""
    operations = list(block.operations)
    return list(operations[-1].operation.successors) if operations else []
