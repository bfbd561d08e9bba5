"""Positions modulo the length of a dimension, as kernels take them in the place of a mask.

`(pid * BLOCK + arange(BLOCK)) % N` keeps the loads of the last block inside of the array. Where no
op looks at more than one position along the block, and every write is masked at `N`, what is read
beyond goes nowhere: the position may as well be what it is, and the block is one of the array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from translators.access.analysis import Analysis
from translators.access.expression import Iteration, Symbol, leaves
from translators.access.states import Integer
from translators.emit.classes import Classes, Place, classes_of
from translators.emit.pallas.closed import alike, common_bounds
from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    AttributeValue,
    Module,
    Op,
    Region,
    Value,
    make_op,
    walk,
)
from translators.graph.types import I1, TensorType, Type, shape_of
from translators.graph.verifier import verify

_REMAINDERS = ("arith.remsi", "arith.remui")


def without_remainders(module: Module, analysis: Analysis) -> Module | None:
    """The kernel with positions in the place of their remainders; `None` where it has none.

    Args:
      module: a verified kernel.
      analysis: its accesses.
    """
    classes = classes_of(module.kernel)
    needless = _needless(module, analysis, classes)
    if not needless:
        return None
    ends = {
        classes.of((op.result, 0)): _End(position=op.operands[0], end=end)
        for op, end in needless.items()
    }
    made = copied_kernel(module, _Copier(classes, set(needless), ends))
    verify(made)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """Where a dimension ends, as a position in it: nothing is written where it is not below."""

    position: Value
    end: int


def _needless(module: Module, analysis: Analysis, classes: Classes) -> dict[Op, int]:
    """The remainders, each with what it is taken of."""
    bounds = common_bounds(analysis, classes)
    found: dict[Op, int] = {}
    for op in walk(module.kernel.body):
        if op.name not in _REMAINDERS or len(shape_of(op.result.type)) != 1:
            continue
        position, length = (analysis.states.get(each) for each in op.operands)
        if not isinstance(position, Integer) or not isinstance(length, Integer):
            continue
        end = length.expression.value
        place = classes.of((op.result, 0))
        if end is None or position.expression.interval.low < 0 or not classes.is_free(place):
            continue
        if any(isinstance(each, Iteration | Symbol) for each in leaves(position.expression)):
            continue  # it may be another one where a value is written than where it was read
        masked = position.expression.times(-1).plus(end - 1)
        if alike(masked) in bounds.get(place, ()):
            found[op] = end
    return found


class _Copier(Copier):
    """Leaves remainders out, and has loads masked by what the writes are masked by."""

    def __init__(self, classes: Classes, needless: set[Op], ends: Mapping[Place, _End]) -> None:
        super().__init__()
        self._classes = classes
        self._needless = needless
        self._ends = ends

    def copies(self, op: Op, region: Region) -> bool:
        """Puts the position in the place of a remainder; copies the rest."""
        if op in self._needless:
            self.values[op.result] = self.values[op.operands[0]]
            return False
        return True

    def append(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Region], region: Region
    ) -> Op:
        """Copies an op; a load with a mask that keeps it inside of the array."""
        if op.name == "tt.load":
            pointers = op.operands[0]
            for axis, size in enumerate(shape_of(pointers.type)):
                end = self._ends.get(self._classes.of((pointers, axis))) if size > 1 else None
                if end is not None and end.position in self.values:
                    mask = self._mask(op, end, axis, region)
                    if len(operands) > 1:
                        mask = _made(op, region, "arith.andi", (operands[1], mask), mask.type)
                    operands = [operands[0], mask, *operands[2:]]
        return super().append(op, operands, regions, region)

    def _mask(self, op: Op, end: _End, axis: int, region: Region) -> Value:
        """Whether positions along an axis of a load lie before the end."""
        position = self.values[end.position]
        shape = shape_of(op.operands[0].type)
        limit = _made(op, region, "arith.constant", (), position.type, value=end.end)
        flags = TensorType(shape_of(position.type), I1)
        mask = _made(op, region, "arith.cmpi", (position, limit), flags, predicate="slt")
        for place in range(len(shape)):
            if place != axis:
                mask = _made(
                    op,
                    region,
                    "tt.expand_dims",
                    (mask,),
                    TensorType(_with_one(shape_of(mask.type), place), I1),
                    axis=place,
                )
        return _made(op, region, "tt.broadcast", (mask,), TensorType(shape, I1))


def _with_one(shape: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*shape[:place], 1, *shape[place:])


def _made(
    op: Op,
    region: Region,
    name: str,
    operands: tuple[Value, ...],
    type_: Type,
    **attributes: AttributeValue,
) -> Value:
    made = make_op(name, operands, (type_,), attributes=attributes, location=op.location)
    region.ops.append(made)
    return made.result
