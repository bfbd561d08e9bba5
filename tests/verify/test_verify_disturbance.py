import numpy as np
import pytest

pytest.importorskip("triton.language")

from translators.graph.evaluator import evaluate
from translators.graph.reader import read_module
from translators.graph.verifier import verify
from translators.verify.disturbance import Disturbance

KERNEL = """
kernel @"kernel"(%x: ptr<TYPE>, %out: ptr<TYPE>) {
  %lanes = tt.make_range() {start = 0, end = 64} : tensor<64xi32>
  %xs = tt.splat(%x) : tensor<64xptr<TYPE>>
  %xp = tt.addptr(%xs, %lanes) : tensor<64xptr<TYPE>>
  %v = tt.load(%xp) : tensor<64xTYPE>
  BODY
  %os = tt.splat(%out) : tensor<64xptr<TYPE>>
  %op = tt.addptr(%os, %lanes) : tensor<64xptr<TYPE>>
  tt.store(%op, %r)
  tt.return()
}
"""
SUM = """%s = tt.reduce(%v) {axis = 0} : TYPE {
  ^(%a: TYPE, %b: TYPE):
    %c = arith.addf(%a, %b) : TYPE
    tt.reduce.return(%c)
  }
  %r = tt.splat(%s) : tensor<64xTYPE>"""
GREATEST = SUM.replace("arith.addf", "arith.maxnumf")
DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64}


def changes(body, type_="f32", runs=8):
    """By how much each element changes, in units of the last place of one, run by run."""
    module = read_module(KERNEL.replace("BODY", body).replace("TYPE", type_))
    verify(module)
    x = np.random.default_rng(0).uniform(1, 2, 64).astype(DTYPES[type_])
    arguments = [x, np.zeros_like(x)]
    plain = evaluate(module, arguments, (1,)).arrays[1].astype(np.float64)
    found = []
    for seed in range(runs):
        disturb = Disturbance(np.random.default_rng(seed))
        disturbed = evaluate(module, arguments, (1,), disturb=disturb).arrays[1]
        assert disturbed.dtype == x.dtype
        found.append((disturbed.astype(np.float64) - plain) / np.finfo(x.dtype).eps)
    return np.array(found)


@pytest.mark.parametrize("type_", DTYPES)
def test_what_is_rounded_moves_by_a_unit_either_way_or_not(type_):
    found = changes("%r = arith.addf(%v, %v) : tensor<64xTYPE>", type_)
    assert {-1, 0, 1} <= set(np.sign(found).flat)
    assert np.abs(found).max() <= 4


@pytest.mark.parametrize(
    "body",
    [
        "%r = math.floor(%v) : tensor<64xTYPE>",
        "%r = arith.maxnumf(%v, %v) : tensor<64xTYPE>",
        "%r = arith.negf(%v) : tensor<64xTYPE>",
        GREATEST,
    ],
    ids=["floor", "maximum", "sign", "greatest"],
)
def test_what_is_exact_stays(body):
    assert not changes(body).any()


def test_a_sum_moves_as_one_may_that_is_added_up_one_by_one():
    found = np.abs(changes(SUM)) / 96  # the sum is about 96, whose unit is that much greater
    assert 2 < found.max() < 16


def test_noise_of_what_comes_in_between_is_in_what_comes_out():
    """The difference of two roundings of one number is nothing but noise."""
    body = """%a = math.exp(%v) : tensor<64xTYPE>
  %b = math.exp(%v) : tensor<64xTYPE>
  %r = arith.subf(%a, %b) : tensor<64xTYPE>"""
    assert np.abs(changes(body)).max() > 1
