"""Kernels of types that TPUs lack give what the evaluator gives, bit for bit, and compile."""

import numpy as np
import pytest
from emitted_kernels import both_ways, compiler, emitted, problems, run
from held_kernels import kernel_of
from kernel_builder import Kernel
from special_values import assert_same, every, some

from translators.graph.errors import GraphError
from translators.graph.numerics import dtype_of
from translators.graph.types import (
    BF16,
    F8E4M3B11FNUZ,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    PointerType,
    TensorType,
)

COUNT = 4096
# An op, what it takes, what it gives, attributes.
OPS = [
    *((name, (F16, F16), F16, {}) for name in ("arith.addf", "arith.mulf", "arith.divf")),
    *((name, (F16, F16), F16, {}) for name in ("arith.maximumf", "arith.maxnumf")),
    ("arith.subf", (F8E5M2, F8E5M2), F8E5M2, {}),
    ("arith.addf", (F8E4M3FN, F8E4M3FN), F8E4M3FN, {}),
    ("arith.addf", (F8E4M3B11FNUZ, F8E4M3B11FNUZ), F8E4M3B11FNUZ, {}),
    ("arith.mulf", (BF16, BF16), BF16, {}),
    ("math.copysign", (BF16, BF16), BF16, {}),
    ("arith.cmpf", (F16, F16), I1, {"predicate": "olt"}),
    ("arith.cmpf", (BF16, BF16), I1, {"predicate": "une"}),
    ("math.isinf", (BF16,), I1, {}),
    *(("tt.fp_to_fp", (F32,), each, {"rounding": "rtne"}) for each in (F16, BF16, F8E4M3FN)),
    *(("tt.fp_to_fp", (F32,), each, {"rounding": "rtz"}) for each in (F16, BF16, F8E5M2)),
    *(("tt.fp_to_fp", (each,), F32, {"rounding": "rtne"}) for each in (F16, BF16, F8E5M2)),
    ("tt.fp_to_fp", (F8E4M3FN,), F16, {"rounding": "rtne"}),
    ("tt.fp_to_fp", (F16,), F8E4M3FN, {"rounding": "rtne"}),
    *((name, (I8, I8), I8, {}) for name in ("arith.addi", "arith.muli", "arith.maxsi")),
    *((name, (I8, I8), I8, {}) for name in ("arith.minui", "arith.divsi", "arith.remui")),
    *((name, (I16, I16), I16, {}) for name in ("arith.subi", "arith.minsi", "arith.xori")),
    ("arith.cmpi", (I8, I8), I1, {"predicate": "ult"}),
    ("arith.extui", (I8,), I32, {}),
    ("arith.extui", (I1,), I8, {}),
    ("arith.trunci", (I32,), I8, {}),
    ("arith.sitofp", (I8,), F16, {}),
    ("arith.uitofp", (I16,), BF16, {}),
    ("arith.fptosi", (F16,), I8, {}),
    ("tt.bitcast", (I16,), F16, {}),
    ("tt.bitcast", (BF16,), I16, {}),
    ("tt.bitcast", (I8,), F8E4M3FN, {}),
    *((name, (I64, I64), I64, {}) for name in ("arith.addi", "arith.muli", "arith.maxsi")),
    ("arith.cmpi", (I64, I64), I1, {"predicate": "sle"}),
    ("arith.trunci", (I64,), I8, {}),
    ("arith.extsi", (I16,), I64, {}),
    ("arith.sitofp", (I64,), F32, {}),
    ("arith.sitofp", (I64,), BF16, {}),
    ("arith.fptosi", (F32,), I64, {}),
    ("arith.select", (I1, F16, F16), F16, {}),
    ("arith.select", (I1, I64, I64), I64, {}),
    ("arith.andi", (I1, I1), I1, {}),
]


def title(case):
    name, operands, result, attributes = case
    told = "-".join(map(str, (*operands, result, *attributes.values())))
    return f"{name}-{told}"


def arrays_for(case):
    name, operands, result, _ = case
    arrays = {}
    for index, element in enumerate(operands):
        width = getattr(element, "width", 64)
        numbers = every(element) if width <= 16 and element != I1 else some_of(element)
        numbers = np.random.default_rng(index).permutation(np.resize(numbers, COUNT))
        if name in ("arith.divsi", "arith.remui") and index:
            numbers = np.where(numbers == 0, 1, numbers).astype(numbers.dtype)
        arrays[f"x{index}"] = numbers
    if name == "tt.bitcast" and operands == (F16,):
        arrays["x0"] = np.nan_to_num(arrays["x0"])
    return {**arrays, "out": np.zeros(COUNT, dtype_of(result))}


def some_of(element):
    if element == I1:
        return np.arange(COUNT) % 3 == 0
    if element == I64:
        return some(I64, COUNT) >> np.random.default_rng(1).integers(0, 64, COUNT)
    return some(element, COUNT)


@pytest.mark.parametrize("case", OPS, ids=title)
def test_interpreted_bit_for_bit(case):
    name, operands, result, attributes = case
    arrays = arrays_for(case)
    module = kernel_of(name, operands, result, COUNT, **attributes)
    found, expected, function = both_ways(module, arrays)
    keep = np.ones(COUNT, np.bool_)
    for element, array in zip((*operands, result), (*arrays.values(),), strict=True):
        # Subnormals of these are flushed, by TPUs as by XLA on CPUs.
        if element in (F32, BF16):
            sizes = np.abs((expected["out"] if array is arrays["out"] else array).astype(float))
            keep &= (sizes >= 2.0**F32.smallest_exponent) | (sizes == 0) | np.isnan(sizes)
    assert_same(found["out"][keep], expected["out"][keep], function.source)


