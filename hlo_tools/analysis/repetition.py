"""Work that a computation repeats, each time on what the time before made."""

from collections.abc import Iterable

from hlo_tools.hlo.module import Computation, Instruction


def longest_chain(computation: Computation, members: Iterable[Instruction]) -> int:
    """How many of a computation's instructions come one after another.

    Args:
      computation: in text order, in which operands precede their users.
      members: the instructions to count.

    Returns:
      The largest number of members on any path along operand edges.
    """
    counted = set(members)
    depths: dict[Instruction, int] = {}
    for instruction in computation.instructions:
        before = max((depths.get(operand, 0) for operand in instruction.operands), default=0)
        depth = before + (instruction in counted)
        if depth:
            depths[instruction] = depth
    return max(depths.values(), default=0)
