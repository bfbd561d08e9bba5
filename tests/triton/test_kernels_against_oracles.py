"""The graph of a kernel, evaluated, against NumPy and against Triton's own interpreter."""

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from launching import constants_of, explicit, interpret

from translators.graph.evaluator import evaluate
from translators.triton.kernel_graph import kernel_graph, kernel_parameters
from translators.triton.launches import ArrayArgument

FLOATS = np.random.default_rng(7)


def normal(*shape):
    return FLOATS.standard_normal(shape).astype(np.float32)


def run(kernel, launch, arrays):
    """What the arrays hold after the graph of the kernel has run on them."""
    module = kernel_graph(kernel, launch)
    parameters = list(kernel_parameters(launch))
    values = [
        arrays[each.name] if isinstance(each, ArrayArgument) else each.value for each in parameters
    ]
    results = evaluate(module, values, launch.grid).arrays
    return {
        each.name: result
        for each, result in zip(parameters, results, strict=True)
        if isinstance(each, ArrayArgument)
    }


def agree(kernel, launch, arrays, expected, directory, tolerance=1e-5):
    """Graph, interpreter and NumPy leave the same in every array."""
    evaluated = run(kernel, launch, arrays)
    interpreted = interpret(launch, arrays, directory)
    for name, array in arrays.items():
        wanted = expected.get(name, array)
        np.testing.assert_allclose(evaluated[name], interpreted[name], tolerance, tolerance, name)
        np.testing.assert_allclose(evaluated[name], wanted, tolerance, tolerance, name)


@pytest.mark.parametrize("n", [1, 100, 1000])
def test_vector_add_leaves_what_lies_beyond_the_mask(n, tmp_path):
    kernel, launch = explicit(
        "vector_add",
        ["x_ptr=f32[1024]", "y_ptr=f32[1024]", "out_ptr=f32[1024]", f"n={n}"],
        ["BLOCK=256"],
        "4",
    )
    arrays = {"x_ptr": normal(1024), "y_ptr": normal(1024), "out_ptr": normal(1024)}
    total = arrays["out_ptr"].copy()
    total[:n] = (arrays["x_ptr"] + arrays["y_ptr"])[:n]
    assert constants_of(launch) == {"BLOCK": 256} | ({"n": 1} if n == 1 else {})
    agree(kernel, launch, arrays, {"out_ptr": total}, tmp_path)


def test_softmax_of_rows_that_are_no_power_of_two(tmp_path):
    kernel, launch = explicit(
        "softmax",
        ["out_ptr=f32[5,37]", "x_ptr=f32[5,37]", "out_stride=37", "x_stride=37", "columns=37"],
        ["BLOCK=64"],
        "5",
    )
    arrays = {"out_ptr": normal(5, 37), "x_ptr": normal(5, 37)}
    shifted = np.exp(arrays["x_ptr"] - arrays["x_ptr"].max(axis=1, keepdims=True))
    wanted = shifted / shifted.sum(axis=1, keepdims=True)
    agree(kernel, launch, arrays, {"out_ptr": wanted}, tmp_path)


@pytest.mark.parametrize("activation", ["none", "relu"])
def test_matmul_with_edges_on_every_side(activation, tmp_path):
    m, n, k = 40, 50, 35
    kernel, launch = explicit(
        "matmul",
        [
            *(f"a_ptr=f32[{m},{k}]", f"b_ptr=f32[{k},{n}]", f"c_ptr=f32[{m},{n}]"),
            *(f"M={m}", f"N={n}", f"K={k}"),
            *(f"stride_am={k}", "stride_ak=1", f"stride_bk={n}", "stride_bn=1"),
            *(f"stride_cm={n}", "stride_cn=1"),
        ],
        ["BLOCK_M=32", "BLOCK_N=32", "BLOCK_K=16", f"ACTIVATION={activation}"],
        "2,2",
    )
    arrays = {"a_ptr": normal(m, k), "b_ptr": normal(k, n), "c_ptr": normal(m, n)}
    product = arrays["a_ptr"] @ arrays["b_ptr"]
    wanted = np.maximum(product, 0) if activation == "relu" else product
    agree(kernel, launch, arrays, {"c_ptr": wanted}, tmp_path, tolerance=1e-4)


