"""Sums that a loop accumulates in one of its carries."""

from dataclasses import dataclass

from hlo_tools.analysis.dataflow import NAMING, Dataflow, Value
from hlo_tools.hlo.module import Computation, Instruction

SIGNIFICAND_BITS = {
    "bf16": 8, "f16": 11, "f8e3m4": 5, "f8e4m3": 4, "f8e4m3fn": 4, "f8e4m3b11fnuz": 4,
    "f8e4m3fnuz": 4, "f8e5m2": 3, "f8e5m2fnuz": 3,
}  # fmt: skip
"""Bits of a significand, the leading one included, of the types narrower than f32 (IEEE 754 for
`f16`; `ml_dtypes` and OCP's "8-bit Floating Point Specification" for the others)."""

MAX_DEPENDENCES = 4096
"""Values of a loop's body that are looked at to see what depends on a carry."""

_SAME_VALUE = NAMING | {"convert", "reduce-precision", "reshape", "transpose"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSum:
    """A carry to which every trip adds what does not depend on it.

    Attributes:
      index: of the carry in the loop's state.
      element_type: in which it is kept from trip to trip.
      add: the addition.
      maker: the instruction of the body, a fusion perhaps, that makes the new carry.
    """

    index: int
    element_type: str
    add: Instruction
    maker: Instruction


def narrow_loop_sums(flow: Dataflow, loop: Instruction) -> list[LoopSum]:
    """The sums that a `while` keeps in a float narrower than 32 bits."""
    body = loop.called("body")
    if body is None or body.root.opcode != "tuple" or len(body.parameters) != 1:
        return []
    found = []
    for index, maker in enumerate(body.root.operands):
        kind = maker.shape.element_type if maker.shape.is_array else ""
        if kind not in SIGNIFICAND_BITS:
            continue
        add = _addition(flow, body, index)
        if add is not None:
            found.append(LoopSum(index=index, element_type=kind, add=add, maker=_made(maker)))
    return found


def _made(value: Instruction) -> Instruction:
    """The instruction behind the names of a value, in its own computation."""
    while value.opcode in NAMING | {"get-tuple-element"} and value.operands:
        value = value.operands[0]
    return value


def _addition(flow: Dataflow, body: Computation, index: int) -> Instruction | None:
    """The last addition to a carry; `None` unless all that happens to it is additions.

    What is added may not depend on the carry: a residual stream, or the state of a recurrence, is
    no sum.
    """
    carry = Value(body.parameters[0], index)
    value = flow.origin(body.root, index)
    found: Instruction | None = None
    for _ in range(MAX_DEPENDENCES):
        if value == carry:
            return found
        instruction = value.instruction
        operands = list(flow.operands(instruction))
        if instruction.opcode == "add":
            found = found or instruction
        elif instruction.opcode == "select":
            operands = operands[1:]
        elif instruction.opcode not in _SAME_VALUE:
            return None
        dependent = [o for o in operands if _depends(flow, o, carry)]
        if len(dependent) != 1:
            return None
        value = dependent[0]
    return None


def _depends(flow: Dataflow, value: Value, carry: Value) -> bool:
    """Whether a value is computed from a carry; taken to be where that takes long to find out."""
    stack, seen = [value], {value}
    while stack:
        current = stack.pop()
        if current == carry or len(seen) > MAX_DEPENDENCES:
            return True
        if current == Value(carry.instruction):
            return True
        for source in flow.operands(current.instruction):
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return False
