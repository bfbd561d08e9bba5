"""Instructions that only change a layout, and what they change."""

from hlo_tools.hlo.attributes import parse_integers
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.graph import Work, consumers, physical_order, producer, same_layout

RELAYOUTS = frozenset({"copy", "transpose"})
"""Opcodes that write the elements of their operand in another order."""


def relayout_source(instruction: Instruction, work: Work) -> Shape | None:
    """The shape that an instruction reads only to write it in another layout; `None` otherwise."""
    if len(instruction.operands) != 1:
        return None
    source = instruction.operands[0].shape
    if not (source.is_array and instruction.shape.is_array):
        return None
    if instruction.opcode == "copy":
        return None if same_layout(source, instruction.shape) else source
    if instruction.opcode == "transpose":
        return source
    computation = instruction.fused_computation
    if computation is None:
        return None
    done = work.inside(computation)
    if not done or not done <= RELAYOUTS:
        return None
    moved = [i for i in computation.instructions if i.opcode in RELAYOUTS]
    if all(relayout_source(i, work) is None for i in moved):
        return None
    return source if source.element_count == instruction.shape.element_count else None


def transposed_argument(instruction: Instruction, work: Work) -> Instruction | None:
    """The entry's parameter that an instruction transposes in memory, if nothing else reads it.

    `None` for other instructions, for copies that change the tiling only, for what the program
    only returns, and where another reader takes the parameter in the order in which it comes.
    """
    if relayout_source(instruction, work) is None or not _transposes(instruction):
        return None
    if all(reader.opcode == "tuple" for reader in consumers(instruction)):
        return None
    argument = producer(instruction.operands[0])
    if argument.opcode != "parameter" or not argument.computation.is_entry:
        return None
    for reader in consumers(argument):
        if relayout_source(reader, work) is None or not _transposes(reader):
            return None
        if str(reader.shape) != str(instruction.shape):
            return None
    return argument


def _transposes(instruction: Instruction) -> bool:
    """Whether a relayout puts the dimensions in another order in memory."""
    computation = instruction.fused_computation
    inside = computation.instructions if computation is not None else [instruction]
    return any(_reorders(i) for i in inside if i.opcode in RELAYOUTS)


def _reorders(instruction: Instruction) -> bool:
    if not instruction.operands:
        return False
    source, target = instruction.operands[0].shape, instruction.shape
    order = physical_order(target)
    if instruction.opcode == "transpose":
        permutation = parse_integers(instruction.attribute("dimensions") or "")
        if sorted(permutation) != list(range(len(target.dimensions))):
            return False
        order = tuple(permutation[dimension] for dimension in order)
    return order != physical_order(source)
