"""A copy of a module with other types, or with some ops replaced."""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from typing import TypeAlias

from translators.graph.builder import Builder
from translators.graph.graph import (
    Function,
    Module,
    Op,
    Region,
    Value,
    make_module,
    make_op,
    make_region,
)
from translators.graph.types import Type

Retype: TypeAlias = Callable[[Type], Type]
Replace: TypeAlias = Callable[[Op, Sequence[Value], Builder], Sequence[Value] | None]
"""Gives the values that stand for an op's results, or `None` to copy the op.

It is called with the op, its operands in the copy, and a builder that appends to the copy. Ops
with regions are always copied.
"""


def rewritten(module: Module, retype: Retype, replace: Replace) -> Module:
    """A copy of `module` in which every type is mapped and some ops are replaced."""
    functions = [_function(each, retype, replace) for each in module.functions.values()]
    return make_module(functions, module.entry)


def ieee_dots(module: Module) -> Module:
    """A copy whose products of matrices take their operands as they are, not cut to tf32 or bf16.

    Triton's interpreter computes so, and so does XLA on a CPU, whatever precision is asked for.
    """

    def replace(op: Op, operands: Sequence[Value], builder: Builder) -> Sequence[Value] | None:
        if op.name != "tt.dot" or op.text("inputPrecision", "ieee") == "ieee":
            return None
        return builder.op(op.name, *operands, inputPrecision="ieee").results

    return rewritten(module, lambda type_: type_, replace)


def _function(function: Function, retype: Retype, replace: Replace) -> Function:
    known: dict[Value, Value] = {}
    body = _region(function.body, retype, known)
    # Values of an outer region are all known before an inner one is copied.
    pending = [(function.body, body)]
    while pending:
        old, new = pending.pop()
        builder = Builder(new)
        for op in old.ops:
            operands = [known[each] for each in op.operands]
            builder.location = op.location
            results = None if op.regions else replace(op, operands, builder)
            if results is None:
                copied = _copy(op, operands, retype, known)
                new.ops.append(copied)
                pending += zip(op.regions, copied.regions, strict=True)
                results = copied.results
            known.update(zip(op.results, results, strict=True))
    return with_fields(
        function, body=body, result_types=tuple(retype(each) for each in function.result_types)
    )


def _region(region: Region, retype: Retype, known: dict[Value, Value]) -> Region:
    arguments = region.arguments
    made = make_region([retype(each.type) for each in arguments], [each.name for each in arguments])
    known.update(zip(arguments, made.arguments, strict=True))
    return made


def _copy(op: Op, operands: Sequence[Value], retype: Retype, known: dict[Value, Value]) -> Op:
    return make_op(
        op.name,
        operands,
        [retype(each.type) for each in op.results],
        attributes=op.attributes,
        regions=[_region(each, retype, known) for each in op.regions],
        location=op.location,
        result_names=[each.name for each in op.results],
    )
