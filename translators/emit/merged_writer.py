"""The kernel of fewer programs, copied from the one of many with longer tensors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from translators.access.expression import Affine, Digit
from translators.emit.classes import Classes, Place
from translators.graph.copying import Copier
from translators.graph.graph import Op, Region, Value, make_op
from translators.graph.types import I32, IntType, TensorType, Type, element_of, shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A tensor that holds positions in an array: `block * B + lane`, times a number, from a start.

    Attributes:
      value: the tensor, of rank 1.
      digit: the coordinate of the program that counts the blocks.
      scale: the number.
      start: where the first block begins, in terms of other coordinates.
    """

    value: Value
    digit: Digit
    scale: int
    start: Affine


class MergedWriter(Copier):
    """Copies what memory depends on; writes anew what says where a block lies.

    Args:
      classes: which dimensions are one and the same.
      roots: the tensors that hold positions in an array.
      restated: scalars in terms of the coordinates of programs that stay.
      kept: these coordinates; they are the first axes of the new grid.
      steps: the coordinates along which several programs are left; the axes behind them.
      lengths: how long merged dimensions are, by class.
      live: the ops to copy.
    """

    def __init__(
        self,
        *,
        classes: Classes,
        roots: Mapping[Value, Root],
        restated: Mapping[Value, Affine],
        kept: Sequence[Digit],
        steps: Sequence[Digit],
        lengths: Mapping[Place, int],
        live: set[Op],
    ) -> None:
        super().__init__()
        self._classes = classes
        self._roots = roots
        self._expressions = restated
        self._kept = kept
        self._steps = steps
        self._lengths = lengths
        self._live = live

    def copies(self, op: Op, region: Region) -> bool:
        """Writes what is said anew; copies what else is needed."""
        for value in op.results:
            if value in self._roots:
                self.values[value] = self._range(self._roots[value], region)
            elif value in self._expressions:
                self.values[value] = self._restated(value, region)
        return op in self._live

    def type_of(self, value: Value) -> Type:
        """The type with the merged dimensions at their new length."""
        if not isinstance(value.type, TensorType):
            return value.type
        shape = tuple(
            self._lengths.get(self._classes.of((value, axis)), size) if size > 1 else size
            for axis, size in enumerate(value.type.shape)
        )
        return TensorType(shape, value.type.element)

    def _range(self, root: Root, region: Region) -> Value:
        value = root.value
        shape = shape_of(self.type_of(value))
        made = _append(
            region, "tt.make_range", (), TensorType(shape, I32), value, start=0, end=shape[0]
        )
        element = element_of(value.type)
        assert isinstance(element, IntType)
        type_ = TensorType(shape, element)
        if element != I32:
            made = _append(region, "arith.extsi", (made,), type_, value)
        if root.digit in self._steps:
            axis = len(self._kept) + self._steps.index(root.digit)
            first = _append(region, "tt.get_program_id", (), I32, value, axis=axis)
            if element != I32:
                first = _append(region, "arith.extsi", (first,), element, value)
            by = _append(region, "arith.constant", (), element, value, value=shape[0])
            first = _append(region, "arith.muli", (first, by), element, value)
            first = _append(region, "tt.splat", (first,), type_, value)
            made = _append(region, "arith.addi", (made, first), type_, value)
        if root.scale != 1:
            by = _append(region, "arith.constant", (), type_, value, value=root.scale)
            made = _append(region, "arith.muli", (made, by), type_, value)
        if root.start.value == 0:
            return made
        first = self._scalar(value, element, root.start, region)
        first = _append(region, "tt.splat", (first,), type_, value)
        return _append(region, "arith.addi", (made, first), type_, value)

    def _restated(self, value: Value, region: Region) -> Value:
        assert isinstance(value.type, IntType)
        return self._scalar(value, value.type, self._expressions[value], region)

    def _scalar(self, value: Value, type_: IntType, expression: Affine, region: Region) -> Value:
        made = _append(region, "arith.constant", (), type_, value, value=expression.offset)
        for variable, factor in expression.terms:
            assert isinstance(variable, Digit)
            axis = self._kept.index(variable)
            part = _append(region, "tt.get_program_id", (), I32, value, axis=axis)
            if type_ != I32:
                part = _append(region, "arith.extsi", (part,), type_, value)
            by = _append(region, "arith.constant", (), type_, value, value=factor)
            part = _append(region, "arith.muli", (part, by), type_, value)
            made = _append(region, "arith.addi", (made, part), type_, value)
        return made


def _append(
    region: Region,
    name: str,
    operands: Iterable[Value],
    type_: Type,
    like: Value,
    **attributes: int,
) -> Value:
    """An op that stands where `like` was made."""
    owner = like.owner
    location = owner.location if isinstance(owner, Op) else None
    made = make_op(
        name,
        tuple(operands),
        (type_,),
        attributes=attributes,
        location=location,
        result_names=(like.name,),
    )
    region.ops.append(made)
    return made.result
