"""Tensors as long as their rows, in the place of the next power of two.

A Triton kernel has tensors of lengths that are powers of two, and masks what of them lies behind
the end of a row. A block of a TPU kernel is as long as the row. Where no op makes anything of the
lanes behind the end, they can as well not be there: every load and store masks them, and what is
left of them where elements are summed up, or the greatest is sought, changes nothing.
"""

import math
from collections.abc import Iterator, Mapping

from translators.access.analysis import Access, Analysis
from translators.access.expression import Lane
from translators.access.states import Comparison, Condition
from translators.emit.classes import Classes, Place, classes_of
from translators.emit.reductions import single_op
from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    Module,
    Op,
    Region,
    Value,
    make_op,
    users,
    walk,
)
from translators.graph.types import FloatType, TensorType, Type, element_of, shape_of
from translators.graph.verifier import verify

# What a combination leaves as it is.
_NEUTRAL = {
    "arith.addf": 0.0,
    "arith.addi": 0,
    "arith.maximumf": -math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.minnumf": math.inf,
}
_GREATEST = frozenset(("arith.maximumf", "arith.maxnumf"))
# Ops that move lanes, or look at several, in another way than by combining all of them.
_SHAPING = frozenset(("tt.expand_dims", "tt.broadcast", "tt.splat", "tt.make_range", "tt.trans"))
_CASTS = frozenset(("arith.extf", "arith.truncf", "tt.fp_to_fp", "arith.extsi", "arith.trunci"))


def trimmed(module: Module, analysis: Analysis) -> Module | None:
    """The kernel with tensors that end where rows do; `None` where none does.

    Args:
      module: a verified kernel.
      analysis: its accesses.
    """
    classes = classes_of(module.kernel)
    lengths = {
        place: length
        for place, length in _ends(module, analysis, classes).items()
        if _Lanes(module, analysis, classes, place, length).come_to_nothing()
    }
    if not lengths:
        return None
    made = copied_kernel(module, _Shortener(classes, lengths))
    verify(made)
    return made


def _ends(module: Module, analysis: Analysis, classes: Classes) -> dict[Place, int]:
    """For dimensions whose accesses all end at one position, that is their own, this position."""
    found: dict[Place, int] = {}
    spoilt: set[Place] = set()
    for access in analysis.accesses:
        pointers = access.op.operands[0]
        shape = shape_of(pointers.type)
        if access.op.name not in ("tt.load", "tt.store"):
            spoilt.update(
                classes.of((pointers, axis)) for axis, size in enumerate(shape) if size > 1
            )
            continue
        for axis, size in enumerate(shape):
            if size == 1:
                continue
            place = classes.of((pointers, axis))
            ends = [end for end in _bounds(access, axis, size) if end < size]
            if len(ends) != 1 or found.get(place, ends[0]) != ends[0]:
                spoilt.add(place)
            else:
                found[place] = ends[0]
    for op in walk(module.kernel.body):
        if op.name == "tt.make_range" and op.integer("start"):
            spoilt.add(classes.of((op.result, 0)))
    return {place: end for place, end in found.items() if place not in spoilt}


def _bounds(access: Access, axis: int, size: int) -> Iterator[int]:
    """The positions below which lanes along an axis take part, as the mask alone says."""
    if access.mask is None:
        return
    for comparison in (
        *(each.comparison for each in access.mask.bounds),
        *access.mask.predicates,
    ):
        end = _end(comparison, axis, size)
        if end is not None:
            yield end


def _end(comparison: Comparison, axis: int, size: int) -> int | None:
    """What `lane < end` compares a lane along an axis with; `None` for other comparisons."""
    terms = comparison.expression.terms
    if terms == ((Lane(axis=axis, extent=size), -1),):
        return comparison.expression.offset + 1
    return None


