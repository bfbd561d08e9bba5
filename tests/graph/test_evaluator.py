"""Whole kernels against NumPy written by hand, and what a kernel may not do."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graph_oracles import run
from hypothesis import given, settings
from hypothesis import strategies as st

from translators.graph.errors import EvaluationError
from translators.graph.evaluator import ArrayDescriptor, ArrayPointer, all_programs

VECTOR_ADD = """
kernel @"add"(%x: ptr<f32>, %y: ptr<f32>, %out: ptr<f32>, %n: i32) {
  %pid = tt.get_program_id() {axis = 0} : i32
  %block = arith.constant() {value = 8} : i32
  %start = arith.muli(%pid, %block) : i32
  %lanes = tt.make_range() {start = 0, end = 8} : tensor<8xi32>
  %starts = tt.splat(%start) : tensor<8xi32>
  %offsets = arith.addi(%starts, %lanes) : tensor<8xi32>
  %limit = tt.splat(%n) : tensor<8xi32>
  %mask = arith.cmpi(%offsets, %limit) {predicate = "slt"} : tensor<8xi1>
  %xs = tt.splat(%x) : tensor<8xptr<f32>>
  %xp = tt.addptr(%xs, %offsets) : tensor<8xptr<f32>>
  %a = tt.load(%xp, %mask) : tensor<8xf32> at "add.py":11:8 "x = tl.load(x_ptr + offsets)"
  %ys = tt.splat(%y) : tensor<8xptr<f32>>
  %yp = tt.addptr(%ys, %offsets) : tensor<8xptr<f32>>
  %b = tt.load(%yp, %mask) : tensor<8xf32>
  %sum = arith.addf(%a, %b) : tensor<8xf32>
  %os = tt.splat(%out) : tensor<8xptr<f32>>
  %op = tt.addptr(%os, %offsets) : tensor<8xptr<f32>>
  tt.store(%op, %sum, %mask)
  tt.return()
}
"""

SOFTMAX = """
kernel @"softmax"(%x: ptr<f32>, %out: ptr<f32>, %stride: i32, %n: i32) {
  %row = tt.get_program_id() {axis = 0} : i32
  %start = arith.muli(%row, %stride) : i32
  %xp = tt.addptr(%x, %start) : ptr<f32>
  %op = tt.addptr(%out, %start) : ptr<f32>
  %lanes = tt.make_range() {start = 0, end = 16} : tensor<16xi32>
  %limit = tt.splat(%n) : tensor<16xi32>
  %mask = arith.cmpi(%lanes, %limit) {predicate = "slt"} : tensor<16xi1>
  %xs = tt.splat(%xp) : tensor<16xptr<f32>>
  %xps = tt.addptr(%xs, %lanes) : tensor<16xptr<f32>>
  %low = arith.constant() {value = -inf} : tensor<16xf32>
  %v = tt.load(%xps, %mask, %low) : tensor<16xf32>
  %max = tt.reduce(%v) {axis = 0} : f32 {
  ^(%a: f32, %b: f32):
    %m = arith.maxnumf(%a, %b) : f32
    tt.reduce.return(%m)
  }
  %maxs = tt.splat(%max) : tensor<16xf32>
  %d = arith.subf(%v, %maxs) : tensor<16xf32>
  %e = math.exp(%d) : tensor<16xf32>
  %sum = tt.reduce(%e) {axis = 0} : f32 {
  ^(%c: f32, %f: f32):
    %s = arith.addf(%c, %f) : f32
    tt.reduce.return(%s)
  }
  %sums = tt.splat(%sum) : tensor<16xf32>
  %r = arith.divf(%e, %sums) : tensor<16xf32>
  %os = tt.splat(%op) : tensor<16xptr<f32>>
  %ops = tt.addptr(%os, %lanes) : tensor<16xptr<f32>>
  tt.store(%ops, %r, %mask)
  tt.return()
}
"""

# C[M, N] = A[M, K] B[K, N] in tiles of 4, rows of A and B beyond K masked, pointers carried.
MATMUL = """
func @"offsets"(%rows: tensor<4xi32>, %columns: tensor<4xi32>, %stride: i32) -> (tensor<4x4xi32>) {
  %r = tt.expand_dims(%rows) {axis = 1} : tensor<4x1xi32>
  %c = tt.expand_dims(%columns) {axis = 0} : tensor<1x4xi32>
  %s = tt.splat(%stride) : tensor<4x1xi32>
  %p = arith.muli(%r, %s) : tensor<4x1xi32>
  %pb = tt.broadcast(%p) : tensor<4x4xi32>
  %cb = tt.broadcast(%c) : tensor<4x4xi32>
  %o = arith.addi(%pb, %cb) : tensor<4x4xi32>
  tt.return(%o)
}

