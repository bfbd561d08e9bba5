"""Vectors folded into rows of 128, which is how the vector unit of a TPU sees them.

A kernel that only goes through memory element by element has tensors of one dimension. Folded, the
block of a step is a matrix of whole registers, and the array is seen as rows without a copy.
"""

from collections.abc import Iterable

from translators.access.analysis import Analysis
from translators.access.delinearize import Position
from translators.access.expression import Lane, leaves
from translators.emit.classes import classes_of
from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    Module,
    Op,
    Region,
    Value,
    integer,
    make_op,
    walk,
)
from translators.graph.types import I32, TensorType, Type, shape_of
from translators.graph.verifier import verify

LANES = 128


def folded(module: Module) -> Module | None:
    """The kernel with matrices of `LANES` columns in the place of its vectors.

    `None` where a tensor has more dimensions, no whole number of rows, or where an op looks at
    more than one of its elements at a time.
    """
    kernel = module.kernel
    classes = classes_of(kernel)
    found = False
    for value in _values(kernel.body):
        shape = shape_of(value.type)
        if not shape:
            continue
        if len(shape) > 1 or shape[0] % LANES or not classes.is_free((value, 0)):
            return None
        found = True
    if not found or any(op.name == "tt.reduce" for op in walk(kernel.body)):
        return None
    made = copied_kernel(module, _Folder())
    verify(made)
    return made


def has_rows(analysis: Analysis) -> bool:
    """Whether every array that a folded kernel goes through is so many whole rows, and no more.

    Rows of an array of several dimensions are wide enough as they are, and seeing each as a matrix
    would need a copy.
    """
    for access in analysis.accesses:
        if not isinstance(access.position, Position):
            continue
        dimensions = access.position.dimensions
        along = [
            each
            for each in dimensions
            if any(isinstance(variable, Lane) for variable in leaves(each.index))
        ]
        if any(each.size % LANES for each in along):
            return False
        if along and any(each.size > 1 for each in dimensions if each not in along):
            return False
    return True


def _values(body: Region) -> Iterable[Value]:
    yield from body.arguments
    for op in walk(body):
        yield from op.results
        for region in op.regions:
            yield from region.arguments


class _Folder(Copier):
    def type_of(self, value: Value) -> Type:
        """A matrix in the place of a vector."""
        if not isinstance(value.type, TensorType):
            return value.type
        (size,) = value.type.shape
        return TensorType((size // LANES, LANES), value.type.element)

    def copies(self, op: Op, region: Region) -> bool:
        """Writes ranges anew; copies the rest."""
        if op.name == "tt.make_range":
            self.values[op.result] = self._range(op, region)
            return False
        return True

    def _range(self, op: Op, region: Region) -> Value:
        """The same numbers, row by row."""
        shape = shape_of(self.type_of(op.result))
        rows = self._spread(op, region, 0, shape)
        steps = _made(op, region, "arith.constant", (), TensorType(shape, I32), value=LANES)
        rows = _made(op, region, "arith.muli", (rows, steps), TensorType(shape, I32))
        columns = self._spread(op, region, 1, shape)
        found = _made(op, region, "arith.addi", (rows, columns), TensorType(shape, I32))
        start = integer(op.attributes, "start")
        if not start:
            return found
        first = _made(op, region, "arith.constant", (), TensorType(shape, I32), value=start)
        return _made(op, region, "arith.addi", (found, first), TensorType(shape, I32))

    def _spread(self, op: Op, region: Region, axis: int, shape: tuple[int, ...]) -> Value:
        size = shape[axis]
        made = _made(op, region, "tt.make_range", (), TensorType((size,), I32), start=0, end=size)
        one = tuple(size if each == axis else 1 for each in range(2))
        made = _made(op, region, "tt.expand_dims", (made,), TensorType(one, I32), axis=1 - axis)
        return _made(op, region, "tt.broadcast", (made,), TensorType(shape, I32))


def _made(
    op: Op, region: Region, name: str, operands: tuple[Value, ...], type_: Type, **attributes: int
) -> Value:
    made = make_op(
        name,
        operands,
        (type_,),
        attributes=attributes,
        location=op.location,
        result_names=(op.result.name,),
    )
    region.ops.append(made)
    return made.result
