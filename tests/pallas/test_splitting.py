"""Iterations in which a mask keeps out nothing are a loop of their own, without the mask."""

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

FILE = Path(__file__).with_name("attention_kernels.py")
MASK = " >= "


def steps(source):
    """The bodies of the loops of an emitted file, without comments."""
    lines = [each for each in source.splitlines() if not each.strip().startswith("#")]
    found = []
    for place, line in enumerate(lines):
        if not line.strip().startswith("def step"):
            continue
        margin = len(line) - len(line.lstrip())
        body = []
        for each in lines[place + 1 :]:
            if each.strip() and len(each) - len(each.lstrip()) <= margin:
                break
            body.append(each)
        found.append("\n".join(body))
    return found


def numbers(*shape):
    """Numbers whose sums are exact in f32."""
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)


def band_case(blocks, window=0, length=512):
    return Case(
        name=f"band {blocks} {window}",
        file=FILE,
        kernel="band",
        arrays={"x_ptr": numbers(length), "out_ptr": np.zeros(length, np.float32)},
        constants={"BM": blocks[0], "BN": blocks[1], "WINDOW": window},
        grid=(length // blocks[0],),
    )


@pytest.mark.parametrize("blocks", [(128, 128), (128, 64), (256, 128)], ids=str)
def test_causal_attention(blocks):
    """Nothing is masked before the diagonal; NaN comes through a mask as it does in one loop."""
    case = attention_case(causal=True, greatest=False, blocks=blocks, length=512)
    translation = translated(case)
    assert MASK in translation.function.source
    assert MASK not in steps(translation.function.source)[0]
    assert_same(case, translation, evaluated(case), 2e-2, 2e-2)
    arrays = {name: case.arrays[name] for name in translation.function.parameters}
    with compiler() as process:
        assert not problems(process, translation.function, arrays)


def test_nothing_is_masked_behind_the_diagonal():
    length = 512
    q, k = (numbers(length, 64).astype(ml_dtypes.bfloat16) for _ in range(2))
    case = Case(
        name="keys first",
        file=FILE,
        kernel="keys_first",
        arrays={"q_ptr": q, "k_ptr": k, "out_ptr": np.zeros((length, 64), np.float32)},
        scalars={"LENGTH": length},
        constants={"BM": 128, "BN": 128, "WIDTH": 64},
        grid=(length // 128,),
    )
    translation = translated(case)
    assert MASK in translation.function.source
    assert MASK not in steps(translation.function.source)[-1]
    assert_same(case, translation, evaluated(case), 2e-2, 2e-2)


@pytest.mark.parametrize("blocks", [(128, 128), (128, 32), (256, 64)], ids=str)
def test_sums_up_to_the_diagonal(blocks):
    case = band_case(blocks)
    translation = translated(case)
    assert MASK not in steps(translation.function.source)[0]
    assert_same(case, translation, evaluated(case))


@pytest.mark.parametrize(
    "case",
    [
        # The diagonal goes through blocks of columns that begin before the block of rows.
        band_case((64, 128)),
        # No iteration is all inside, whatever the program.
        band_case((128, 128), window=100),
    ],
    ids=str,
)
def test_loops_with_masks_throughout_stay_one(case):
    translation = translated(case)
    (body,) = steps(translation.function.source)
    assert MASK in body
    assert_same(case, translation, evaluated(case))


def test_loops_that_write_stay_one():
    """Two loops of which either may have no iteration would leave it open what is written."""
    size = 256
    case = Case(
        name="written",
        file=FILE,
        kernel="written",
        arrays={"x_ptr": numbers(size, size), "out_ptr": np.ones((size, size), np.float32)},
        constants={"SIZE": size, "BM": 128, "BN": 128},
        grid=(2,),
    )
    translation = translated(case)
    (body,) = steps(translation.function.source)
    assert MASK in body
    assert_same(case, translation, evaluated(case))
