"""PTX that kernels write inline, as a list of instructions.

Of the language: registers of one scope, instructions one after another, each of them perhaps under
a predicate. Labels, branches and memory are not read.
"""

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s+\.\w+\s+.+", re.DOTALL)
_INSTRUCTION = re.compile(
    r"(?:@(?P<negated>!?)(?P<predicate>[\w$%]+)\s+)?(?P<opcode>[a-z][\w.]*)(?:\s+(?P<operands>.+))?",
    re.DOTALL,
)


class PtxError(ValueError):
    """Text that is not read; the message is a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction.

    Attributes:
      opcode: with its modifiers, such as `add.rn.f32`.
      operands: as written: names of registers, `$1`, or numbers.
      predicate: the register that says whether it is done; empty for always.
      negated: whether it is done where that does not hold.
    """

    opcode: str
    operands: tuple[str, ...]
    predicate: str = ""
    negated: bool = False


def instructions(text: str) -> list[Instruction]:
    """The instructions of a text, without what declares its registers.

    Raises:
      PtxError: the text holds something else.
    """
    found: list[Instruction] = []
    body = _COMMENT.sub(" ", text)
    for statement in re.split(r"[;{}]", body):
        stripped = statement.strip()
        if not stripped or _REGISTERS.fullmatch(stripped):
            continue
        match = _INSTRUCTION.fullmatch(stripped)
        if match is None:
            raise PtxError(f"`{' '.join(stripped.split())}` is no instruction that is read")
        operands = match["operands"] or ""
        found.append(
            Instruction(
                opcode=match["opcode"],
                operands=tuple(each.strip() for each in operands.split(",") if each.strip()),
                predicate=match["predicate"] or "",
                negated=match["negated"] == "!",
            )
        )
    return found
