"""Each rung passes for a right kernel in Pallas, and fails for one that it has to notice."""

import importlib.util
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("triton.language")

from pallas_programs import (
    ABORTING,
    ENDLESS,
    INNER_TERMS,
    OUT_OF_BOUNDS,
    PADDED,
    RACING,
    REORDERED,
    REVISITED,
    RIGHT,
    UNINITIALISED,
    WRONG_MASK,
    add,
    adding,
    half,
    program,
    relu,
    scaled,
    softened,
    two,
)
from subjects import rung, subject, vector_add

from translators.cli import CHIPS
from translators.verify.compiler import Compilation
from translators.verify.compiler_worker import compiled, linted
from translators.verify.generations import DECISIVE, TOPOLOGIES, USUAL
from translators.verify.gradients import GRADIENTS
from translators.verify.ladder import Settings, climb, climb_gradient
from translators.verify.program import Program
from translators.verify.report import Status
from translators.verify.rungs import PADDING, PALLAS_PROOF, SCALARS, SPECIALS
from translators.verify.simulator import Simulation
from translators.verify.simulator_worker import simulated
from translators.verify.tpu_rungs import COMPILER, SIMULATOR
from translators.verify.workers import Workers, all_workers

needs_libtpu = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("libtpu") is None,
    reason="nothing compiles for TPUs without libtpu",
)
PLAIN = Settings(specials=False)


@pytest.fixture(scope="module")
def workers():
    with all_workers() as started:
        yield started


@pytest.fixture(scope="module")
def on_cpu(workers):
    """Without the compiler and Triton's interpreter, which other tests ask."""
    return Workers(simulator=workers.simulator)


RIGHT_ONES = {
    "masked": lambda: add(RIGHT),
    "accumulated": lambda: two(INNER_TERMS),
    "edge blocks": softened,
    "number": lambda: scaled("scale_ref[0]"),
    "halves": lambda: half("f32"),
    "maximum": lambda: relu("jnp.where(jnp.isnan(x), 0, jnp.maximum(x, 0))"),
}


@pytest.mark.parametrize("name", RIGHT_ONES)
def test_a_right_kernel_is_proved(name, on_cpu):
    report = climb(RIGHT_ONES[name](), workers=on_cpu)
    assert report.passed, report
    assert report.proof == PALLAS_PROOF
    assert rung(report, SIMULATOR).status is Status.PASSED
    assert "no races" in rung(report, SIMULATOR).reason


WRONG_ONES = {
    "mask": (lambda: add(WRONG_MASK), PALLAS_PROOF, "1 elements changed that the kernel does not"),
    "out of bounds": (lambda: two(OUT_OF_BOUNDS), SIMULATOR, 'block index (2, 0) for input "bey'),
    "revisited": (lambda: two(REVISITED), SIMULATOR, "Revisited block (0:8, 0:128) of output 0"),
    "race": (lambda: two(RACING), SIMULATOR, "a race between two cores: write of [0:16, 0:128]"),
    "order": (lambda: two(REORDERED), SIMULATOR, "error against f64"),
    "uninitialised": (lambda: add(UNINITIALISED), SIMULATOR, "24 elements changed"),
    "leak": (
        lambda: add(adding(chosen="kept * total + (1 - kept) * old")),
        PADDING,
        "NaN stands in only one of the two, in 1000 of 1024",
    ),
    "NaN": (lambda: relu("jnp.maximum(x, 0)"), SPECIALS, "NaN stands in only one of the two"),
    "number": (lambda: scaled("2.5"), SCALARS, "error against f64"),
}


@pytest.mark.parametrize("name", WRONG_ONES)
def test_a_wrong_kernel_fails_at_the_rung_that_sees_it(name, on_cpu):
    made, name, reason = WRONG_ONES[name]
    report = climb(made(), workers=on_cpu)
    failed = [each for each in report.rungs if each.status is Status.FAILED]
    assert not report.passed
    assert failed[0].name == name
    assert reason in failed[0].reason
    if name != PALLAS_PROOF:
        assert rung(report, PALLAS_PROOF).status is Status.PASSED


def test_in_haste_nothing_comes_after_a_failure(on_cpu):
    report = climb(add(WRONG_MASK), Settings(hasty=True), on_cpu)
    assert [each.status for each in report.rungs] == [Status.FAILED]


def test_a_kernel_that_waits_forever_is_ended_and_the_next_one_runs(on_cpu):
    report = climb(two(ENDLESS), Settings(seconds=10, specials=False), on_cpu)
    assert report.passed
    assert "takes more than" in rung(report, SIMULATOR).reason
    assert rung(climb(add(RIGHT), PLAIN, on_cpu), SIMULATOR).status is Status.PASSED


def test_a_grid_too_long_for_the_simulation_is_not_begun():
    ones = np.ones(2048, np.float32)
    request = Simulation(
        program=program("vector_add", INNER_TERMS), arrays=(ones, ones), scalars={}, seconds=0.01
    )
    assert simulated(request).unsuited == "4 steps of the grid would take too long"
    assert np.array_equal(simulated(replace(request, seconds=60)).arrays[0], ones + ones)


PARALLEL_INSIDE = INNER_TERMS.replace("'parallel', 'arbitrary'", "'arbitrary', 'parallel'")
UNSUPPORTED = """
def vector_add(x_ptr, y_ptr, *, interpret=False):
    if isinstance(interpret, pltpu.InterpretParams):
        raise NotImplementedError("no such operation")
    return x_ptr + y_ptr
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [(PARALLEL_INSIDE, "must form a prefix of the grid"), (UNSUPPORTED, "no such operation")],
)
def test_what_the_simulation_does_not_do_is_no_error_of_the_kernel(text, reason, on_cpu):
    told = rung(climb(two(text), PLAIN, on_cpu), SIMULATOR)
    assert told.status is Status.SKIPPED
    assert told.reason.startswith("TPU interpret mode has no such thing: ")
    assert reason in told.reason


SLOW = """
import time