def test_they_compile():
    with compiler() as process:
        for case in OPS:
            name, operands, result, attributes = case
            arrays = arrays_for(case)
            module = kernel_of(name, operands, result, COUNT, **attributes)
            function = emitted(module, arrays)
            assert not problems(process, function, arrays), title(case)


def test_a_loop_that_carries_truth_values_and_narrow_numbers():
    """`i1` and `i8` vectors cannot be carried, nor numbers of `bf16` computed with."""
    size = 1024
    k = Kernel(x=PointerType(I8), y=PointerType(BF16), out=PointerType(I8), sums=PointerType(BF16))
    lanes = k.arange(size)

    def body(step, carried):
        seen, total, last = carried
        value = k.load(k.point(k["x"], k.add(lanes, k.mul(step, size))))
        zero = k.number(0, TensorType((size,), I8))
        number = k.load(k.point(k["y"], step))
        return [
            k.binary("arith.ori", seen, k.less(value, zero)),
            k.add(total, value),
            k.builder.value("arith.addf", last, number),
        ]

    start = [
        k.number(0, TensorType((size,), I1)),
        k.number(100, TensorType((size,), I8)),
        k.builder.constant(0.5, BF16),
    ]
    seen, total, last = k.loop(0, 5, 1, start, body)
    chosen = k.builder.value("arith.select", seen, total, k.number(0, total.type))
    k.store(k.point(k["out"], lanes), chosen)
    k.store(k["sums"], last)
    arrays = {
        "x": np.resize(every(I8), 5 * size),
        "y": (np.arange(5) * 1.1).astype(dtype_of(BF16)),
        "out": np.zeros(size, np.int8),
        "sums": np.zeros(1, dtype_of(BF16)),
    }
    check(k.done(), arrays)


def test_products_of_f16():
    k = Kernel(x=PointerType(F16), y=PointerType(F16), out=PointerType(F16))
    rows, columns = k.expand(k.arange(64), 1), k.expand(k.arange(64), 0)
    places = k.add(k.mul(rows, 64), columns)
    left, right = (k.load(k.point(k[name], places)) for name in ("x", "y"))
    zero = k.builder.constant(0.0, TensorType((64, 64), F16))
    product = k.builder.value("tt.dot", left, right, zero)
    k.store(k.point(k["out"], places), k.builder.value("arith.addf", product, left))
    rng = np.random.default_rng(0)
    arrays = {
        # Integers, of which every product and sum is exact.
        "x": rng.integers(-8, 8, (64, 64)).astype(np.float16),
        "y": rng.integers(-8, 8, (64, 64)).astype(np.float16),
        "out": np.zeros((64, 64), np.float16),
    }
    # Numbers with all their bits, whose products have two parts and more.
    arrays["x"][1], arrays["y"][:, 1] = np.float16(1.0009766), 0
    arrays["y"][3, 1] = np.float16(2049 / 1024)
    arrays["x"][0, 0], arrays["x"][2, 2] = np.inf, np.nan
    check(k.done(), arrays)


def test_conditions_of_all_lanes():
    """Reductions of truth values, by `and`, `or` and `xor`."""
    size = 256
    k = Kernel(x=PointerType(F32), out=PointerType(I1))
    lanes = k.arange(size)
    row = k.pid()
    values = k.load(k.point(k["x"], k.add(k.mul(row, size), lanes)))
    zero = k.builder.constant(0.0, values.type)
    above = k.builder.value("arith.cmpf", values, zero, predicate="ogt")
    for place, name in enumerate(("arith.andi", "arith.ori", "arith.xori")):
        (found,) = k.fold("tt.reduce", [above], 0, lambda each, name=name: [k.binary(name, *each)])
        k.store(k.point(k["out"], k.add(k.mul(row, 3), place)), found)
    values = np.random.default_rng(0).standard_normal((8, size)).astype(np.float32)
    values[:2] = np.abs(values[:2]) + 1
    values[2:4] = -np.abs(values[2:4])
    check(k.done(), {"x": values, "out": np.zeros((8, 3), np.bool_)}, (8,))


def check(module, arrays, grid=(1,)):
    found, expected, function = both_ways(module, arrays, grid)
    for name, array in expected.items():
        assert_same(found[name], array, function.source)
    with compiler() as process:
        assert not problems(process, function, arrays), function.source


@pytest.mark.parametrize("wide", [True, False], ids=["int64", "int32 in its place"])
def test_integers_of_64_bits_with_and_without_types_of_64_bits(wide):
    module = kernel_of("arith.addi", (I64, I64), I64, COUNT)
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-(2**29), 2**29, COUNT) for name in ("x0", "x1")}
    arrays["out"] = np.zeros(COUNT, np.int64)
    found = run(emitted(module, arrays), arrays, wide=wide)["out"]
    assert found.dtype == (np.int64 if wide else np.int32)
    assert np.array_equal(found, arrays["x0"] + arrays["x1"])


@pytest.mark.parametrize("element", [F64, F8E4M3FNUZ], ids=str)
def test_types_that_no_tpu_has_are_refused(element):
    module = kernel_of("arith.addf", (element, element), element, COUNT)
    arrays = {name: np.zeros(COUNT, dtype_of(element)) for name in ("x0", "x1", "out")}
    with pytest.raises(GraphError, match=f"has numbers of `{element}`, which TPUs have not"):
        emitted(module, arrays)
