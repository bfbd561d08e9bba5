"""What the command writes for kernels in Pallas: files that check themselves, with gradients."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
jax = pytest.importorskip("jax")

HERE = Path(__file__).parent
GRADIENTS = HERE / "kernels_with_gradients.py"
SETTINGS = HERE.parents[1] / "pyproject.toml"
SOFTMAX = "run_softmax(f32[6,40], f32[6,40])"
LAYER_NORM = "run_layer_norm(f32[6,40], f32[40], f32[40], f32[6,40])"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Runs the command in this process, and gives the file that it writes and its report."""
    from translators.cli import main

    folder = tmp_path_factory.mktemp("written")
    made = {}

    def call(source, launch, *options):
        key = (str(source), launch, *options)
        if key not in made:
            path = folder / f"file_{len(made)}.py"
            arguments = [str(source), "--launch", launch, "--emit", "pallas", *options]
            # The files themselves are tested here: what they are verified by is kept short.
            arguments += ["--chip", "v5e"] if "--grad" in options else ["--no-verify"]
            status = main([*arguments, "-o", str(path), "--format", "json"])
            made[key] = (status, path)
        return made[key]

    return call


def ran(path, text=None):
    """The file run as a script, where nothing of ours can be imported."""
    if text is not None:
        path = path.with_name(f"changed_{path.name}")
        path.write_text(text, encoding="utf-8")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-I", str(path)]
    return subprocess.run(
        command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False
    )


def loaded(path):
    namespace = {"__name__": "emitted"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return namespace


CASES = {
    "one kernel": (GRADIENTS, SOFTMAX, "--kernel", "softmax"),
    "two kernels": (GRADIENTS, SOFTMAX),
    "softmax": (GRADIENTS, SOFTMAX, "--grad", "softmax_backward"),
    "layer norm": (GRADIENTS, LAYER_NORM, "--grad", "layer_norm_backward"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_run_as_a_script_compares_kernels_with_their_references(written, case):
    status, path = written(*CASES[case])
    assert status == 0
    done = ran(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "softmax: out_ptr differs by" in done.stdout or "layer_norm" in done.stdout


def test_a_kernel_that_is_wrong_fails_the_check_of_its_own_file(written):
    _, path = written(*CASES["one kernel"])
    text = path.read_text(encoding="utf-8")
    (right,) = [line for line in text.splitlines() if "out_ref[...] = " in line][:1]
    wrong = right.replace("out_ref[...] = ", "out_ref[...] = 2.0 * ")
    done = ran(path, text.replace(right, wrong, 1))
    assert done.returncode == 1
    assert "what a kernel computes differs from its reference" in done.stderr


@pytest.mark.parametrize("case", CASES)
def test_files_are_formatted_and_have_nothing_unused(written, case, tmp_path):
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    _, path = written(*CASES[case])
    (tmp_path / "written.py").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for arguments in (("check",), ("format", "--diff")):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", str(SETTINGS), "."]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("case", CASES)
def test_files_stand_alone_on_jax(written, case):
    _, path = written(*CASES[case])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        assert all(name.split(".")[0] in ("jax", "functools") for name in names)


def test_the_reference_is_the_kernel_in_jax(written):
    _, path = written(*CASES["one kernel"])
    functions = loaded(path)
    x = np.random.default_rng(0).standard_normal((9, 33)).astype(np.float32)
    wanted = jax.nn.softmax(x, axis=-1)
    np.testing.assert_allclose(functions["softmax_reference"](x), wanted, rtol=1e-5)
    np.testing.assert_allclose(functions["softmax"](x, interpret=True), wanted, rtol=1e-5)


def test_jax_grad_goes_through_a_forward_and_a_backward_kernel(written):
    _, path = written(*CASES["softmax"])
    softmax = loaded(path)["softmax"]
    rng = np.random.default_rng(1)
    x, factors = (rng.standard_normal((6, 40)).astype(np.float32) for _ in range(2))

    def of(function):
        return jax.grad(lambda given: (function(given) * factors).sum())(x)

    found = of(lambda given: softmax(given, interpret=True))
    wanted = of(lambda given: jax.nn.softmax(given, axis=-1))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    jitted = jax.jit(jax.grad(lambda given: (softmax(given, interpret=True) * factors).sum()))(x)
    np.testing.assert_allclose(jitted, wanted, rtol=1e-4, atol=1e-6)


def test_gradients_of_all_arrays_take_the_numbers_that_are_given_by_name(written):
    import jax.numpy as jnp

    _, path = written(*CASES["layer norm"])
    layer_norm = loaded(path)["layer_norm"]
    rng = np.random.default_rng(2)
    x, factors = (rng.standard_normal((6, 40)).astype(np.float32) for _ in range(2))
    w, b = (rng.standard_normal(40).astype(np.float32) for _ in range(2))

    def plain(x, w, b):
        centred = x - x.mean(-1, keepdims=True)
        y = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 0.5) * w + b
        return (y * factors).sum()

    def emitted(x, w, b):
        results = layer_norm(x, w, b, eps=0.5, interpret=True)
        (y,) = [each for each in results if each.ndim == 2]
        return (y * factors).sum()

    found = jax.grad(emitted, (0, 1, 2))(x, w, b)
    for one, other in zip(found, jax.grad(plain, (0, 1, 2))(x, w, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def report_of(run, *arguments):
    done = run(*arguments, "--emit", "pallas", "--format", "json")
    return done, json.loads(done.out)


def rung_of(report, kernel):
    (found,) = [each for each in report["kernels"] if each["kernel"] == kernel]
    rungs = found["verification"]["rungs"]
    return next((each for each in rungs if each["name"] == "jax.grad through both kernels"), None)


def test_the_gradient_of_what_is_written_is_verified(run):
    options = [GRADIENTS, "--launch", SOFTMAX, "--grad", "softmax_backward"]
    done, report = report_of(run, *options)
    assert done.status == 0
    assert rung_of(report, "softmax")["status"] == "passed"
    assert "defvjp" in report["text"]


def test_a_backward_kernel_that_leaves_a_gradient_out_is_not_taken_for_the_derivative(run):
    call = LAYER_NORM.replace("run_", "run_part_of_")
    options = [GRADIENTS, "--launch", call, "--grad", "layer_norm_backward_of_x"]
    done, report = report_of(run, *options)
    assert done.status == 0
    rung = rung_of(report, "layer_norm")
    assert rung["status"] == "skipped"
    assert "gives no gradient of `w_ptr`, `b_ptr`" in rung["reason"]
    assert "custom_vjp" not in report["text"]


def test_a_backward_kernel_that_is_wrong_is_not_written(run):
    call = SOFTMAX.replace("run_", "run_half_of_")
    options = [GRADIENTS, "--launch", call, "--grad", "softmax_backward_of_half"]
    done, report = report_of(run, *options)
    assert done.status == 1
    assert report["text"] is None
