"""Loads, stores and atomics: masks, addresses, types in memory, and order."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graph_oracles import run
from hypothesis import given, settings
from hypothesis import strategies as st

from translators.graph.errors import EvaluationError

LOAD = """
kernel @"load"(%x: ptr<TYPE>, %index: ptr<i64>, %keep: ptr<i1>, %out: ptr<TYPE>) {
  %lanes = tt.make_range() {start = 0, end = 4} : tensor<4xi32>
  %is = tt.splat(%index) : tensor<4xptr<i64>>
  %ip = tt.addptr(%is, %lanes) : tensor<4xptr<i64>>
  %i = tt.load(%ip) : tensor<4xi64>
  %ks = tt.splat(%keep) : tensor<4xptr<i1>>
  %kp = tt.addptr(%ks, %lanes) : tensor<4xptr<i1>>
  %k = tt.load(%kp) : tensor<4xi1>
  %xs = tt.splat(%x) : tensor<4xptr<TYPE>>
  %xp = tt.addptr(%xs, %i) : tensor<4xptr<TYPE>>
  %v = tt.load(%xp, %k) : tensor<4xTYPE>
  %os = tt.splat(%out) : tensor<4xptr<TYPE>>
  %op = tt.addptr(%os, %lanes) : tensor<4xptr<TYPE>>
  tt.store(%op, %v)
  tt.return()
}
"""

ATOMIC = """
kernel @"atomic"(%x: ptr<TYPE>, %index: ptr<i32>, %value: ptr<TYPE>, %old: ptr<TYPE>, %n: i32) {
  %lanes = tt.make_range() {start = 0, end = 8} : tensor<8xi32>
  %ns = tt.splat(%n) : tensor<8xi32>
  %mask = arith.cmpi(%lanes, %ns) {predicate = "slt"} : tensor<8xi1>
  %is = tt.splat(%index) : tensor<8xptr<i32>>
  %ip = tt.addptr(%is, %lanes) : tensor<8xptr<i32>>
  %i = tt.load(%ip) : tensor<8xi32>
  %vs = tt.splat(%value) : tensor<8xptr<TYPE>>
  %vp = tt.addptr(%vs, %lanes) : tensor<8xptr<TYPE>>
  %v = tt.load(%vp) : tensor<8xTYPE>
  %xs = tt.splat(%x) : tensor<8xptr<TYPE>>
  %xp = tt.addptr(%xs, %i) : tensor<8xptr<TYPE>>
  %o = tt.atomic_rmw(%xp, %v, %mask) {atomic_rmw_op = "KIND"} : tensor<8xTYPE>
  %os = tt.splat(%old) : tensor<8xptr<TYPE>>
  %op = tt.addptr(%os, %lanes) : tensor<8xptr<TYPE>>
  tt.store(%op, %o, %mask)
  tt.return()
}
"""

DTYPES = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


@pytest.mark.parametrize("type_", DTYPES)
def test_masked_elements_are_not_touched_and_read_as_zero(type_: str) -> None:
    x = np.arange(1, 6).astype(DTYPES[type_])
    index = np.array([4, -1000, 0, 1 << 40], np.int64)
    keep = np.array([True, False, True, False])
    found = run(LOAD.replace("TYPE", type_), x, index, keep, np.ones(4, x.dtype)).arrays[3]
    assert found is not None and found.astype(float).tolist() == [5, 0, 1, 0]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (-1, "touches element -1 of a buffer of 5 elements"),
        (5, "touches element 5 of a buffer of 5 elements"),
        (1 << 40, "touches element 1099511627776 of a buffer"),
        (1 << 59, "where no buffer is"),
    ],
)
def test_an_access_outside_is_an_error(index: int, message: str) -> None:
    x = np.zeros(5, np.float32)
    indices = np.array([0, index, 0, 0], np.int64)
    keep = np.ones(4, np.bool_)
    with pytest.raises(EvaluationError, match=message):
        run(LOAD.replace("TYPE", "f32"), x, indices, keep, np.zeros(4, np.float32))


def test_a_pointer_read_as_another_type_reads_the_same_bytes() -> None:
    text = """
    kernel @"bits"(%x: ptr<f32>, %out: ptr<i32>, %shift: i32) {
      %as = tt.bitcast(%x) : ptr<i8>
      %p = tt.addptr(%as, %shift) : ptr<i8>
      %back = tt.bitcast(%p) : ptr<i32>
      %n = tt.ptr_to_int(%back) : i64
      %same = tt.int_to_ptr(%n) : ptr<i32>
      %v = tt.load(%same) : i32
      tt.store(%out, %v)
      tt.return()
    }
    """
    arguments = (np.array([1.0, -2.0], np.float32), np.zeros(1, np.int32))
    found = run(text, *arguments, 4).arrays[1]
    assert found is not None and found.view(np.float32)[0] == -2.0
    with pytest.raises(EvaluationError, match="not aligned to the 4 bytes"):
        run(text, *arguments, 2)


UPDATES = {
    "add": lambda old, value: old + value,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "max": max,
    "min": min,
    "umax": lambda old, value: max(old, value, key=lambda each: each % (1 << 32)),
    "umin": lambda old, value: min(old, value, key=lambda each: each % (1 << 32)),
    "exch": lambda old, value: value,
}


@pytest.mark.parametrize("kind", UPDATES)
@settings(max_examples=20)
@given(data=st.data())
def test_atomics_act_one_after_another(kind: str, data: st.DataObject) -> None:
    """Several elements may meet in one place: each sees what the one before it left."""
    words = st.integers(-(1 << 31), (1 << 31) - 1)
    index = data.draw(st.lists(st.integers(0, 3), min_size=8, max_size=8))
    value = data.draw(st.lists(words, min_size=8, max_size=8))
    start = data.draw(st.lists(words, min_size=4, max_size=4))
    count = data.draw(st.integers(0, 8))
    arrays = [np.array(each, np.int32) for each in (start, index, value, [0] * 8)]
    text = ATOMIC.replace("TYPE", "i32").replace("KIND", kind)
    memory, _, _, old, _ = run(text, *arrays, count).arrays
    assert memory is not None and old is not None
    wanted = list(start)
    for lane in range(8):
        if lane >= count:
            assert old[lane] == 0
            continue
        assert old[lane] == wanted[index[lane]]
        total = UPDATES[kind](wanted[index[lane]], value[lane])
        wanted[index[lane]] = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    assert memory.tolist() == wanted


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
def test_float_atomic_add_rounds_each_time(type_: str) -> None:
    dtype = DTYPES[type_]
    value = np.array([1, 2.0**-12, 2.0**-12, 3, 5, 7, 2.0**-30, 1], dtype)
    index = np.array([0, 0, 0, 1, 1, 1, 0, 2], np.int32)
    arrays = (np.zeros(3, dtype), index, value, np.zeros(8, dtype), 8)
    text = ATOMIC.replace("TYPE", type_).replace("KIND", "fadd")
    found = run(text, *arrays).arrays[0]
    wanted = np.zeros(3, dtype)
    for place, each in zip(index, value, strict=True):
        wanted[place] = wanted[place] + each
    assert found is not None and found.tolist() == wanted.tolist()


def test_compare_and_swap_compares_bits() -> None:
    text = """
    kernel @"cas"(%x: ptr<f32>, %old: ptr<f32>) {
      %lanes = tt.make_range() {start = 0, end = 4} : tensor<4xi32>
      %zero = arith.constant() {value = 0} : tensor<4xi32>
      %xs = tt.splat(%x) : tensor<4xptr<f32>>
      %xp = tt.addptr(%xs, %INDEX) : tensor<4xptr<f32>>
      %expected = arith.constant() {value = [0.0, nan, 3.0, 8.0]} : tensor<4xf32>
      %new = arith.constant() {value = [5.0, 6.0, 8.0, 9.0]} : tensor<4xf32>
      %o = tt.atomic_cas(%xp, %expected, %new) : tensor<4xf32>
      %os = tt.splat(%old) : tensor<4xptr<f32>>
      %op = tt.addptr(%os, %lanes) : tensor<4xptr<f32>>
      tt.store(%op, %o)
      tt.return()
    }
    """
    x = np.array([-0.0, np.nan, 3, 4], np.float32)
    found = run(text.replace("INDEX", "lanes"), x, np.zeros(4, np.float32)).arrays[0]
    assert found is not None and found.tolist() == [0.0, 6.0, 8.0, 4.0]
    # All at one place: the third and fourth succeed, one on what the other left.
    x = np.array([3.0], np.float32)
    memory, old = run(text.replace("INDEX", "zero"), x, np.zeros(4, np.float32)).arrays
    assert memory is not None and memory.tolist() == [9.0]
    assert old is not None and old.tolist() == [3.0, 3.0, 3.0, 8.0]


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [7, 7, 7, 7]])
def test_of_two_stores_to_one_place_the_last_stays(values: list[int]) -> None:
    text = """
    kernel @"store"(%x: ptr<i32>, %v: ptr<i32>) {
      %lanes = tt.make_range() {start = 0, end = 4} : tensor<4xi32>
      %vs = tt.splat(%v) : tensor<4xptr<i32>>
      %vp = tt.addptr(%vs, %lanes) : tensor<4xptr<i32>>
      %value = tt.load(%vp) : tensor<4xi32>
      %xs = tt.splat(%x) : tensor<4xptr<i32>>
      tt.store(%xs, %value)
      tt.return()
    }
    """
    arguments: tuple[Any, ...] = (np.zeros(2, np.int32), np.array(values, np.int32))
    found = run(text, *arguments).arrays[0]
    assert found is not None and found.tolist() == [values[-1], 0]


POLL = """
kernel @"poll"(%flag: ptr<i32>, %out: ptr<i1>) {
  %pid = tt.get_program_id() {axis = 0} : i32
  %last = arith.constant() {value = 1} : i32
  %is = arith.cmpi(%pid, %last) {predicate = "eq"} : i1
  tt.atomic_store(%flag, %last, %is) {sem = "release"}
  %now = tt.atomic_load(%flag) {sem = "acquire"} : i32
  %time = arith.constant() {value = 100} : i64
  %came = tt.atomic_poll(%flag, %lastTIMEOUT) {sem = "acquire", scope = "gpu"} : i1
  %p = tt.addptr(%out, %pid) : ptr<i1>
  tt.store(%p, %came)
  tt.return()
}
"""


def test_waiting_sees_what_earlier_programs_wrote_and_nothing_else() -> None:
    arguments = (np.zeros(1, np.int32), np.zeros(2, np.bool_))
    timed = POLL.replace("TIMEOUT", ", %time")
    found = run(timed, *arguments, grid=(2,)).arrays[1]
    assert found is not None and found.tolist() == [False, True]
    patient = POLL.replace("TIMEOUT", "")
    backwards = [(1, 0, 0), (0, 0, 0)]
    found = run(patient, *arguments, grid=(2,), order=backwards).arrays[1]
    assert found is not None and found.tolist() == [True, True]
    with pytest.raises(EvaluationError, match="waits for ever"):
        run(patient, *arguments, grid=(2,))
