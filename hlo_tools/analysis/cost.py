"""What an instruction and a step cost: arithmetic, bytes and seconds.

Seconds are the compiler's own cycle estimate over the chip's clock where the text has one, else
the roofline of `hlo_tools.analysis.roofline`; what runs beside other work costs only what that
work does not hide. docs/cost-model.md describes the model. Both kinds of seconds are models, not
measurements.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from hlo_tools.analysis.collectives import Collective, Collectives
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.flops import Work, WorkCounter
from hlo_tools.analysis.roofline import roofline_seconds, transfer_seconds, wire_seconds
from hlo_tools.analysis.traffic import (
    FREE,
    NO_TRAFFIC,
    Traffic,
    TrafficCounter,
    is_free_call,
)
from hlo_tools.hardware import Chip, as_compiled
from hlo_tools.hlo.module import Computation, Instruction, Module

NOT_ESTIMATED = (1 << 63) - 1
"""What libtpu prints for the cycles of work that it hands to the SparseCores."""

NEGLIGIBLE_BYTES = 1 << 12
"""Instructions with no more than this in device memory need no closer look at what they touch."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,19})"')
_CALLING = frozenset({"while", "call", "conditional"})
_COPY_STARTS = frozenset(
    {"copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"}
)
_STARTS = _COPY_STARTS | {"async-start", "call-start"}
_DONES = frozenset(opcode.replace("-start", "-done") for opcode in _STARTS)


@dataclass(slots=True)
class _Timeline:
    """The work of one computation, in the order of the text.

    Attributes:
      passed: seconds of work before each instruction, and at the end.
      copies: (start, done) positions of asynchronous copies.
    """

    passed: list[float] = field(default_factory=lambda: [0.0])
    copies: dict[Instruction, tuple[int, int]] = field(default_factory=dict)


