"""The timeline of a step tells the same story as its costs."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from hlo_tools.analysis.asynchrony import Asynchrony
from hlo_tools.analysis.collectives import Collectives
from hlo_tools.analysis.cost import CostModel
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.liveness import HBM_SPACE, Liveness
from hlo_tools.analysis.timeline import Timeline
from hlo_tools.hardware import chip, detect_chip
from hlo_tools.hlo.parser import parse_module

PLANTED = Path(__file__).resolve().parent.parent.parent / "fixtures" / "planted" / "hlo"
DUMPS = sorted(path.name for path in PLANTED.glob("*.hlo.txt*"))


def read(name: str) -> str:
    data = (PLANTED / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


def timeline(text: str) -> tuple[Execution, CostModel, Timeline]:
    module = parse_module(text)
    execution = Execution(module)
    asynchrony = Asynchrony(module, execution)
    collectives = Collectives(module, execution, asynchrony)
    cost = CostModel(module, execution, collectives, detect_chip(module) or chip("v5e"))
    return execution, cost, Timeline(execution, asynchrony, cost)


@pytest.mark.parametrize("name", DUMPS)
def test_timeline_ends_when_the_step_does(name: str) -> None:
    execution, cost, found = timeline(read(name))
    roots = [c for c in execution.executed if not execution.callers(c)]
    total = sum(found.lanes[c].seconds for c in roots)
    assert total == pytest.approx(cost.step_seconds, rel=1e-9)
    assert total > 0


@pytest.mark.parametrize("name", DUMPS)
def test_steps_follow_one_another_without_gaps(name: str) -> None:
    _, _, found = timeline(read(name))
    for lane in found.lanes.values():
        assert len(lane.begins) == len(lane.computation.instructions)
        assert lane.begins == sorted(lane.begins)
        for before, after in pairwise(lane.steps):
            assert after.begin == before.end
        if lane.steps:
            assert lane.steps[0].begin == 0
            assert lane.steps[-1].end == lane.seconds
        waits = sum(step.end - step.begin for step in lane.steps if step.is_wait)
        assert waits == pytest.approx(sum(flight.exposed for flight in lane.flights), abs=1e-12)


LOOP = """\
HloModule loop, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body (s: (s32[], f32[8192,8192])) -> (s32[], f32[8192,8192]) {
  %s = (s32[], f32[8192,8192]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8192,8192] get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %reduce = f32[8192,8192] all-reduce-start(%x), replica_groups={{0,1,2,3}}, to_apply=%add
  %beside = f32[8192,8192] negate(%x)
  %reduced = f32[8192,8192] all-reduce-done(%reduce)
  %y = f32[8192,8192] add(%reduced, %beside)
  ROOT %out = (s32[], f32[8192,8192]) tuple(%next, %y)
}

%condition (s: (s32[], f32[8192,8192])) -> pred[] {
  %s = (s32[], f32[8192,8192]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%i, %ten), direction=LT
}

ENTRY %main (x: f32[8192,8192]) -> f32[8192,8192] {
  %x = f32[8192,8192] parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[8192,8192]) tuple(%zero, %x)
  %while = (s32[], f32[8192,8192]) while(%start), condition=%condition, body=%body
  ROOT %result = f32[8192,8192] get-tuple-element(%while), index=1
}
"""


def test_loop_lasts_as_long_as_its_trips_and_a_wait_stands_at_its_end() -> None:
    execution, _, found = timeline(LOOP)
    lanes = {computation.name: lane for computation, lane in found.lanes.items()}
    (loop,) = lanes["main"].steps
    assert [(c.name, times) for c, times in loop.calls] == [("condition", 11), ("body", 10)]
    inside = 10 * lanes["body"].seconds + 11 * lanes["condition"].seconds
    assert loop.end == pytest.approx(inside)
    (flight,) = lanes["body"].flights
    waits = [step for step in lanes["body"].steps if step.is_wait]
    assert [step.instruction.name for step in waits] == ["reduce"]
    beside = next(step for step in lanes["body"].steps if step.instruction.name == "beside")
    assert flight.begin == beside.begin
    assert flight.end == waits[0].end
    # What is on its way is hidden by what runs beside it, and by nothing else.
    assert flight.exposed == pytest.approx(flight.alone - (beside.end - beside.begin))
    assert 0 < flight.exposed < flight.alone
    assert execution.runs(flight.span.start.computation)


@pytest.mark.parametrize("name", DUMPS)
def test_memory_over_time_is_fullest_at_the_peak(name: str) -> None:
    module = parse_module(read(name))
    found = Liveness(module, Execution(module))
    root = found.fullest_root(HBM_SPACE)
    assert root is not None
    held = found.temp_bytes(root)
    assert len(held) == len(root.instructions)
    assert max(held) == found.temp_peak_bytes()
    fixed = found.argument_bytes() + found.output_bytes()
    assert fixed + max(held) == found.peak_bytes(HBM_SPACE)
