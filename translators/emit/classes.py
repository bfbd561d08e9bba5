"""Which dimensions of a kernel's tensors are one and the same.

Element by element, a dimension of a result is that of the operands. Tied in this way, the
dimensions of all tensors fall into classes; a class is free if no op looks at how long it is or
at more than one of its positions at a time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from translators.graph.graph import Function, Op, Region, Value, integers, walk
from translators.graph.types import TensorType, shape_of

Place: TypeAlias = tuple[Value, int]
"""A dimension of a tensor."""

# What computes on elements, whatever their number.
_DIALECTS = ("arith.", "math.")
_ELEMENTWISE = frozenset(
    (
        *("tt.addptr", "tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_load", "tt.bitcast"),
        *("tt.atomic_store", "tt.fp_to_fp", "tt.clampf", "tt.extern_elementwise", "tt.mulhiui"),
        *("tt.elementwise_inline_asm", "tt.map_elementwise", "tt.precise_divf", "tt.approx_divf"),
        *("tt.precise_sqrt", "ub.poison"),
    )
)


@dataclass(slots=True)
class Classes:
    """Dimensions joined by the ops of a kernel."""

    _parents: dict[Place, Place] = field(default_factory=dict)
    _fixed: set[Place] = field(default_factory=set)

    def of(self, place: Place) -> Place:
        """The class that a dimension belongs to, as one of its members."""
        path = []
        while (parent := self._parents.get(place, place)) != place:
            path.append(place)
            place = parent
        for each in path:
            self._parents[each] = place
        return place

    def join(self, places: Iterable[Place]) -> None:
        """Says that these are one dimension."""
        first, *others = map(self.of, places)
        for other in others:
            if other != first:
                self._parents[other] = first
                if other in self._fixed:
                    self._fixed.add(first)

    def fix(self, place: Place) -> None:
        """Says that the dimension has to stay as it is."""
        self._fixed.add(self.of(place))

    def is_free(self, place: Place) -> bool:
        """Whether the dimension may have another length."""
        return self.of(place) not in self._fixed


def classes_of(kernel: Function) -> Classes:
    """The classes of a kernel's dimensions."""
    found = Classes()
    for op in walk(kernel.body):
        _tie(op, found)
    return found


def _places(value: Value) -> list[Place]:
    return [(value, axis) for axis, size in enumerate(shape_of(value.type)) if size > 1]


def _fix_all(values: Iterable[Value], found: Classes) -> None:
    for value in values:
        for place in _places(value):
            found.fix(place)


def _same(values: Iterable[Value], found: Classes) -> None:
    """Ties tensors of one shape to one another; scalars among them take no part."""
    tensors = [each for each in values if isinstance(each.type, TensorType)]
    for other in tensors[1:]:
        for axis, size in enumerate(shape_of(other.type)):
            if size > 1:
                found.join(((tensors[0], axis), (other, axis)))


def _tie(op: Op, found: Classes) -> None:
    match op.name:
        case "arith.constant":
            if isinstance(op.attributes["value"], tuple):
                _fix_all(op.results, found)
        case "tt.splat" | "tt.make_range":
            pass
        case "scf.yield" | "scf.condition" | "tt.return":
            pass  # the op that holds the region ties what it ends with
        case "tt.print" | "tt.assert" | "llvm.intr.assume":
            pass
        case "tt.expand_dims":
            axis = op.integer("axis")
            for place, size in enumerate(shape_of(op.operands[0].type)):
                if size > 1:
                    target = place + (place >= axis)
                    found.join(((op.operands[0], place), (op.result, target)))
        case "tt.broadcast":
            for place, size in enumerate(shape_of(op.operands[0].type)):
                if size > 1:
                    found.join(((op.operands[0], place), (op.result, place)))
        case "tt.trans":
            for place, source in enumerate(integers(op.attributes, "order")):
                if shape_of(op.result.type)[place] > 1:
                    found.join(((op.operands[0], source), (op.result, place)))
        case "tt.reduce":
            _tie_reduction(op, found)
        case "tt.scan":
            _same((*op.operands, *op.results), found)
            _fix_axis(op, found)
        case "tt.dot":
            _tie_product(op, found)
        case "scf.for" | "scf.if" | "scf.while":
            for group in _carried(op):
                _same(group, found)
        case _ if op.name in _ELEMENTWISE or op.name.startswith(_DIALECTS):
            _same((*op.operands, *op.results), found)
        case _:
            _fix_all((*op.operands, *op.results), found)


def _fix_axis(op: Op, found: Classes) -> None:
    axis = op.integer("axis")
    for operand in op.operands:
        if shape_of(operand.type)[axis] > 1:
            found.fix((operand, axis))


def _tie_reduction(op: Op, found: Classes) -> None:
    axis = op.integer("axis")
    _same(op.operands, found)
    _fix_axis(op, found)
    for operand, result in zip(op.operands, op.results, strict=True):
        kept = [place for place in range(len(shape_of(operand.type))) if place != axis]
        for target, place in enumerate(kept):
            if shape_of(operand.type)[place] > 1:
                found.join(((operand, place), (result, target)))


def _tie_product(op: Op, found: Classes) -> None:
    left, right, addend = op.operands
    rank = len(shape_of(left.type))
    _same((addend, op.result), found)
    for place in range(rank - 2):
        found.join(((left, place), (right, place), (op.result, place)))
    found.join(((left, rank - 2), (op.result, rank - 2)))
    found.join(((right, rank - 1), (op.result, rank - 1)))
    found.join(((left, rank - 1), (right, rank - 2)))
    found.fix((left, rank - 1))


def _carried(op: Op) -> Iterator[tuple[Value, ...]]:
    """The values that stand for one another across the edges of a structured op's regions."""

    def given(region: Region, skipped: int = 0) -> tuple[Value, ...]:
        end = region.terminator
        return () if end.name == "tt.return" else end.operands[skipped:]

    if op.name == "scf.if":
        for region in op.regions:
            yield from zip(given(region), op.results, strict=False)
        return
    if op.name == "scf.for":
        arguments = op.regions[0].arguments[1:]
        yield from zip(op.operands[3:], arguments, op.results, strict=True)
        yield from zip(given(op.regions[0]), op.results, strict=False)
        return
    before, after = op.regions
    yield from zip(op.operands, before.arguments, strict=True)
    yield from zip(given(before, 1), after.arguments, strict=False)
    yield from zip(given(before, 1), op.results, strict=False)
    yield from zip(given(after), before.arguments, strict=False)
