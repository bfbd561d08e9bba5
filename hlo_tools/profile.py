"""What a step looks like, for reports that draw it: plain values, cut to what can be seen."""

from dataclasses import dataclass

from hlo_tools.hlo.location import SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One instruction of the step.

    Attributes:
      name: without the `%`.
      computation: the name of the one that holds it.
      hlo_line: 1-based line in the text that was read.
      shape: of the result.
      activity: what it does: `matrix`, `vector`, `movement`, `collective`, `host`, `kernel` (code
        that HLO does not show) or `control` (it runs other computations).
      bound: the resource that it waits for: `memory`, `stream`, `vector`, `matrix`, `links`; `None`
        where that is not established.
      times: executions in one step.
      seconds: modelled, in one step, for which it holds up the step.
      flops: in one step, of an operation with products those of the products; `None` where unknown.
      hbm_bytes: through device memory in one step.
    """

    name: str
    opcode: str
    computation: str
    hlo_line: int
    shape: str
    op_name: str | None
    source: SourceLocation | None
    activity: str
    bound: str | None
    times: int
    seconds: float
    flops: int | None
    hbm_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A stretch of a lane.

    Attributes:
      begin: seconds since the lane began.
      end: likewise.
      operations: what runs there; more than one where each is too short to be seen. Of a wait, what
        is waited for.
      count: how many those are, `operations` holding the longest of them only.
      is_wait: nothing runs.
    """

    begin: float
    end: float
    operations: tuple[Operation, ...]
    count: int = 1
    is_wait: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An asynchronous operation beside a lane.

    Attributes:
      operation: its start.
      kind: what runs: `all-gather`, `copy`, ...
      begin: seconds since the lane began.
      end: likewise; before `begin` where the next trip of the loop waits for it.
      alone: seconds that it takes with nothing beside it.
      exposed: seconds of them that no work hides.
    """

    operation: Operation
    kind: str
    begin: float
    end: float
    alone: float
    exposed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneProfile:
    """One execution of a computation.

    Attributes:
      computation: its name.
      caller: the name of the first instruction that runs it; `None` where execution starts.
      times: executions in one step.
      seconds: of one execution.
      slices: what runs, in order.
      spans: what is on its way meanwhile, by begin.
      more_spans: further ones, too short to be seen.
    """

    computation: str
    caller: str | None
    times: int
    seconds: float
    slices: tuple[Slice, ...]
    spans: tuple[Span, ...]
    more_spans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveValue:
    """A value that lies in device memory at the fullest moment.

    Attributes:
      kind: `argument`, `output` or `temporary`.
    """

    name: str
    computation: str
    hlo_line: int
    shape: str
    bytes: int
    kind: str
    op_name: str | None
    source: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProfile:
    """Device memory over the step.

    Attributes:
      argument_bytes: held throughout.
      output_bytes: of outputs that do not lie in arguments; held throughout.
      curve: seconds since the step began, and bytes of temporaries from then on.
      peak_bytes: all together at the fullest moment.
      peak_seconds: that moment.
      live: what is live then, the largest first.
      more_live: the number of further values.
      more_bytes: their bytes.
      capacity: bytes of the chip; `None` where unknown.
    """

    argument_bytes: int
    output_bytes: int
    curve: tuple[tuple[float, int], ...]
    peak_bytes: int
    peak_seconds: float
    live: tuple[LiveValue, ...]
    more_live: int
    more_bytes: int
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """What limits a chip.

    Attributes:
      flops: peak operations a second of the matrix unit on bf16.
      hbm_bandwidth: bytes a second.
      vector_flops: peak of what is no product; `None` where not known.
    """

    flops: float
    hbm_bandwidth: float
    vector_flops: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProfile:
    """One step of one module.

    Attributes:
      seconds: modelled.
      matrix_flops: operations of the products in it, calls of unknown arithmetic left out.
      hbm_bytes: through device memory.
      exposed_collective_seconds: in which collectives hold up the step.
      activities: seconds by activity, `exposed` for waits; the largest first.
      operations: those that take the most time, the largest first.
      more_operations: the number of further ones that take time.
      more_seconds: their seconds together.
      lanes: the computations that take the most time, where execution starts first.
      memory: of what runs where execution starts.
    """

    seconds: float
    matrix_flops: int
    hbm_bytes: int
    exposed_collective_seconds: float
    roof: Roof
    activities: tuple[tuple[str, float], ...]
    operations: tuple[Operation, ...]
    more_operations: int
    more_seconds: float
    lanes: tuple[LaneProfile, ...]
    memory: MemoryProfile | None
