"""Combinations of all elements of a tensor, along one dimension after another.

Triton's library lays the elements in a row first. To a TPU that is a vector across all of its
registers, where a matrix is combined register by register.
"""

from collections.abc import Sequence

from translators.emit.reductions import single_op
from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    Module,
    Op,
    Region,
    Value,
    make_op,
    make_region,
    walk,
)
from translators.graph.types import element_of, shape_of, shaped

# Which give the same in every order, but for rounding.
_IN_ANY_ORDER = frozenset(
    (
        *("arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf", "arith.maxnumf"),
        *("arith.minnumf", "arith.addi", "arith.muli", "arith.maxsi", "arith.minsi"),
        *("arith.maxui", "arith.minui", "arith.andi", "arith.ori", "arith.xori"),
    )
)


def by_dimensions(module: Module) -> Module:
    """The module without combinations of tensors that were laid in a row for that."""
    if not any(_row(op) for op in walk(module.kernel.body)):
        return module
    return copied_kernel(module, _Copier())


def _row(op: Op) -> Value | None:
    """The tensor that was laid in a row, if all that is combined is such a one."""
    if op.name != "tt.reduce" or len(op.operands) != 1 or shape_of(op.result.type):
        return None
    if single_op(op.regions[0]) not in _IN_ANY_ORDER:
        return None
    owner = op.operands[0].owner
    if not isinstance(owner, Op) or owner.name != "tt.reshape":
        return None
    (source,) = owner.operands
    return source if len(shape_of(source.type)) > 1 else None


class _Copier(Copier):
    def copied(self, op: Op, regions: Sequence[Region], region: Region) -> Sequence[Value]:
        """Combines along the last dimension, until there is none."""
        source = _row(op)
        if source is None:
            return super().copied(op, regions, region)
        found = self.values[source]
        element = element_of(found.type)
        assert element is not None
        while shape_of(found.type):
            *left, _ = shape_of(found.type)
            made = make_op(
                op.name,
                [found],
                [shaped(tuple(left), element)],
                attributes={**op.attributes, "axis": len(left)},
                regions=[_alike(op.regions[0])],
                location=op.location,
                result_names=[op.result.name],
            )
            region.ops.append(made)
            found = made.result
        return [found]


def _alike(region: Region) -> Region:
    """The region of one op anew."""
    copied = make_region([each.type for each in region.arguments])
    copier = Copier()
    copier.values.update(zip(region.arguments, copied.arguments, strict=True))
    copier.copy(region, copied)
    return copied
