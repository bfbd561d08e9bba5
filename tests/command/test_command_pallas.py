"""Pallas where a kernel has such a form that is verified and compiles, else JAX, and why."""

import importlib.util
import json
import sys
from dataclasses import replace

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jax")

import numpy as np

from translators.command import trying
from translators.command.emitting import Part, join
from translators.command.renaming import renamed
from translators.emit.jax import JaxFunction
from translators.graph.errors import GraphError

needs_libtpu = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("libtpu") is None,
    reason="nothing compiles for TPUs without libtpu",
)

HEAD = '''"""`{name}`, translated from Triton."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


'''
ADDED = (
    HEAD
    + """def vector_add(x_ptr, y_ptr, *, interpret=False):
    def kernel(x_ref, y_ref, out_ref):
        out_ref[...] = {value}

    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct(x_ptr.shape, x_ptr.dtype), interpret=interpret
    )(x_ptr, y_ptr)
"""
)
RIGHT = ADDED.format(name="vector_add", value="x_ref[...] + y_ref[...]")
WRONG = ADDED.format(name="vector_add", value="x_ref[...] - y_ref[...]")
ADD = "add(f32[300], f32[300])"
HALVES = "add(f16[1024], f16[1024])"


@pytest.fixture
def pallas_is(monkeypatch):
    """Has kernels in Pallas written by hand in the place of emitted ones."""
    real, generalized = trying.translate_module, trying.generalized
    asked = []

    def become(source):
        def in_jax(module, launch):
            asked.append(("jax", None))
            return real(module, launch)

        def as_it_is(translation, **_):
            return translation if translation.function.pallas else generalized(translation)

        def in_pallas(kernel, module, launch, emit, blocks, *, enlarge):
            translation = real(module, launch)
            asked.append((emit, blocks))
            if source is None:
                location = translation.analysis.accesses[0].op.location
                raise GraphError("the load is irregular", location)
            function = replace(translation.function, source=source, pallas=True)
            return replace(translation, function=function)

        monkeypatch.setattr(trying, "translate_module", in_jax)
        monkeypatch.setattr(trying, "translate_for_tpu", in_pallas)
        monkeypatch.setattr(trying, "generalized", as_it_is)
        return asked

    return become


def told(done):
    """The only kernel of a report in JSON, and its note."""
    report = json.loads(done.out)
    (kernel,) = report["kernels"]
    function = kernel["function"] or {"notes": []}
    notes = [each for each in function["notes"] if "in the place of Pallas" in each["text"]]
    return report, kernel, notes[0] if notes else None


def line_of(kernels, text):
    lines = kernels.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_what_passes_stays_in_pallas(run, kernels, pallas_is):
    pallas_is(RIGHT)
    report, kernel, note = told(run(kernels, "--launch", ADD, "--format=json"))
    assert (report["emit"], report["exit_status"]) == ("auto", 0)
    assert RIGHT.split("\n\n\n")[-1].strip() in report["text"]
    assert "def vector_add_reference(x_ptr, y_ptr):" in report["text"]
    assert (kernel["status"], kernel["emitted"], note) == ("verified", "pallas", None)
    rungs = {each["name"]: each for each in kernel["verification"]["rungs"]}
    assert rungs["Pallas against the evaluator"]["status"] == "passed"
    assert rungs["Pallas in TPU interpret mode"]["status"] == "passed"


def test_what_has_no_form_in_pallas_becomes_jax_and_the_line_is_said(run, kernels, pallas_is):
    pallas_is(None)
    report, kernel, note = told(run(kernels, "--launch", ADD, "--format=json"))
    assert (report["exit_status"], kernel["status"], kernel["emitted"]) == (0, "verified", "jax")
    assert note["text"] == "JAX in the place of Pallas: the load is irregular"
    assert note["line"] == line_of(kernels, "x = tl.load(x_ptr + offsets, mask=mask)")
    done = run(kernels, "--launch", ADD, "--no-verify")
    assert "pallas" not in done.out
    assert f"note: line {note['line']}: {note['text']}" in done.err


