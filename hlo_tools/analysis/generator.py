"""Random number generators that are written out in arithmetic."""

from collections.abc import Iterable
from dataclasses import dataclass

from hlo_tools.hlo.module import Instruction

ROTATIONS = frozenset({13, 15, 26, 6, 17, 29, 16, 24})
"""By how many bits the rounds of threefry2x32 rotate (Salmon et al., "Parallel Random Numbers: As
Easy as 1, 2, 3", SC 2011; `jax/_src/prng.py`)."""

ROUNDS = 20
"""Rounds of threefry2x32, each with one exclusive-or."""

WORD_BYTES = 4

OPERATIONS_A_ROUND = 5
"""Add, two shifts, or, exclusive-or: on a chip without a rotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threefry:
    """A threefry generator in a computation.

    Attributes:
      elements: 32-bit words that one round treats, tile padding included.
      operations: vector operations of all rounds on each of them.
      last: the last exclusive-or, for its place in the source.
    """

    elements: int
    operations: int
    last: Instruction


def threefry(instructions: Iterable[Instruction]) -> Threefry | None:
    """The generator that a computation holds; `None` where it is not certain that it holds one.

    It does if at least `ROUNDS` exclusive-ors of the same type are there, and shifts to the left by
    each of the `ROTATIONS`.
    """
    rounds: dict[str, list[Instruction]] = {}
    shifts: dict[str, set[int]] = {}
    for instruction in instructions:
        shape = instruction.shape
        if instruction.opcode not in ("xor", "shift-left") or shape.element_type != "u32":
            continue
        key = str(shape)
        if instruction.opcode == "xor":
            rounds.setdefault(key, []).append(instruction)
        elif len(instruction.operands) > 1:
            shifts.setdefault(key, set()).add(_constant(instruction.operands[1]))
    found = [key for key, made in rounds.items() if len(made) >= ROUNDS]
    found = [key for key in found if shifts.get(key, set()) >= ROTATIONS]
    if not found:
        return None
    made = max((rounds[key] for key in found), key=lambda some: some[0].shape.padded_bytes)
    return Threefry(
        elements=made[0].shape.padded_bytes // WORD_BYTES,
        operations=OPERATIONS_A_ROUND * ROUNDS,
        last=made[-1],
    )


def _constant(instruction: Instruction) -> int:
    """The number that a shift's amount is; -1 where it is none."""
    if instruction.opcode == "broadcast" and instruction.operands:
        instruction = instruction.operands[0]
    text = instruction.argument_text.strip() if instruction.opcode == "constant" else ""
    return int(text) if text.isascii() and text.isdigit() else -1
