"""Arithmetic, traffic and seconds, against XLA's own counts and in what must hold for any chip."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.analysis.asynchrony import Asynchrony
from hlo_tools.analysis.collectives import Collectives
from hlo_tools.analysis.cost import CostModel
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.matmul import matmul
from hlo_tools.hardware import chip
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.parser import parse_module

ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = ROOT / "fixtures" / "planted"


def cost_model(text: str, chip_name: str | None = "v5e") -> CostModel:
    module = parse_module(text)
    execution = Execution(module)
    collectives = Collectives(module, execution, Asynchrony(module, execution))
    return CostModel(module, execution, collectives, chip(chip_name) if chip_name else None)


def entry(model: CostModel, name: str) -> Instruction:
    assert model.module.entry is not None
    found = model.module.entry.instruction(name)
    assert found is not None
    return found


# ---- flops


def xla_flops(function: Callable[..., object], *shapes: tuple[int, ...]) -> tuple[float, str]:
    """What XLA counts for a function of f32 arrays before it optimises it, and its text."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_platforms", "cpu")
    arguments = [jax.ShapeDtypeStruct(shape, jax.numpy.float32) for shape in shapes]
    lowered = jax.jit(function).lower(*arguments)
    return lowered.cost_analysis()["flops"], lowered.as_text("hlo")


def _programs() -> dict[str, tuple[Callable[..., object], tuple[tuple[int, ...], ...]]]:
    jax = pytest.importorskip("jax")
    numpy = jax.numpy

    def convolution(**options: object) -> Callable[..., object]:
        return lambda x, w: jax.lax.conv_general_dilated(
            x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options
        )

    image, kernel = (2, 17, 13, 6), (3, 5, 6, 8)
    return {
        "dot": (lambda a, b: a @ b, ((7, 5), (5, 9))),
        "batched dot": (lambda a, b: numpy.einsum("bij,bkj->bik", a, b), ((3, 7, 5), (3, 4, 5))),
        "elementwise": (lambda a, b: a * b + a - numpy.maximum(a, b), ((33, 5), (33, 5))),
        "reduce": (lambda a: a.sum(0), ((33, 5),)),
        "same": (convolution(window_strides=(1, 1), padding="SAME"), (image, kernel)),
        "strided": (convolution(window_strides=(2, 3), padding="SAME"), (image, kernel)),
        "valid": (convolution(window_strides=(1, 2), padding="VALID"), (image, kernel)),
        "window dilated": (
            convolution(window_strides=(1, 1), padding="SAME", rhs_dilation=(2, 2)),
            (image, kernel),
        ),
        "base dilated": (
            convolution(window_strides=(1, 1), padding=((2, 1), (3, 4)), lhs_dilation=(2, 3)),
            (image, kernel),
        ),
        "grouped": (
            convolution(window_strides=(1, 1), padding="SAME", feature_group_count=3),
            (image, (3, 5, 2, 9)),
        ),
    }