def wait(x):
    time.sleep(3)
    return x


def vector_add(x_ptr, y_ptr, *, interpret=False):
    shape = jax.ShapeDtypeStruct(x_ptr.shape, x_ptr.dtype)
    return jax.pure_callback(wait, shape, x_ptr) + y_ptr
"""


def test_a_function_that_takes_all_the_time_proves_nothing():
    report = climb(two(SLOW), Settings(seconds=5, specials=False))
    assert rung(report, PALLAS_PROOF).status is Status.SKIPPED
    assert "takes more than 5 s" in rung(report, PALLAS_PROOF).reason


def test_without_the_text_no_other_process_can_run_it(workers):
    report = climb(subject(vector_add(), lambda x, y, out: x, results=["out_ptr"]), PLAIN, workers)
    for each in report.rungs:
        if each.name == COMPILER:
            assert (each.status, each.reason) == (
                Status.SKIPPED,
                "no other process has the emitted function",
            )


def test_a_gradient_that_jax_cannot_take_fails():
    failed = climb_gradient(softened())
    assert (failed.name, failed.status) == (GRADIENTS, Status.FAILED)
    assert "JAX cannot differentiate the emitted kernel in Pallas" in failed.reason


def compilations(made, workers, **given):
    """The rungs of compiling, and the report."""
    settings = Settings(inputs=1, specials=False, **given)
    report = climb(made, settings, Workers(compiler=workers.compiler))
    return [each for each in report.rungs if each.name == COMPILER], report


@needs_libtpu
def test_a_right_kernel_compiles_for_every_generation(workers):
    found, report = compilations(add(RIGHT), workers, chips=tuple(TOPOLOGIES))
    assert [each.generation for each in found] == list(TOPOLOGIES)
    assert {each.reason for each in found} == {"`hlo-lint`: no findings"}
    assert report.passed


@needs_libtpu
def test_what_the_compiler_refuses_fails_with_its_first_line(workers):
    found, report = compilations(half("f16"), workers)
    assert [each.generation for each in found] == list(USUAL)
    assert {each.status for each in found} == {Status.FAILED}
    assert {each.generation for each in found if each.decides} == DECISIVE
    assert all("Invalid vector type for load" in each.reason for each in found)
    assert all(len(each.reason.splitlines()) == 1 for each in found)
    assert report.proved
    assert not report.passed
    assert report.refused_for == ("v5e", "v6e")


@needs_libtpu
def test_a_generation_that_is_asked_for_decides(workers):
    _, report = compilations(half("f16"), workers, chips=("7x",))
    assert report.refused_for == ("7x",)


@needs_libtpu
def test_padded_operands_and_copies_between_layouts_are_said(workers):
    found, report = compilations(two(PADDED), workers, chips=("v5e",))
    rules = {(each.rule, each.severity) for each in found[0].findings}
    assert {("padding-waste", "error"), ("layout-copy", "error")} <= rules
    assert found[0].reason == f"`hlo-lint`: {len(found[0].findings)} findings"
    assert report.passed


@needs_libtpu
def test_a_compiler_that_ends_its_process_refuses(workers):
    found, report = compilations(two(ABORTING), workers, chips=("v5e", "v6e"))
    assert [each.status for each in found] == [Status.FAILED] * 2
    assert "died of SIGABRT" in found[0].reason
    assert report.proved
    assert compilations(add(RIGHT), workers, chips=("v5e",))[1].passed


@needs_libtpu
@pytest.mark.parametrize("chips", [(), ("v5e",)])
def test_a_function_in_jax_need_not_compile_unless_that_is_asked_for(workers, chips):
    text = "import jax\n\n\ndef f(x, y, out):\n    return jax.lax.linalg.eig(x.reshape(32, 32))\n"
    made = subject(vector_add(1024), lambda x, y, out: x + y, results=["out_ptr"])
    object.__setattr__(made.emitted, "program", Program(name="f", source=text))
    found, report = compilations(made, workers, chips=chips)
    assert {each.status for each in found} == {Status.FAILED}
    assert report.passed is not bool(chips)


def test_without_libtpu_nothing_is_compiled_and_that_is_said(workers, monkeypatch):
    monkeypatch.setattr("translators.verify.compiler.find_spec", lambda name: None)
    found, report = compilations(add(RIGHT), workers)
    assert [each.status for each in found] == [Status.SKIPPED] * 3
    assert "libtpu is not installed" in found[0].reason or sys.platform != "linux"
    assert report.passed


def test_a_generation_that_the_compiler_does_not_know_is_skipped():
    program = Program(name="f", source="def f(x):\n    return x\n")
    reply = compiled(Compilation(program=program, arrays=(), generation="v99"))
    assert "v99" in reply.absent


@pytest.mark.parametrize(
    ("text", "settings", "reason"),
    [
        ("nothing", "", "this text holds no HLO module"),
        ("HloModule m", "[tool.hlo-lint]\nmin-saving = 'much'\n", "its settings cannot be read"),
    ],
)
def test_what_cannot_be_linted_says_why(tmp_path, monkeypatch, text, settings, reason):
    (tmp_path / "pyproject.toml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    assert reason in linted(text, "v5e").unlinted


def test_the_command_offers_the_generations_that_there_are():
    assert set(CHIPS) == set(TOPOLOGIES)
