"""Which arguments a result is an updated version of."""

from hlo_tools.hlo.module import Computation, Instruction
from passes.graph import DATA_MOVEMENT, ELEMENTWISE, RENAMING, tuple_index

_THROUGH = (
    ELEMENTWISE
    | RENAMING
    | (DATA_MOVEMENT - {"transpose"})
    | {
        "copy", "copy-done", "copy-start", "reshape", "dynamic-slice", "dynamic-update-slice",
        "slice-start", "slice-done", "scatter",
    }
)  # fmt: skip
"""Opcodes that keep elements in their place: what goes through them is still the same array."""

_MAX_STEPS = 20_000
"""How many values are followed back before giving up: what is found by then is returned."""


def updated_parameters(result: Instruction, index: int | None = None) -> set[Instruction]:
    """The entry's parameters that reach a result element by element or slice by slice.

    Args:
      result: the instruction that makes the result.
      index: the element of its tuple, where it makes one.

    Walks operand edges back through elementwise ops, slices and in-place updates, into fusions,
    and through loops by way of their initial values and their bodies. Products, reductions,
    gathers and collectives end a path: what comes out of them is a new array.
    """
    found: set[Instruction] = set()
    # A value is an instruction, with the index of the tuple element that is asked for.
    stack: list[tuple[Instruction, int | None]] = [(result, index)]
    seen: set[tuple[Instruction, int | None]] = set(stack)
    fused_into: dict[Computation, Instruction] = {}
    while stack and len(seen) < _MAX_STEPS:
        instruction, index = stack.pop()
        for source in _sources(instruction, index, fused_into):
            if source not in seen:
                seen.add(source)
                stack.append(source)
        if instruction.opcode == "parameter" and instruction.computation.is_entry:
            found.add(instruction)
    return found


def _sources(
    instruction: Instruction, index: int | None, fused_into: dict[Computation, Instruction]
) -> list[tuple[Instruction, int | None]]:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "get-tuple-element" and operands:
        return [(operands[0], tuple_index(instruction))]
    if opcode == "tuple":
        if index is None:
            return [(operand, None) for operand in operands]
        return [(operands[index], None)] if 0 <= index < len(operands) else []
    if opcode == "while" and operands:
        body = instruction.called("body")
        inside = [(body.root, index)] if body is not None else []
        if body is not None:
            fused_into.setdefault(body, instruction)
        return [(operands[0], index), *inside]
    if opcode in ("fusion", "call"):
        called = instruction.called_computations
        if called:
            fused_into[called[0]] = instruction
            return [(called[0].root, index)]
        return []
    if opcode == "parameter":
        return _outside(instruction, index, fused_into)
    if opcode in _THROUGH or _joins_slices(instruction):
        return [
            (operand, None)
            for operand in operands
            if operand.shape.is_tuple or operand.shape.dimensions
        ]
    return []


def _joins_slices(instruction: Instruction) -> bool:
    """Whether it only puts side by side what TPU slices prefetched (`ConcatBitcast`)."""
    if instruction.opcode != "custom-call":
        return False
    return instruction.attribute("custom_call_target") == '"ConcatBitcast"'


def _outside(
    parameter: Instruction, index: int | None, fused_into: dict[Computation, Instruction]
) -> list[tuple[Instruction, int | None]]:
    """The operand that a called computation's parameter stands for."""
    caller = fused_into.get(parameter.computation)
    if caller is None:
        return []
    parameters = parameter.computation.parameters
    number = parameters.index(parameter)
    if number < len(caller.operands):
        return [(caller.operands[number], index)]
    return []
