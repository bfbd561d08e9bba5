"""Kernels that Triton's interpreter computes wrongly or not at all."""

from collections.abc import Iterator

from translators.graph.graph import Module, Op, Value, walk
from translators.graph.types import BF16, FloatType, PointerType, element_of

_NOT_IMPLEMENTED = {
    "tt.extern_elementwise": "calls a device library, which the interpreter does not have",
    "tt.elementwise_inline_asm": "holds assembly, which the interpreter does not run",
    "tt.fp_to_fp": "asks for a rounding that the interpreter does otherwise",
    "tt.descriptor_reduce": "reduces through a descriptor, which the interpreter cannot",
    "tt.map_elementwise": "maps a function over elements, which the interpreter cannot",
}


def unsuited(module: Module) -> str | None:
    """Why the interpreter is no oracle for a kernel, as a clause; `None` if it may be one.

    The interpreter holds `bf16` as 16-bit integers, and adds and multiplies them as such; its
    conversions to 8-bit floats do not round to nearest even.
    """
    for function in module.functions.values():
        for argument in function.arguments:
            reason = _of_type(argument)
            if reason is not None:
                return f"`{argument.name}` {reason}"
        for op in walk(function.body):
            reason = _of_op(op)
            if reason is not None:
                place = f" at line {op.location.line}" if op.location is not None else ""
                return f"`{op.name}`{place} {reason}"
    return None


def _of_op(op: Op) -> str | None:
    reason = _NOT_IMPLEMENTED.get(op.name)
    if reason is not None:
        return reason
    return next((each for value in _values(op) if (each := _of_type(value)) is not None), None)


def _values(op: Op) -> Iterator[Value]:
    yield from op.results
    for region in op.regions:
        yield from region.arguments


def _of_type(value: Value) -> str | None:
    element = element_of(value.type)
    while isinstance(element, PointerType):
        element = element.pointee
    if element == BF16:
        return "is `bf16`, on which the interpreter computes as on integers"
    if isinstance(element, FloatType) and element.width == 8:
        return f"is `{element}`, which the interpreter rounds otherwise"
    return None
