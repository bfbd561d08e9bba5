"""Conversions between element types."""

from typing import Any

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine
from translators.graph.numerics import (
    Array,
    dtype_of,
    element_type,
    from_integers,
    signed,
    to_float,
    to_integers,
    unsigned,
)
from translators.graph.ops import rules
from translators.graph.ops.definition import AttributeSpec, OpDefinition, Operands
from translators.graph.types import FloatType, IntType, PointerType, bit_width


def _float_to_float(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    target = element_type(op.result.type)
    assert isinstance(target, FloatType)
    toward_zero = op.text("rounding") == "rtz"
    return (to_float(operands[0], target, toward_zero=toward_zero),)


def _from_signed(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    source, target = element_type(op.operands[0].type), element_type(op.result.type)
    assert isinstance(source, IntType) and isinstance(target, FloatType)
    # The only bit of i1 is its sign.
    values = -signed(operands[0]) if source.width == 1 else signed(operands[0])
    return (from_integers(values, target),)


def _from_unsigned(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    source, target = element_type(op.operands[0].type), element_type(op.result.type)
    assert isinstance(source, IntType) and isinstance(target, FloatType)
    return (from_integers(unsigned(operands[0], source), target),)


def _to_signed(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    target = element_type(op.result.type)
    assert isinstance(target, IntType)
    # The values of i1 read as signed are 0 and -1, which is its set bit.
    smallest = -1 if target.width == 1 else target.smallest
    largest = 0 if target.width == 1 else target.largest
    found = to_integers(operands[0], smallest=smallest, largest=largest)
    return (found.astype(dtype_of(target)),)


def _to_unsigned(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    target = element_type(op.result.type)
    assert isinstance(target, IntType)
    found = to_integers(operands[0], smallest=0, largest=(1 << target.width) - 1)
    unused = np.int64(64 - target.width)
    if target.width == 1:
        return (found.astype(np.bool_),)
    return (((found.astype(np.int64) << unused) >> unused).astype(dtype_of(target)),)


def _bitcast(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    target = dtype_of(element_type(op.result.type))
    return (operands[0].view(target),)


def _same(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (operands[0],)


def _widens(source: Any, target: Any) -> str | None:
    if not (isinstance(source, FloatType) and isinstance(target, FloatType)):
        return "takes and gives floats"
    return None if target.width > source.width else "gives a wider type"


def _narrows(source: Any, target: Any) -> str | None:
    if not (isinstance(source, FloatType) and isinstance(target, FloatType)):
        return "takes and gives floats"
    return None if target.width < source.width else "gives a narrower type"


def _floats(source: Any, target: Any) -> str | None:
    both = isinstance(source, FloatType) and isinstance(target, FloatType)
    return None if both else "takes and gives floats"


def _int_to_float(source: Any, target: Any) -> str | None:
    fits = isinstance(source, IntType) and isinstance(target, FloatType)
    return None if fits else "takes integers and gives floats"


def _float_to_int(source: Any, target: Any) -> str | None:
    fits = isinstance(source, FloatType) and isinstance(target, IntType)
    return None if fits else "takes floats and gives integers"


def _same_bits(source: Any, target: Any) -> str | None:
    if isinstance(source, PointerType) != isinstance(target, PointerType):
        return "makes no pointers of numbers or numbers of pointers"
    if bit_width(source) != bit_width(target):
        return "keeps the number of bits"
    # Such integers are held in wider ones, so that there are no bits to read anew.
    if source != target and bit_width(source) not in (8, 16, 32, 64):
        return "reads anew only whole bytes"
    return None


def _to_pointer(source: Any, target: Any) -> str | None:
    fits = source == IntType(64) and isinstance(target, PointerType)
    return None if fits else "takes `i64` and gives pointers"


def _from_pointer(source: Any, target: Any) -> str | None:
    fits = isinstance(source, PointerType) and target == IntType(64)
    return None if fits else "takes pointers and gives `i64`"


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="arith.extf",
        summary="the same number in a wider type",
        rule=rules.cast(_widens),
        meaning=_float_to_float,
    ),
    OpDefinition(
        name="arith.truncf",
        summary="rounded once to a narrower type, to nearest even",
        rule=rules.cast(_narrows),
        meaning=_float_to_float,
    ),
    OpDefinition(
        name="tt.fp_to_fp",
        summary="in another float type, rounded as asked; 8-bit types saturate",
        rule=rules.cast(_floats),
        meaning=_float_to_float,
        attributes={"rounding": AttributeSpec(kind=str, choices=("rtne", "rtz"), required=False)},
    ),
    OpDefinition(
        name="arith.sitofp",
        summary="signed integer, rounded once to nearest even",
        rule=rules.cast(_int_to_float),
        meaning=_from_signed,
    ),
    OpDefinition(
        name="arith.uitofp",
        summary="unsigned integer, rounded once to nearest even",
        rule=rules.cast(_int_to_float),
        meaning=_from_unsigned,
    ),
    OpDefinition(
        name="arith.fptosi",
        summary="cut toward zero, held to the signed range; NaN gives 0",
        rule=rules.cast(_float_to_int),
        meaning=_to_signed,
    ),
    OpDefinition(
        name="arith.fptoui",
        summary="cut toward zero, held to the unsigned range; NaN gives 0",
        rule=rules.cast(_float_to_int),
        meaning=_to_unsigned,
    ),
    OpDefinition(
        name="arith.bitcast",
        summary="the same bits as another type",
        rule=rules.cast(_same_bits),
        meaning=_bitcast,
    ),
    OpDefinition(
        name="tt.bitcast",
        summary="the same bits as another type; of pointers, the same address",
        rule=rules.cast(_same_bits),
        meaning=_bitcast,
    ),
    OpDefinition(
        name="tt.int_to_ptr",
        summary="the pointer to a byte address",
        rule=rules.cast(_to_pointer),
        meaning=_same,
    ),
    OpDefinition(
        name="tt.ptr_to_int",
        summary="the byte address of a pointer",
        rule=rules.cast(_from_pointer),
        meaning=_same,
    ),
)
