"""Integers of 64 bits in two words are what the evaluator has in one."""

import numpy as np
import pytest
from held_kernels import kernel_of
from kernel_builder import Kernel, array, launch
from special_values import assert_same, some

from translators.access.analysis import analyze
from translators.emit.pallas.elements.splitting import split
from translators.graph.errors import GraphError
from translators.graph.evaluator import evaluate
from translators.graph.numerics import dtype_of
from translators.graph.types import (
    BF16,
    F16,
    F32,
    I1,
    I8,
    I32,
    I64,
    PointerType,
    TensorType,
    element_of,
)
from translators.graph.verifier import verify


def both_ways(module, arrays, grid=(1,)):
    """What a kernel and the kernel in words leave in its arrays, by name."""
    verify(module)
    names = [each.name for each in module.kernel.arguments]
    buffers = {name: array(name, *arrays[name].shape) for name in names}
    expected = evaluate(module, [arrays[name] for name in names], grid).arrays
    found = split(module, analyze(module, launch(module, *grid, **buffers)), {})
    given = [
        low(arrays[name]) if index in found.uppers else arrays[name]
        for index, name in enumerate(names)
    ]
    given += [high(arrays[names[index]]) for index in found.uppers]
    left = evaluate(found.module, given, grid).arrays
    joined = {
        name: join(left[index], left[found.uppers[index]]) if index in found.uppers else left[index]
        for index, name in enumerate(names)
    }
    return joined, dict(zip(names, expected, strict=True))


def low(values):
    return values.astype(np.int32)


def high(values):
    return (values >> 32).astype(np.int32)


def join(lower, upper):
    return (upper.astype(np.int64) << 32) | lower.astype(np.uint32).astype(np.int64)


def check(name, operands, result, inputs, **attributes):
    module = kernel_of(name, operands, result, len(inputs[0]), **attributes)
    arrays = {f"x{index}": each for index, each in enumerate(inputs)}
    arrays["out"] = np.zeros(len(inputs[0]), dtype_of(result))
    found, expected = both_ways(module, arrays)
    assert_same(found["out"], expected["out"], name)


def wide_values(count, seed=0):
    """Numbers that take all bits, or few, or those at the edges of words."""
    rng = np.random.default_rng(seed)
    edges = [1 << 31, 1 << 32, (1 << 32) - 1, 1 << 33, 1 << 62, 1 << 24, (1 << 53) + 1]
    near = [sign * each + step for each in edges for sign in (1, -1) for step in (-1, 0, 1)]
    lengths = rng.integers(0, 64, count)
    rest = some(I64, count, seed) >> lengths
    return rng.permutation(np.concatenate([some(I64, 11), near, rest]))[:count].astype(np.int64)


def pairs(count=1 << 13):
    left, right = np.meshgrid(wide_values(128), wide_values(128, seed=1))
    return [each.reshape(-1)[:count] for each in (left, right)]


@pytest.mark.parametrize(
    "name",
    [
        *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
        *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
    ],
)
def test_two_integers(name):
    check(name, (I64, I64), I64, pairs())


@pytest.mark.parametrize(
    "predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
)
def test_comparisons(predicate):
    check("arith.cmpi", (I64, I64), I1, pairs(), predicate=predicate)


def test_magnitude():
    check("math.absi", (I64,), I64, [wide_values(1 << 10)])


def test_choice():
    left, right = pairs()
    check("arith.select", (I1, I64, I64), I64, [left > 0, left, right])


@pytest.mark.parametrize("count", [0, 1, 5, 31, 32, 33, 63, 64])
@pytest.mark.parametrize("name", ["arith.shli", "arith.shrsi", "arith.shrui"])
def test_shifts_by_numbers_that_are_known(name, count):
    size = 256
    k = Kernel(x=PointerType(I64), out=PointerType(I64))
    lanes = k.arange(size)
    value = k.load(k.point(k["x"], lanes))
    shifted = k.builder.value(name, value, k.number(count, TensorType((size,), I64)))
    k.store(k.point(k["out"], lanes), shifted)
    arrays = {"x": wide_values(size), "out": np.zeros(size, np.int64)}
    found, expected = both_ways(k.done(), arrays)
    assert_same(found["out"], expected["out"])


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        *((name, each, I64) for name in ("arith.extsi", "arith.extui") for each in (I1, I8, I32)),
        *(("arith.trunci", I64, each) for each in (I1, I8, I32)),
    ],
    ids=str,
)
def test_casts(name, source, target):
    values = wide_values(1 << 10) if source == I64 else some(source, 1 << 10)
    check(name, (source,), target, [values])


@pytest.mark.parametrize("target", [F32, F16, BF16], ids=str)
@pytest.mark.parametrize("name", ["arith.sitofp", "arith.uitofp"])
def test_integers_as_floats(name, target):
    check(name, (I64,), target, [np.concatenate([wide_values(1 << 13), near_ties()])])


