"""Names and figures as messages spell them."""

from hlo_tools.analysis.collectives import Collective
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape, format_layout
from passes.graph import MATMULS


def nbytes(count: float) -> str:
    """A number of bytes in SI units, three significant digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 999.5 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def array(shape: Shape) -> str:
    """Type and dimensions: `bf16[8,128]`; a tuple is named by its largest member."""
    if shape.is_tuple:
        leaves = [leaf for leaf in shape.leaves() if leaf.is_array]
        if not leaves:
            return "()"
        shape = max(leaves, key=lambda leaf: leaf.padded_bytes)
    return f"{shape.element_type}[{','.join(map(str, shape.dimensions))}]"


def sent_arrays(collective: Collective) -> str:
    """What a collective carries: `bf16[8,128]`, or "12 arrays, `bf16[8,128]` the largest"."""
    count = sum(1 for operand in collective.operation.operands if operand.shape.is_array)
    largest = f"`{array(collective.operation.shape)}`"
    return f"{count} arrays, {largest} the largest," if count > 1 else largest


def sent_from(collective: Collective) -> Instruction:
    """The instruction whose place in the source is that of a collective.

    The compiler gives a collective that it combined from several the place of any of them: then it
    is the operand with most of the data that tells.
    """
    operands = collective.operation.operands
    if len(operands) < 2:
        return collective.operation
    return max(operands, key=lambda operand: operand.shape.padded_bytes)


def layout(shape: Shape) -> str:
    """The layout without its memory space: `{1,0:T(8,128)}`."""
    if shape.layout is None:
        return "{}"
    text = format_layout(shape.layout)
    space = f"S({shape.layout.memory_space})"
    return text.replace(space, "").replace(":}", "}")


def is_kernel(instruction: Instruction) -> bool:
    """Whether it is a Pallas kernel for TPU (Mosaic's custom call)."""
    if instruction.opcode != "custom-call":
        return False
    return instruction.attribute("custom_call_target") == '"tpu_custom_call"'


def role(instruction: Instruction, op_name: str | None = None) -> str:
    """What an instruction is, for a sentence: "the argument `x`", "the matmul `%fusion.3`"."""
    name = f"`%{instruction.name}`"
    if instruction.opcode == "parameter":
        if instruction.computation.is_entry:
            return f"the argument `{op_name or instruction.name}`"
        return "a value carried by the loop"
    if instruction.opcode == "get-tuple-element" and instruction.operands:
        source = instruction.operands[0]
        if source.opcode == "parameter":
            return "a value carried by the loop"
        if source.opcode == "while":
            return f"the result of the loop `%{source.name}`"
        return role(source, op_name)
    if instruction.opcode == "tuple":
        return "the program's result" if instruction.computation.is_entry else "the loop's carry"
    computation = instruction.fused_computation
    body = computation.instructions if computation is not None else [instruction]
    if any(i.opcode in MATMULS for i in body):
        return f"the matmul {name}"
    if instruction.opcode == "custom-call":
        if is_kernel(instruction):
            return f"the Pallas kernel {name}"
        target = (instruction.attribute("custom_call_target") or "").strip('"')
        return f"the custom call {name} (`{target}`)" if target else f"the custom call {name}"
    if instruction.opcode == "fusion":
        return f"the fusion {name}"
    if instruction.opcode == "while":
        return f"the loop {name}"
    return f"the `{instruction.opcode}` {name}"
