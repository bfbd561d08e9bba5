"""A greatest element is NaN beside NaN only where nobody can see that it is another one."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

import ml_dtypes
from launch_case import Case, evaluated
from pallas_case import assert_same, translated

FILE = Path(__file__).with_name("attention_kernels.py")
IGNORING = "_greatest("


def rows_with_nan(rows, size):
    """Rows of numbers; with a NaN in front, behind, among infinities, and all NaN."""
    x = np.random.default_rng(0).standard_normal((rows, size)).astype(np.float32) * 4
    x[1, 0] = x[2, -1] = x[3, 5] = np.nan
    x[3, 7], x[4, 3], x[5, 2] = np.inf, np.inf, -np.inf
    x[6] = np.nan
    x[7] = -np.inf
    return x


def row_case(use):
    x = rows_with_nan(16, 256)
    return Case(
        name=use,
        file=FILE,
        kernel="row",
        arrays={"x_ptr": x, "out_ptr": np.zeros_like(x)},
        constants={"SIZE": 256, "USE": use},
        grid=(16,),
    )


@pytest.mark.parametrize(
    "use", ["softmax", "log of the sum", "input too", "clipped", "whole numbers"]
)
def test_a_row_that_is_nan_all_over(use):
    """What is made of a row that is NaN all over, whatever the greatest element, is the same."""
    case = row_case(use)
    translation = translated(case)
    assert IGNORING not in translation.function.source
    assert "jnp.max(" in translation.function.source
    assert_same(case, translation, evaluated(case), 1e-5, 1e-6)


@pytest.mark.parametrize(
    "use",
    [
        *("greatest", "shares", "masked", "masked before", "compared", "greatest share"),
        "choice",
    ],
)
def test_a_row_of_which_something_is_seen(use):
    case = row_case(use)
    translation = translated(case)
    assert IGNORING in translation.function.source
    assert_same(case, translation, evaluated(case), 1e-5, 1e-30)


@pytest.mark.parametrize("kernel", ["columns_of_rows", "other_rows"])
def test_other_rows_see_it(kernel):
    """What one row holds gets into results that have to be NaN for another reason, or are not."""
    size = 128
    x = rows_with_nan(size, size)
    more = {"w_ptr": np.eye(size, dtype=np.float32)} if kernel == "other_rows" else {}
    shape = (size, size) if kernel == "other_rows" else (size,)
    sizes = {"SIZE": size} if kernel == "other_rows" else {"ROWS": size, "SIZE": size}
    case = Case(
        name=kernel,
        file=FILE,
        kernel=kernel,
        arrays={"x_ptr": x, **more, "out_ptr": np.zeros(shape, np.float32)},
        constants=sizes,
    )
    translation = translated(case)
    assert (IGNORING in translation.function.source) == (kernel == "columns_of_rows")
    assert_same(case, translation, evaluated(case), 1e-5, 1e-30)


def attention_case(causal, greatest, blocks=(128, 64), length=256):
    rng = np.random.default_rng(1)
    q, k, v = (
        rng.standard_normal((length, 64)).astype(np.float32).astype(ml_dtypes.bfloat16)
        for _ in range(3)
    )
    # In keys that only some queries see where it is causal; all see them where it is not.
    k[200, 3] = np.nan
    q[17, 0] = np.nan
    v[130, 2] = np.inf
    k[40, 1] = np.inf
    return Case(
        name=f"attention {causal} {greatest} {blocks}",
        file=FILE,
        kernel="attention",
        arrays={
            **{"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": np.zeros_like(q)},
            "lse_ptr": np.zeros(length, np.float32),
        },
        scalars={"LENGTH": length},
        constants={
            **{"WIDTH": 64, "BM": blocks[0], "BN": blocks[1]},
            **{"CAUSAL": causal, "GREATEST": greatest},
        },
        grid=(length // blocks[0],),
    )


@pytest.mark.parametrize("greatest", [False, True], ids=["sum", "greatest"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_attention(causal, greatest):
    """A maximum that a loop carries: it may be NaN unless it is itself a result."""
    case = attention_case(causal, greatest)
    translation = translated(case)
    assert (IGNORING in translation.function.source) == greatest
    expected = evaluated(case)
    assert any(np.isnan(each.astype(np.float32)).any() for each in expected[3:])
    assert any(np.isnan(each.astype(np.float32)).all() for each in expected[3:]) != causal
    assert_same(case, translation, expected, 2e-2, 2e-2)
