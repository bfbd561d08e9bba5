"""Every rung passes for a right function, and fails for one that is wrong as that rung can see."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import (
    COMMON,
    OURS,
    added,
    launched,
    layer_norm,
    matmul,
    multiplied,
    normed,
    rung,
    softened,
    softmax,
    subject,
    vector_add,
)

from translators.triton.host_arrays import HostArray
from translators.verify.interpreter import Interpreter
from translators.verify.ladder import Settings, climb
from translators.verify.report import Status
from translators.verify.rewriting import rewritten
from translators.verify.rungs import (
    INTERPRETER,
    ORDER,
    PADDING,
    PROOF,
    SCALARS,
    SPECIALS,
)
from translators.verify.workers import Workers

BLOCKS = ["BLOCK=16"]


@pytest.fixture(scope="module")
def workers():
    with Interpreter() as started:
        yield Workers(interpreter=started)


def copied(columns=4, rows=3):
    launch = launched(
        OURS,
        "copied_rows",
        [
            *("x_ptr=f32[3,4]:[6,1]", "out_ptr=f32[3,4]:[5,1]"),
            *("x_stride=6", "out_stride=5", f"columns={columns}"),
        ],
        ["BLOCK=8"],
        f"{rows}",
    )
    return subject(launch, lambda x, out: out.at[:rows].set(x[:rows]), results=["out_ptr"])


def elementwise(name, function, dtype="f32", **given):
    arguments = [f"x_ptr={dtype}[64]", f"out_ptr={dtype}[64]", *given.pop("more", ())]
    return subject(
        launched(OURS, name, arguments, BLOCKS, "4"), function, results=["out_ptr"], **given
    )


RIGHT = {
    "vector_add": lambda: subject(vector_add(), added, results=["out_ptr"]),
    "softmax": lambda: subject(softmax(), softened, results=["out_ptr"]),
    "matmul": lambda: subject(matmul(), multiplied, results=["c_ptr"]),
    "bf16": lambda: subject(matmul(dtype="bf16"), multiplied, results=["c_ptr"]),
    "layer_norm": lambda: subject(
        layer_norm(), normed, results=["y_ptr", "mean_ptr", "rstd_ptr"], scalars=["eps"]
    ),
    "strides": copied,
    "i64": lambda: elementwise("doubled_integers", lambda x, out: x * 2, "i64", wide=True),
    "f16": lambda: elementwise("halved", lambda x, out: x / 2, "f16"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_function_is_proved(name, workers):
    report = climb(RIGHT[name](), workers=workers)
    assert report.passed, report
    assert rung(report, INTERPRETER).status is Status.PASSED


def wrong_at_one_masked_element(x, y, out):
    return added(x, y, out, 1001)


def writes_where_masked_off(x, y, out):
    return jnp.where(jnp.arange(1024) < 1000, x + y, 0)


def sixteen_bits(x, y, out):
    total = (x + y).astype(jnp.bfloat16).astype(jnp.float32)
    return jnp.where(jnp.arange(1024) < 1000, total, out)


def eight_bits_too_few(x, y, out):
    return added(x, y, out) * (1 + 2.0**-16)


@pytest.mark.parametrize(
    ("function", "reason", "index"),
    [
        (wrong_at_one_masked_element, "1 elements changed that the kernel does not", (1000,)),
        (writes_where_masked_off, "24 elements changed that the kernel does not", (1000,)),
        (sixteen_bits, "error against f64", None),
        (eight_bits_too_few, "elements changed", None),
        (lambda x, y, out: out, "error against f64", None),
    ],
    ids=["one element", "masked off", "rounded", "eight bits", "nothing"],
)
def test_a_wrong_function_fails_where_it_is_wrong(function, reason, index):
    report = climb(subject(vector_add(), function, results=["out_ptr"]))
    failed = rung(report, PROOF)
    assert not report.passed
    assert (failed.status, failed.array) == (Status.FAILED, "out_ptr")
    assert reason in failed.reason
    assert index in (None, failed.index)
    assert ["tl.store(out_ptr" in line.text for line in failed.lines] == [True]


@pytest.mark.parametrize(
    ("function", "results", "reason"),
    [
        (lambda x, y, out: (x, y), ["out_ptr"], "gives 2 arrays, not 1"),
        (lambda x, y, out: x[:9], ["out_ptr"], r"of shape \(9,\) for `out_ptr`"),
        (lambda x, y, out: x.astype(jnp.bfloat16), ["out_ptr"], "gives bfloat16"),
        (lambda x, y, out: x.missing, ["out_ptr"], "fails: AttributeError"),
        (added, [], "gives 1 arrays, not 0"),
        (lambda x, y, out: (), [], "error against f64"),
        (lambda x, y, out: (x, added(x, y, out)), ["y_ptr", "out_ptr"], "`y_ptr`: 1"),
    ],
    ids=["count", "shape", "type", "raises", "too many", "result left out", "input changed"],
)
def test_a_function_of_another_form_fails(function, results, reason):
    failed = rung(climb(subject(vector_add(), function, results=results)), PROOF)
    assert failed.status is Status.FAILED
    assert re.search(reason, failed.reason), failed.reason


def test_an_array_given_twice_is_one():
    launch = launched(
        COMMON,
        "vector_add",
        ["x_ptr=f32[64]", "y_ptr=f32[64]", "out_ptr=f32[64]", "n=50"],
        BLOCKS,
        "4",
        aliases=[("x_ptr", "out_ptr")],
    )

    def in_place(x, y):
        return jnp.where(jnp.arange(64) < 50, x + y, x)

    given = {"parameters": ["x_ptr", "y_ptr"], "results": ["x_ptr"]}
    assert climb(subject(launch, in_place, **given)).passed
    assert not climb(subject(launch, lambda x, y: x + y, **given)).passed


def test_a_graph_that_is_not_the_kernel_fails_against_the_interpreter(workers):
    right = subject(vector_add(), added, results=["out_ptr"])

    def subtracting(op, operands, builder):
        return builder.op("arith.subf", *operands).results if op.name == "arith.addf" else None

    wrong = subject(vector_add(), lambda x, y, out: added(x, -y, out), results=["out_ptr"])
    object.__setattr__(wrong, "module", rewritten(right.module, lambda each: each, subtracting))
    report = climb(wrong, workers=workers)
    assert rung(report, PROOF).status is Status.PASSED
    assert rung(report, INTERPRETER).status is Status.FAILED
    assert not report.passed


def test_a_kernel_whose_result_depends_on_the_order_of_programs_is_reported():
    launch = launched(OURS, "running_total", ["x_ptr=f32[8]", "total_ptr=f32[9]"], (), "8")

    def in_order(x, total):
        return jnp.concatenate([total[:1], total[0] + jnp.cumsum(x)])

    failed = rung(climb(subject(launch, in_order, results=["total_ptr"])), ORDER)
    assert (failed.status, failed.array) == (Status.FAILED, "total_ptr")
    assert "depends on the order of programs" in failed.reason
    assert "tl.store(total_ptr" in failed.lines[0].text


def test_rounding_of_atomic_additions_is_no_dependence_on_the_order():
    launch = launched(OURS, "summed", ["x_ptr=f32[512]", "out_ptr=f32[1]"], BLOCKS, "32")
    report = climb(subject(launch, lambda x, out: out + jnp.sum(x), results=["out_ptr"]))
    assert report.passed, report
    assert rung(report, ORDER).status is Status.PASSED


def test_what_leaks_from_masked_lanes_fails_with_poison_there():
    def leaking(x, y, out):
        kept = (jnp.arange(1024) < 1000).astype(jnp.float32)
        return kept * (x + y) + (1 - kept) * out

    report = climb(subject(vector_add(), leaking, results=["out_ptr"]))
    assert rung(report, PROOF).status is Status.PASSED
    assert rung(report, PADDING).status is Status.FAILED
    assert not report.passed


def test_a_kernel_that_writes_between_the_rows_of_an_array_fails():
    report = climb(copied(columns=5, rows=2))
    failed = rung(report, PADDING)
    assert failed.status is Status.FAILED
    assert "writes beside the elements of `out_ptr`" in failed.reason
    assert "tl.store(out_ptr" in failed.lines[0].text


def test_propagated_nan_fails_where_the_kernel_does_not_propagate():
    def keeping(x, out):
        return jnp.where(jnp.isnan(x), 0, jnp.maximum(x, 0))

    wrong = climb(elementwise("relu_max", lambda x, out: jnp.maximum(x, 0)))
    right = climb(elementwise("relu_max", keeping))
    assert (rung(wrong, PROOF).status, rung(wrong, SPECIALS).status) == (
        Status.PASSED,
        Status.FAILED,
    )
    assert "NaN stands in only one of the two" in rung(wrong, SPECIALS).reason
    assert right.passed


def test_nan_that_only_xla_simplifies_away_is_no_error_of_the_function():
    def even(count):
        return jnp.arange(count) % 2 == 0

    multiplied_by_truth = climb(elementwise("gated", lambda x, out: x * even(64).astype(x.dtype)))
    chosen = climb(elementwise("gated", lambda x, out: jnp.where(even(64), x, 0)))
    assert multiplied_by_truth.passed, multiplied_by_truth
    assert "does not simplify" in rung(multiplied_by_truth, SPECIALS).reason
    assert rung(chosen, PROOF).status is Status.PASSED
    assert rung(chosen, SPECIALS).status is Status.FAILED


def logarithm(bias):
    arguments = ["x_ptr=f32[64]", "out_ptr=f32[64]"]
    launch = launched(OURS, "logarithm", arguments, [f"BIAS={bias}", *BLOCKS], "4")
    return subject(launch, lambda x, out: jnp.log(x - bias), results=["out_ptr"])


def test_a_kernel_of_positive_numbers_is_given_some():
    report = climb(logarithm(0))
    assert report.inputs[:2] == ("normal", "positive")
    assert report.passed


def test_nothing_but_nan_proves_nothing():
    report = climb(logarithm(1000))
    assert rung(report, PROOF).status is Status.SKIPPED
    assert not report.passed


def test_a_scalar_without_effect_fails_with_another_value():
    scaled = {"more": ["scale=2.5"], "scalars": ["scale"]}
    wrong = climb(elementwise("scaled", lambda x, out, scale=2.5: x * 2.5, **scaled))
    right = climb(elementwise("scaled", lambda x, out, scale=2.5: x * scale, **scaled))
    assert rung(wrong, SCALARS).status is Status.FAILED
    assert rung(right, SCALARS).status is Status.PASSED


def test_a_kernel_that_leaves_its_arrays_is_not_proved_and_the_line_is_said():
    launch = launched(OURS, "overrun", ["x_ptr=f32[16]", "out_ptr=f32[16]"], BLOCKS)
    report = climb(subject(launch, lambda x, out: x, results=["out_ptr"]))
    (failed,) = report.rungs
    assert failed.status is Status.FAILED
    assert "tl.load(x_ptr + lanes + 1)" in failed.lines[0].text
    assert not report.passed


def test_without_time_nothing_is_proved():
    right = subject(vector_add(), added, results=["out_ptr"])
    report = climb(right, Settings(seconds=0))
    assert [each.status for each in report.rungs] == [Status.SKIPPED]
    assert not report.passed


def test_a_tolerance_lets_through_what_is_as_close_as_it_says():
    rounding = subject(vector_add(), sixteen_bits, results=["out_ptr"])
    assert not climb(rounding).passed
    assert climb(rounding, Settings(tolerance=0.01, specials=False)).passed


def test_recorded_memory_is_an_input():
    launch = launched(
        OURS, "gathered", ["x_ptr=f32[50]", "index_ptr=i32[16]", "out_ptr=f32[16]"], BLOCKS
    )
    values = {
        "x_ptr": HostArray(np.arange(50, dtype=np.float32)),
        "index_ptr": HostArray(np.arange(16, dtype=np.int32) * 3),
        "out_ptr": HostArray(np.zeros(16, np.float32)),
    }

    def for_even_indices(x, index, out):
        return jnp.where(jnp.all(index < 16), x[index], 0)

    wrong = subject(launch, for_even_indices, results=["out_ptr"], values=values)
    report = climb(wrong)
    assert report.inputs[0] == "as recorded"
    assert rung(report, PROOF).case == "as recorded"
    assert not report.passed
