"""Constants, ranges and what is broadcast, with a value of their own for each use.

Triton's front end makes one value of all that are equal, so that a range of rows and a range of
columns are one where their blocks are equally long. What is true of one of them is then not true
of the value; here they are apart again.
"""

from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import Module, Op, Region, Value
from translators.graph.types import TensorType

# What is cheap to make again: it gives a tensor dimensions that say nothing of where it came from.
_SOURCES = frozenset(("arith.constant", "tt.make_range", "tt.splat", "tt.broadcast"))
# What may stand between a source and its use.
_PURE = frozenset(("tt.expand_dims", "arith.extsi", "arith.extui"))


def unshared(module: Module) -> Module:
    """The module with the closed tensors of its kernel made anew for each use."""
    return copied_kernel(module, _Copier())


class _Copier(Copier):
    def __init__(self) -> None:
        super().__init__()
        self._closed: set[Value] = set()

    def copies(self, op: Op, region: Region) -> bool:
        """Takes down whether the op gives a closed tensor; copies it."""
        tensor = any(isinstance(each.type, TensorType) for each in op.results)
        closed = op.name in _SOURCES or (
            op.name in _PURE and all(each in self._closed for each in op.operands)
        )
        if tensor and closed:
            self._closed.update(op.results)
        return True

    def operand(self, value: Value, region: Region) -> Value:
        """A closed tensor is made again, from its sources on."""
        if value not in self._closed:
            return self.values[value]
        chain: list[Op] = []
        while True:
            owner = value.owner
            assert isinstance(owner, Op)
            chain.append(owner)
            if not owner.operands or owner.operands[0] not in self._closed:
                break
            (value,) = owner.operands
        made: list[Value] = [self.values[each] for each in chain[-1].operands]
        for op in reversed(chain):
            made = list(self.append(op, made, [], region).results)
        return made[0]
