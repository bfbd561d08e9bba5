"""The kernel model: what it reads, how often it runs it, and what it refuses to guess."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schedules.replay import Engine, replay
from benchmarks.schedules.scalar_inputs import words
from benchmarks.schedules.text import ScheduleError, parse_schedule, read_schedules
from hlo_tools.hlo.shape import Layout, Shape

HERE = Path(__file__).resolve().parent
FAST = Engine(bytes_per_cycle=1e12, latency=0)
GENERATIONS = ("v5e", "v6e", "7x")


def schedule(*bundles, name="TLP"):
    """A schedule of these bundles, each the text between its braces."""
    lines = [f"{number:#6x}   :  {{ {text} }}" for number, text in enumerate(bundles)]
    lines[0] = lines[0].replace("0x0", "  0")
    return parse_schedule(name, "\n".join(lines) + "\n")


def cycles(*bundles, engine=FAST, inputs=None):
    return replay({"TLP": schedule(*bundles)}, engine, inputs).cycles


LOOP = (
    "%s1_s0 = smov.u32 0",
    "%s2_s0 = sphi %s1_s0, %s3_s0  ;;  %s3_s0 = sadd.s32 1, %s2_s0",
    "%p4_p0 = scmp.lt.s32.totalorder %s3_s0, 5",
    "%9 = sbr.rel (%p4_p0) target bundleno = 1 (0x1), region = 2",
    "",
    "",
    "",
    "",
)


def test_a_loop_runs_as_often_as_its_numbers_say_and_pays_for_the_slots_after_its_branch():
    assert cycles(*LOOP) == 1 + 5 * 7


def test_all_of_a_bundle_reads_before_any_of_it_writes():
    swapped = (
        "%s1_s0 = smov.u32 3  ;;  %s2_s1 = smov.u32 4",
        "%s3_s0 = smov.u32 %s2_s1  ;;  %s4_s1 = smov.u32 %s1_s0",
        "%p5_p0 = scmp.eq.s32.totalorder %s3_s0, 4  ;;  %p6_p1 = scmp.eq.s32.totalorder %s4_s1, 3",
        "%p7_p2 = pnand %p5_p0, %p6_p1",
        "%8 = sbr.rel (!%p7_p2) target bundleno = 10 (0xa), region = 2",
        "", "", "", "", "",
        "",
    )  # fmt: skip
    assert cycles(*swapped) == len(swapped) - 1


def test_a_register_that_holds_another_value_by_then_is_an_error():
    with pytest.raises(ScheduleError, match="holds another value"):
        cycles(
            "%s1_s0 = smov.u32 1",
            "%s2_s0 = smov.u32 2",
            "%p3_p0 = scmp.eq.s32.totalorder %s1_s0, 1",
            "%4 = sbr.rel (%p3_p0) target bundleno = 8 (0x8), region = 1",
            "", "", "", "", "",
        )  # fmt: skip


def branches(*setting):
    """How many bundles a program runs that skips two where predicate 0 holds after `setting`."""
    end = len(setting) + 7
    branch = f"%9 = sbr.rel (%p9_p0) target bundleno = {end} ({end:#x}), region = 1"
    return cycles(*setting, branch, *[""] * 6, "")


def test_a_number_with_the_allocation_that_it_goes_into_is_a_number():
    added = "%s2_s1 = scalar_lea.vmem %s1_s0, 16 [#allocation3]"
    compared = "%p9_p0 = scmp.eq.s32.totalorder %s2_s1, 21"
    assert branches("%s1_s0 = smov.u32 5", added, compared) == 3 + 5 + 1


def test_a_pointer_in_another_register_is_what_that_register_held_before():
    both = "%s3_s1 = int_to_ptr.vmem [resolvable:$true] %s1_s0  ;;  %s2_s0 = smov.u32 7"
    compared = "%p9_p0 = scmp.eq.s32.totalorder %s3_s1, 5"
    assert branches("%s1_s0 = smov.u32 5", both, compared) == 3 + 5 + 1


def test_a_pointer_to_what_the_same_bundle_makes_is_that():
    both = "%s2_s0 = smov.u32 7  ;;  %s3_s1 = int_to_ptr.vmem [resolvable:$true] %s2_s0"
    compared = "%p9_p0 = scmp.eq.s32.totalorder %s3_s1, 7"
    assert branches(both, compared) == 2 + 5 + 1


def test_quotients_come_out_of_their_queue():
    divided = "%3 = sdivrem.u32 %s1_s0, %s2_s1"
    popped = "%s4_s2 = spop.drf %3"
    compared = "%p9_p0 = scmp.eq.s32.totalorder %s4_s2, 3"
    numbers = "%s1_s0 = smov.u32 17  ;;  %s2_s1 = smov.u32 5"
    assert branches(numbers, divided, popped, compared) == 4 + 5 + 1


def test_what_a_false_predicate_leaves_alone_stays():
    kept = "%s2_s0 = smov.u32 (%p2_p1, %s1_s0), 9"
    compared = "%p9_p0 = scmp.eq.s32.totalorder %s2_s0, 5"
    first = "%s1_s0 = smov.u32 5  ;;  %p2_p1 = scmp.eq.s32.totalorder 1, 2"
    assert branches(first, kept, compared) == 3 + 5 + 1


def kernel_of(*bundles):
    """A program whose one HLO instruction is a kernel of these bundles."""
    program = (
        "%1 = vtrace 2147483648",
        "%2 = inlined_call /* %kernel = custom-call() */",
        "%3 = vtrace 2415919104",
    )
    return {"TLP": schedule(*program), "kernel": schedule(*bundles, name="kernel")}


def test_what_only_the_running_program_knows_decides_no_branch():
    data = (
        "%s1_s0 = spop %v9_v0",
        "%p2_p0 = scmp.eq.s32.totalorder %s1_s0, 0",
        "%3 = sbr.rel (%p2_p0) target bundleno = 7 (0x7), region = 1",
        "", "", "", "", "",
    )  # fmt: skip
    with pytest.raises(ScheduleError, match="only the running program knows"):
        replay(kernel_of(*data), FAST)


def test_an_operation_that_waits_in_an_unknown_way_is_an_error():
    with pytest.raises(ScheduleError, match="vwait"):
        replay(kernel_of("%1 = vwait.ge [#allocation1], 4"), FAST)


COPY = (
    "%1 = dma.hbm_to_vmem [thread:$0]  %s8_s0, 100, %s9_s1, [#allocation1]",
    "%2 = dma.done.wait [#allocation1], 100",
    "%3 = vsyncadd [#allocation1], 4294967196",
)


def test_a_wait_takes_what_the_transfer_takes_beyond_the_bundles_in_between():
    engine = Engine(bytes_per_cycle=32, latency=7)
    alone = replay(kernel_of(*COPY), engine)
    assert alone.by_instruction["kernel"].waited == 100 + 7 - 1
    assert alone.hbm_bytes == 3200
    hidden = replay(kernel_of(COPY[0], *[""] * 200, *COPY[1:]), engine)
    assert hidden.by_instruction["kernel"].waited == 0


def test_transfers_share_the_bandwidth_of_hbm():
    two = (COPY[0], COPY[0].replace("%1", "%4"), COPY[1].replace(", 100", ", 200"))
    run = replay(kernel_of(*two), Engine(bytes_per_cycle=32, latency=0))
    assert run.by_instruction["kernel"].waited == 200 - 2


def test_a_wait_for_more_than_ever_comes_is_an_error():
    with pytest.raises(ScheduleError, match="waits for 101"):
        replay(kernel_of(COPY[0], COPY[1].replace("100", "101")), FAST)


def test_the_stored_dump_runs_its_loop_one_to_eight_times():
    run = replay(read_schedules(HERE / "triangle_v5e"), FAST)
    kernel = run.by_instruction["triangle.1"]
    assert (kernel.calls, kernel.transfers, kernel.hbm_bytes) == (1, 16, 2 * 64 * 128 * 4)
    text = next((HERE / "triangle_v5e").glob("*triangle.1*")).read_text(encoding="utf-8")
    parsed = parse_schedule("triangle.1", text)
    back = [
        (number, op.target)
        for number, ops in parsed.bundles.items()
        for op in ops
        if op.target is not None and op.target <= number
    ]
    inner_start, inner_end = max((target, number + 5) for number, target in back)
    trips, steps = sum(range(1, 9)), 8
    per_trip = inner_end - inner_start
    # The pipeline runs two steps more than the grid has; what is left is at most its code once.
    rest = kernel.bundles - trips * per_trip
    assert 0 < rest < (steps + 2) * (parsed.length - per_trip)


@given(length=st.integers(1, 3000), data=st.data())
def test_words_of_packed_integers_of_one_dimension(length, data):
    layout = Layout(minor_to_major=(0,), tiles=((512,), (128,), (4, 1)))
    values = (np.arange(length) % 127).astype(np.int8)
    found = words(values, Shape(element_type="s8", dimensions=(length,), layout=layout))
    assert len(found) * 4 == -(-length // 512) * 512
    at = data.draw(st.integers(0, length - 1))
    word = int(found[at // 512 * 128 + at % 128])
    assert word >> 8 * (at % 512 // 128) & 255 == values[at]


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 300),
    packed=st.sampled_from([(np.int32, 8), (np.int32, 4), (np.int8, 4), (np.int8, 32)]),
    data=st.data(),
)
def test_words_of_an_array_stand_where_its_tiles_put_them(rows, columns, packed, data):
    dtype, tile = packed
    per_word = 4 // np.dtype(dtype).itemsize
    tiles = ((tile, 128), (per_word, 1)) if per_word > 1 else ((tile, 128),)
    shape = Shape(
        element_type="s8" if per_word > 1 else "s32",
        dimensions=(rows, columns),
        layout=Layout(minor_to_major=(1, 0), tiles=tiles),
    )
    values = (np.arange(rows * columns) % 127).astype(dtype).reshape(rows, columns)
    found = words(values, shape)
    assert len(found) * 4 == shape.padded_bytes
    row = data.draw(st.integers(0, rows - 1))
    column = data.draw(st.integers(0, columns - 1))
    tile_at = row // tile * -(-columns // 128) + column // 128
    word_at = tile_at * tile * 128 // per_word + row % tile // per_word * 128 + column % 128
    word = int(found[word_at])
    assert word >> 8 * (row % per_word) & 255 == int(values[row, column]) & 255


@pytest.fixture(scope="module")
def modelled():
    """What the model says of the programs beside this file, from a process of its own."""
    if not all(importlib.util.find_spec(name) for name in ("jax", "libtpu")):
        pytest.skip("jax and libtpu compile the programs")
    run = subprocess.run(
        [sys.executable, str(HERE / "schedule_programs.py")], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_bytes_are_those_of_the_arrays(modelled, generation):
    programs = modelled["programs"][generation]
    for name, arrays in (
        ("triangle 8", 2 * 64 * 128 * 4),
        ("triangle 16", 2 * 128 * 128 * 4),
        ("scaled 8", 2 * 8 * 256 * 1024 * 4),
        ("scaled 16", 2 * 16 * 256 * 1024 * 4),
    ):
        assert sum(programs[name]["bytes"].values()) == arrays, name


@pytest.mark.parametrize("generation", GENERATIONS)
def test_twice_the_grid_takes_twice_the_bundles_but_for_the_frame(modelled, generation):
    programs = modelled["programs"][generation]
    small, large = (programs[f"scaled {steps}"]["bundles"]["scaled.1"] for steps in (8, 16))
    assert 1.8 < large / small < 2
    seconds = [programs[f"scaled {steps}"]["seconds"] for steps in (8, 16)]
    assert 1.8 < seconds[1] / seconds[0] < 2


@pytest.mark.parametrize("generation", GENERATIONS)
def test_trips_that_an_integer_operand_decides_are_counted(modelled, generation):
    programs = modelled["programs"][generation]
    few, many = (programs[f"chosen {n}"]["bundles"]["chosen.1"] for n in (1, 4))
    extra = (4 + 1 + 2 + 6) - 4
    assert many > few
    assert (many - few) % extra == 0


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_loop_around_hlo_instructions_runs_them_as_often(modelled, generation):
    calls = modelled["programs"][generation]["repeated"]["calls"]
    assert calls["convolution_tanh_fusion.2"] == 10


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_program_takes_at_least_its_bundles_and_its_bytes(modelled, generation):
    for name, found in modelled["programs"][generation].items():
        assert found["seconds"] >= max(found["compute_seconds"], found["memory_seconds"]), name


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_large_product_takes_about_what_the_compiler_estimates(modelled, generation):
    ours, compilers = modelled["estimated"][generation]
    assert 0.5 < ours / compilers < 1.5
