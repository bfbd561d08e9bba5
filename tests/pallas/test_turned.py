"""Arrays of narrow rows are taken as XLA lays them out."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

import ml_dtypes
from emitted_kernels import compiler, problems
from launch_case import Case, evaluated
from pallas_case import assert_same, translated
from test_nan_rows import attention_case

import aot_oracle

FILE = Path(__file__).with_name("attention_kernels.py")
TURNED = tuple(f"{name}_ptr.transpose(1, 0)" for name in ("q", "k", "v", "out"))

# For each shape whether the last dimension but one lies innermost.
LAYOUTS = {
    **{(1024, 64): True, (128, 64): True, (256, 96): True, (4, 8, 1024, 64): True},
    **{(256, 1024, 64): True, (2048, 128, 64): True, (2, 128, 1024, 64): True, (128, 8): True},
    **{(64, 64): False, (1024, 128): False, (128, 128): False, (1, 2, 64, 64): False},
}
PROGRAM = "".join(
    f'emit("f{place}_{kind}", lambda x: x * 2, array("{kind}", {", ".join(map(str, shape))}))\n'
    for place, shape in enumerate(LAYOUTS)
    for kind in ("bfloat16", "float32")
)


@pytest.mark.skipif(not aot_oracle.AVAILABLE, reason="no libtpu")
@pytest.mark.parametrize("generation", ["v5e", "7x"])
def test_xla_lays_narrow_rows_out_so(generation):
    shapes = list(LAYOUTS)
    found = {}
    for each in aot_oracle.compile_for(generation, PROGRAM):
        place, kind = re.fullmatch(r"f(\d+)_(\w+)", each.name).groups()
        order = re.search(r"entry_computation_layout=\{\(\w+\[[\d,]*\]\{([\d,]*)", each.text)[1]
        rank = len(shapes[int(place)])
        found[shapes[int(place)], kind] = order.startswith(f"{rank - 2},{rank - 1}")
    wanted = {(shape, kind): LAYOUTS[shape] for shape, kind in found}
    assert found == wanted
    assert len(found) == 2 * len(LAYOUTS)


@pytest.mark.parametrize(
    ("causal", "blocks"), [(False, (128, 128)), (True, (128, 128)), (True, (64, 64))], ids=str
)
def test_attention(causal, blocks):
    case = attention_case(causal, greatest=False, blocks=blocks)
    translation = translated(case)
    # Rows along lanes begin at multiples of 128 only.
    turned = [each in translation.function.source for each in TURNED]
    assert turned == [blocks[0] == 128] * 4
    assert_same(case, translation, evaluated(case), 2e-2, 2e-2)
    arrays = {name: case.arrays[name] for name in translation.function.parameters}
    with compiler() as process:
        assert not problems(process, translation.function, arrays)


def floats(*shape, kind=ml_dtypes.bfloat16):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32).astype(kind)


def test_blocks_of_part_of_a_tile_are_taken_as_they_are():
    """Rows that a loop goes along in shorter blocks than a tile has lanes."""
    length = 384
    case = Case(
        name="keys first",
        file=FILE,
        kernel="keys_first",
        arrays={
            **{"q_ptr": floats(length, 64), "k_ptr": floats(length, 64)},
            "out_ptr": np.zeros((length, 64), np.float32),
        },
        scalars={"LENGTH": length},
        constants={"BM": 32, "BN": 64, "WIDTH": 64},
        grid=(length // 64,),
    )
    translation = translated(case)
    source = translation.function.source
    assert "q_ptr.transpose" not in source
    assert_same(case, translation, evaluated(case), 2e-2, 2e-2)


def test_what_is_computed_element_by_element_is_taken_as_it_is():
    case = Case(
        name="scaled",
        file=FILE,
        kernel="scaled",
        arrays={"x_ptr": floats(512, 64), "out_ptr": np.zeros((512, 64), ml_dtypes.bfloat16)},
        constants={"WIDTH": 64, "ROWS": 128},
        grid=(4,),
    )
    translation = translated(case)
    assert "x_ptr.transpose" not in translation.function.source
    assert_same(case, translation, evaluated(case))
