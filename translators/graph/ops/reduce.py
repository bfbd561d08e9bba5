"""Reductions, scans and maps, whose region says how elements combine.

A region is run on whole tensors at once where all its ops work element by element, and otherwise
for one element after another. Elements keep their order, so that a combination need only be
associative; Triton promises no other grouping either.
"""

import numpy as np

from translators.graph.graph import Op, Region, walk
from translators.graph.machine import Enter, Machine
from translators.graph.numerics import Array, dtype_of, element_type
from translators.graph.ops import conversions, floats, integers, math, rules
from translators.graph.ops.definition import (
    FLAG,
    INT,
    OpDefinition,
    Operands,
    Steps,
    Typing,
    one_of,
    pass_on,
)
from translators.graph.ops.regions import combines, maps
from translators.graph.ops.shape import checked_axis
from translators.graph.types import TensorType, Type, shaped

ENDS = ("tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return")

_LANEWISE = frozenset(
    (
        "arith.constant",
        "ub.poison",
        *ENDS,
        *(each.name for module in (conversions, floats, integers, math) for each in module.OPS),
    )
)


def _same_tensors(typing: Typing) -> tuple[TensorType, ...]:
    rules.expect_count(typing, 1, 1 << 8)
    operands = tuple(rules.tensor(each) for each in typing.operands)
    for other in operands[1:]:
        rules.same_shape(operands[0], other)
    return operands


def _reduce_rule(typing: Typing) -> tuple[Type, ...]:
    operands = _same_tensors(typing)
    axis = checked_axis(typing, operands[0])
    shape = operands[0].shape
    left = (*shape[:axis], *shape[axis + 1 :])
    return tuple(shaped(left, each.element) for each in operands)


def _scan_rule(typing: Typing) -> tuple[Type, ...]:
    operands = _same_tensors(typing)
    checked_axis(typing, operands[0])
    return operands


def _map_rule(typing: Typing) -> tuple[Type, ...]:
    operands = _same_tensors(typing)
    results = rules.wanted(typing, len(typing.wanted or ()))
    for result in results:
        rules.same_shape(operands[0], result)
    return results


def _lanes(region: Region, arguments: list[Array], types: list[Type]) -> Steps:
    """Runs the region on arrays of one shape; gives arrays of that shape and those types."""
    shape = arguments[0].shape
    if all(op.name in _LANEWISE for op in walk(region)):
        found = yield Enter(region, arguments)
        return [np.broadcast_to(each, shape) for each in found]
    made = [np.zeros(shape, dtype_of(element_type(each))) for each in types]
    for lane in np.ndindex(shape):
        found = yield Enter(region, [np.asarray(each[lane]) for each in arguments])
        for into, value in zip(made, found, strict=True):
            into[lane] = value
    return made


def _reduce(op: Op, operands: Operands, machine: Machine) -> Steps:
    types = [each.type for each in op.results]
    values = [np.moveaxis(each, op.integer("axis"), 0) for each in operands]
    while len(values[0]) > 1:
        # Neighbours are combined; the last one of an odd number waits.
        pairs = len(values[0]) // 2 * 2
        left, right = [each[0:pairs:2] for each in values], [each[1:pairs:2] for each in values]
        combined = yield from _lanes(op.regions[0], left + right, types)
        values = [
            np.concatenate([new, old[pairs:]]) for new, old in zip(combined, values, strict=True)
        ]
    return [each[0] for each in values]


def _scan(op: Op, operands: Operands, machine: Machine) -> Steps:
    types = [each.type for each in op.results]
    axis, reverse = op.integer("axis"), op.flag("reverse")
    values = [np.moveaxis(each, axis, 0) for each in operands]
    if reverse:
        values = [each[::-1] for each in values]
    distance = 1
    while distance < len(values[0]):
        earlier = [each[:-distance] for each in values]
        later = [each[distance:] for each in values]
        combined = yield from _lanes(op.regions[0], earlier + later, types)
        values = [
            np.concatenate([old[:distance], new]) for new, old in zip(combined, values, strict=True)
        ]
        distance *= 2
    if reverse:
        values = [each[::-1] for each in values]
    return [np.moveaxis(each, 0, axis) for each in values]


def _map(op: Op, operands: Operands, machine: Machine) -> Steps:
    return (yield from _lanes(op.regions[0], list(operands), [each.type for each in op.results]))


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.reduce",
        summary="along `axis`, all elements combined; takes and gives several tensors in step",
        rule=_reduce_rule,
        meaning=_reduce,
        attributes={"axis": INT},
        regions=(1,),
        ends=("tt.reduce.return",),
        check=combines,
    ),
    OpDefinition(
        name="tt.scan",
        summary="along `axis`, each element combined with all before it, or all after it",
        rule=_scan_rule,
        meaning=_scan,
        attributes={"axis": INT, "reverse": FLAG},
        regions=(1,),
        ends=("tt.scan.return",),
        check=combines,
    ),
    OpDefinition(
        name="tt.map_elementwise",
        summary="the region, run for each element",
        rule=_map_rule,
        meaning=_map,
        attributes={"pack": one_of(1)},
        regions=(1,),
        ends=("tt.map_elementwise.return",),
        check=maps,
    ),
    *(
        OpDefinition(
            name=name,
            summary="what the region gives",
            rule=rules.nothing(1, 1 << 8),
            meaning=pass_on,
            terminator=True,
        )
        for name in ENDS
    ),
)
