import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import OURS, launched, layer_norm, matmul, softmax

from translators.graph.evaluator import evaluate
from translators.graph.graph import walk
from translators.graph.reader import read_module
from translators.graph.types import F64, FloatType, element_of
from translators.graph.verifier import verify
from translators.triton.kernel_graph import kernel_graph
from translators.verify.evaluation import Case, Clock, in_f64, run
from translators.verify.memory import lay_out
from translators.verify.rewriting import ieee_dots
from translators.verify.stores import atomic_arguments, store_locations
from translators.verify.widened import NoReferenceError, widened

UNARY = """
kernel @"unary"(%x: ptr<TYPE>, %out: ptr<TYPE>) {
  %v = tt.load(%x) : TYPE
  BODY
  tt.store(%out, %r)
  tt.return()
}
"""


def unary(body, type_="f32"):
    module = read_module(UNARY.replace("BODY", body).replace("TYPE", type_))
    verify(module)
    return module


def value(module, number):
    arrays = [np.array([number]), np.zeros(1)]
    return float(evaluate(module, arrays, (1,)).arrays[1][0])


@pytest.mark.parametrize("launch_of", [softmax, layer_norm, matmul])
def test_every_float_becomes_f64_and_the_result_hardly_changes(launch_of):
    kernel, launch = launch_of()
    module, layout = kernel_graph(kernel, launch), lay_out(launch)
    wide = widened(module)
    floats = {
        element_of(each.type)
        for op in walk(wide.kernel.body)
        for each in op.results
        if isinstance(element_of(each.type), FloatType)
    }
    assert floats == {F64}
    rng = np.random.default_rng(0)
    storages = {
        buffer: rng.standard_normal(storage.size).astype(storage.dtype)
        for buffer, storage in layout.storages.items()
    }
    case = Case(title="", storages=storages)
    narrow = run(module, layout, case, Clock(10)).arrays
    exact = run(wide, layout, in_f64(case), Clock(10)).arrays
    for name, array in narrow.items():
        assert exact[name].dtype == np.float64
        np.testing.assert_allclose(array, exact[name], rtol=1e-4, atol=1e-5)


def test_rounding_on_the_way_falls_away():
    module = unary(
        "%h = arith.truncf(%v) : bf16\n  %r = arith.extf(%h) : f32",
    )
    assert value(widened(module), 1.001) == 1.001


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('%r = tt.extern_elementwise(%v) {symbol = "__nv_expf"} : f32', np.exp(0.7)),
        ('%r = tt.extern_elementwise(%v) {symbol = "__nv_fast_logf"} : f32', np.log(0.7)),
        ('%r = tt.extern_elementwise(%v, %v) {symbol = "__nv_fast_fdividef"} : f32', 1.0),
        (
            '%r = tt.elementwise_inline_asm(%v) {asm_string = "rcp.approx.ftz.f32 $0, $1;", '
            "packed_element = 1, pure = true} : f32",
            1 / 0.7,
        ),
        (
            '%r = tt.elementwise_inline_asm(%v) {asm_string = "tanh.approx.f32 $0, $1;", '
            "packed_element = 1, pure = true} : f32",
            np.tanh(0.7),
        ),
        ("%r = tt.precise_sqrt(%v) : f32", np.sqrt(0.7)),
        ("%r = math.fma(%v, %v, %v) : f32", 0.7 * 0.7 + 0.7),
    ],
)
def test_ops_that_exist_for_f32_alone_have_another_form(body, expected):
    assert value(widened(unary(body)), 0.7) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "body",
    [
        "%b = arith.bitcast(%v) : i32\n  %r = arith.bitcast(%b) : f32",
        "%p = tt.ptr_to_int(%x) : i64\n  %q = tt.int_to_ptr(%p) : ptr<f32>\n"
        "  %r = tt.load(%q) : f32",
        "%p = tt.bitcast(%x) : ptr<i32>\n  %b = tt.load(%p) : i32\n  %r = arith.sitofp(%b) : f32",
    ],
    ids=["bits", "addresses", "pointers"],
)
def test_a_kernel_that_looks_at_bits_has_no_reference(body):
    with pytest.raises(NoReferenceError):
        widened(unary(body))


def test_dots_at_full_precision_leave_the_given_module_as_it_is():
    kernel, launch = launched(
        OURS,
        "tf32_product",
        ["a_ptr=f32[16,16]", "b_ptr=f32[16,16]", "c_ptr=f32[16,16]"],
        ["N=16"],
    )
    module = kernel_graph(kernel, launch)
    precise = ieee_dots(module)

    def precisions(of):
        ops = walk(of.kernel.body)
        return [op.attributes["inputPrecision"] for op in ops if op.name == "tt.dot"]

    assert (precisions(module), precisions(precise)) == (["tf32"], ["ieee"])
    verify(precise)


def test_stores_are_found_through_loops_and_arithmetic():
    kernel, launch = layer_norm()
    lines = [tuple(each.line for each in places) for places in _places(kernel, launch)]
    source = OURS.parent.parent / "triton" / "kernels.py"
    text = source.read_text(encoding="utf-8").splitlines()
    x, y, w, b, mean, rstd = lines[:6]
    assert (x, w, b) == ((), (), ())
    assert all("tl.store(y_ptr" in text[line - 1] for line in y)
    assert all("tl.store(mean_ptr" in text[line - 1] for line in mean)
    assert len(y) == len(mean) == len(rstd) == 1


def test_floats_that_are_added_atomically_are_known():
    kernel, launch = launched(OURS, "summed", ["x_ptr=f32[64]", "out_ptr=f32[1]"], ["BLOCK=16"])
    assert atomic_arguments(kernel_graph(kernel, launch)) == {1}


def _places(kernel, launch):
    return store_locations(kernel_graph(kernel, launch))