def near_ties():
    """Halfway between two numbers of `bf16` or of `f32`, and beside that."""
    rng = np.random.default_rng(3)
    found = []
    for bits in (8, 24):
        ties = (rng.integers(1 << (bits - 1), 1 << bits, 4096) * 2 + 1) << rng.integers(
            0, 63 - bits - 1, 4096
        )
        found += [sign * ties + step for sign in (1, -1) for step in (-1, 0, 1)]
    return np.concatenate(found).astype(np.int64)


@pytest.mark.parametrize("source", [F32, F16], ids=str)
@pytest.mark.parametrize("name", ["arith.fptosi", "arith.fptoui"])
def test_floats_as_integers(name, source):
    values = some(source, 1 << 13)
    if source == F32:
        edges = np.ldexp(np.float32(1), np.arange(20, 66))
        near = [np.nextafter(edges, np.float32(side)) for side in (0, np.inf)]
        values = np.concatenate([values, edges, *near, -edges, *(-each for each in near)])
    check(name, (source,), I64, [values.astype(dtype_of(source))])


def test_a_sum_that_a_loop_carries():
    size = 64
    k = Kernel(x=PointerType(I64), out=PointerType(I64))
    lanes = k.arange(size)

    def body(step, carried):
        value = k.load(k.point(k["x"], k.add(lanes, k.mul(step, size))))
        return [k.add(carried[0], value)]

    zero = k.number(0, TensorType((size,), I64))
    k.store(k.point(k["out"], lanes), *k.loop(0, 4, 1, [zero], body))
    arrays = {"x": wide_values(4 * size), "out": np.zeros(size, np.int64)}
    found, expected = both_ways(k.done(), arrays)
    assert_same(found["out"], expected["out"])


def test_the_greatest_with_its_place():
    """A combination of two values, of which one is of 64 bits."""
    size = 64
    k = Kernel(x=PointerType(F32), out=PointerType(I64))
    lanes = k.arange(size)
    values = k.load(k.point(k["x"], lanes))

    def combine(sides):
        left, place, right, other = sides
        more = k.builder.value("arith.cmpf", left, right, predicate="ogt")
        return [
            k.builder.value("arith.select", more, *each) for each in ((left, right), (place, other))
        ]

    _, place = k.fold("tt.reduce", [values, k.widen(lanes, I64)], 0, combine)
    k.store(k["out"], place)
    rng = np.random.default_rng(0)
    arrays = {"x": rng.standard_normal(size).astype(np.float32), "out": np.zeros(1, np.int64)}
    found, expected = both_ways(k.done(), arrays)
    assert_same(found["out"], expected["out"])


def test_a_while_loop_on_integers_of_64_bits():
    k = Kernel(x=PointerType(I64), out=PointerType(I64))

    def test(carried):
        (value,) = carried
        return k.less(value, k.number(1 << 40, I64)), [value]

    def body(carried):
        return [k.add(carried[0], carried[0])]

    k.store(k["out"], *k.repeat([k.load(k["x"])], test, body))
    arrays = {"x": np.array([3], np.int64), "out": np.zeros(1, np.int64)}
    found, expected = both_ways(k.done(), arrays)
    assert_same(found["out"], expected["out"])


def test_indices_that_are_loaded_take_one_word():
    """Of numbers that only say where, the upper words are not read."""
    size = 32
    k = Kernel(x=PointerType(F32), at=PointerType(I64), out=PointerType(F32))
    lanes = k.arange(size)
    at = k.load(k.point(k["at"], lanes))
    k.store(k.point(k["out"], lanes), k.load(k.point(k["x"], at)))
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.standard_normal(100).astype(np.float32),
        "at": rng.integers(0, 100, size),
        "out": np.zeros(size, np.float32),
    }
    module = k.done()
    found, expected = both_ways(module, arrays)
    assert_same(found["out"], expected["out"])
    buffers = {name: array(name, *each.shape) for name, each in arrays.items()}
    words = split(module, analyze(module, launch(module, 1, **buffers)), {})
    assert sum(op.name == "tt.load" for op in words.module.kernel.body.ops) == 2


@pytest.mark.parametrize("name", ["arith.divsi", "arith.remsi", "math.ctpop"])
def test_what_has_no_form_in_words_is_refused(name):
    count = 1 if name == "math.ctpop" else 2
    module = kernel_of(name, (I64,) * count, I64, 16)
    buffers = {each.name: array(each.name, 16) for each in module.kernel.arguments}
    with pytest.raises(GraphError, match=f"`{name}` of integers of 64 bits"):
        split(module, analyze(module, launch(module, 1, **buffers)), {})


def test_kernels_without_integers_of_64_bits_stay_as_they_are():
    module = kernel_of("arith.addi", (I32, I32), I32, 16)
    buffers = {each.name: array(each.name, 16) for each in module.kernel.arguments}
    assert element_of(module.kernel.arguments[0].type).pointee == I32
    assert split(module, analyze(module, launch(module, 1, **buffers)), {}) is None
