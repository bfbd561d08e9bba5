"""Walks over operand and user edges that several rules share."""

from collections.abc import Iterator

from hlo_tools.hlo.module import Computation, Instruction
from hlo_tools.hlo.shape import Shape

RENAMING = frozenset({"bitcast", "opt-barrier", "optimization-barrier", "domain", "add-dependency"})
"""Opcodes whose result is their first operand under another name or type: nothing is moved."""

BOOKKEEPING = RENAMING | {
    "parameter", "constant", "tuple", "get-tuple-element", "after-all", "partition-id",
    "replica-id", "iota", "broadcast", "reshape",
}  # fmt: skip
"""Opcodes that do no work of their own inside a fusion."""

MATMULS = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})

ELEMENTWISE = frozenset(
    {
        "abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp", "compare",
        "complex", "convert", "cosine", "count-leading-zeros", "divide", "erf", "exponential",
        "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic",
        "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real",
        "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt",
        "select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine",
        "sqrt", "stochastic-convert", "subtract", "tan", "tanh", "xor",
    }
)  # fmt: skip
"""One result element from the operands' elements at its place (`HloInstruction::IsElementwise`)."""

DATA_MOVEMENT = frozenset({"slice", "pad", "concatenate", "transpose", "reverse"})
"""Opcodes that rearrange elements without computing."""


def producer(instruction: Instruction) -> Instruction:
    """Where the value really comes from: back through renaming, tuples and copies that finished."""
    while True:
        if instruction.opcode in RENAMING and instruction.operands:
            instruction = instruction.operands[0]
        elif instruction.opcode == "get-tuple-element" and instruction.operands:
            source = instruction.operands[0]
            if source.opcode == "tuple":
                index = tuple_index(instruction)
                if not 0 <= index < len(source.operands):
                    return instruction
                instruction = source.operands[index]
            elif source.opcode in RENAMING:
                return instruction
            else:
                return instruction
        elif instruction.opcode == "copy-done" and instruction.operands:
            start = instruction.operands[0]
            if start.opcode != "copy-start" or not start.operands:
                return instruction
            instruction = start.operands[0]
        else:
            return instruction


def consumers(instruction: Instruction) -> list[Instruction]:
    """Who really reads the value: forward through renaming and asynchronous copies, each once."""
    found: dict[Instruction, None] = {}
    seen = {instruction}
    stack = [instruction]
    while stack:
        for user in stack.pop().users:
            if user in seen:
                continue
            seen.add(user)
            if user.opcode in RENAMING or user.opcode in ("copy-start", "copy-done"):
                stack.append(user)
            else:
                found[user] = None
    return list(found)


def tuple_index(instruction: Instruction) -> int:
    """The index of a `get-tuple-element`; -1 where it is unreadable."""
    value = instruction.attribute("index")
    return int(value) if value and value.isascii() and value.isdigit() else -1


class Work:
    """What the instructions of one module do, fusions looked into once."""

    def __init__(self) -> None:
        self._by_computation: dict[Computation, frozenset[str]] = {}

    def inside(self, computation: Computation) -> frozenset[str]:
        """The opcodes in a fusion's computation that do work or move data."""
        found = self._by_computation.get(computation)
        if found is None:
            found = frozenset({i.opcode for i in computation.instructions}) - BOOKKEEPING
            self._by_computation[computation] = found
        return found

    def opcodes(self, instruction: Instruction) -> frozenset[str]:
        """What an instruction does: its opcode, or for a fusion those inside it."""
        computation = instruction.fused_computation
        if computation is None:
            return frozenset({instruction.opcode})
        return self.inside(computation)

    def matmuls(self, instruction: Instruction) -> Iterator[Instruction]:
        """The dots and convolutions that an instruction runs: itself, or those fused into it."""
        if instruction.opcode in MATMULS:
            yield instruction
            return
        computation = instruction.fused_computation
        if computation is not None and not MATMULS.isdisjoint(self.inside(computation)):
            yield from (i for i in computation.instructions if i.opcode in MATMULS)


def element_maker(instruction: Instruction, index: int) -> Instruction:
    """What makes one element of a fusion's tuple, inside the fusion; else the instruction."""
    computation = instruction.fused_computation
    if computation is None:
        return instruction
    root = computation.root
    inside = root.opcode == "tuple" and 0 <= index < len(root.operands)
    return root.operands[index] if inside else instruction


def physical_order(shape: Shape) -> tuple[int, ...]:
    """The dimensions in memory order, major first, those of size 1 left out: they have no place."""
    if shape.layout is None:
        return tuple(i for i, size in enumerate(shape.dimensions) if size != 1)
    return tuple(i for i in reversed(shape.layout.minor_to_major) if shape.dimensions[i] != 1)


def same_layout(a: Shape, b: Shape) -> bool:
    """Whether two arrays agree in dimensions, order and tiling, wherever they lie."""
    if a.dimensions != b.dimensions:
        return False
    tiles_a = a.layout.tiles if a.layout else ()
    tiles_b = b.layout.tiles if b.layout else ()
    return physical_order(a) == physical_order(b) and tiles_a == tiles_b
