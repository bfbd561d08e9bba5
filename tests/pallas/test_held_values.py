"""Values held in wider types are what the evaluator has in the kernel's own."""

import numpy as np
import pytest
from held_kernels import both_ways, kernel_of
from kernel_builder import Kernel
from special_values import assert_same, every, some

from translators.graph.numerics import dtype_of
from translators.graph.types import (
    BF16,
    F8E4M3B11FNUZ,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    I1,
    I8,
    I16,
    I32,
    PointerType,
)

FLOATS = (F16, BF16, F8E4M3FN, F8E5M2)
INTEGERS = (I8, I16)


def check(name, operands, result, inputs, **attributes):
    count = len(inputs[0])
    out = np.zeros(count, dtype_of(result))
    module = kernel_of(name, operands, result, count, **attributes)
    found, expected = both_ways(module, [*inputs, out])
    assert_same(found[-1], expected[-1], name)


def pairs(element, count=1 << 14):
    sides = some(element, 128), some(element, 128, seed=1)
    grid = np.meshgrid(*sides)
    return [each.reshape(-1)[:count] for each in grid]


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize(
    "name",
    [
        *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf"),
        *("arith.minimumf", "arith.maxnumf", "arith.minnumf", "arith.remf", "math.copysign"),
    ],
)
def test_two_floats(name, element):
    check(name, (element, element), element, pairs(element))


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize(
    "name",
    [
        *("arith.negf", "math.absf", "math.floor", "math.ceil", "math.trunc", "math.round"),
        *("math.roundeven", "math.sqrt"),
    ],
)
def test_one_float(name, element):
    check(name, (element,), element, [every(element)])


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["math.exp", "math.log2", "math.sin", "math.tanh", "math.erf"])
def test_functions_are_rounded_from_f32(name, element):
    """Twice rounded, the nearest number or, rarely, the one beside it."""
    values = every(element)
    count = len(values)
    module = kernel_of(name, (element,), element, count)
    (_, found), (_, expected) = both_ways(module, [values, np.zeros(count, dtype_of(element))])
    apart = ordinals(found) - ordinals(expected)
    assert np.all(np.abs(apart) <= 1)
    assert np.count_nonzero(apart) <= count / 1000


def ordinals(values):
    """Integers in the order of the numbers, neighbours one apart; NaN is 1 << 20."""
    bits = values.view(f"i{values.itemsize}").astype(np.int64)
    least = -(1 << (8 * values.itemsize - 1))
    found = np.where(bits < 0, least - bits, bits)
    return np.where(np.isnan(values.astype(np.float64)), 1 << 20, found)


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("predicate", ["oeq", "une", "olt", "uge", "ogt", "ule", "one", "uno"])
def test_comparisons_of_floats(predicate, element):
    check("arith.cmpf", (element, element), I1, pairs(element), predicate=predicate)


@pytest.mark.parametrize("element", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", ["math.isnan", "math.isinf", "math.isfinite"])
def test_tests_of_floats(name, element):
    check(name, (element,), I1, [every(element)])


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("propagate", ["none", "all"])
def test_clamp(propagate, element):
    left, right = pairs(element)
    inputs = [left, right, np.roll(right, 77)]
    check("tt.clampf", (element,) * 3, element, inputs, propagateNan=propagate)


@pytest.mark.parametrize("target", (*FLOATS, F8E4M3B11FNUZ, F32), ids=str)
@pytest.mark.parametrize("source", (*FLOATS, F8E4M3B11FNUZ, F32), ids=str)
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_casts_of_floats(rounding, source, target):
    values = some(F32, 1 << 16) if source == F32 else every(source)
    check("tt.fp_to_fp", (source,), target, [values], rounding=rounding)


@pytest.mark.parametrize("target", (*FLOATS, F32), ids=str)
@pytest.mark.parametrize("source", (I1, I8, I16, I32), ids=str)
@pytest.mark.parametrize("name", ["arith.sitofp", "arith.uitofp"])
def test_integers_as_floats(name, source, target):
    values = every(source) if source != I32 else integers_near_ties()
    check(name, (source,), target, [values])


def integers_near_ties():
    rng = np.random.default_rng(3)
    ties = (rng.integers(128, 256, 1 << 13) * 2 + 1) << rng.integers(0, 24, 1 << 13)
    near = np.concatenate([ties + each for each in (-1, 0, 1)])
    return np.concatenate([some(I32, 1 << 13), near, -near]).astype(np.int32)


@pytest.mark.parametrize("target", (I8, I16, I32), ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["arith.fptosi", "arith.fptoui"])
def test_floats_as_integers(name, source, target):
    check(name, (source,), target, [every(source)])


@pytest.mark.parametrize("element", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "name",
    [
        *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
        *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "arith.divsi"),
        *("arith.remsi", "arith.divui", "arith.remui", "arith.floordivsi", "arith.ceildivsi"),
        "arith.ceildivui",
    ],
)
def test_two_integers(name, element):
    check(name, (element, element), element, pairs(element))


