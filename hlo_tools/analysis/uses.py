"""Who computes with a value first: a walk along its readers that looks into fusions.

A fusion's body may hold further fusions. A reader is kept with the fusions around it, so that a
body that several fusions share is left by the one through which it was entered.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.hlo.module import Instruction

MOVES = frozenset({"bitcast", "copy", "copy-start", "copy-done", "reshape", "transpose"})
"""Opcodes that hand on every element of their operand, in the same or another order."""

MAX_VISITED = 10_000
"""How many places are visited before a walk gives up."""

_Place = tuple[Instruction, tuple[Instruction, ...]]
"""An instruction and the fusions around it, the outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One instruction that computes with a value.

    Attributes:
      instruction: the one that does, inside a fusion where it is fused.
      operand: what it reads: the value itself, or what handed it on.
      around: the fusions around it, the outermost first.
    """

    instruction: Instruction
    operand: Instruction
    around: tuple[Instruction, ...] = ()

    @property
    def runs(self) -> Instruction:
        """The instruction that runs it: itself, or the outermost fusion around it."""
        return self.around[0] if self.around else self.instruction


def first_uses(
    value: Instruction,
    through: frozenset[str] = MOVES,
    around: tuple[Instruction, ...] = (),
) -> tuple[Use, ...] | None:
    """The instructions that first compute with a value, behind those that only hand it on.

    Tuples, loops and calls count as uses, and so does being what a computation returns that is no
    fusion's.

    Args:
      value: an array.
      through: the opcodes that hand it on.
      around: the fusions around it, the outermost first.

    Returns:
      Each use once, or `None` where the walk was given up.
    """
    found: dict[Use, None] = {}
    stack: list[_Place] = [(value, around)]
    seen = set(stack)
    while stack:
        operand, inside = stack.pop()
        if operand.is_root and not inside:
            found[Use(instruction=operand, operand=operand)] = None
        for place in _readers(operand, inside):
            user, fusions = place
            if user.opcode in through or user.opcode == "parameter" or user.fused_computation:
                if place not in seen:
                    seen.add(place)
                    stack.append(place)
            else:
                found[Use(instruction=user, operand=operand, around=fusions)] = None
        if len(seen) + len(found) > MAX_VISITED:
            return None
    return tuple(found)


def _readers(instruction: Instruction, around: tuple[Instruction, ...]) -> Iterator[_Place]:
    """Who reads an instruction: in a fusion it is a parameter; a fusion that returns it is next."""
    for user in instruction.users:
        computation = user.fused_computation
        if computation is None:
            yield user, around
            continue
        for number, operand in enumerate(user.operands[: len(computation.parameters)]):
            if operand is instruction:
                yield computation.parameters[number], (*around, user)
    if instruction.is_root and around:
        yield around[-1], around[:-1]