def test_what_is_wrong_in_pallas_becomes_jax_and_the_rung_is_said(run, kernels, pallas_is):
    pallas_is(WRONG)
    report, kernel, note = told(run(kernels, "--launch", ADD, "--format=json"))
    assert (report["exit_status"], kernel["status"], kernel["emitted"]) == (0, "verified", "jax")
    start = "JAX in the place of Pallas: Pallas against the evaluator: `out_ptr`: its greatest err"
    assert note["text"].startswith(start)
    assert note["line"] == line_of(kernels, "tl.store(out_ptr + offsets, x + y, mask=mask)")
    assert kernel["verification"]["rungs"][0]["name"] == "JAX against the evaluator"


@needs_libtpu
def test_what_the_compiler_refuses_becomes_jax_and_its_message_is_said(run, kernels, pallas_is):
    pallas_is(RIGHT)
    report, kernel, note = told(run(kernels, "--launch", HALVES, "--format=json"))
    assert (report["exit_status"], kernel["status"], kernel["emitted"]) == (0, "verified", "jax")
    assert note["text"].startswith("JAX in the place of Pallas: compiled ahead of time for v5e: ")
    assert "Mosaic" in note["text"]


@needs_libtpu
def test_one_generation_that_is_asked_for_decides_alone(run, kernels, pallas_is):
    pallas_is(RIGHT)
    options = ["--launch", HALVES, "--format=json", "--chip=7x", "--emit=pallas"]
    report, kernel, _ = told(run(kernels, *options))
    compiled = [each for each in kernel["verification"]["rungs"] if each["generation"]]
    assert [(each["generation"], each["status"]) for each in compiled] == [("7x", "failed")]
    assert (report["exit_status"], kernel["status"]) == (1, "refused")


@needs_libtpu
def test_stablehlo_is_compiled_with_its_numbers_as_arguments(run, kernels):
    options = [f"--arg={name}_ptr=f32[8,100]" for name in "xy"]
    options += [f"--arg={name}_ptr=f32[100]" for name in "wb"]
    options += [f"--arg={name}_ptr=f32[8]" for name in ("mean", "rstd")]
    options += ["--arg=stride=100", "--arg=columns=100", "--arg=eps=1e-5", "--constexpr=BLOCK=32"]
    command = [*options, "--kernel=layer_norm", "--grid=8", "--emit=stablehlo", "--chip=v6e"]
    report, kernel, _ = told(run(kernels, *command, "--format=json", "--check"))
    (compiled,) = (each for each in kernel["verification"]["rungs"] if each["generation"])
    assert (compiled["status"], compiled["decides"]) == ("passed", True)
    assert (report["exit_status"], kernel["emitted"]) == (0, "stablehlo")


@needs_libtpu
def test_pallas_alone_refuses_what_the_compiler_does(run, kernels, pallas_is):
    pallas_is(RIGHT)
    done = run(kernels, "--launch", HALVES, "--emit=pallas")
    assert (done.status, done.out) == (1, "")
    place = f"{kernels}:{line_of(kernels, 'def vector_add')}"
    first, second = done.err.splitlines()[:2]
    assert first.startswith(
        f"{place}: refused: the TPU compiler refuses what is emitted, for v5e: "
    )
    assert second.endswith("| def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):")
    assert "  proved equal, NOT compiled for v5e, v6e\n" in done.err
    assert done.err.endswith("1 launch: 1 refused; nothing is written\n")


def test_pallas_alone_refuses_what_has_no_such_form(run, kernels, pallas_is):
    pallas_is(None)
    done = run(kernels, "--launch", ADD, "--emit=pallas")
    assert (done.status, done.out) == (1, "")
    line = line_of(kernels, "x = tl.load(x_ptr + offsets, mask=mask)")
    assert done.err.startswith(f"{kernels}:{line}:9: refused: the load is irregular\n")