@pytest.mark.parametrize("element", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["arith.shli", "arith.shrsi", "arith.shrui"])
def test_shifts(name, element):
    left, _ = pairs(element)
    counts = (np.arange(len(left)) % (element.width + 1)).astype(left.dtype)
    check(name, (element, element), element, [left, counts])


@pytest.mark.parametrize("element", INTEGERS, ids=str)
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "ugt", "uge"])
def test_comparisons_of_integers(predicate, element):
    check("arith.cmpi", (element, element), I1, pairs(element), predicate=predicate)


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_sums_are_rounded(element):
    """What is left of a sum when it is rounded shows in what is computed from it."""
    size = 16
    k = Kernel(x=PointerType(element), out=PointerType(element))
    values = k.load(k.point(k["x"], k.arange(size)))
    (total,) = k.fold("tt.reduce", [values], 0, lambda each: [k.binary("arith.addf", *each)])
    most = 2.0**element.precision
    k.store(k["out"], k.binary("arith.subf", total, k.builder.constant(most, element)))
    numbers = np.full(size, most / size)
    numbers[0] += 1
    arrays = [numbers.astype(dtype_of(element)), np.zeros(1, dtype_of(element))]
    found, expected = both_ways(k.done(), arrays)
    assert_same(found[1], expected[1])


@pytest.mark.parametrize("element", (*FLOATS, *INTEGERS, I1), ids=str)
def test_values_that_a_while_loop_and_a_choice_carry(element):
    size = 8
    k = Kernel(x=PointerType(element), out=PointerType(element))
    lanes = k.arange(size)
    value = k.load(k.point(k["x"], lanes))

    def test(carried):
        step, one, other = carried
        return k.less(step, 3), [step, one, other]

    def body(carried):
        step, one, other = carried
        first = k.builder.value("arith.cmpi", step, k.number(1), predicate="eq")
        found = k.choose(first, lambda: [one], lambda: [other])
        return [k.add(step, 1), *found, one]

    _, one, other = k.repeat(
        [k.number(0), value, k.load(k.point(k["x"], k.add(lanes, size)))], test, body
    )
    k.store(k.point(k["out"], lanes), one)
    k.store(k.point(k["out"], k.add(lanes, size)), other)
    arrays = [np.resize(every(element), 2 * size), np.zeros(2 * size, dtype_of(element))]
    found, expected = both_ways(k.done(), arrays)
    assert_same(found[1], expected[1])


@pytest.mark.parametrize("element", (*FLOATS, *INTEGERS, I1), ids=str)
@pytest.mark.parametrize("name", ["tt.reduce", "tt.scan"])
def test_combinations_of_values_with_their_places(name, element):
    size = 64
    k = Kernel(x=PointerType(element), out=PointerType(element), at=PointerType(I32))
    lanes = k.arange(size)
    values = k.load(k.point(k["x"], lanes))

    def last_other(sides):
        left, place, right, other = sides
        later = k.less(place, other)
        pairs = ((right, left), (other, place))
        return [k.builder.value("arith.select", later, *each) for each in pairs]

    found, places = k.fold(name, [values, lanes], 0, last_other)
    scan = name == "tt.scan"
    k.store(k.point(k["out"], lanes) if scan else k["out"], found)
    k.store(k.point(k["at"], lanes) if scan else k["at"], places)
    arrays = [some(element, size), np.zeros(size, dtype_of(element)), np.zeros(size, np.int32)]
    found, expected = both_ways(k.done(), arrays)
    assert_same(found[1], expected[1])
    assert_same(found[2], expected[2])


@pytest.mark.parametrize("element", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["math.absi", "math.ctpop"])
def test_one_integer(name, element):
    check(name, (element,), element, [every(element)])


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        *((name, I8, each) for name in ("arith.extsi", "arith.extui") for each in (I16, I32)),
        *((name, I1, each) for name in ("arith.extsi", "arith.extui") for each in (I8, I16, I32)),
        *(("arith.trunci", I16, each) for each in (I1, I8)),
        *(("arith.trunci", I32, each) for each in (I1, I8, I16)),
        ("arith.trunci", I8, I1),
    ],
    ids=str,
)
def test_casts_of_integers(name, source, target):
    check(name, (source,), target, [every(source) if source != I32 else some(I32, 1 << 12)])


@pytest.mark.parametrize(
    ("source", "target"),
    [(F16, I16), (I16, F16), (BF16, I16), (I16, BF16), (F8E5M2, I8), (I8, F8E4M3FN), (I16, I16)],
    ids=str,
)
def test_bits_of_one_type_as_another(source, target):
    values = every(source)
    # Which NaN it is does not outlive a conversion.
    if source == F16:
        values = values[~np.isnan(values)]
    check("tt.bitcast", (source,), target, [values])
