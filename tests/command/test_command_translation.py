"""What the command writes, where, and that it writes nothing that is not proved."""

import json
import re
import stat
from pathlib import Path

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jax")

import numpy as np

from translators.command.launching import Request, tasks
from translators.command.outcome import Status
from translators.emit.stablehlo import load_stablehlo
from translators.triton.frontend import triton_ir

ADD = "add(f32[300], f32[300])"


def function_of(text, name):
    """The function that emitted text defines."""
    namespace = {}
    exec(compile(text, "<emitted>", "exec"), namespace)
    return namespace[name]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_code_goes_to_standard_output_and_the_report_to_the_other_one(run, kernels):
    done = run(kernels, "--launch", ADD)
    assert done.status == 0
    x, y = numbers(300), numbers(300, seed=1)
    assert np.array_equal(function_of(done.out, "vector_add")(x, y, interpret=True), x + y)
    assert "proved equal" in done.err
    assert done.err.endswith("1 launch: 1 verified\n")


def test_code_goes_to_the_file_and_the_report_to_standard_output(run, kernels, tmp_path):
    file = tmp_path / "out.py"
    done = run(kernels, "--launch", "multiply(f32[64,48], f32[48,40])", "-o", file)
    assert done.status == 0
    assert done.err == ""
    assert f"1 launch: 1 verified; written to {file}" in done.out
    a, b = numbers(64, 48), numbers(48, 40, seed=1)
    found = function_of(file.read_text(), "matmul")(a, b, interpret=True)
    assert np.allclose(found, a @ b, atol=1e-4)
    assert [each.name for each in tmp_path.iterdir()] == ["out.py"]