def test_pallas_alone_fails_where_it_is_wrong(run, kernels, pallas_is):
    pallas_is(WRONG)
    report, kernel, _ = told(run(kernels, "--launch", ADD, "--emit=pallas", "--format=json"))
    assert (report["exit_status"], kernel["status"]) == (1, "not equal")
    assert report["text"] is None


def test_a_gradient_that_is_asked_for_makes_it_jax(run, kernels, pallas_is):
    pallas_is(RIGHT)
    done = run(kernels, "--launch", ADD, "--grad", "--check", "--format=json")
    report, kernel, note = told(done)
    assert (report["exit_status"], kernel["emitted"]) == (0, "jax")
    assert "JAX cannot differentiate the emitted kernel in Pallas" in note["text"]


def test_lengths_of_blocks_are_handed_on(run, kernels, pallas_is):
    asked = pallas_is(RIGHT)
    run(kernels, "--launch", ADD, "--no-verify", "--block", "rows=256", "--block=n = 8")
    assert asked == [("pallas", {"rows": 256, "n": 8})]


def test_one_launch_in_pallas_and_another_in_jax_go_into_one_file(run, kernels, pallas_is):
    """The one of 300 elements is right, and the other one fails for its shape."""
    check = "    if x_ptr.size != 300:\n        raise ValueError('not 300')\n\n    def kernel"
    pallas_is(RIGHT.replace("    def kernel", check))
    calls = [f"--launch={ADD}", "--launch=add(f32[500], f32[500])"]
    done = run(kernels, *calls, "--format=json")
    report = json.loads(done.out)
    assert [each["emitted"] for each in report["kernels"]] == ["pallas", "jax"]
    assert [each["status"] for each in report["kernels"]] == ["verified"] * 2
    namespace = {}
    exec(compile(report["text"], "<emitted>", "exec"), namespace)
    for name, size, options in (
        ("vector_add", 300, {"interpret": True}),
        ("vector_add_2", 500, {}),
    ):
        x = np.arange(size, dtype=np.float32)
        assert np.array_equal(namespace[name](x, x, **options), x + x)


def part(name, source, kernel="k"):
    function = JaxFunction(
        name=name, source=source, parameters=(), scalars=(), results=(), wide=False, notes=()
    )

    class Translation:
        class launch:
            class kernel:
                function = "k"

    return Part(translation=Translation, function=function, text=source)


ONE = '''"""One."""

import jax


# Gives one.
def _helper(x):
    return x + 1


def _user(x):
    return _helper(x)


def first(x):
    return _user(x)
'''


def test_helpers_of_one_name_that_differ_are_all_kept():
    two = ONE.replace("x + 1", "x + 2").replace("first", "second")
    three = two.replace("second", "third")
    text = join("auto", [part("first", ONE), part("second", two), part("third", three)])
    namespace = {}
    exec(compile(text, "<emitted>", "exec"), namespace)
    assert [namespace[name](0) for name in ("first", "second", "third")] == [1, 2, 2]
    assert text.count("def _helper") == 2
    assert text.count("def _user") == 2
    assert text.count("# Gives one.\n") == 2


def test_a_name_is_changed_where_it_means_that_function_and_nowhere_else():
    source = (
        "def f(x):\n    return f(x) + g(lambda f: f, 'f') + x.f + h(f=f)\n\n\n"
        "def e(x):\n    return [f(each) for each in x] + [f for f in x]\n\n\n"
        "def g(f):\n    return f\n\n\n"
        "def h(x):\n    f = x\n    return f\n\n\n"
        "ü = (f, f)\n"
    )
    assert renamed(source, "f", "new") == (
        "def new(x):\n    return new(x) + g(lambda f: f, 'f') + x.f + h(f=new)\n\n\n"
        "def e(x):\n    return [new(each) for each in x] + [f for f in x]\n\n\n"
        "def g(f):\n    return f\n\n\n"
        "def h(x):\n    f = x\n    return f\n\n\n"
        "ü = (new, new)\n"
    )
