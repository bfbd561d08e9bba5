"""Module -> HLO text, in the form in which XLA prints it (`HloModule::ToString`).

Names, shapes, opcodes and operands come from the model; literals and attributes are the text that
was read. Comments and the shapes that older XLA printed before operands are left out.
"""

from collections.abc import Iterator

from hlo_tools.hlo.module import Computation, Instruction, Module, parameter_number
from hlo_tools.hlo.shape import UNKNOWN_SHAPE, format_shape


def print_module(module: Module) -> str:
    """The text of a module; parsing it gives the same module again."""
    return "".join(_pieces(module))


def _pieces(module: Module) -> Iterator[str]:
    yield f"HloModule {module.name}{module.header_text}\n\n"
    if module.frame_tables:
        yield f"{module.frame_tables.rstrip()}\n\n"
    for computation in module.computations:
        entry = "ENTRY " if computation.is_entry else ""
        yield f"{entry}%{computation.name} {_signature(computation)}{{\n"
        root = computation.root
        for instruction in computation.instructions:
            yield f"  {'ROOT ' if instruction is root else ''}{_line(instruction)}\n"
        if computation.complete:
            yield f"}}{computation.attribute_text}\n\n"


def _signature(computation: Computation) -> str:
    """`(p: f32[2]) -> f32[2] `, or nothing where the text does not give all of it."""
    parameters = computation.parameters
    numbers = [parameter_number(parameter) for parameter in parameters]
    result = computation.root.shape
    shapes = [result, *(parameter.shape for parameter in parameters)]
    if numbers != list(range(len(numbers))) or UNKNOWN_SHAPE in shapes or not computation.complete:
        return ""
    listed = ", ".join(
        f"{parameter.name}: {format_shape(parameter.shape, with_layout=False)}"
        for parameter in parameters
    )
    return f"({listed}) -> {format_shape(result, with_layout=False)} "


def _line(instruction: Instruction) -> str:
    shape = "" if instruction.shape == UNKNOWN_SHAPE else f"{format_shape(instruction.shape)} "
    arguments = (
        ", ".join(f"%{operand.name}" for operand in instruction.operands)
        if instruction.operands
        else instruction.argument_text
    )
    return (
        f"%{instruction.name} = {shape}{instruction.opcode}({arguments})"
        f"{instruction.attribute_text}"
    )
