"""What is emitted reads as its owner would have written it."""

import ast
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from launching import explicit

from translators.translation import translate

LAYER_NORM = [
    *("x_ptr=f32[6,100]", "y_ptr=f32[6,100]", "w_ptr=f32[100]", "b_ptr=f32[100]"),
    *("mean_ptr=f32[6]", "rstd_ptr=f32[6]", "stride=100", "columns=100", "eps=1e-5"),
]
MATMUL = [
    *("a_ptr=f32[40,35]", "b_ptr=f32[35,50]", "c_ptr=f32[40,50]", "M=40", "N=50", "K=35"),
    *("stride_am=35", "stride_ak=1", "stride_bk=50", "stride_bn=1", "stride_cm=50", "stride_cn=1"),
]
SOFTMAX = ["out_ptr=f32[5,37]", "x_ptr=f32[5,37]", "out_stride=37", "x_stride=37", "columns=37"]
VECTORS = ["x_ptr=f32[1000]", "y_ptr=f32[1000]", "out_ptr=f32[1000]", "n=1000"]
CASES = {
    "vector_add": (VECTORS, ["BLOCK=256"], "4"),
    "softmax": (SOFTMAX, ["BLOCK=64"], "5"),
    "layer_norm": (LAYER_NORM, ["BLOCK=32"], "6"),
    "matmul": (MATMUL, ["BLOCK_M=16", "BLOCK_N=16", "BLOCK_K=16", "ACTIVATION=none"], "3,4"),
    "early_returns": (["x_ptr=f32[640]", "out_ptr=f32[640]", "limit=4"], ["BLOCK=64"], "10"),
    "sort_rows": (["x_ptr=f32[64]", "out_ptr=f32[64]"], ["BLOCK=16"], "4"),
}


@pytest.fixture(scope="module")
def sources():
    return {name: translate(*explicit(name, *case)).function.source for name, case in CASES.items()}


def ruff(directory, *arguments):
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--line-length", "100", "."]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_it_is_formatted_and_has_nothing_unused(sources, tmp_path):
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    formatted = ruff(tmp_path, "format", "--diff")
    assert formatted.returncode == 0, formatted.stdout
    checked = ruff(tmp_path, "check", "--select", "E,F,W,B")
    assert checked.returncode == 0, checked.stdout


def test_it_stands_alone_on_jax(sources):
    for source in sources.values():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                assert {each.name for each in node.names} <= {"jax", "jax.numpy"}
            elif isinstance(node, ast.ImportFrom):
                assert node.module == "jax"


def test_every_part_names_the_line_of_the_kernel(sources):
    assert "# 15: x = tl.load(x_ptr + offsets, mask=mask)" in sources["vector_add"]


def test_a_tiled_reduction_is_no_loop_and_moves_nothing_in_memory(sources):
    assert "fori_loop" not in sources["layer_norm"]
    assert "transpose" not in sources["layer_norm"]


def test_a_loop_over_tiles_is_one_product_of_whole_matrices(sources):
    assert "jnp.dot(" in sources["matmul"]
    assert "a_ptr, b_ptr" in sources["matmul"]
    assert "pad" not in sources["matmul"]


def test_a_library_call_is_called_by_its_name(sources):
    assert "jnp.sort(" in sources["sort_rows"]
    assert "bitcast" not in sources["sort_rows"]


def test_other_shapes_are_refused_by_name(sources):
    jax = pytest.importorskip("jax")
    namespace = {}
    exec(compile(sources["vector_add"], "<emitted>", "exec"), namespace)
    with pytest.raises(ValueError, match="`y_ptr` must have the shape"):
        jax.jit(namespace["vector_add"])(jax.numpy.ones(1000), jax.numpy.ones(999))
