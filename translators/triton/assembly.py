"""Inline assembly of several instructions as the ops that it stands for.

Registers hold 32 bits: an `f32` or an `i32`, and the bits of one are read as the other where an
instruction asks for it. An instruction under a predicate leaves in the other lanes what the
register held before. What has a meaning as a single instruction of floats stays one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from translators.graph.builder import Builder
from translators.graph.errors import GraphError
from translators.graph.graph import Value
from translators.graph.ops.assembly import INSTRUCTIONS
from translators.graph.types import (
    F32,
    I1,
    I32,
    ElementType,
    Type,
    element_of,
    shape_of,
    shaped,
    with_element,
)
from translators.triton.ptx import Instruction, PtxError, instructions

# How a GPU orders programs changes no value.
_NOTHING = frozenset({"griddepcontrol.launch_dependents", "griddepcontrol.wait"})
_INTEGERS: Mapping[str, str] = MappingProxyType(
    {
        "add.s32": "arith.addi",
        "add.u32": "arith.addi",
        "sub.s32": "arith.subi",
        "sub.u32": "arith.subi",
        "mul.lo.s32": "arith.muli",
        "mul.lo.u32": "arith.muli",
        "and.b32": "arith.andi",
        "or.b32": "arith.ori",
        "xor.b32": "arith.xori",
        "min.s32": "arith.minsi",
        "min.u32": "arith.minui",
        "max.s32": "arith.maxsi",
        "max.u32": "arith.maxui",
    }
)
# By more than 31 bits these differ from the ops.
_SHIFTS: Mapping[str, str] = MappingProxyType(
    {"shl.b32": "arith.shli", "shr.u32": "arith.shrui", "shr.b32": "arith.shrui"}
    | {"shr.s32": "arith.shrsi"}
)
_PREDICATES: Mapping[str, str] = MappingProxyType(
    {"and.pred": "arith.andi", "or.pred": "arith.ori", "xor.pred": "arith.xori"}
)
_ORDERED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"eq": "eq", "ne": "ne", "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"} | {
    "lt": "ult",
    "le": "ule",
    "gt": "ugt",
    "ge": "uge",
}
# One register of 32 bits, read or written.
_CONSTRAINTS = frozenset({"=r", "=f", "=&r", "=&f", "r", "f"})
_HEX_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})")
_WHOLE = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)[uU]?")
_REAL = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


def assembly(
    builder: Builder,
    text: str,
    constraints: str,
    operands: Sequence[Value],
    results: Sequence[Type],
) -> list[Value]:
    """Writes what a text computes.

    Args:
      builder: where to.
      text: the assembly; `$0` and on are its results, then its operands.
      constraints: which kind of register each of these is.
      operands: of `f32` or `i32`, one register each.
      results: their types, likewise.

    Raises:
      GraphError: part of the text has no meaning here.
    """
    try:
        unread = {each.strip() for each in constraints.split(",")} - _CONSTRAINTS
        if unread:
            raise PtxError(f"the constraint `{min(unread)}` is not read")
        return _Program(builder, text, operands, results).run()
    except PtxError as error:
        raise GraphError(
            f"`tt.elementwise_inline_asm` holds assembly whose meaning is not known: {text!r}: "
            f"{error}",
            builder.location,
        ) from error


@dataclass(slots=True)
class _Program:
    """One text, with what its registers hold."""

    builder: Builder
    text: str
    operands: Sequence[Value]
    results: Sequence[Type]
    registers: dict[str, Value] = field(default_factory=dict)
    shape: tuple[int, ...] = ()

    def run(self) -> list[Value]:
        types = [each.type for each in self.operands] + list(self.results)
        if any(element_of(each) not in (F32, I32) for each in types):
            raise PtxError("registers of other than 32 bits are not read")
        self.shape = shape_of(types[0])
        first = len(self.results)
        for number, value in enumerate(self.operands):
            self.registers[f"${first + number}"] = value
        for each in instructions(self.text):
            self._do(each)
        return [self._result(number, type_) for number, type_ in enumerate(self.results)]

    def _result(self, number: int, type_: Type) -> Value:
        found = self.registers.get(f"${number}")
        element = F32 if element_of(type_) == F32 else I32
        if found is None:  # what is never written is whatever was there
            return self.builder.constant(0.0 if element == F32 else 0, type_)
        return self._as(found, element)

    def _do(self, each: Instruction) -> None:
        if each.opcode in _NOTHING:
            return
        if not each.operands:
            raise PtxError(f"`{each.opcode}` is not known")
        target, *given = each.operands
        value = self._value(each.opcode, given)
        before = self.registers.get(target)
        if each.predicate and before is not None:
            condition = self._register(each.predicate)
            pair = [value, self._alike(before, value)]
            if each.negated:
                pair.reverse()
            value = self.builder.value("arith.select", condition, *pair)
        self.registers[target] = value

    def _value(self, opcode: str, given: Sequence[str]) -> Value:
        if opcode.replace(".ftz", "") in INSTRUCTIONS:
            return self._floats(opcode, given)
        if opcode.startswith("mov.") and len(given) == 1:
            return self._moved(opcode, given[0])
        if opcode.startswith("setp."):
            return self._compared(opcode, given)
        if opcode.startswith("selp.") and len(given) == 3:
            element = F32 if opcode == "selp.f32" else I32
            one, other = (self._read(each, element) for each in given[:2])
            return self.builder.value("arith.select", self._register(given[2]), one, other)
        if opcode == "not.b32":
            return self._of_integers("arith.xori", [given[0], "-1"])
        if opcode == "not.pred":
            return self._negated(self._register(given[0]))
        if opcode in _PREDICATES:
            parts = [self._register(each) for each in given]
            return self.builder.value(_PREDICATES[opcode], *parts)
        if opcode in _INTEGERS and len(given) == 2:
            return self._of_integers(_INTEGERS[opcode], given)
        if opcode in _SHIFTS and len(given) == 2:
            if not _WHOLE.fullmatch(given[1]) or not 0 <= _number(given[1]) < 32:
                raise PtxError(f"`{opcode}` by other than a number below 32 is not read")
            return self._of_integers(_SHIFTS[opcode], given)
        raise PtxError(f"`{opcode}` is not known")

    def _floats(self, opcode: str, given: Sequence[str]) -> Value:
        count, _ = INSTRUCTIONS[opcode.replace(".ftz", "")]
        if len(given) != count:
            raise PtxError(f"`{opcode}` takes {count} operands")
        places = ", ".join(f"${number}" for number in range(count + 1))
        return self.builder.value(
            "tt.elementwise_inline_asm",
            *(self._read(each, F32) for each in given),
            asm_string=f"{opcode} {places};",
            constraints=",".join(["=f", *["f"] * count]),
            pure=True,
            packed_element=1,
        )

    def _moved(self, opcode: str, given: str) -> Value:
        if opcode not in ("mov.f32", "mov.b32", "mov.u32", "mov.s32"):
            raise PtxError(f"`{opcode}` is not known")
        if given in self.registers and element_of(self.registers[given].type) != I1:
            return self.registers[given]
        return self._read(given, F32 if opcode == "mov.f32" else I32)

    def _compared(self, opcode: str, given: Sequence[str]) -> Value:
        _, how, *kind = opcode.split(".")
        element: ElementType
        if len(given) != 2 or len(kind) != 1:
            raise PtxError(f"`{opcode}` is not known")
        if kind == ["f32"]:
            predicate = {"num": "ord", "nan": "uno"}.get(how)
            if how in _ORDERED:
                predicate = f"o{how}"
            elif how[:-1] in _ORDERED and how.endswith("u"):
                predicate = f"u{how[:-1]}"
            name, element = "arith.cmpf", F32
        else:
            tables = {"s32": _SIGNED, "u32": _UNSIGNED, "b32": {"eq": "eq", "ne": "ne"}}
            predicate = tables.get(kind[0], {}).get(how)
            name, element = "arith.cmpi", I32
        if predicate is None:
            raise PtxError(f"`{opcode}` is not known")
        sides = [self._read(each, element) for each in given]
        return self.builder.value(name, *sides, predicate=predicate)

    def _of_integers(self, name: str, given: Sequence[str]) -> Value:
        return self.builder.value(name, *(self._read(each, I32) for each in given))

    def _negated(self, condition: Value) -> Value:
        true = self.builder.constant(1, condition.type)
        return self.builder.value("arith.xori", condition, true)

    def _register(self, name: str) -> Value:
        """A predicate."""
        negated = name.startswith("!")
        found = self.registers.get(name.lstrip("!"))
        if found is None or element_of(found.type) != I1:
            raise PtxError(f"`{name}` is no predicate that was set")
        return self._negated(found) if negated else found

    def _read(self, text: str, element: ElementType) -> Value:
        """A register or a number, as such an element."""
        found = self.registers.get(text)
        if found is not None:
            return self._as(found, element)
        type_ = shaped(self.shape, element)
        bits = _HEX_FLOAT.fullmatch(text)
        if bits and element == F32:
            whole = self.builder.constant(_signed(int(bits[1], 16)), with_element(type_, I32))
            return self._as(whole, F32)
        if element == I32 and _WHOLE.fullmatch(text):
            return self.builder.constant(_signed(_number(text)), type_)
        if element == F32 and _REAL.fullmatch(text):
            return self.builder.constant(float(np.float32(float(text))), type_)
        raise PtxError(f"`{text}` is not read before it is written")

    def _alike(self, value: Value, other: Value) -> Value:
        """A register as what another one holds."""
        if value.type == other.type:
            return value
        return self._as(value, F32 if element_of(other.type) == F32 else I32)

    def _as(self, value: Value, element: ElementType) -> Value:
        if element_of(value.type) == element:
            return value
        if element_of(value.type) == I1:
            raise PtxError("a predicate is no number")
        return self.builder.value("tt.bitcast", value, results=(with_element(value.type, element),))


def _number(text: str) -> int:
    return int(text.rstrip("uU"), 0) if not text.isdigit() else int(text)


def _signed(number: int) -> int:
    return I32.wrap(number)
