"""The names that XLA gives to dumps: the last stage of each module and nothing else."""

import random

import pytest
from inputs import time_limit

from hlo_tools.reading.dump_names import report_kind, select_modules

TPU = "module_0007.jit_g.cl_1014260217."


def test_tpu_stages_in_the_order_of_the_compile() -> None:
    """After code generation the text has what `as_text()` of the compiled program has."""
    stages = [
        "before_optimizations",
        "0007.Phase_1_pre-layout_assignment_passes.after_pipeline-start.before_zero_sized",
        "0039.tpu-tiling-rewriter.before_tiling_rewriter",
        "after_optimizations_before_buffer_assignment",
        "after_optimizations_after_buffer_assignment",
        "after_optimizations",
        "after_codegen",
    ]
    for count in range(1, len(stages) + 1):
        files = [f"{TPU}{stage}.txt" for stage in stages[:count]]
        assert select_modules(files) == files[-1:]


@pytest.mark.parametrize(
    "stage",
    [
        "after_optimizations",
        "cpu_after_optimizations",
        "gpu_after_optimizations",
        "sm_80_gpu_after_optimizations",
        "sm_9.0_gpu_after_optimizations",
        "sm_10.0a_gpu_after_optimizations",
        "gfx942_gpu_after_optimizations",
    ],
)
@pytest.mark.parametrize("module", ["module_0001.jit_f", "module_12345.jit__lambda_.256.1024"])
def test_every_platform_prefix(stage: str, module: str) -> None:
    before, last = f"{module}.before_optimizations.txt", f"{module}.{stage}.txt"
    assert select_modules([before, last]) == [last]
    assert report_kind(f"{module}.{stage}-live-range.txt") == ("a live range listing", last)


def test_text_is_preferred_to_proto_of_the_same_stage_only() -> None:
    text, proto = f"{TPU}after_codegen.txt", f"{TPU}after_codegen.hlo.pb"
    assert select_modules([text, proto]) == [text]
    assert select_modules([f"{TPU}before_optimizations.txt", proto]) == [proto]
    assert select_modules(["x.hlo.pb", "x.txt", "y.hlo.pb"]) == ["x.txt", "y.hlo.pb"]


def test_by_products_of_a_module_are_left_out() -> None:
    stem = "module_0001.jit_f"
    module = f"{stem}.sm_9.0_gpu_after_optimizations.txt"
    others = [f"{stem}.ptx", f"{stem}.thunk_sequence.txt", f"{stem}.ir-with-opt.ll"]
    assert select_modules([module, *others]) == [module]


def test_files_outside_a_dump_all_remain() -> None:
    files = ["README", "a.hlo.txt", "a.txt", "a.txt.gz", "slow.module_0013.hlo.txt"]
    assert select_modules(files) == files


def test_modules_of_one_number_and_several_names_are_apart() -> None:
    files = [f"{p}module_0002.jit_f.after_optimizations.txt" for p in ("", "host1.", "x_")]
    assert select_modules(files) == sorted(files)


@pytest.mark.parametrize(
    "name",
    ["module_1" + ".0000" * 48 + ".", "module_1" * 30, ".module_1" * 28, "module_1." + "a_" * 120],
)
def test_hostile_names_take_no_time(name: str) -> None:
    with time_limit(seconds=10):
        assert select_modules([name]) == [name]


def test_the_order_of_the_listing_does_not_matter() -> None:
    files = [f"module_000{n}.f.{s}.txt" for n in range(9) for s in ("before_optimizations", "x")]
    expected = select_modules(files)
    random.Random(0).shuffle(files)
    assert select_modules(files) == expected
