"""The same kernel with every float an `f64`: what it would compute if it hardly rounded.

Memory of floats becomes memory of `f64`, which holds every value of the narrower types exactly;
conversions between floats fall away. What looks at the bits of a float has no such form.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from translators.graph.builder import Builder
from translators.graph.errors import GraphError
from translators.graph.graph import Module, Op, Value
from translators.graph.ops.externs import SYMBOLS
from translators.graph.types import (
    F32,
    F64,
    DescriptorType,
    ElementType,
    FloatType,
    PointerType,
    TensorType,
    Type,
    element_of,
    with_element,
)
from translators.graph.verifier import verify
from translators.verify.rewriting import rewritten


class NoReferenceError(GraphError):
    """A kernel that looks at the bits of floats, so that it means nothing in another type."""


_CONVERSIONS = frozenset({"arith.extf", "arith.truncf", "tt.fp_to_fp"})
_BITS = frozenset({"arith.bitcast", "tt.bitcast"})
_ADDRESSES = frozenset({"tt.ptr_to_int", "tt.int_to_ptr"})
_RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "tt.approx_divf": "arith.divf",
        "tt.precise_divf": "arith.divf",
        "tt.precise_sqrt": "math.sqrt",
    }
)
_ASSEMBLY: Mapping[str, str] = MappingProxyType(
    {
        "abs": "math.absf",
        "add": "arith.addf",
        "cos": "math.cos",
        "div": "arith.divf",
        "ex2": "math.exp2",
        "fma": "math.fma",
        "lg2": "math.log2",
        "max": "arith.maxnumf",
        "min": "arith.minnumf",
        "mul": "arith.mulf",
        "neg": "arith.negf",
        "rcp": "arith.divf",
        "rsqrt": "math.rsqrt",
        "sin": "math.sin",
        "sqrt": "math.sqrt",
        "sub": "arith.subf",
        "tanh": "math.tanh",
    }
)
_OPCODE = re.compile(r"\s*([a-z]\w*)")


def widened(module: Module) -> Module:
    """A copy of a verified module that computes in `f64` and takes arrays of `f64`.

    Raises:
      NoReferenceError: the kernel reads the bits of floats as something else.
    """
    wide = rewritten(module, _wide, _replace)
    verify(wide)
    return wide


def _wide_element(element: ElementType) -> ElementType:
    depth = 0
    while isinstance(element, PointerType):
        element, depth = element.pointee, depth + 1
    found: ElementType = F64 if isinstance(element, FloatType) else element
    for _ in range(depth):
        found = PointerType(found)
    return found


def _wide(type_: Type) -> Type:
    if isinstance(type_, DescriptorType):
        block = type_.block
        return DescriptorType(TensorType(block.shape, _wide_element(block.element)))
    element = element_of(type_)
    assert element is not None
    return with_element(type_, _wide_element(element))


def _replace(op: Op, operands: Sequence[Value], builder: Builder) -> Sequence[Value] | None:
    if op.name in _CONVERSIONS:
        return operands
    if op.name in _BITS:
        return _bitcast(op, operands)
    if op.name in _ADDRESSES and _wide(op.operands[0].type) != op.operands[0].type:
        raise NoReferenceError(f"`{op.name}` makes numbers of the addresses of floats", op.location)
    if op.name in _RENAMED:
        return builder.op(_RENAMED[op.name], *operands).results
    if op.name == "math.fma":
        return _fma(operands, builder)
    if op.name == "tt.dot" and op.text("inputPrecision", "ieee") != "ieee":
        return builder.op(op.name, *operands, inputPrecision="ieee").results
    if op.name == "tt.extern_elementwise":
        return _extern(op, operands, builder)
    if op.name == "tt.elementwise_inline_asm":
        return _assembly(op, operands, builder)
    return None


def _fma(operands: Sequence[Value], builder: Builder) -> Sequence[Value]:
    left, right, addend = operands
    return builder.op("arith.addf", builder.value("arith.mulf", left, right), addend).results


def _bitcast(op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
    source, target = op.operands[0].type, op.result.type
    if source == target:
        return operands
    if _wide(source) == source and _wide(target) == target:
        return None
    raise NoReferenceError(f"`{op.name}` reads the bits of `{source}` as `{target}`", op.location)


def _extern(op: Op, operands: Sequence[Value], builder: Builder) -> Sequence[Value] | None:
    symbol = op.text("symbol")
    takes, gives, function = SYMBOLS[symbol]
    if F32 not in (*takes, gives):
        return None
    wanted = tuple(_wide_element(each) for each in takes), _wide_element(gives)
    for other, (other_takes, other_gives, same) in SYMBOLS.items():
        if (other_takes, other_gives) == wanted and same is function:
            result = with_element(operands[0].type, other_gives)
            return builder.op(op.name, *operands, results=(result,), symbol=other).results
    raise NoReferenceError(f"`{symbol}` has no form for `f64`", op.location)


def _assembly(op: Op, operands: Sequence[Value], builder: Builder) -> Sequence[Value]:
    opcode = _OPCODE.match(op.text("asm_string"))
    name = _ASSEMBLY.get(opcode[1]) if opcode else None
    if name is None:
        raise NoReferenceError(f"{op.text('asm_string')!r} has no form for `f64`", op.location)
    if name == "math.fma":
        return _fma(operands, builder)
    if opcode is not None and opcode[1] == "rcp":
        operands = [builder.constant(1.0, operands[0].type), *operands]
    return builder.op(name, *operands).results