PROGRAMS = (
    "dot", "batched dot", "elementwise", "reduce", "same", "strided", "valid", "window dilated",
    "base dilated", "grouped",
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_flops_are_those_that_xla_counts(name: str) -> None:
    function, shapes = _programs()[name]
    expected, text = xla_flops(function, *shapes)
    assert cost_model(text).step_flops == expected


@given(
    base=st.integers(1, 12),
    window=st.integers(1, 6),
    stride=st.integers(1, 4),
    low=st.integers(0, 5),
    high=st.integers(0, 5),
    base_dilation=st.integers(1, 4),
    window_dilation=st.integers(1, 4),
)
def test_convolution_counts_each_product_once(
    base: int,
    window: int,
    stride: int,
    low: int,
    high: int,
    base_dilation: int,
    window_dilation: int,
) -> None:
    """The closed form counts what trying every pair of positions counts."""
    reach = (window - 1) * window_dilation + 1
    length = low + (base - 1) * base_dilation + 1 + high
    if length < reach:
        return
    out = (length - reach) // stride + 1
    text = (
        f"ENTRY e {{\n a = f32[1,{base},1] parameter(0)\n b = f32[{window},1,1] parameter(1)\n"
        f" ROOT c = f32[1,{out},1] convolution(a, b), window={{size={window} stride={stride}"
        f" pad={low}_{high} lhs_dilate={base_dilation} rhs_dilate={window_dilation}}},"
        " dim_labels=b0f_0io->b0f\n}\n"
    )
    products = 0
    for o in range(out):
        for k in range(window):
            place = o * stride + k * window_dilation - low
            products += place % base_dilation == 0 and 0 <= place // base_dilation < base
    size = matmul(parse_module(text).computations[0].root)
    assert size is not None
    assert size.flops == 2 * products


def test_tpu_batch_dimension_is_no_window() -> None:
    """A batched dot that the TPU compiler wrote as a convolution has the dot's sizes."""
    text = (
        "ENTRY e {\n a = bf16[16,512,64] parameter(0)\n b = bf16[16,64,256] parameter(1)\n"
        " ROOT c = bf16[16,512,256] convolution(a, b),"
        " window={size=16 stride=15 lhs_dilate=16}, dim_labels=0bf_0io->0bf\n}\n"
    )
    size = matmul(parse_module(text).computations[0].root)
    assert size is not None
    assert (size.batch, size.m, size.n, size.k) == (16, 512, 256, 64)
    assert size.flops == 2 * 16 * 512 * 256 * 64


def test_flops_of_planted_dumps_agree_with_the_compiler() -> None:
    """On TPU modules without loops, dots inside fusions and as convolutions included."""
    if not (PLANTED / "MANIFEST.json").exists():
        pytest.skip("no planted dumps")
    ratios = []
    for name, case in json.loads((PLANTED / "MANIFEST.json").read_text()).items():
        path = PLANTED / case["file"]
        if path.suffix == ".gz" or not case["flops"] or not path.exists():
            continue
        text = path.read_text()
        if " while(" in text or "tpu_custom_call" in text or "dot" not in text:
            continue
        model = cost_model(text)
        ratios.append((model.step_flops / case["flops"], name))
    assert len(ratios) >= 10
    assert median(ratio for ratio, _ in ratios) == pytest.approx(1, rel=0.01)


# ---- traffic

SLICED = """HloModule m, is_scheduled=true

%body (p0: f32[64,1024,128], p1: s32[]) -> f32[1024,128] {
  %p0 = f32[64,1024,128]{2,1,0:T(8,128)} parameter(0)
  %p1 = s32[]{:T(128)} parameter(1)
  %zero = s32[]{:T(128)} constant(0)
  %one = f32[1,1024,128]{2,1,0:T(8,128)} dynamic-slice(%p0, %p1, %zero, %zero)
  ROOT %flat = f32[1024,128]{1,0:T(8,128)} bitcast(%one)
}

%update (q0: f32[64,1024,128], q1: f32[1024,128], q2: s32[]) -> f32[64,1024,128] {
  %q0 = f32[64,1024,128]{2,1,0:T(8,128)} parameter(0)
  %q1 = f32[1024,128]{1,0:T(8,128)S(1)} parameter(1)
  %q2 = s32[]{:T(128)} parameter(2)
  %nil = s32[]{:T(128)} constant(0)
  %row = f32[1,1024,128]{2,1,0:T(8,128)} bitcast(%q1)
  ROOT %new = f32[64,1024,128]{2,1,0:T(8,128)} dynamic-update-slice(%q0, %row, %q2, %nil, %nil)
}

%twice (r0: f32[64,1024,128], r1: s32[]) -> f32[64,1024,128] {
  %r0 = f32[64,1024,128]{2,1,0:T(8,128)} parameter(0)
  %r1 = s32[]{:T(128)} parameter(1)
  %inner = f32[1024,128]{1,0:T(8,128)} fusion(%r0, %r1), kind=kLoop, calls=%body
  %wide = f32[64,1024,128]{2,1,0:T(8,128)} broadcast(%inner), dimensions={1,2}
  ROOT %sum = f32[64,1024,128]{2,1,0:T(8,128)} add(%r0, %wide)
}

ENTRY %main (x: f32[64,1024,128], i: s32[]) -> f32[64,1024,128] {
  %x = f32[64,1024,128]{2,1,0:T(8,128)} parameter(0)
  %i = s32[]{:T(128)} parameter(1)
  %taken = f32[1024,128]{1,0:T(8,128)S(1)} fusion(%x, %i), kind=kLoop, calls=%body
  %put = f32[64,1024,128]{2,1,0:T(8,128)} fusion(%x, %taken, %i), kind=kLoop, calls=%update
  %all = f32[64,1024,128]{2,1,0:T(8,128)} fusion(%put, %i), kind=kLoop, calls=%twice
  %start = (HOST, f32[64,1024,128]{2,1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%all)
  %done = HOST copy-done(%start)
  ROOT %name = f32[65536,128]{1,0:T(8,128)} bitcast(%all)
}
""".replace("HOST", "f32[64,1024,128]{2,1,0:T(8,128)S(5)}")
ROW, WHOLE, SCALAR = 1024 * 128 * 4, 64 * 1024 * 128 * 4, 512


def test_a_slice_inside_a_fusion_reads_only_its_part() -> None:
    model = cost_model(SLICED)
    traffic = model.traffic(entry(model, "taken"))
    assert (traffic.hbm_read, traffic.vmem_written) == (ROW + SCALAR, ROW)


def test_an_update_in_place_writes_only_the_update() -> None:
    model = cost_model(SLICED)
    traffic = model.traffic(entry(model, "put"))
    assert (traffic.hbm_read, traffic.hbm_written, traffic.vmem_read) == (SCALAR, ROW, ROW)


def test_a_whole_use_outweighs_a_slice_of_the_same_operand() -> None:
    model = cost_model(SLICED)
    traffic = model.traffic(entry(model, "all"))
    assert (traffic.hbm_read, traffic.hbm_written) == (WHOLE + SCALAR, WHOLE)


def test_an_asynchronous_copy_counts_once_and_a_new_name_nothing() -> None:
    model = cost_model(SLICED)
    start = model.traffic(entry(model, "start"))
    assert (start.hbm_read, start.hbm_written, start.host) == (WHOLE, 0, WHOLE)
    assert model.traffic(entry(model, "done")).total == 0
    assert model.traffic(entry(model, "name")).total == 0
    assert model.seconds(entry(model, "name")) == 0


# ---- seconds

LOOP = """HloModule m, is_scheduled=true

%cond (c: (s32[], f32[1024,1024])) -> pred[] {
  %c = (s32[]{:T(128)}, f32[1024,1024]{1,0:T(8,128)}) parameter(0)
  %n = s32[]{:T(128)} get-tuple-element(%c), index=0
  %limit = s32[]{:T(128)} constant(7)
  ROOT %less = pred[]{:T(512)} compare(%n, %limit), direction=LT
}

%step (b: (s32[], f32[1024,1024])) -> (s32[], f32[1024,1024]) {
  %b = (s32[]{:T(128)}, f32[1024,1024]{1,0:T(8,128)}) parameter(0)
  %k = s32[]{:T(128)} get-tuple-element(%b), index=0
  %one = s32[]{:T(128)} constant(1)
  %next = s32[]{:T(128)} add(%k, %one)
  %v = f32[1024,1024]{1,0:T(8,128)} get-tuple-element(%b), index=1
  %w = f32[1024,1024]{1,0:T(8,128)} multiply(%v, %v), backend_config={"estimated_cycles":"15000"}
  ROOT %t = (s32[]{:T(128)}, f32[1024,1024]{1,0:T(8,128)}) tuple(%next, %w)
}

ENTRY %main (x: f32[1024,1024]) -> f32[1024,1024] {
  %x = f32[1024,1024]{1,0:T(8,128)} parameter(0)
  %zero = s32[]{:T(128)} constant(0)
  %init = (s32[]{:T(128)}, f32[1024,1024]{1,0:T(8,128)}) tuple(%zero, %x)
  %loop = (s32[]{:T(128)}, f32[1024,1024]{1,0:T(8,128)}) while(%init), condition=%cond, body=%step
  ROOT %out = f32[1024,1024]{1,0:T(8,128)} get-tuple-element(%loop), index=1
}
"""


def test_the_compilers_cycles_go_before_the_model_and_loops_multiply() -> None:
    model = cost_model(LOOP)
    step = model.module.computation("step")
    assert step is not None
    w = step.instruction("w")
    assert w is not None
    assert model.compiler_cycles(w) == 15000
    assert model.seconds(w) == pytest.approx(15000 / 1.5e9)
    assert model.seconds_per_step(w) == pytest.approx(7 * 15000 / 1.5e9)
    assert model.step_seconds > model.seconds_per_step(w)
    assert model.step_bytes == pytest.approx(7 * 3 * 4 << 20, rel=0.01)


def test_work_given_to_the_sparse_cores_has_no_estimate() -> None:
    model = cost_model(LOOP.replace("15000", str(2**63 - 1)))
    step = model.module.computation("step")
    assert step is not None
    assert model.compiler_cycles(step.instructions[5]) is None
    assert 0 < model.step_seconds < 1


def test_nothing_takes_time_without_a_chip() -> None:
    model = cost_model(LOOP, chip_name=None)
    assert model.step_seconds == 0
    assert model.step_bytes > 0
    assert model.step_flops > 0


GATHER = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (x: bf16[128,4096], y: f32[4096,4096]) -> bf16[1024,4096] {{
  %x = bf16[128,4096]{{1,0:T(8,128)(2,1)}} parameter(0)
  %y = f32[4096,4096]{{1,0:T(8,128)}} parameter(1)
  %s = (bf16[128,4096]{{1,0:T(8,128)(2,1)}}, bf16[1024,4096]{{1,0:T(8,128)(2,1)}}) \
all-gather-start(%x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={{0}}, \
use_global_device_ids=true
  %z = f32[4096,4096]{{1,0:T(8,128)}} negate(%y), backend_config={{"estimated_cycles":"{cycles}"}}
  ROOT %d = bf16[1024,4096]{{1,0:T(8,128)(2,1)}} all-gather-done(%s)
}}
"""


def test_only_what_no_work_hides_of_a_collective_is_exposed() -> None:
    """With no work between it costs all its time, with enough nothing, in between the rest."""
    totals = []
    for cycles in (0, 60_000, 10_000_000):
        model = cost_model(GATHER.format(cycles=cycles))
        start = entry(model, "s")
        wire = model.wire_seconds(model._collectives[start])
        hidden = cycles / 1.5e9
        assert model.seconds(start) == pytest.approx(max(0.0, wire - hidden))
        totals.append(model.seconds(start))
    assert totals[0] > totals[1] > totals[2] == 0
    # 7/8 of 8 MiB over two links of 50 GB/s, and four hops.
    assert totals[0] == pytest.approx(7 / 8 * (8 << 20) / 1e11 + 4e-6)


@given(
    m=st.integers(1, 5000), n=st.integers(1, 5000), k=st.integers(1, 5000),
    name=st.sampled_from(["v3", "v4", "v5e", "v5p", "v6e", "7x", "h100", "mi300x"]),
)  # fmt: skip
def test_a_product_takes_at_least_its_share_of_the_peak(m: int, n: int, k: int, name: str) -> None:
    """Filling the array up never makes a product faster than the chip's peak allows."""
    text = (
        f"ENTRY e {{\n a = bf16[{m},{k}]{{1,0}} parameter(0)\n"
        f" b = bf16[{k},{n}]{{1,0}} parameter(1)\n"
        f" ROOT c = bf16[{m},{n}]{{1,0}} dot(a, b), lhs_contracting_dims={{1}},"
        " rhs_contracting_dims={0}\n}\n"
    )
    model = cost_model(text, name)
    assert model.chip is not None
    seconds = model.seconds(entry(model, "c"))
    assert seconds >= 2 * m * n * k / model.chip.bf16_flops
    assert seconds >= 2 * (m * k + k * n + m * n) / model.chip.hbm_bandwidth


def test_precision_multiplies_the_passes_of_f32_products() -> None:
    text = (
        "ENTRY e {\n a = f32[2048,2048] parameter(0)\n b = f32[2048,2048] parameter(1)\n"
        " ROOT c = f32[2048,2048] dot(a, b), lhs_contracting_dims={1},"
        " rhs_contracting_dims={0}%s\n}\n"
    )
    plain, highest = (
        matmul(parse_module(text % suffix).computations[0].root)
        for suffix in ("", ", operand_precision={highest,highest}")
    )
    assert plain is not None
    assert highest is not None
    assert (plain.passes, highest.passes) == (1, 6)


def test_absurd_sizes_neither_overflow_nor_hang() -> None:
    huge = "f32[" + ",".join(["9999999999"] * 200) + "]"
    text = f"ENTRY e {{\n a = {huge} parameter(0)\n ROOT b = {huge} negate(a)\n}}\n"
    assert math.isfinite(cost_model(text).step_seconds)


def test_fusions_that_call_one_another_twice_are_counted_in_linear_time() -> None:
    """Each of 60 bodies calls the next one twice: 2**60 dots if they were listed."""
    parts = [
        "%f0 (p: f32[4,4]) -> f32[4,4] {\n  %p = f32[4,4] parameter(0)\n"
        "  ROOT %d = f32[4,4] dot(%p, %p), lhs_contracting_dims={1},"
        " rhs_contracting_dims={0}\n}\n"
    ]
    for n in range(1, 61):
        parts.append(
            f"%f{n} (p: f32[4,4]) -> f32[4,4] {{\n  %p = f32[4,4] parameter(0)\n"
            f"  %x = f32[4,4] fusion(%p), kind=kLoop, calls=%f{n - 1}\n"
            f"  ROOT %y = f32[4,4] fusion(%x), kind=kLoop, calls=%f{n - 1}\n}}\n"
        )
    parts.append(
        "ENTRY %e (p: f32[4,4]) -> f32[4,4] {\n  %p = f32[4,4] parameter(0)\n"
        "  ROOT %z = f32[4,4] fusion(%p), kind=kLoop, calls=%f60\n}\n"
    )
    model = cost_model("\n".join(parts))
    assert model.step_flops == 2**60 * 128
    assert math.isfinite(model.step_seconds)


def test_model_stays_near_the_compilers_estimates(corpus: Path) -> None:
    """What docs/cost-model.md promises: half within 1.5 times, nine of ten within 3 times."""
    factors = []
    for path in sorted(corpus.glob("hlo_tpu_aot/tpu_aot_*.txt")):
        generation = re.search(r"aot_(v4|v5e|v5p|v6e)", path.name)
        assert generation is not None
        model = cost_model(path.read_text(), generation[1])
        assert model.chip is not None
        assert model.chip.clock_hz is not None
        for instruction in Execution(model.module).instructions():
            cycles = model.compiler_cycles(instruction)
            if cycles:
                seconds = cycles / model.chip.clock_hz
                factors.append(math.exp(abs(math.log(model.model_seconds(instruction) / seconds))))
    factors.sort()
    assert len(factors) > 150
    assert factors[len(factors) // 2] < 1.5
    assert factors[len(factors) * 9 // 10] < 3
