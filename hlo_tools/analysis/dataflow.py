"""Where a value comes from and who reads it, as if no fusion stood between.

A fusion is transparent here: what its root computes is what its users read, and its parameters are
its operands. So are tuples, renaming and copies. Loops, branches and calls are opaque: a value
that goes into one is read by that instruction, and what comes out of one begins there.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hlo_tools.hlo.module import Computation, Instruction, Module

NAMING = frozenset(
    {
        "add-dependency", "bitcast", "copy", "copy-done", "copy-start", "domain", "opt-barrier",
        "optimization-barrier",
    }
)  # fmt: skip
"""Opcodes whose result is their first operand under another name, type or in another place."""

MAX_STEPS = 20_000
"""How many names one value is followed through: more is hostile text, or goes in circles."""


class Value(NamedTuple):
    """What an instruction computes, or one element of its tuple.

    Attributes:
      instruction: the one that computes it.
      element: which one; `None` for the whole.
    """

    instruction: Instruction
    element: int | None = None


class Read(NamedTuple):
    """A place where a value is read.

    Attributes:
      reader: the instruction, which may stand inside a fusion.
      position: of the value among the reader's operands; `None` where the reader is the root of a
        computation that runs, and the value what leaves it.
    """

    reader: Instruction
    position: int | None


class Dataflow:
    """Follows values of one module through its fusions.

    A computation that several fusions share is not followed out of: which of them would be meant
    is not known.
    """

    def __init__(self, module: Module) -> None:
        self._fusions: dict[Computation, Instruction | None] = {}
        for instruction in module.instructions():
            body = instruction.fused_computation
            if body is not None:
                self._fusions[body] = None if body in self._fusions else instruction

    def origin(self, instruction: Instruction, index: int | None = None) -> Value:
        """What really computes a value: back through names, tuples and into and out of fusions."""
        value = Value(instruction, index)
        for _ in range(MAX_STEPS):
            source = self._source(value)
            if source is None:
                break
            value = source
        return value

    def operands(self, instruction: Instruction) -> Iterator[Value]:
        """What really computes each of an instruction's operands."""
        return (self.origin(operand) for operand in instruction.operands)

    def reads(self, instruction: Instruction, index: int | None = None) -> list[Read]:
        """Every place where a value is really read, in the order in which they are found."""
        found: dict[Read, None] = {}
        stack = [Value(instruction, index)]
        seen = set(stack)
        while stack and len(seen) < MAX_STEPS:
            for following in self._following(stack.pop()):
                if isinstance(following, Read):
                    found[following] = None
                elif following not in seen:
                    seen.add(following)
                    stack.append(following)
        return list(found)

    def _source(self, value: Value) -> Value | None:
        """One step back; `None` where the value is made."""
        instruction, index = value
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "get-tuple-element" and operands and index is None:
            return Value(operands[0], _element(instruction))
        if opcode == "tuple" and index is not None:
            return Value(operands[index]) if 0 <= index < len(operands) else None
        if opcode in NAMING and operands:
            return Value(operands[0], None if opcode.startswith("copy") else index)
        if opcode == "parameter":
            return self._outside(value)
        body = instruction.fused_computation
        return Value(body.root, index) if body is not None else None

    def _outside(self, value: Value) -> Value | None:
        """The operand that a fusion's parameter stands for."""
        computation = value.instruction.computation
        fusion = self._fusions.get(computation)
        if fusion is None:
            return None
        number = computation.parameters.index(value.instruction)
        return (
            Value(fusion.operands[number], value.element) if number < len(fusion.operands) else None
        )

    def _following(self, value: Value) -> Iterator[Value | Read]:
        """One step forward: further names of the value, and places where it is read."""
        instruction, index = value
        if instruction.is_root:
            yield from self._leaving(value)
        for user in instruction.users:
            for position, operand in enumerate(user.operands):
                if operand is instruction:
                    yield from self._at(user, position, index)

    def _at(self, user: Instruction, position: int, index: int | None) -> Iterator[Value | Read]:
        opcode = user.opcode
        if opcode == "get-tuple-element":
            if index is None or index == _element(user):
                yield Value(user)
        elif opcode == "tuple":
            yield Value(user, position)
        elif opcode in NAMING:
            yield Value(user, index)
        else:
            body = user.fused_computation
            if body is not None and position < len(body.parameters):
                yield Value(body.parameters[position], index)
            else:
                yield Read(user, position)

    def _leaving(self, value: Value) -> Iterator[Value | Read]:
        """What becomes of the root of a computation: the result of its fusion, or it leaves."""
        computation = value.instruction.computation
        fusion = self._fusions.get(computation)
        if fusion is not None:
            yield Value(fusion, value.element)
        else:
            yield Read(value.instruction, None)


def _element(instruction: Instruction) -> int:
    """The index of a `get-tuple-element`; -1 where it is unreadable."""
    text = instruction.attribute("index")
    return int(text) if text and text.isascii() and text.isdigit() else -1