def test_check_writes_nothing(run, kernels, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(kernels, "--launch", ADD, "--check")
    assert done.status == 0
    assert "def " not in done.out
    assert "1 launch: 1 verified" in done.out
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_equal_is_not_written(run, kernels, tmp_path):
    """Without any tolerance a softmax is not equal, as sums are rounded in another order."""
    file = tmp_path / "out.py"
    file.write_text("as it was\n")
    arguments = ["--launch", "warmed_softmax(f32[64,500])", "--tolerance", "0"]
    done = run(kernels, *arguments, "-o", file)
    assert done.status == 1
    assert file.read_text() == "as it was\n"
    assert "FAILED" in done.out
    assert "NOT proved equal" in done.out
    assert done.out.endswith("1 launch: 1 not equal; nothing is written\n")
    assert run(kernels, *arguments).out == ""
    told = json.loads(run(kernels, *arguments, "--format=json").out)
    (kernel,) = told["kernels"]
    assert (told["exit_status"], kernel["status"]) == (1, "not equal")
    assert told["text"] is None
    assert kernel["verification"]["passed"] is False
    assert run(kernels, *arguments, "--check").status == 1


def test_a_refusal_is_shown_as_a_compiler_does(run, kernels, tmp_path):
    file = tmp_path / "out.py"
    launch = ["--kernel=first_of", "--arg=pair_ptr=f32[3]", "--arg=out_ptr=f32[3]", "--grid=1"]
    done = run(kernels, *launch, "-o", file)
    assert done.status == 1
    assert not file.exists()
    lines = done.out.splitlines()
    line = next(
        number
        for number, text in enumerate(kernels.read_text().splitlines(), 1)
        if "undefined_name" in text
    )
    assert lines[0].startswith(f"{kernels}:{line}:23: refused: Triton refuses the kernel")
    assert lines[1].startswith(f"  {line} | tl.store(out_ptr, undefined_name)")
    assert lines[2][lines[1].index("undefined_name")] == "^"
    told = json.loads(run(kernels, *launch, "--format=json").out)
    (kernel,) = told["kernels"]
    assert kernel["status"] == "refused"
    assert (kernel["problem"]["line"], kernel["problem"]["column"]) == (line, 23)
    assert kernel["problem"]["text"].startswith("tl.store(out_ptr, undefined_name)")


def test_one_refusal_keeps_everything_from_being_written(run, write, tmp_path):
    path = write(
        "good_and_bad.py",
        "import triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef good(out):\n    tl.store(out, 1.0)\n\n"
        "@triton.jit\ndef bad(out):\n    tl.store(out, unknown)\n\n"
        "def both(x):\n    good[(1,)](x)\n    bad[(1,)](x)\n",
    )
    done = run(path, "--launch", "both(f32[1])", "--no-verify")
    assert (done.status, done.out) == (1, "")
    assert done.err.endswith("2 launches: 1 translated, 1 refused; nothing is written\n")
    options = ["--no-verify", "--kernel=good", "--emit=jax"]
    done = run(path, "--launch", "both(f32[1])", *options)
    assert done.status == 0
    assert function_of(done.out, "good")().tolist() == [1.0]


def test_several_kernels_go_into_one_file(run, kernels, tmp_path):
    file = tmp_path / "out.py"
    done = run(
        kernels,
        "--launch=add(f32[300], f32[300])",
        "--launch=add(f32[500], f32[500])",
        "--launch=add(f32[300], f32[300])",
        "--launch=warmed_softmax(f32[3,50])",
        "--no-verify",
        f"--output={file}",
    )
    assert done.status == 0
    assert "3 launches: 3 translated" in done.out
    assert "made by `add(f32[300], f32[300])`, 2 times" in done.out
    text = file.read_text()
    assert text.count("import jax.numpy as jnp") == 1
    for name, size in (("vector_add", 300), ("vector_add_2", 500)):
        x = numbers(size)
        assert np.array_equal(function_of(text, name)(x, x, interpret=True), x + x)
    assert function_of(text, "softmax")(numbers(3, 50), interpret=True).shape == (3, 50)


def test_several_modules_of_stablehlo_go_into_one_file(run, kernels, tmp_path):
    file = tmp_path / "out.mlir"
    done = run(
        kernels,
        "--launch=add(f32[300], f32[300])",
        "--launch=add(f32[500], f32[500])",
        "--emit=stablehlo",
        f"--output={file}",
    )
    assert done.status == 0
    assert "2 launches: 2 verified" in done.out
    text = file.read_text()
    for name, size in (("vector_add", 300), ("vector_add_2", 500)):
        x = numbers(size)
        assert np.array_equal(load_stablehlo(text, name).call(x, x), x + x)


def test_a_function_of_64_bits_is_said_to_need_them(run, kernels):
    """Without them, JAX would compute in 32 bits."""
    needs = "needs 64-bit types: `jax.config.update"
    options = ["--no-verify", "--launch"]
    assert needs in run(kernels, *options, "add(i64[300], i64[300])").err
    assert needs not in run(kernels, *options, ADD).err


def test_a_kernel_of_blocks_is_written_in_pallas_by_default(run, kernels):
    options = ["--launch", ADD, "--no-verify"]
    default = run(kernels, *options)
    assert "pl.pallas_call(" in default.out
    assert "  function in Pallas: vector_add(" in default.err
    assert run(kernels, *options, "--emit=auto").out == default.out
    assert run(kernels, *options, "--emit=pallas").out == default.out
    assert "pallas" not in run(kernels, *options, "--emit=jax").out


def test_the_graph_is_written_as_text_that_reads_back(run, kernels):
    from translators.graph.printer import print_module
    from translators.graph.reader import read_module

    done = run(kernels, "--launch", ADD, "--no-verify", "--emit=graph")
    assert done.status == 0
    assert print_module(read_module(done.out)) == done.out


def test_an_explicit_launch_is_what_the_recorded_one_says(run, kernels):
    """The options that a report prints make the same launch again."""
    calls = (
        "multiply(f32[64,48]:[1,64], f16[48,40], activation='relu')",
        "tuned(f32[192], f32[192])",
        "add_in_place(bf16[256], bf16[256])",
    )
    for call in calls:
        done = json.loads(run(kernels, f"--launch={call}", "--no-verify", "--format=json").out)
        (kernel,) = done["kernels"]
        again = json.loads(run(kernels, *kernel["launch"], "--no-verify", "--format=json").out)
        assert again["kernels"][0]["launch"] == kernel["launch"]
        assert again["text"] == done["text"]


@pytest.mark.parametrize(("number", "block"), [(0, 64), (1, 128)])
@pytest.mark.parametrize(
    "launch",
    [
        ["--launch=tuned(f32[192], f32[192])"],
        [
            "--kernel=tuned_add",
            *(f"--arg={name}=f32[192]" for name in ("x_ptr", "y_ptr", "out_ptr")),
            "--arg=n=192",
            "--grid=3",
        ],
    ],
    ids=["recorded", "explicit"],
)
def test_a_configuration_is_chosen_by_its_number(run, kernels, launch, number, block):
    options = ["--no-verify", "--format=json", f"--config={number}"]
    (kernel,) = json.loads(run(kernels, *launch, *options).out)["kernels"]
    assert f"BLOCK={block}" in kernel["launch"]
    assert f"EVEN={str(192 % block == 0).lower()}" in kernel["launch"]


def test_arguments_can_share_memory(run, kernels):
    done = run(
        kernels,
        "--kernel=vector_add",
        "--arg=x_ptr=f32[100]",
        "--arg=y_ptr=f32[100]",
        "--arg=out_ptr=x_ptr",
        "--arg=n=100",
        "--constexpr=BLOCK=64",
        "--grid=2",
        "--no-verify",
        "--format=json",
    )
    (kernel,) = json.loads(done.out)["kernels"]
    assert kernel["function"]["results"] == ["x_ptr"]
    assert "out_ptr=x_ptr" in kernel["launch"]


def test_explaining_prints_every_access_and_emits_nothing(run, kernels):
    done = run(kernels, "--launch", "multiply(f32[64,48], f32[48,40])", "--explain")
    assert done.status == 0
    assert "def matmul" not in done.out
    source = kernels.read_text().splitlines()
    for part in ("a = tl.load(a_ptrs", "b = tl.load(b_ptrs", "tl.store(c_ptrs"):
        line = next(number for number, text in enumerate(source, 1) if part in text)
        assert f"at {kernels}:{line}:" in done.out
        assert f"| {part}" in done.out
    assert done.out.count("class: block") == 3
    options = ["--launch", "multiply(f32[64,48], f32[48,40])", "--explain", "--format=json"]
    (kernel,) = json.loads(run(kernels, *options).out)["kernels"]
    assert [each["op"] for each in kernel["accesses"]] == ["tt.load", "tt.load", "tt.store"]
    assert [each["array"] for each in kernel["accesses"]] == ["a_ptr", "b_ptr", "c_ptr"]


def test_explaining_beside_a_file_does_both(run, kernels, tmp_path):
    file = tmp_path / "out.py"
    done = run(kernels, "--launch", ADD, "--explain", "--no-verify", "-o", file)
    assert done.status == 0
    assert "class: block" in done.out
    assert "def vector_add" in file.read_text()


def test_triton_ir_is_translated_as_its_kernel_is(run, kernels, write, tmp_path):
    (task,) = tasks(Request(path=kernels, calls=(ADD,)))
    path = write("kernel.ttir", triton_ir(task.kernel, task.launch))
    arguments = [f"--arg={name}=f32[300]" for name in ("x_ptr", "y_ptr", "out_ptr")]
    file = tmp_path / "out.mlir"
    done = run(path, *arguments, "--arg=n=300", "--grid=1", "--emit=stablehlo", "-o", file)
    assert done.status == 0
    assert "1 launch: 1 verified" in done.out
    x, y = numbers(300), numbers(300, seed=1)
    assert np.array_equal(load_stablehlo(file.read_text()).call(x, y), x + y)
    listed = json.loads(run(path, "--list", "--format=json").out)["found"]
    assert [each["name"] for each in listed] == ["vector_add"]
    assert [each["kind"] for each in listed[0]["parameters"]] == ["pointer"] * 3 + ["scalar"]
    assert run(path, *arguments, "--arg=n=300", "--grid=1", "--kernel=other").status == 2
    assert run(path, *arguments, "--grid=1").status == 2
    assert run(path, *arguments, "--arg=n=300", "--constexpr=B=1", "--grid=1").status == 2


def test_a_report_on_triton_ir_names_its_file(run, write):
    """Ops without locations are at the lines of the file given."""
    path = write(
        "double.ttir",
        "module {\n  tt.func public @double(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {\n"
        "    %0 = tt.load %x : !tt.ptr<f32>\n    %1 = arith.addf %0, %0 : f32\n"
        "    tt.store %y, %1 : !tt.ptr<f32>\n    tt.return\n  }\n}\n",
    )
    launch = ["--arg=arg0=f32[1]", "--arg=arg1=f32[1]", "--grid=1"]
    done = run(path, *launch, "--check")
    assert done.status == 0
    assert done.out.startswith(f"{path}:2: `double`")
    assert " -:" not in done.out
    explained = run(path, *launch, "--explain")
    assert f"at {path}:3:" in explained.out
    assert "| %0 = tt.load %x : !tt.ptr<f32>" in explained.out


def test_triton_ir_that_is_not_supported_is_refused(run, write):
    path = write(
        "unsupported.ttir",
        "module {\n  tt.func public @k(%x: !tt.ptr<f32>, %n: i32) {\n"
        "    %0 = arith.index_cast %n : i32 to index\n    tt.return\n  }\n}\n",
    )
    done = run(path, "--arg=x=f32[4]", "--arg=n=1", "--grid=1")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"{path}:3:10: refused: ")
    assert "`arith.index_cast` is not supported" in done.err
    assert run(path, "--list").status == 1


