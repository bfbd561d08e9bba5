"""The instructions that cost something, paired across two programs, and which of them changed."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.analysis.collectives import Collective
from hlo_tools.analysis.flops import Work
from hlo_tools.analysis.program import Program
from hlo_tools.comparison import Side
from hlo_tools.diff.matching import Matching
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import format_shape

TILE_BYTES = 4096
"""A tile of 8 by 128 32-bit elements: no dimension could make a buffer smaller."""

NOISE = 1e-9
"""Relative differences of seconds below this come of the order in which numbers are added."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kernel:
    """An instruction that can cost something.

    Attributes:
      program: the one that it is of.
      times: executions per step.
      seconds: modelled seconds per step.
      hbm_bytes: bytes through device memory per step.
    """

    program: Program
    instruction: Instruction
    times: int
    seconds: float
    hbm_bytes: int

    @property
    def collective(self) -> Collective | None:
        """The collective that it runs or starts."""
        return self.program.collectives.get(self.instruction)

    @property
    def work(self) -> Work | None:
        """The arithmetic of one execution; `None` for what HLO does not show."""
        return self.program.cost.work(self.instruction)

    @property
    def opcode(self) -> str:
        """What it does: its opcode, or that of the collective that it runs in whatever form."""
        collective = self.collective
        return collective.kind if collective is not None else self.instruction.opcode

    @property
    def padding(self) -> int:
        """Bytes of tile padding in what one execution reads and writes, single tiles left out."""
        instruction = self.instruction
        leaves = (leaf for i in (instruction, *instruction.operands) for leaf in i.shape.leaves())
        return sum(s.padded_bytes - s.logical_bytes for s in leaves if s.padded_bytes > TILE_BYTES)

    def side(self, first_line: int) -> Side:
        """As reports show it; `first_line` is the line of the file on which the module starts."""
        return Side(
            computation=self.instruction.computation.name,
            instruction=self.instruction.name,
            opcode=self.opcode,
            hlo_line=self.instruction.line + first_line - 1,
            shape=format_shape(self.instruction.shape),
            seconds=self.seconds,
            hbm_bytes=self.hbm_bytes,
            times_per_step=self.times,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """A kernel of the old program and what it is in the new one; one of them may be missing."""

    old: Kernel | None
    new: Kernel | None

    @property
    def seconds(self) -> float:
        """Seconds per step that the new program takes more."""
        return (self.new.seconds if self.new else 0.0) - (self.old.seconds if self.old else 0.0)

    @property
    def hbm_bytes(self) -> int:
        """Bytes per step that the new program moves more."""
        return (self.new.hbm_bytes if self.new else 0) - (self.old.hbm_bytes if self.old else 0)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that there are, the old one first."""
        return tuple(k for k in (self.old, self.new) if k is not None)


def changed_pairs(matching: Matching) -> list[Pair]:
    """The pairs that differ, in the order of the old program, then what the new one adds.

    Left out are instructions that cost the same, have the same layout, and block or not as before.
    """
    old = {k.instruction: k for k in _kernels(matching.old.program)}
    new = {k.instruction: k for k in _kernels(matching.new.program)}
    pairs = []
    for instruction, kernel in old.items():
        partner = matching.partner(instruction)
        pairs.append(Pair(old=kernel, new=new.get(partner) if partner is not None else None))
    paired = {pair.new.instruction for pair in pairs if pair.new is not None}
    pairs += [Pair(old=None, new=kernel) for i, kernel in new.items() if i not in paired]
    return [pair for pair in pairs if _differs(pair)]


def _kernels(program: Program) -> Iterator[Kernel]:
    for instruction, times, seconds, moved in program.cost.priced:
        yield Kernel(
            program=program,
            instruction=instruction,
            times=times,
            seconds=times * seconds,
            hbm_bytes=times * moved,
        )


def _differs(pair: Pair) -> bool:
    old, new = pair.old, pair.new
    if old is None or new is None:
        return any(k.seconds or k.hbm_bytes or k.collective is not None for k in pair.kernels)
    if not math.isclose(old.seconds, new.seconds, rel_tol=NOISE):
        return True
    if (old.hbm_bytes, old.times, old.opcode) != (new.hbm_bytes, new.times, new.opcode):
        return True
    if old.instruction.shape != new.instruction.shape:
        return True
    before, after = old.collective, new.collective
    return before is not None and after is not None and before.blocking != after.blocking