def test_layer_norm_forward(tmp_path):
    rows, columns, eps = 3, 100, 1e-5
    kernel, launch = explicit(
        "layer_norm",
        [
            *(f"x_ptr=f32[{rows},{columns}]", f"y_ptr=f32[{rows},{columns}]"),
            *(f"w_ptr=f32[{columns}]", f"b_ptr=f32[{columns}]"),
            *(f"mean_ptr=f32[{rows}]", f"rstd_ptr=f32[{rows}]"),
            *(f"stride={columns}", f"columns={columns}", f"eps={eps}"),
        ],
        ["BLOCK=32"],
        f"{rows}",
    )
    arrays = {name: normal(rows, columns) for name in ("x_ptr", "y_ptr")}
    arrays |= {name: normal(columns) for name in ("w_ptr", "b_ptr")}
    arrays |= {name: normal(rows) for name in ("mean_ptr", "rstd_ptr")}
    x = arrays["x_ptr"]
    mean, rstd = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + eps)
    y = (x - mean[:, None]) * rstd[:, None] * arrays["w_ptr"] + arrays["b_ptr"]
    wanted = {"y_ptr": y, "mean_ptr": mean, "rstd_ptr": rstd}
    agree(kernel, launch, arrays, wanted, tmp_path)


@pytest.mark.parametrize("limit", [0, 2, 3, 9])
def test_early_returns(limit, tmp_path):
    """Every way out is taken by some program, for some limit."""
    kernel, launch = explicit(
        "early_returns",
        ["x_ptr=f32[6,16]", "out_ptr=f32[6,16]", f"limit={limit}"],
        ["BLOCK=16"],
        "6",
    )
    arrays = {"x_ptr": normal(6, 16), "out_ptr": normal(6, 16)}
    wanted = arrays["out_ptr"].copy()
    for pid, x in enumerate(arrays["x_ptr"]):
        if pid not in (limit, limit + 2):
            wanted[pid] = x * 2 - 1 if pid > limit else x + 100 - (pid != 1)
    agree(kernel, launch, arrays, {"out_ptr": wanted}, tmp_path)


def test_block_pointers():
    """Triton's interpreter has none either: NumPy alone is the oracle."""
    rows, columns = 20, 45
    kernel, launch = explicit(
        "block_pointer_copy",
        [
            *(f"x_ptr=f32[{rows},{columns}]", f"out_ptr=f32[{columns},{rows}]"),
            *(f"rows={rows}", f"columns={columns}", f"stride={columns}"),
        ],
        ["BLOCK=16"],
        "2",
    )
    arrays = {"x_ptr": normal(rows, columns), "out_ptr": normal(columns, rows)}
    np.testing.assert_array_equal(run(kernel, launch, arrays)["out_ptr"], arrays["x_ptr"].T)


@pytest.mark.parametrize("start", [-5, 0, 3, 12, 40])
def test_a_block_pointer_reads_padding_outside_its_shape(start):
    kernel, launch = explicit(
        "block_pointer_window",
        ["x_ptr=f32[20]", "out_ptr=f32[16]", "size=20", f"start={start}"],
        ["BLOCK=16"],
        "1",
    )
    arrays = {"x_ptr": normal(20), "out_ptr": normal(16)}
    inside = {lane: start + lane for lane in range(16) if 0 <= start + lane < 20}
    wanted = np.full(16, np.nan, np.float32)
    wanted[list(inside)] = arrays["x_ptr"][list(inside.values())]
    np.testing.assert_array_equal(run(kernel, launch, arrays)["out_ptr"], wanted)


@pytest.mark.parametrize("library_calls", [(), ("standard.sort_impl",)])
def test_library_calls_mean_the_same_kept_or_inlined(library_calls):
    kernel, launch = explicit(
        "sort_rows", ["x_ptr=f32[2,16]", "out_ptr=f32[2,16]"], ["BLOCK=16"], "2"
    )
    module = kernel_graph(kernel, launch, library_calls=library_calls)
    assert len(module.functions) == 1 + len(library_calls)
    x = normal(2, 16)
    out = evaluate(module, [x, np.zeros_like(x)], launch.grid).arrays[1]
    np.testing.assert_array_equal(out, np.sort(x, axis=1))