def test_gradients_are_verified_when_they_are_asked_for(run, kernels):
    options = ["--launch", "warmed_softmax(f32[3,20])", "--check", "--grad", "--format=json"]
    done = json.loads(run(kernels, *options).out)
    rungs = {each["name"]: each for each in done["kernels"][0]["verification"]["rungs"]}
    assert rungs["jax.grad against finite differences"]["status"] == "passed"
    assert done["exit_status"] == 0


def test_a_backward_kernel_is_held_against_the_gradient(run, write):
    """A backward kernel with a wrong factor is not equal; the right one is."""
    text = """
import triton
import triton.language as tl


@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n)
    tl.store(y_ptr + lanes, x * x, mask=lanes < n)


@triton.jit
def square_backward(x_ptr, dy_ptr, dx_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n)
    dy = tl.load(dy_ptr + lanes, mask=lanes < n)
    tl.store(dx_ptr + lanes, FACTOR * x * dy, mask=lanes < n)


def run(x, factor):
    y, dx = x.new_empty(x.shape), x.new_empty(x.shape)
    square[(1,)](x, y, x.numel(), BLOCK=32)
    square_backward[(1,)](x, y, dx, x.numel(), FACTOR=factor, BLOCK=32)
    return dx
"""
    path = write("squares.py", text)
    for factor, status in ((2.0, 0), (3.0, 1)):
        done = run(path, "--launch", f"run(f32[20], {factor})", "--check", "--grad=square_backward")
        assert done.status == status, done.out + done.err
        assert "backward kernel against jax.vjp" in done.out


