"""PTX instructions that kernels write inline, as far as one of them is the whole text.

What approximates a function is evaluated as that function. With `.ftz` subnormal operands and
results are zero, as PTX defines it.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import Array, to_float
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    FLAG,
    OPTIONAL_TEXT,
    TEXT,
    OpDefinition,
    Operands,
    RuleError,
    Typing,
    one_of,
)
from translators.graph.ops.floats import maxnum, minnum
from translators.graph.ops.math import fused, reciprocal_sqrt
from translators.graph.types import F32, Type, element_of

_ONE_INSTRUCTION = re.compile(r"\s*([a-z][a-z0-9_.]*)\s+([^;{}\n]*?)\s*;?\s*\Z", re.ASCII)


def _in_f64(function: Callable[..., Array]) -> Callable[..., Array]:
    def apply(*operands: Array) -> Array:
        return to_float(np.asarray(function(*(each.astype(np.float64) for each in operands))), F32)

    return apply


def _fma(a: Array, b: Array, c: Array) -> Array:
    return fused(a, b, c, F32)


# By opcode without `.ftz`: how many operands of `f32`, and what it computes.
INSTRUCTIONS: Mapping[str, tuple[int, Callable[..., Array]]] = MappingProxyType(
    {
        "abs.f32": (1, np.abs),
        "add.f32": (2, np.add),
        "add.rn.f32": (2, np.add),
        "cos.approx.f32": (1, _in_f64(np.cos)),
        "div.approx.f32": (2, np.divide),
        "div.full.f32": (2, np.divide),
        "div.rn.f32": (2, np.divide),
        "ex2.approx.f32": (1, _in_f64(np.exp2)),
        "fma.rn.f32": (3, _fma),
        "lg2.approx.f32": (1, _in_f64(np.log2)),
        "max.f32": (2, maxnum),
        "min.f32": (2, minnum),
        "mul.f32": (2, np.multiply),
        "mul.rn.f32": (2, np.multiply),
        "neg.f32": (1, np.negative),
        "rcp.approx.f32": (1, _in_f64(lambda values: np.divide(1.0, values))),
        "rcp.rn.f32": (1, _in_f64(lambda values: np.divide(1.0, values))),
        "rsqrt.approx.f32": (1, _in_f64(reciprocal_sqrt)),
        "sin.approx.f32": (1, _in_f64(np.sin)),
        "sqrt.approx.f32": (1, np.sqrt),
        "sqrt.rn.f32": (1, np.sqrt),
        "sub.f32": (2, np.subtract),
        "sub.rn.f32": (2, np.subtract),
        "tanh.approx.f32": (1, _in_f64(np.tanh)),
    }
)


def _parse(text: str) -> tuple[str, int, bool] | None:
    """Opcode without `.ftz`, number of operands, and whether it flushes subnormals."""
    found = _ONE_INSTRUCTION.match(text)
    if found is None:
        return None
    opcode = found[1].replace(".ftz", "")
    if opcode not in INSTRUCTIONS:
        return None
    count, _ = INSTRUCTIONS[opcode]
    registers = [each.strip() for each in found[2].split(",")]
    # Anything else, such as operands in another order, is another function.
    if registers != [f"${index}" for index in range(count + 1)]:
        return None
    return opcode, count, ".ftz" in found[1]


def is_one_instruction(text: str) -> bool:
    """Whether a text is one instruction that has a meaning here."""
    return _parse(text) is not None


def _rule(typing: Typing) -> tuple[Type, ...]:
    text = str(typing.attributes["asm_string"])
    parsed = _parse(text)
    if parsed is None:
        raise RuleError(f"holds assembly whose meaning is not known: {text!r}")
    _, count, _ = parsed
    rules.expect_count(typing, count)
    type_ = rules.same_type(*typing.operands)
    rules.expect(element_of(type_) == F32, f"computes on `f32`, not on `{type_}`")
    return (type_,)


def _flushed(values: Array) -> Array:
    small = np.abs(values) < 2.0**F32.smallest_exponent
    return np.where(small, np.copysign(np.float32(0), values), values)


def _assembly(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    parsed = _parse(op.text("asm_string"))
    assert parsed is not None
    opcode, _, flushes = parsed
    _, function = INSTRUCTIONS[opcode]
    if not flushes:
        return (np.asarray(function(*operands)),)
    return (_flushed(np.asarray(function(*map(_flushed, operands)))),)


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.elementwise_inline_asm",
        summary="one PTX instruction on `f32`; several are read as the ops that they stand for",
        rule=_rule,
        meaning=_assembly,
        attributes={
            "asm_string": TEXT,
            "constraints": OPTIONAL_TEXT,
            "pure": FLAG,
            "packed_element": one_of(1),
        },
    ),
)