class _Lanes:
    """What the lanes of one dimension hold that lie behind its end."""

    def __init__(
        self, module: Module, analysis: Analysis, classes: Classes, place: Place, end: int
    ) -> None:
        self._module = module
        self._analysis = analysis
        self._classes = classes
        self._place = place
        self._end = end
        # Values that are one number in all of these lanes. What is `soft` is so, or else not a
        # number in all of the row, in the lanes before the end too.
        self._used = users(module.kernel.body)
        self._known: dict[Value, float] = {}
        self._soft: set[Value] = set()

    def come_to_nothing(self) -> bool:
        """Whether no op makes anything of them."""
        for op in walk(self._module.kernel.body):
            if op.name == "tt.reduce" and self._along(op):
                if not self._changes_nothing(op):
                    return False
                continue
            if not self._is_elementwise(op) or self._is_list(op):
                return False
            self._note(op)
        return True

    def _axis(self, value: Value) -> int | None:
        """Along which of a value's axes the dimension lies; `None` if along none."""
        for axis, size in enumerate(shape_of(value.type)):
            if size > 1 and self._classes.of((value, axis)) == self._place:
                return axis
        return None

    def _has(self, op: Op) -> bool:
        return any(self._axis(each) is not None for each in (*op.operands, *op.results))

    def _along(self, op: Op) -> bool:
        return self._axis(op.operands[0]) == op.integer("axis")

    def _is_elementwise(self, op: Op) -> bool:
        if not self._has(op) or op.name in _SHAPING or op.name in ("tt.load", "tt.store"):
            return True
        return op.name.startswith(("arith.", "math.")) or op.name in (
            *("tt.addptr", "tt.fp_to_fp", "tt.extern_elementwise", "tt.clampf", "tt.reduce"),
            *("tt.precise_sqrt", "tt.precise_divf", "scf.for", "scf.if", "scf.yield", "tt.return"),
        )

    def _is_list(self, op: Op) -> bool:
        """Whether an op gives each lane a number of its own."""
        return isinstance(op.attributes.get("value"), tuple) and self._has(op)

    def _changes_nothing(self, op: Op) -> bool:
        """Whether what a combination of all lanes gives is the same without them."""
        if len(op.operands) != 1:
            return False
        kind = single_op(op.regions[0])
        (operand,) = op.operands
        if kind not in _NEUTRAL or self._known.get(operand) != _NEUTRAL[kind]:
            return False
        return operand not in self._soft or kind == "arith.addf"

    def _note(self, op: Op) -> None:
        """Takes down what the lanes hold of what an op gives, where that is known."""
        if len(op.results) != 1:
            return
        known = [self._known.get(each) for each in op.operands]
        number: float | None = None
        match op.name:
            case "arith.constant":
                value = op.attributes["value"]
                number = None if isinstance(value, str | tuple) else value
            case "tt.splat" | "tt.broadcast" | "tt.expand_dims" | "tt.trans":
                number = known[0]
            case "tt.load" if len(known) > 2 and self._axis(op.result) is not None:
                number = known[2]
            case "arith.select":
                number = self._chosen(op, known)
            case "arith.mulf" | "arith.muli" if known[0] == known[1] == 0:
                number = known[0]
            case "math.exp" | "math.exp2" if known[0] == -math.inf:
                number = 0.0
            case "arith.subf" if known[0] == -math.inf and self._is_greatest_of(op):
                number = -math.inf
                self._soft.add(op.result)
            case _ if op.name in _CASTS and known[0] in (0, -math.inf, math.inf):
                number = known[0]
        if number is None:
            return
        self._known[op.result] = number
        if any(each in self._soft for each in op.operands):
            self._soft.add(op.result)

    def _chosen(self, op: Op, known: list[float | None]) -> float | None:
        """Of a choice by whether a lane lies before the end, what the others hold."""
        state = self._analysis.states.get(op.operands[0])
        axis = self._axis(op.operands[0])
        if axis is None or not isinstance(state, Condition) or state.leftovers:
            return known[1] if known[1] == known[2] else None
        size = shape_of(op.operands[0].type)[axis]
        ends = [_end(each, axis, size) for each in state.comparisons]
        return known[2] if any(end is not None and end <= self._end for end in ends) else None

    def _is_greatest_of(self, op: Op) -> bool:
        """Whether the second operand is the greatest element along the dimension of the first.

        Then a row in which the difference is not minus infinity, but not a number, is one in which
        it is so everywhere. That is nobody's business as long as only the difference looks at it.
        """
        value = op.operands[1]
        while isinstance(value.owner, Op) and value.owner.name in _SHAPING:
            if self._users(value) != 1:
                return False
            value = value.owner.operands[0]
        owner = value.owner
        return (
            isinstance(owner, Op)
            and owner.name == "tt.reduce"
            and self._along(owner)
            and single_op(owner.regions[0]) in _GREATEST
            and owner.operands[0] is op.operands[0]
            and self._users(value) == 1
            and isinstance(element_of(value.type), FloatType)
        )

    def _users(self, value: Value) -> int:
        """How often ops look at a value whose results somebody looks at."""
        return sum(
            not op.results or any(each in self._used for each in op.results)
            for op, _ in self._used.get(value, ())
        )


class _Shortener(Copier):
    def __init__(self, classes: Classes, lengths: Mapping[Place, int]) -> None:
        super().__init__()
        self._classes = classes
        self._lengths = lengths

    def type_of(self, value: Value) -> Type:
        """The type with shorter dimensions."""
        if not isinstance(value.type, TensorType):
            return value.type
        shape = tuple(
            self._lengths.get(self._classes.of((value, axis)), size) if size > 1 else size
            for axis, size in enumerate(value.type.shape)
        )
        return TensorType(shape, value.type.element)

    def copies(self, op: Op, region: Region) -> bool:
        """Writes ranges anew, which end where the row does; copies the rest."""
        if op.name != "tt.make_range":
            return True
        type_ = self.type_of(op.result)
        made = make_op(
            op.name,
            (),
            (type_,),
            attributes={"start": 0, "end": shape_of(type_)[0]},
            location=op.location,
            result_names=(op.result.name,),
        )
        region.ops.append(made)
        self.values[op.result] = made.result
        return False