func @"below"(%index: tensor<4xi32>, %size: i32, %axis: i1) -> (tensor<4x4xi1>) {
  %s = tt.splat(%size) : tensor<4xi32>
  %m = arith.cmpi(%index, %s) {predicate = "slt"} : tensor<4xi1>
  scf.if(%axis) {
    %e = tt.expand_dims(%m) {axis = 0} : tensor<1x4xi1>
    %w = tt.broadcast(%e) : tensor<4x4xi1>
    tt.return(%w)
  }
  %f = tt.expand_dims(%m) {axis = 1} : tensor<4x1xi1>
  %v = tt.broadcast(%f) : tensor<4x4xi1>
  tt.return(%v)
}

kernel @"matmul"(%a: ptr<TYPE>, %b: ptr<TYPE>, %c: ptr<f32>, %M: i32, %N: i32, %K: i32) {
  %pm = tt.get_program_id() {axis = 0} : i32
  %pn = tt.get_program_id() {axis = 1} : i32
  %four = arith.constant() {value = 4} : i32
  %zero = arith.constant() {value = 0} : i32
  %no = arith.constant() {value = 0} : i1
  %yes = arith.constant() {value = 1} : i1
  %lanes = tt.make_range() {start = 0, end = 4} : tensor<4xi32>
  %m0 = arith.muli(%pm, %four) : i32
  %m0s = tt.splat(%m0) : tensor<4xi32>
  %m = arith.addi(%m0s, %lanes) : tensor<4xi32>
  %n0 = arith.muli(%pn, %four) : i32
  %n0s = tt.splat(%n0) : tensor<4xi32>
  %n = arith.addi(%n0s, %lanes) : tensor<4xi32>
  %mrows = tt.call(%m, %M, %no) {callee = "below"} : tensor<4x4xi1>
  %ncols = tt.call(%n, %N, %yes) {callee = "below"} : tensor<4x4xi1>
  %ao = tt.call(%m, %lanes, %K) {callee = "offsets"} : tensor<4x4xi32>
  %bo = tt.call(%lanes, %n, %N) {callee = "offsets"} : tensor<4x4xi32>
  %as = tt.splat(%a) : tensor<4x4xptr<TYPE>>
  %ap = tt.addptr(%as, %ao) : tensor<4x4xptr<TYPE>>
  %bs = tt.splat(%b) : tensor<4x4xptr<TYPE>>
  %bp = tt.addptr(%bs, %bo) : tensor<4x4xptr<TYPE>>
  %step = arith.muli(%four, %N) : i32
  %steps = tt.splat(%step) : tensor<4x4xi32>
  %fours = tt.splat(%four) : tensor<4x4xi32>
  %none = arith.constant() {value = 0.0} : tensor<4x4xf32>
  %acc, %alast, %blast = scf.for(%zero, %K, %four, %none, %ap, %bp) : tensor<4x4xf32>,
      tensor<4x4xptr<TYPE>>, tensor<4x4xptr<TYPE>> {
  ^(%k: i32, %sum: tensor<4x4xf32>, %pa: tensor<4x4xptr<TYPE>>, %pb: tensor<4x4xptr<TYPE>>):
    %left = arith.subi(%K, %k) : i32
    %kcols = tt.call(%lanes, %left, %yes) {callee = "below"} : tensor<4x4xi1>
    %krows = tt.call(%lanes, %left, %no) {callee = "below"} : tensor<4x4xi1>
    %amask = arith.andi(%mrows, %kcols) : tensor<4x4xi1>
    %bmask = arith.andi(%krows, %ncols) : tensor<4x4xi1>
    %at = tt.load(%pa, %amask) : tensor<4x4xTYPE>
    %bt = tt.load(%pb, %bmask) : tensor<4x4xTYPE>
    %next = tt.dot(%at, %bt, %sum) {inputPrecision = "ieee"} : tensor<4x4xf32>
    %pa1 = tt.addptr(%pa, %fours) : tensor<4x4xptr<TYPE>>
    %pb1 = tt.addptr(%pb, %steps) : tensor<4x4xptr<TYPE>>
    scf.yield(%next, %pa1, %pb1)
  }
  %co = tt.call(%m, %n, %N) {callee = "offsets"} : tensor<4x4xi32>
  %cs = tt.splat(%c) : tensor<4x4xptr<f32>>
  %cp = tt.addptr(%cs, %co) : tensor<4x4xptr<f32>>
  %cmask = arith.andi(%mrows, %ncols) : tensor<4x4xi1>
  tt.store(%cp, %acc, %cmask)
  tt.return()
}
"""

EARLY_RETURN = """
kernel @"skip"(%x: ptr<i32>, %n: i32) {
  %pid = tt.get_program_id() {axis = 0} : i32
  %past = arith.cmpi(%pid, %n) {predicate = "sge"} : i1
  %zero = arith.constant() {value = 0} : i32
  %one = arith.constant() {value = 1} : i32
  %p = tt.addptr(%x, %pid) : ptr<i32>
  scf.if(%past) {
    tt.return()
  }
  scf.for(%zero, %n, %one) {
  ^(%i: i32):
    %old = tt.load(%p) : i32
    %new = arith.addi(%old, %one) : i32
    tt.store(%p, %new)
    %enough = arith.cmpi(%i, %pid) {predicate = "eq"} : i1
    scf.if(%enough) {
      tt.return()
    } {
      scf.yield()
    }
    scf.yield()
  }
  tt.store(%p, %zero)
  tt.return()
}
"""

# Steps of the Collatz sequence down to 1.
WHILE = """
kernel @"collatz"(%x: ptr<i64>, %out: ptr<i32>) {
  %pid = tt.get_program_id() {axis = 0} : i32
  %xp = tt.addptr(%x, %pid) : ptr<i64>
  %op = tt.addptr(%out, %pid) : ptr<i32>
  %start = tt.load(%xp) : i64
  %one = arith.constant() {value = 1} : i64
  %two = arith.constant() {value = 2} : i64
  %three = arith.constant() {value = 3} : i64
  %c0 = arith.constant() {value = 0} : i32
  %c1 = arith.constant() {value = 1} : i32
  %last, %count = scf.while(%start, %c0) : i64, i32 {
  ^(%v: i64, %c: i32):
    %more = arith.cmpi(%v, %one) {predicate = "ne"} : i1
    scf.condition(%more, %v, %c)
  } {
  ^(%w: i64, %d: i32):
    %odd = arith.remsi(%w, %two) : i64
    %is = arith.trunci(%odd) : i1
    %next = scf.if(%is) : i64 {
      %t = arith.muli(%w, %three) : i64
      %u = arith.addi(%t, %one) : i64
      scf.yield(%u)
    } {
      %h = arith.divsi(%w, %two) : i64
      scf.yield(%h)
    }
    %e = arith.addi(%d, %c1) : i32
    scf.yield(%next, %e)
  }
  tt.store(%op, %count)
  tt.return()
}
"""

# A spin lock around a read-modify-write, and a ticket that says in which order programs came.
LOCK = """
kernel @"lock"(%lock: ptr<i32>, %total: ptr<f32>, %tickets: ptr<i32>) {
  %pid = tt.get_program_id() {axis = 0} : i32
  %zero = arith.constant() {value = 0} : i32
  %one = arith.constant() {value = 1} : i32
  %got = scf.while(%one) : i32 {
  ^(%try: i32):
    %was = tt.atomic_cas(%lock, %zero, %one) {sem = "acq_rel", scope = "gpu"} : i32
    %busy = arith.cmpi(%was, %zero) {predicate = "ne"} : i1
    scf.condition(%busy, %was)
  } {
  ^(%again: i32):
    scf.yield(%again)
  }
  %old = tt.load(%total) : f32
  %mine = arith.sitofp(%pid) : f32
  %new = arith.addf(%old, %mine) : f32
  tt.store(%total, %new)
  %freed = tt.atomic_rmw(%lock, %zero) {atomic_rmw_op = "exch"} : i32
  %counter = tt.addptr(%lock, %one) : ptr<i32>
  %ticket = tt.atomic_rmw(%counter, %one) {atomic_rmw_op = "add"} : i32
  %tp = tt.addptr(%tickets, %pid) : ptr<i32>
  tt.store(%tp, %ticket)
  tt.return()
}
"""


WHOLE = np.zeros(12, np.float32)


@settings(max_examples=30)
@given(st.integers(1, 40), st.randoms())
def test_vector_add_in_any_order_leaves_the_rest_alone(n: int, random: Any) -> None:
    x, y = (np.random.default_rng(n).normal(size=n + 3).astype(np.float32) for _ in range(2))
    x[n:] = np.nan
    out = np.full(n + 5, 7, np.float32)
    grid = (-(-n // 8),)
    order = list(all_programs((*grid, 1, 1)))
    random.shuffle(order)
    found = run(VECTOR_ADD, x, y, out, n, grid=grid, order=order)
    assert found.arrays[2] is not None
    np.testing.assert_array_equal(found.arrays[2][:n], x[:n] + y[:n])
    assert (found.arrays[2][n:] == 7).all()
    assert (out == 7).all(), "arguments are copied"
    assert found.arrays[3] is None


def test_softmax_of_rows_with_padding_between_them() -> None:
    x = np.random.default_rng(0).normal(size=(5, 20)).astype(np.float32)
    x[:, 11:] = np.nan
    found = run(SOFTMAX, x, np.zeros_like(x), 20, 11, grid=(5,)).arrays[1]
    assert found is not None
    wide = np.exp(x[:, :11].astype(np.float64))
    np.testing.assert_allclose(found[:, :11], wide / wide.sum(1, keepdims=True), rtol=1e-6)
    assert (found[:, 11:] == 0).all()


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("f8E4M3FN", ml_dtypes.float8_e4m3fn)],
)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 4), (7, 5, 9), (1, 6, 3)])
def test_matmul_with_a_loop_over_tiles(type_: str, dtype: Any, m: int, n: int, k: int) -> None:
    random = np.random.default_rng(m)
    a, b = (random.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n)))
    text = MATMUL.replace("TYPE", type_)
    grid = (-(-m // 4), -(-n // 4))
    found = run(text, a, b, np.zeros((m, n), np.float32), m, n, k, grid=grid).arrays[2]
    assert found is not None
    np.testing.assert_allclose(
        found, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-6
    )


def test_return_leaves_from_any_depth() -> None:
    """Programs past `n` do nothing; others count up to their own number and stop."""
    found = run(EARLY_RETURN, np.zeros(6, np.int32), 4, grid=(6,)).arrays[0]
    assert found is not None and found.tolist() == [1, 2, 3, 4, 0, 0]


def test_while_loop_runs_until_its_condition_fails() -> None:
    start = np.array([1, 2, 27, 97], np.int64)
    found = run(WHILE, start, np.zeros(4, np.int32), grid=(4,)).arrays[1]
    assert found is not None and found.tolist() == [0, 1, 111, 118]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::7])
def test_lock_and_ticket_see_the_order_of_programs(order: tuple[int, ...]) -> None:
    programs = [(each, 0, 0) for each in order]
    arguments = (np.zeros(2, np.int32), np.zeros(1, np.float32), np.zeros(4, np.int32))
    lock, total, tickets = run(LOCK, *arguments, grid=(4,), order=programs).arrays
    assert lock is not None and total is not None and tickets is not None
    assert lock.tolist() == [0, 4] and total.tolist() == [6.0]
    assert [int(tickets[each]) for each in order] == [0, 1, 2, 3]


def test_a_step_limit_ends_a_loop_that_would_not() -> None:
    arguments = (np.ones(2, np.int32), np.zeros(1, np.float32), np.zeros(1, np.int32))
    with pytest.raises(EvaluationError, match="more than 100 steps"):
        run(LOCK, *arguments, step_limit=100)


def test_an_access_out_of_bounds_names_the_line_and_the_element() -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(EvaluationError) as caught:
        run(VECTOR_ADD, x[:5].copy(), x, x.copy(), 8)
    message = "`tt.load` touches element 5 of a buffer of 5 elements, in program (0, 0, 0)"
    assert str(caught.value) == f"add.py:11:8: {message}"
    assert caught.value.location is not None
    assert caught.value.location.text == "x = tl.load(x_ptr + offsets)"


def test_the_same_array_twice_is_one_piece_of_memory() -> None:
    x = np.arange(8, dtype=np.float32)
    found = run(VECTOR_ADD, x, x, x, 8).arrays
    assert all(each is not None and each.tolist() == (2 * x).tolist() for each in found[:3])


@pytest.mark.parametrize(
    ("type_", "given_value", "held_value"),
    [
        ("i32", (1 << 32) - 1, -1),
        ("i8", np.uint8(200), -56),
        ("i1", True, 1),
        ("f32", 0.1, np.float32(0.1)),
        ("bf16", 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-7),
        ("bf16", ml_dtypes.bfloat16(0.5), 0.5),
        ("f64", 3, 3.0),
    ],
)
def test_scalar_arguments_enter_as_their_type_holds_them(
    type_: str, given_value: Any, held_value: Any
) -> None:
    text = """
    kernel @"scalar"(%s: TYPE) {
      tt.print(%s) {prefix = "s"}
      tt.return()
    }
    """
    (record,) = run(text.replace("TYPE", type_), given_value).records
    assert record.values[0].astype(type(held_value)) == held_value


def test_pointers_into_one_array_share_its_memory() -> None:
    x = np.arange(16, dtype=np.float32)
    reads, writes = ArrayPointer(array=x, offset=0), ArrayPointer(array=x, offset=8)
    order = [(0, 0, 0), (1, 0, 0)]
    found = run(VECTOR_ADD, reads, x, writes, 8, grid=(2,), order=order).arrays
    wanted = np.concatenate([np.arange(8), 2 * np.arange(8)])
    assert found[0] is not None and found[2] is not None
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[2], wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(8, np.float64), np.zeros(8, np.float32), np.zeros(8, np.float32), 8), "float64"),
        ((np.zeros(8, np.float32), 3, np.zeros(8, np.float32), 8), "`y` is `ptr<f32>`"),
        ((np.zeros((8, 8), np.float32)[:, 0],) * 3 + (8,), "contiguous"),
        ((np.zeros(8, np.float32),) * 3, "takes 4 arguments, not 3"),
        ((np.zeros(8, np.float32),) * 3 + (1.5,), "`n` is `i32`; it was given 1.5"),
        ((np.zeros(8, np.float32),) * 3 + (1 << 32,), "`n` is `i32`; it was given 4294967296"),
        ((np.zeros(8, np.float32),) * 3 + (np.zeros(1, np.int32),), "given array of int32"),
        ((WHOLE[:8], np.zeros(8, np.float32), WHOLE[4:], 8), "`x` and `out` are two views"),
    ],
)
def test_a_wrong_argument_is_an_error(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        run(VECTOR_ADD, *arguments)


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (-1,)])
def test_a_grid_that_is_none_is_an_error(grid: tuple[int, ...]) -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(EvaluationError, match="one to three axes"):
        run(VECTOR_ADD, x, x, x, 8, grid=grid)


def test_prints_and_failed_assertions_are_kept() -> None:
    text = """
    kernel @"talk"(%x: ptr<i32>) {
      %pid = tt.get_program_id() {axis = 2} : i32
      %all = tt.get_num_programs() {axis = 2} : i32
      %two = arith.constant() {value = 2} : i32
      %ok = arith.cmpi(%pid, %two) {predicate = "ne"} : i1
      tt.print(%pid, %all) {prefix = "pid", hex = false, isSigned = [1, 1]}
      tt.assert(%ok) {message = "not two"} at "talk.py":5
      llvm.intr.assume(%ok)
      ttg.barrier()
      tt.grid_dependency_wait()
      tt.grid_dependency_launch_dependents()
      tt.return()
    }
    """
    records = run(text, np.zeros(1, np.int32), grid=(1, 1, 3)).records
    assert [(each.message, each.program) for each in records] == [
        ("pid", (0, 0, 0)),
        ("pid", (0, 0, 1)),
        ("pid", (0, 0, 2)),
        ("not two", (0, 0, 2)),
        ("", (0, 0, 2)),
    ]
    assert [int(each) for each in records[1].values] == [1, 3]
    assert records[3].op.location is not None and records[3].op.location.line == 5


def test_a_descriptor_pads_what_it_reads_and_clips_what_it_writes() -> None:
    text = """
    kernel @"copy"(%in: desc<4x4xf32>, %out: ptr<f32>, %rows: i32, %columns: i32) {
      %stride = arith.extsi(%columns) : i64
      %one = arith.constant() {value = 1} : i64
      %to = tt.make_tensor_descriptor(%out, %rows, %columns, %stride, %one) : desc<4x4xf32>
      %pm = tt.get_program_id() {axis = 0} : i32
      %pn = tt.get_program_id() {axis = 1} : i32
      %four = arith.constant() {value = 4} : i32
      %m = arith.muli(%pm, %four) : i32
      %n = arith.muli(%pn, %four) : i32
      %block = tt.descriptor_load(%in, %m, %n) : tensor<4x4xf32>
      tt.descriptor_store(%to, %block, %m, %n)
      tt.descriptor_reduce(%to, %block, %m, %n) {kind = "add"}
      tt.return()
    }
    """
    source = np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    given_in = ArrayDescriptor(array=source, shape=(3, 6), strides=(6, 1), padding="nan")
    out = np.zeros((5, 6), np.float32)
    found = run(text, given_in, out, 5, 6, grid=(2, 2)).arrays[1]
    assert found is not None
    np.testing.assert_array_equal(found[:3], 2 * source[:3])
    assert np.isnan(found[3:]).all()


def test_rows_of_a_descriptor_are_gathered_and_scattered() -> None:
    text = """
    kernel @"rows"(%in: desc<1x4xi32>, %out: desc<1x4xi32>) {
      %which = arith.constant() {value = [2, 0, 9, 1]} : tensor<4xi32>
      %column = arith.constant() {value = 1} : i32
      %rows = tt.descriptor_gather(%in, %which, %column) : tensor<4x4xi32>
      %to = arith.constant() {value = [0, 1, 2, 7]} : tensor<4xi32>
      tt.descriptor_scatter(%out, %to, %column, %rows)
      tt.return()
    }
    """
    source = np.arange(12, dtype=np.int32).reshape(3, 4) + 1
    out = np.full((3, 4), -1, np.int32)
    arguments = [
        ArrayDescriptor(array=each, shape=(3, 4), strides=(4, 1)) for each in (source, out)
    ]
    found = run(text, *arguments).arrays[1]
    assert found is not None
    wanted = [[-1, 10, 11, 12], [-1, 2, 3, 4], [-1, 0, 0, 0]]
    assert found.tolist() == wanted
