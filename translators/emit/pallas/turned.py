"""Arrays that XLA lays out with their last dimension but one innermost.

Memory is tiled by 8 x 128, and XLA chooses the order of dimensions that pads an array least: of
bf16[1024,64] the 1024 lie along lanes. A kernel that takes the array in the order of its dimensions
has it copied before it runs, and what it returns once more; one that takes it turned does not, and
turns tiles instead. The matrix unit takes tiles either way, so that this costs little where loads
go to products; a store turns each element once.
"""

from collections.abc import Mapping, Sequence

from translators.access.analysis import Access, Analysis
from translators.access.states import Pointer
from translators.emit.facts import ArgumentFact, ArrayFact
from translators.emit.pallas.windows import LANES, SUBLANES
from translators.graph.graph import Module, Op, Value, users
from translators.graph.types import BF16, F32, element_of, shape_of


def turned(module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact]) -> frozenset[int]:
    """The arrays, by the first argument that is each, that a kernel is to take turned.

    Args:
      module: the kernel.
      analysis: its accesses.
      arguments: one fact for each of the kernel's arguments.
    """
    used = users(module.kernel.body)
    found: dict[int, bool] = {}
    for access in analysis.accesses:
        if not isinstance(access.pointer, Pointer):
            return frozenset()
        fact = arguments[access.pointer.argument]
        if isinstance(fact, ArrayFact):
            fits = _lies_turned(fact) and _may_turn(access, used)
            found[fact.alias] = found.get(fact.alias, True) and fits
    return frozenset(buffer for buffer, fits in found.items() if fits)


def _lies_turned(fact: ArrayFact) -> bool:
    """Whether XLA has the last dimension but one innermost, and in whole tiles.

    The layouts that it chooses are in tests/pallas/test_turned.py.
    """
    if len(fact.shape) < 2:
        return False
    *_, rows, columns = fact.shape
    return columns < LANES and columns % SUBLANES == 0 and rows % LANES == 0


def _may_turn(access: Access, used: Mapping[Value, list[tuple[Op, int]]]) -> bool:
    """Whether tiles are as well turned on their way."""
    op = access.op
    pointers = op.operands[0]
    if len(shape_of(pointers.type)) != 2:
        return False
    if op.name == "tt.store":
        return element_of(op.operands[1].type) in (BF16, F32)
    return op.name == "tt.load" and element_of(op.result.type) == BF16 and _is_multiplied(op, used)


def _is_multiplied(op: Op, used: Mapping[Value, list[tuple[Op, int]]]) -> bool:
    """Whether only products take what is loaded, as it is or transposed."""
    pending = [op.result]
    while pending:
        for user, place in used.get(pending.pop(), ()):
            if user.name == "tt.trans":
                pending.append(user.result)
            elif user.name != "tt.dot" or place == 2:
                return False
    return True