def test_the_file_keeps_its_permissions(run, kernels, tmp_path):
    file = tmp_path / "out.py"
    file.write_text("old\n")
    file.chmod(0o640)
    assert run(kernels, "--launch", ADD, "--no-verify", "-o", file).status == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "def vector_add" in file.read_text()


def test_json_has_the_keys_that_the_documents_list(run, kernels):
    text = (Path(__file__).parents[2] / "docs" / "triton2pallas.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", text.partition("## JSON")[2]))
    done = json.loads(run(kernels, "--launch", ADD, "--format=json", "--explain", "--check").out)
    assert done["schema_version"] == 1
    assert done["tool"]["name"] == "triton2pallas"
    (kernel,) = done["kernels"]
    told = [kernel["function"], kernel["verification"], kernel["accesses"][0]]
    found = {key for each in (done, done["tool"], kernel, *told) for key in each}
    found |= set(kernel["verification"]["rungs"][0]) | {"problem", "column"}
    listed = json.loads(run(kernels, "--list", "--format=json").out)
    for each in (listed, listed["found"][0], listed["found"][0]["parameters"][0]):
        found |= set(each)
    assert found <= documented
    values = {"auto", "pallas", "graph", "jax", "stablehlo", *(each.value for each in Status)}
    values |= {"message", "code", "rule", "severity", "passed", "failed", "skipped", "inf"}
    assert documented - found <= values


def test_numbers_named_as_functions_of_python_keep_their_values(run, write):
    """The emitted function cannot call its parameters `min` and `max`."""
    path = write(
        "clamping.py",
        "import triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef clamp(x_ptr, y_ptr, unused, min, max, BLOCK: tl.constexpr):\n"
        "    lanes = tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + lanes)\n"
        "    tl.store(y_ptr + lanes, tl.where(x < min, min, tl.where(x > max, max, x)))\n",
    )
    options = ["--kernel=clamp", "--arg=x_ptr=f32[16]", "--arg=y_ptr=f32[16]", "--grid=1"]
    options += ["--arg=unused=9.0", "--arg=min=-0.5", "--arg=max=0.25", "--constexpr=BLOCK=16"]
    done = run(path, *options, "--emit=stablehlo")
    assert done.status == 0, done.err
    x = numbers(16)
    found = load_stablehlo(done.out).call(x, np.float32(-0.5), np.float32(0.25))
    assert np.array_equal(found, np.clip(x, -0.5, 0.25))
