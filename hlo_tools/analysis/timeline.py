"""When things happen in a step: the model's seconds, laid end to end in the order of the text.

What holds up a step for `CostModel.seconds` takes that long here, so that the timeline of the entry
ends at `CostModel.step_seconds`. Of an asynchronous operation that is the part which no work hides,
and it is spent where the operation is waited for.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from hlo_tools.analysis.asynchrony import Asynchrony, AsyncSpan
from hlo_tools.analysis.cost import CostModel
from hlo_tools.analysis.execution import Execution
from hlo_tools.hlo.module import Computation, Instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the core does, or waits for, between two moments.

    Attributes:
      instruction: what runs; of a wait, the start of what is waited for.
      begin: seconds since its computation began.
      end: likewise.
      is_wait: nothing runs: an asynchronous operation has not finished.
      calls: the computations that run here, and how often each.
    """

    instruction: Instruction
    begin: float
    end: float
    is_wait: bool = False
    calls: tuple[tuple[Computation, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """An asynchronous operation of which both ends are in one computation.

    Attributes:
      span: the operation.
      begin: seconds since the computation began, at its start.
      end: likewise, at the end of the wait for it; before `begin` for one that is waited for on
        the next trip of its loop.
      alone: seconds that it takes with nothing beside it.
      exposed: seconds of them that no work hides.
    """

    span: AsyncSpan
    begin: float
    end: float
    alone: float
    exposed: float


@dataclass(slots=True, kw_only=True)
class Lane:
    """One execution of a computation.

    Attributes:
      computation: what runs.
      seconds: how long that takes.
      begins: seconds at which each instruction begins, by its position.
      steps: what takes time, in order.
      flights: what is on its way meanwhile, in the order of the starts.
    """

    computation: Computation
    seconds: float = 0.0
    begins: list[float] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)


class Timeline:
    """The executed computations of a module, each laid out in time.

    Every branch of a conditional counts, one after another, as in `CostModel.step_seconds`; a loop
    of unknown length counts as one trip.
    """

    def __init__(self, execution: Execution, asynchrony: Asynchrony, cost: CostModel) -> None:
        self._execution = execution
        self._asynchrony = asynchrony
        self._cost = cost
        self.lanes: dict[Computation, Lane] = {}
        for computation in execution.callees_first:
            self.lanes[computation] = self._lay_out(computation)

    def _lay_out(self, computation: Computation) -> Lane:
        lane = Lane(computation=computation)
        instructions = computation.instructions
        own, waits = self._spend(instructions)
        ends: dict[AsyncSpan, float] = {}
        now = 0.0
        for position, instruction in enumerate(instructions):
            for span, exposed in waits.get(position, ()):
                if exposed:
                    lane.steps.append(
                        Step(instruction=span.start, begin=now, end=now + exposed, is_wait=True)
                    )
                now += exposed
                ends[span] = now
            lane.begins.append(now)
            calls = self._calls(instruction)
            inside = sum(times * self.lanes[callee].seconds for callee, times in calls)
            taken = own[position] + inside
            if taken:
                lane.steps.append(
                    Step(instruction=instruction, begin=now, end=now + taken, calls=calls)
                )
            now += taken
        lane.seconds = now
        for found in waits.values():
            for span, exposed in found:
                lane.flights.append(
                    Flight(
                        span=span,
                        begin=lane.begins[span.start_position],
                        end=ends[span],
                        alone=self._cost.beside_seconds(span.start),
                        exposed=exposed,
                    )
                )
        lane.flights.sort(key=lambda flight: flight.span.start_position)
        return lane

    def _spend(
        self, instructions: Sequence[Instruction]
    ) -> tuple[list[float], dict[int, list[tuple[AsyncSpan, float]]]]:
        """Seconds spent at each instruction, and by the position of a wait what is waited for."""
        own = []
        waits: defaultdict[int, list[tuple[AsyncSpan, float]]] = defaultdict(list)
        for instruction in instructions:
            seconds = self._cost.seconds(instruction)
            span = self._asynchrony.span_of(instruction)
            if span is not None and span.start is instruction and span.done_position is not None:
                waits[span.done_position].append((span, seconds))
                seconds = 0.0
            own.append(seconds)
        return own, dict(waits)

    def _calls(self, instruction: Instruction) -> tuple[tuple[Computation, int], ...]:
        """The computations that run at an instruction, and how often; those laid out already."""
        return tuple(
            (callee, times)
            for callee, times in self._execution.calls(instruction)
            if callee in self.lanes
        )
