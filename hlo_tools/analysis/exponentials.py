"""Exponentials that are divided by their own sum, or of whose sum the logarithm is taken."""

from collections.abc import Callable, Iterator

from hlo_tools.analysis.dataflow import Dataflow, Value
from hlo_tools.hlo.module import Instruction

SHAPING = frozenset(
    {
        "all-gather", "all-gather-done", "all-gather-start", "broadcast", "concatenate",
        "convert", "dynamic-slice", "get-tuple-element", "pad", "reduce-precision", "reshape",
        "reverse", "select", "slice", "slice-done", "slice-start", "transpose",
    }
)  # fmt: skip
"""Opcodes whose elements are those of an operand, or constants beside them."""

PRODUCTS = frozenset({"convolution", "dot"})
_SUMMED_ON = SHAPING | {"all-reduce", "all-reduce-start", "all-reduce-done", "add", "maximum"}
"""What may stand between a sum of exponentials and the division by it."""

MAX_STEPS = 512
"""Instructions that one search looks at; what is not found by then counts as not known."""


def normalisation(flow: Dataflow, exponential: Instruction) -> Instruction | None:
    """The `divide` or `log` that ends a softmax or log-sum-exp; `None` where there is none.

    The exponentials are summed by a reduction, and the sum is divided by or its logarithm taken.
    Between may stand what only shapes, masks or adds.
    """
    for summed in _forward(flow, exponential, SHAPING, _is_sum):
        for end in _forward(flow, summed, _SUMMED_ON, _is_end):
            return end
    return None


def _is_sum(reader: Instruction, position: int) -> bool:
    if reader.opcode != "reduce" or position != 0:
        return False
    called = reader.called_computations
    return bool(called) and called[0].root.opcode == "add"


def _is_end(reader: Instruction, position: int) -> bool:
    return reader.opcode == "log" or (reader.opcode == "divide" and position == 1)


def _forward(
    flow: Dataflow,
    start: Instruction,
    through: frozenset[str],
    wanted: Callable[[Instruction, int], bool],
) -> Iterator[Instruction]:
    """The wanted readers of a value, through opcodes that may stand between."""
    stack, seen = [start], {start}
    while stack and len(seen) < MAX_STEPS:
        for reader, position in flow.reads(stack.pop()):
            if position is None or reader in seen:
                continue
            if wanted(reader, position):
                seen.add(reader)
                yield reader
            elif reader.opcode in through:
                seen.add(reader)
                stack.append(reader)


def is_unbounded(flow: Dataflow, value: Value) -> bool:
    """Whether a value is known to be a product that nothing bounds, scaled or shifted perhaps.

    It is one if every way back from it, through scaling, bias, masks and shaping, leads to a matrix
    product one of whose operands comes as directly from another product or from an argument.
    Whatever else is met on the way, a subtraction of a maximum, a normalisation, a `tanh`, makes it
    not known.
    """
    products = _products(flow, value)
    return bool(products) and all(_is_free(flow, product) for product in products)


def _products(flow: Dataflow, value: Value) -> list[Instruction]:
    """The products that a value is made of; empty where it may be something else."""
    found: list[Instruction] = []
    stack, seen = [value], {value}
    while stack:
        if len(seen) > MAX_STEPS:
            return []
        instruction = stack.pop().instruction
        opcode = instruction.opcode
        if opcode in PRODUCTS:
            found.append(instruction)
            continue
        sources = _main_operands(flow, instruction)
        if not sources:
            return []
        stack.extend(source for source in sources if source not in seen)
        seen.update(sources)
    return found


def _main_operands(flow: Dataflow, instruction: Instruction) -> list[Value]:
    """The operands whose size decides on that of the result; empty where that is not known."""
    opcode = instruction.opcode
    operands = list(flow.operands(instruction))
    if opcode in SHAPING:
        if opcode == "select":
            operands = operands[1:]
        elif opcode != "concatenate":
            operands = operands[:1]
        return [o for o in operands if not _is_given(flow, o, constants_only=True)]
    if opcode in ("add", "multiply"):
        return [o for o in operands if not _is_given(flow, o)]
    if opcode in ("subtract", "divide", "maximum"):
        rest = [o for o in operands[1:] if not _is_given(flow, o, constants_only=True)]
        return [] if rest else operands[:1]
    return []


def _is_given(flow: Dataflow, value: Value, *, constants_only: bool = False) -> bool:
    """Whether a value is a constant or an argument, in another shape perhaps."""
    for _ in range(MAX_STEPS):
        instruction = value.instruction
        if instruction.opcode in ("constant", "iota"):
            return True
        if instruction.opcode == "parameter":
            return not constants_only
        if instruction.opcode not in SHAPING or instruction.opcode in ("select", "concatenate"):
            return False
        if not instruction.operands:
            return False
        value = flow.origin(instruction.operands[0])
    return False


def _is_free(flow: Dataflow, product: Instruction) -> bool:
    """Whether one of a product's operands is an argument or a product that nothing normalised."""
    return any(
        _is_given(flow, operand) or bool(_products(flow, operand))
        for operand in flow.operands(product)
    )