class CostModel:
    """Costs of the instructions of one module on one chip.

    Args:
      module: the module.
      execution: what of it runs, and how often.
      collectives: its collectives.
      chip: the hardware; `None` if none is known, and then nothing takes time.

    Attributes:
      chip: the hardware as the module was compiled for it (see `hardware.as_compiled`).
    """

    def __init__(
        self,
        module: Module,
        execution: Execution,
        collectives: Collectives,
        chip: Chip | None,
    ) -> None:
        self.module = module
        self.chip = as_compiled(chip, module) if chip is not None else None
        self._execution = execution
        self._collectives: dict[Instruction, Collective] = {
            collective.instruction: collective for collective in collectives.all
        }
        self._waits = {c.span.done for c in collectives.all if c.span is not None}
        self._called: dict[Computation, dict[Instruction, tuple[Computation, ...]]] = {}
        self._works = WorkCounter()
        self._counter = TrafficCounter(has_vmem=chip is None or chip.platform == "tpu")
        self._traffic: dict[Instruction, Traffic] = {}
        self._cycles: dict[Instruction, int | None] = {}
        self._seconds: dict[Instruction, float] = {}
        self._timelines: dict[Computation, _Timeline] = {}

    # One execution of an instruction.

    def flops(self, instruction: Instruction) -> int | None:
        """Operations, transcendental functions not included; `None` for opaque calls."""
        work = self.work(instruction)
        return work.flops if work is not None else None

    def work(self, instruction: Instruction) -> Work | None:
        """The arithmetic by kind; `None` for opaque calls."""
        return self._works.of(instruction)

    def traffic(self, instruction: Instruction) -> Traffic:
        """Bytes moved; nothing for what only names or calls."""
        if instruction.opcode in FREE:
            return NO_TRAFFIC
        found = self._traffic.get(instruction)
        if found is None:
            called = instruction.fused_computation
            found = self._traffic[instruction] = self._counter.of(instruction, called)
        return found

    def compiler_cycles(self, instruction: Instruction) -> int | None:
        """The compiler's `estimated_cycles`, where the text has one."""
        try:
            return self._cycles[instruction]
        except KeyError:
            match = _CYCLES.search(instruction.attribute_text)
            cycles = int(match[1]) if match else NOT_ESTIMATED
            found = self._cycles[instruction] = cycles if cycles < NOT_ESTIMATED else None
            return found

    def seconds(self, instruction: Instruction) -> float:
        """Seconds for which it holds up the step; 0 without a chip.

        Of an asynchronous operation these are, at its start, those that the work up to its end
        does not hide. What is called by a loop, a call or a branch is priced there.
        """
        if self.chip is None:
            return 0.0
        collective = self._collectives.get(instruction)
        if collective is not None:
            return self.exposed_seconds(collective)
        opcode = instruction.opcode
        if opcode in _STARTS:
            return self._exposed_start(instruction)
        if opcode in FREE or self._execution.wrapper_of(instruction.computation) is not None:
            return 0.0
        return self._alone(instruction)

    def model_seconds(self, instruction: Instruction) -> float:
        """Seconds by the roofline alone, whatever the compiler says; 0 without a chip."""
        if self.chip is None or instruction.opcode in FREE:
            return 0.0
        work = self._works.of(instruction)
        return roofline_seconds(self.chip, work, self.traffic(instruction))

    def _alone(self, instruction: Instruction) -> float:
        """Seconds of what is neither a collective nor asynchronous."""
        assert self.chip is not None
        found = self._seconds.get(instruction)
        if found is None:
            found = self._seconds[instruction] = self._price(instruction, self.chip)
        return found

    def _price(self, instruction: Instruction, chip: Chip) -> float:
        if instruction in self._waits:
            return 0.0
        if instruction.opcode == "custom-call" and is_free_call(instruction):
            return 0.0
        cycles = self.compiler_cycles(instruction)
        if cycles is not None and chip.clock_hz:
            return cycles / chip.clock_hz
        return self.model_seconds(instruction)

    def wire_seconds(self, collective: Collective) -> float:
        """Seconds that a collective takes with nothing else on the links; 0 without a chip."""
        return wire_seconds(self.chip, collective) if self.chip is not None else 0.0

    def exposed_seconds(self, collective: Collective) -> float:
        """Seconds of a collective that no other work hides.

        All of them where it blocks; none where the text does not show what it is waited for by.
        """
        total = self.wire_seconds(collective)
        span = collective.span
        if span is None:
            return total
        if span.done_position is None:
            return 0.0
        passed = self._timeline(span.start.computation).passed
        hidden = passed[span.done_position] - passed[span.start_position + 1]
        if span.carried:
            hidden += passed[-1]
        return max(0.0, total - hidden)

    def _exposed_start(self, start: Instruction) -> float:
        """Exposed seconds of an asynchronous copy or of a computation that runs beside others."""
        timeline = self._timeline(start.computation)
        ends = timeline.copies.get(start)
        if ends is None:
            return 0.0
        hidden = timeline.passed[ends[1]] - timeline.passed[ends[0] + 1]
        return max(0.0, self.beside_seconds(start) - hidden)

    def beside_seconds(self, start: Instruction) -> float:
        """Seconds of what a `-start` begins, with nothing beside it; 0 without a chip."""
        if self.chip is None:
            return 0.0
        collective = self._collectives.get(start)
        if collective is not None:
            return self.wire_seconds(collective)
        if start.opcode in _COPY_STARTS:
            return transfer_seconds(self.chip, self.traffic(start))
        return sum(self._alone(i) for c in start.called_computations for i in c.instructions)

    # The step.

    def seconds_per_step(self, instruction: Instruction) -> float:
        """Seconds for which all executions of the instruction hold up one step."""
        times = self._execution.times_at_least(instruction.computation)
        return times * self.seconds(instruction) if times else 0.0

    @cached_property
    def step_seconds(self) -> float:
        """Seconds of one step; a loop of unknown length counts once."""
        return sum(times * seconds for _, times, seconds, _ in self.priced)

    @cached_property
    def step_bytes(self) -> int:
        """Bytes through device memory in one step, small instructions' operands counted whole."""
        return sum(times * moved for _, times, _, moved in self.priced)

    @cached_property
    def step_flops(self) -> int:
        """Operations of one step, opaque calls left out."""
        return sum(times * (self.flops(i) or 0) for i, times, _, _ in self.priced)

    @cached_property
    def opaque_calls(self) -> int:
        """How many of the step's custom calls move bytes, but show neither work nor cycles."""
        return sum(
            1
            for instruction, _, _, moved in self.priced
            if instruction.opcode == "custom-call"
            and moved
            and self.work(instruction) is None
            and self.compiler_cycles(instruction) is None
        )

    def costly(self, share: float) -> Iterator[Instruction]:
        """The executed instructions that take that share of the step's time or traffic.

        In order of execution; instructions that cost nothing are none of them.
        """
        least_seconds, least_bytes = share * self.step_seconds, share * self.step_bytes
        for instruction, times, seconds, moved in self.priced:
            takes_time = seconds and times * seconds >= least_seconds
            if takes_time or (moved and times * moved >= least_bytes):
                yield instruction

    @cached_property
    def priced(self) -> list[tuple[Instruction, int, float, int]]:
        """What can cost anything: how often it runs, seconds and bytes of device memory each time.

        Of small instructions the operands count whole, without a look at what is read of them.
        """
        found: list[tuple[Instruction, int, float, int]] = []
        most_hbm = self._counter.most_hbm
        for computation in self._execution.executed:
            times = self._execution.times_at_least(computation)
            for instruction in computation.instructions:
                opcode = instruction.opcode
                if opcode in FREE and opcode not in _STARTS:
                    continue
                moved = most_hbm(instruction)
                if moved > NEGLIGIBLE_BYTES:
                    moved = self.traffic(instruction).hbm
                found.append((instruction, times, self.seconds(instruction), moved))
        return found

    # What runs beside what.

    def _timeline(self, computation: Computation) -> _Timeline:
        """The work of a computation; that of the ones it calls first."""
        stack = [computation]
        while stack:
            current = stack[-1]
            if current in self._timelines:
                stack.pop()
                continue
            waiting = [
                called
                for group in self._calls(current).values()
                for called in group
                if called not in self._timelines and called not in stack
            ]
            if waiting:
                stack.extend(waiting)
                continue
            self._timelines[current] = self._lay_out(current)
            stack.pop()
        return self._timelines[computation]

    def _calls(self, computation: Computation) -> dict[Instruction, tuple[Computation, ...]]:
        found = self._called.get(computation)
        if found is None:
            found = self._called[computation] = {
                i: i.called_computations for i in computation.instructions if i.opcode in _CALLING
            }
        return found

    def _lay_out(self, computation: Computation) -> _Timeline:
        timeline = _Timeline()
        started: dict[Instruction, int] = {}
        total = 0.0
        for position, instruction in enumerate(computation.instructions):
            opcode = instruction.opcode
            if opcode in _STARTS:
                started[instruction] = position
            elif opcode in _DONES:
                start = instruction.operands[0] if instruction.operands else None
                if start in started:
                    timeline.copies[start] = (started[start], position)
            elif opcode in _CALLING:
                total += self._called_seconds(instruction)
            elif opcode not in FREE:
                total += self._work_seconds(instruction)
            timeline.passed.append(total)
        return timeline

    def _called_seconds(self, instruction: Instruction) -> float:
        """Seconds of work in what a loop, call or branch runs; one trip where that is unknown."""
        trips = 1
        if instruction.opcode == "while":
            known = self._execution.trip_count(instruction)
            trips = 1 if known is None else known
        called = self._calls(instruction.computation)[instruction]
        spans = [self._timelines[c].passed[-1] for c in called if c in self._timelines]
        if instruction.opcode == "conditional":
            return max(spans, default=0.0)
        return trips * sum(spans)

    def _work_seconds(self, instruction: Instruction) -> float:
        """Seconds of work that can hide what is in flight."""
        collective = self._collectives.get(instruction)
        if collective is None:
            return self._alone(instruction)
        return self.wire_seconds(collective) if collective.span is None else 0.0
