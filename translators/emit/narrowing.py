"""Which 64-bit integers can be emitted as `i32`: JAX has others only where they are enabled.

Either the value provably fits, or only its low 32 bits matter, because all that becomes of it
are offsets into arrays of fewer than 2**31 elements, by operations in which high bits never move
down.
"""

from collections.abc import Mapping

from translators.access.analysis import Analysis
from translators.access.expression import Interval
from translators.access.states import Integer
from translators.graph.graph import Module, Op, Value, users, walk
from translators.graph.types import I32, I64, ElementType, IntType, element_of

_RING = frozenset(
    (
        *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
        *("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.join"),
        *("tt.split", "tt.cat", "tt.unsplat"),
    )
)
_I32 = Interval(I32.smallest, I32.largest)


def narrowed(module: Module, analysis: Analysis) -> Mapping[Value, ElementType]:
    """The 64-bit integers of the kernel that are emitted as `i32`."""
    kernel = module.kernel
    found: dict[Value, ElementType] = {}
    uses = users(kernel.body)
    ops = list(walk(kernel.body))
    owners = _wide_values(ops)
    for value in owners:
        match analysis.states.get(value):
            case Integer(expression=expression, assumptions=()):
                if expression.interval.within(_I32):
                    found[value] = I32
    # From the uses back to what is used, until nothing changes: a loop carries values around.
    candidates = {value for value in owners if value not in found}
    changed = True
    while changed:
        changed = False
        for value in list(candidates):
            if not all(_low(op, index, candidates, found) for op, index in uses.get(value, [])):
                candidates.discard(value)
                changed = True
    found.update(dict.fromkeys(candidates, I32))
    return found


def _wide_values(ops: list[Op]) -> list[Value]:
    values = [value for op in ops for value in op.results]
    values += [value for op in ops for region in op.regions for value in region.arguments]
    return [each for each in values if element_of(each.type) == I64]


def _low(op: Op, index: int, candidates: set[Value], found: Mapping[Value, ElementType]) -> bool:
    """Whether an op needs only the low 32 bits of an operand."""

    def low(value: Value) -> bool:
        return value in candidates or value in found

    if op.name == "tt.addptr":
        return True
    if op.name in _RING or (op.name == "arith.select" and index > 0):
        return all(low(each) for each in op.results)
    if op.name == "arith.shli":
        return index == 0 and low(op.result)
    if op.name == "arith.trunci":
        target = element_of(op.result.type)
        return isinstance(target, IntType) and target.width <= 32
    return False
