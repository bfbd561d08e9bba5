"""What is in memory, and when: live ranges, and the fullest moment of a step.

What the computations called at an instruction need comes on top of what lives there, for as long
as the call lasts. The result is a lower bound of what the compiler allocates, whose heap has gaps;
docs/cost-model.md compares it with the compiler's own figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hlo_tools.analysis.buffers import CALLING, Buffer, Frame, Tracer, live_bytes
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.leaves import VMEM_SPACE, ModuleFacts
from hlo_tools.hlo.module import Computation, Instruction, Module
from hlo_tools.hlo.shape import HBM_SPACE, Shape

__all__ = ["HBM_SPACE", "VMEM_SPACE", "LiveBuffer", "Liveness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """A buffer and when it is live.

    Attributes:
      instruction: the one that defines it.
      shape: of the value.
      bytes: its size, tile padding included.
      space: its memory space; every on-chip memory counts as `VMEM_SPACE`.
      first: position in its computation at which it comes to life.
      last: position of its last use; that of the last instruction if it leaves the computation.
      kind: `argument` and `output` of the program, otherwise `temporary`.
    """

    instruction: Instruction
    shape: Shape
    bytes: int
    space: int
    first: int
    last: int
    kind: str


class Liveness:
    """Live ranges of a module's buffers in device memory and in VMEM.

    Args:
      module: the module, scheduled; otherwise the order of its text stands for a schedule.
      execution: what of it runs.
    """

    def __init__(self, module: Module, execution: Execution) -> None:
        self._module = module
        self._execution = execution
        self._facts = ModuleFacts(module, execution)

    def peak_bytes(self, space: int) -> int:
        """Bytes at the fullest moment: arguments, outputs that are not arguments, temporaries."""
        return self.argument_bytes(space) + self.output_bytes(space) + self.temp_peak_bytes(space)

    def argument_bytes(self, space: int = HBM_SPACE) -> int:
        """Bytes of the program's arguments."""
        return self._held("argument", space)

    def output_bytes(self, space: int = HBM_SPACE) -> int:
        """Bytes of those outputs that do not lie in the buffer of an argument."""
        return self._held("output", space)

    def temp_peak_bytes(self, space: int = HBM_SPACE) -> int:
        """Bytes of everything else at the fullest moment."""
        return max(
            (self._frames[c].peaks.get(space, 0) for c in self._roots if c in self._frames),
            default=0,
        )

    def live_at_peak(self, space: int) -> tuple[LiveBuffer, ...]:
        """The buffers of `peak_bytes`, the largest first."""
        found: list[Buffer] = []
        fullest = self.fullest_root(space)
        pending = [] if fullest is None else [fullest]
        while pending:
            frame = self._frames[pending.pop()]
            at = frame.peak_at.get(space, 0)
            found += [
                b
                for b in frame.buffers
                if b.space == space and (b.kind != "temporary" or b.first <= at <= b.last)
            ]
            called = [c for c in frame.nested.get(at, ()) if c in self._frames]
            if called:
                pending.append(max(called, key=lambda c: self._frames[c].peaks.get(space, 0)))
        found.sort(key=lambda b: -b.bytes)
        return tuple(map(_public, found))

    def fullest_root(self, space: int) -> Computation | None:
        """The entry; of text without one, the computation whose temporaries take the most."""
        roots = [c for c in self._roots if c in self._frames]
        return max(roots, key=lambda c: self._frames[c].peaks.get(space, 0), default=None)

    def temp_bytes(self, computation: Computation, space: int = HBM_SPACE) -> list[int]:
        """Bytes of temporaries at each position of a computation, those of what it calls included.

        What its caller holds for it is not counted. The greatest of them is the peak.
        """
        length = len(computation.instructions)
        live = live_bytes(
            self._frames[computation],
            space,
            length,
            frames=self._frames,
            granule=self._facts.granule,
        )
        return live[:length] if live else [0] * length

    @cached_property
    def buffers(self) -> tuple[LiveBuffer, ...]:
        """The buffers in device memory and VMEM, scalars left out, in the order of the text."""
        return tuple(
            _public(buffer)
            for computation in self._execution.executed
            for buffer in self._frames[computation].buffers
        )

    @property
    def donated_outputs(self) -> int:
        """How many of the program's outputs lie in the buffers of arguments."""
        return len(self._facts.aliased_outputs)

    def _held(self, kind: str, space: int) -> int:
        return sum(
            buffer.bytes
            for root in self._roots
            for buffer in self._frames[root].buffers
            if buffer.kind == kind and buffer.space == space
        )

    @property
    def _roots(self) -> Sequence[Computation]:
        if self._module.entry is not None:
            return (self._module.entry,)
        return [c for c in self._execution.executed if not self._execution.callers(c)]

    @cached_property
    def _frames(self) -> dict[Computation, Frame]:
        frames: dict[Computation, Frame] = {}
        for first in self._execution.executed:
            stack = [first]
            while stack:
                current = stack[-1]
                if current in frames:
                    stack.pop()
                    continue
                called = {
                    c
                    for i in current.instructions
                    if i.opcode in CALLING
                    for c in self._facts.calls(i)
                }
                waiting = [c for c in called if c not in frames and c not in stack]
                if waiting:
                    stack.extend(waiting)
                    continue
                frames[current] = Tracer(self._facts, current, frames).trace()
                stack.pop()
        return frames


def _public(buffer: Buffer) -> LiveBuffer:
    return LiveBuffer(
        instruction=buffer.instruction,
        shape=buffer.shape,
        bytes=buffer.bytes,
        space=buffer.space,
        first=buffer.first,
        last=buffer.last,
        kind=buffer.kind,
    )
