"""From the analyses of a module to the profile of its step, cut to what a page can show."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from hlo_tools.analysis.liveness import HBM_SPACE, LiveBuffer
from hlo_tools.analysis.program import Program
from hlo_tools.analysis.roofline import resource_seconds, vector_rate
from hlo_tools.analysis.timeline import Flight, Lane, Step, Timeline
from hlo_tools.hardware import Chip
from hlo_tools.hlo.module import Computation, Instruction
from hlo_tools.profile import (
    LaneProfile,
    LiveValue,
    MemoryProfile,
    Operation,
    Roof,
    Slice,
    Span,
    StepProfile,
)

PARTS = 250
"""A lane is drawn in no more than about twice as many parts: what is shorter is drawn together."""

MAX_OPERATIONS = 200
MAX_LANES = 5
VISIBLE_LANE = 0.005
"""The share of the step from which on a computation has a lane, the first one apart."""

MAX_SPANS = 150
MAX_LIVE = 60
MAX_CURVE = 600
MAX_NAMED = 5
"""How many operations a part names that stands for several."""

_CONTROL = frozenset({"while", "call", "conditional"})


class Profiler:
    """Makes the profile of one module.

    Args:
      program: the module and its analyses.
      line_offset: lines of the file in front of the module's text.
    """

    def __init__(self, program: Program, *, line_offset: int = 0) -> None:
        self._execution = program.execution
        self._collectives = program.collectives
        self._cost = program.cost
        self._liveness = program.liveness
        self._provenance = program.provenance
        self._line_offset = line_offset
        self._timeline = Timeline(program.execution, program.asynchrony, program.cost)
        self._operations: dict[Instruction, Operation] = {}

    def profile(self) -> StepProfile | None:
        """The profile; `None` where the cost model knows no chip."""
        chip = self._cost.chip
        if chip is None:
            return None
        spent = self._spent()
        order = sorted(spent, key=lambda i: -spent[i])
        shown, rest = order[:MAX_OPERATIONS], order[MAX_OPERATIONS:]
        return StepProfile(
            seconds=self._cost.step_seconds,
            matrix_flops=self._matrix_flops(),
            hbm_bytes=self._cost.step_bytes,
            exposed_collective_seconds=sum(
                self._cost.seconds_per_step(c.instruction) for c in self._collectives.all
            ),
            roof=Roof(
                flops=chip.bf16_flops,
                hbm_bandwidth=chip.hbm_bandwidth,
                vector_flops=vector_rate(chip),
            ),
            activities=self._activities(),
            operations=tuple(map(self._operation, shown)),
            more_operations=len(rest),
            more_seconds=sum(spent[i] for i in rest),
            lanes=tuple(self._lanes()),
            memory=self._memory(chip),
        )

    def _spent(self) -> dict[Instruction, float]:
        """Seconds per step of what takes time."""
        per_step = self._cost.seconds_per_step
        return {i: s for i in self._execution.instructions() if (s := per_step(i)) > 0}

    def _matrix_flops(self) -> int:
        runs = self._execution
        return sum(
            runs.times_at_least(i.computation) * size.flops
            for i in runs.instructions()
            if (work := self._cost.work(i)) is not None
            for size in work.matmuls
        )

    def _activities(self) -> tuple[tuple[str, float], ...]:
        totals: defaultdict[str, float] = defaultdict(float)
        for computation, lane in self._timeline.lanes.items():
            times = self._execution.times_at_least(computation)
            for step in lane.steps:
                called = sum(n * self._timeline.lanes[c].seconds for c, n in step.calls)
                kind = "exposed" if step.is_wait else self._activity(step.instruction)
                totals[kind] += times * (step.end - step.begin - called)
        timed = [(kind, s) for kind, s in totals.items() if s > 0 and kind != "control"]
        return tuple(sorted(timed, key=lambda item: (-item[1], item[0])))

    # Single instructions.

    def _operation(self, instruction: Instruction) -> Operation:
        found = self._operations.get(instruction)
        if found is None:
            found = self._operations[instruction] = self._describe(instruction)
        return found

    def _describe(self, instruction: Instruction) -> Operation:
        times = self._execution.times_at_least(instruction.computation)
        flops = self._flops(instruction)
        return Operation(
            name=instruction.name,
            opcode=instruction.opcode,
            computation=instruction.computation.name,
            hlo_line=instruction.line + self._line_offset,
            shape=str(instruction.shape),
            op_name=self._provenance.op_name(instruction),
            source=self._provenance.location(instruction),
            activity=self._activity(instruction),
            bound=self._bound(instruction),
            times=times,
            seconds=self._cost.seconds_per_step(instruction),
            flops=None if flops is None else flops * times,
            hbm_bytes=self._cost.traffic(instruction).hbm * times,
        )

    def _flops(self, instruction: Instruction) -> int | None:
        work = self._cost.work(instruction)
        if work is None:
            return None
        return sum(size.flops for size in work.matmuls) or work.flops

    def _activity(self, instruction: Instruction) -> str:
        if instruction.opcode in _CONTROL:
            return "control"
        if self._collectives.get(instruction) is not None:
            return "collective"
        if self._cost.traffic(instruction).host:
            return "host"
        work = self._cost.work(instruction)
        if work is None:
            return "kernel"
        if work.matmuls:
            return "matrix"
        return "vector" if work.flops or work.transcendentals else "movement"

    def _bound(self, instruction: Instruction) -> str | None:
        if self._collectives.get(instruction) is not None:
            return "links"
        work, chip = self._cost.work(instruction), self._cost.chip
        if chip is None or work is None or instruction.opcode in _CONTROL:
            return None
        resources = resource_seconds(chip, work, self._cost.traffic(instruction))
        bound = max(resources, key=lambda name: resources[name])
        return bound if resources[bound] else None

    # Lanes.

    def _lanes(self) -> Iterator[LaneProfile]:
        runs = self._execution
        lanes = [lane for lane in self._timeline.lanes.values() if lane.steps]
        order = {c: number for number, c in enumerate(runs.executed)}
        lanes.sort(
            key=lambda lane: (
                bool(runs.callers(lane.computation)),
                -lane.seconds * runs.times_at_least(lane.computation),
                order[lane.computation],
            )
        )
        least = VISIBLE_LANE * self._cost.step_seconds
        seen = [
            lane
            for number, lane in enumerate(lanes)
            if not number or lane.seconds * runs.times_at_least(lane.computation) >= least
        ]
        for lane in seen[:MAX_LANES]:
            callers = runs.callers(lane.computation)
            flights = self._visible(lane)
            yield LaneProfile(
                computation=lane.computation.name,
                caller=callers[0].name if callers else None,
                times=runs.times_at_least(lane.computation),
                seconds=lane.seconds,
                slices=tuple(self._slices(lane)),
                spans=tuple(map(self._span, flights)),
                more_spans=len(lane.flights) - len(flights),
            )

    def _slices(self, lane: Lane) -> Iterator[Slice]:
        """The lane in parts that can be seen: what is shorter is put together with its like."""
        least = lane.seconds / PARTS
        together: list[Step] = []
        for step in lane.steps:
            if step.end - step.begin >= least:
                yield from self._together(together)
                together = []
                yield self._slice([step])
                continue
            if together and (
                together[-1].is_wait != step.is_wait or step.end - together[0].begin > least
            ):
                yield from self._together(together)
                together = []
            together.append(step)
        yield from self._together(together)

    def _together(self, steps: list[Step]) -> Iterator[Slice]:
        if steps:
            yield self._slice(steps)

    def _slice(self, steps: list[Step]) -> Slice:
        longest = sorted(steps, key=lambda step: step.begin - step.end)[:MAX_NAMED]
        return Slice(
            begin=steps[0].begin,
            end=steps[-1].end,
            operations=tuple(self._operation(step.instruction) for step in longest),
            count=len(steps),
            is_wait=steps[0].is_wait,
        )

    def _visible(self, lane: Lane) -> list[Flight]:
        least = lane.seconds / PARTS

        def length(flight: Flight) -> float:
            there = flight.end - flight.begin
            return there if there >= 0 else lane.seconds + there

        seen = [f for f in lane.flights if length(f) >= least or f.exposed >= least]
        seen.sort(key=lambda flight: (-flight.exposed, -length(flight)))
        return sorted(seen[:MAX_SPANS], key=lambda flight: flight.span.start_position)

    def _span(self, flight: Flight) -> Span:
        return Span(
            operation=self._operation(flight.span.start),
            kind=flight.span.kind,
            begin=flight.begin,
            end=flight.end,
            alone=flight.alone,
            exposed=flight.exposed,
        )

    # Memory.

    def _memory(self, chip: Chip) -> MemoryProfile | None:
        root = self._liveness.fullest_root(HBM_SPACE)
        if root is None or root not in self._timeline.lanes:
            return None
        live = self._liveness.live_at_peak(HBM_SPACE)
        temporaries = self._liveness.temp_bytes(root)
        begins = self._timeline.lanes[root].begins
        fullest = temporaries.index(max(temporaries))
        return MemoryProfile(
            argument_bytes=self._liveness.argument_bytes(),
            output_bytes=self._liveness.output_bytes(),
            curve=tuple(_thinned(_curve(root, begins, temporaries))),
            peak_bytes=self._liveness.peak_bytes(HBM_SPACE),
            peak_seconds=begins[fullest],
            live=tuple(map(self._live_value, live[:MAX_LIVE])),
            more_live=len(live[MAX_LIVE:]),
            more_bytes=sum(buffer.bytes for buffer in live[MAX_LIVE:]),
            capacity=chip.hbm_bytes,
        )

    def _live_value(self, buffer: LiveBuffer) -> LiveValue:
        instruction = buffer.instruction
        return LiveValue(
            name=instruction.name,
            computation=instruction.computation.name,
            hlo_line=instruction.line + self._line_offset,
            shape=str(buffer.shape),
            bytes=buffer.bytes,
            kind=buffer.kind,
            op_name=self._provenance.op_name(instruction),
            source=self._provenance.location(instruction),
        )


def _curve(
    root: Computation, begins: list[float], temporaries: list[int]
) -> Iterator[tuple[float, int]]:
    """Bytes from each moment on; of what happens at one moment, the most."""
    now, most = 0.0, 0
    for begin, held in zip(begins, temporaries, strict=True):
        if begin > now:
            yield now, most
            now, most = begin, held
        else:
            most = max(most, held)
    yield now, most


def _thinned(curve: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """The curve in no more than `MAX_CURVE` parts, each with the most of what it stands for."""
    points = list(curve)
    if len(points) <= MAX_CURVE:
        return points
    width = (points[-1][0] - points[0][0]) / MAX_CURVE
    found: list[tuple[float, int]] = []
    for begin, held in points:
        if found and begin < found[-1][0] + width:
            found[-1] = (found[-1][0], max(found[-1][1], held))
        else:
            found.append((begin, held))
    return found
