"""What a loop writes, trip by trip, into a buffer that was made before it."""

from hlo_tools.hlo.module import Instruction, parameter_number
from passes.graph import consumers, element_maker, producer, tuple_index

_PASSING = frozenset({"bitcast", "convert", "copy", "reshape"})


def collected_value(buffer: Instruction) -> Instruction | None:
    """The value of which a loop collects one slice a trip in a buffer, as `jax.lax.scan` does.

    Args:
      buffer: what the loop carries.

    Returns:
      The instruction of the loop's body that computes the slice; `None` where no loop fills the
      buffer slice by slice.
    """
    for carry in consumers(buffer):
        if carry.opcode != "tuple":
            continue
        for loop in carry.users:
            body = loop.called("body") if loop.opcode == "while" else None
            if body is None or body.root.opcode != "tuple":
                continue
            for index, operand in enumerate(carry.operands):
                if producer(operand) is producer(buffer) and index < len(body.root.operands):
                    value = _slice_written(body.root.operands[index])
                    if value is not None:
                        return value
    return None


def _slice_written(update: Instruction) -> Instruction | None:
    """What an in-place update puts into its buffer."""
    fusion = update if update.fused_computation is not None else None
    inner = update
    if update.fused_computation is not None:
        inner = update.fused_computation.root
    if inner.opcode != "dynamic-update-slice" or len(inner.operands) < 2:
        return None
    value = _passed(inner.operands[1])
    if fusion is not None and value.opcode == "parameter":
        number = parameter_number(value)
        if not 0 <= number < len(fusion.operands):
            return None
        value = _passed(fusion.operands[number])
    if value.opcode == "get-tuple-element" and value.operands:
        value = _passed(element_maker(value.operands[0], tuple_index(value)))
    return None if value.opcode == "parameter" else value


def _passed(value: Instruction) -> Instruction:
    while value.opcode in _PASSING and value.operands:
        value = value.operands[0]
    return producer(value)
