"""Combinations of all elements are made one dimension after another."""

import numpy as np
import pytest
from emitted_kernels import both_ways, compiler, problems
from kernel_builder import Kernel
from special_values import assert_same, some

from translators.emit.pallas.totals import by_dimensions
from translators.graph.evaluator import evaluate
from translators.graph.types import I32, PointerType
from translators.graph.verifier import verify

SIZE = 64


def total(name):
    """A kernel that combines all elements of a matrix, laid in a row."""
    k = Kernel(x=PointerType(I32), out=PointerType(I32))
    rows, columns = k.expand(k.arange(SIZE), 1), k.expand(k.arange(SIZE), 0)
    values = k.load(k.point(k["x"], k.add(k.mul(rows, SIZE), columns)))
    row = k.reshape(values, SIZE * SIZE)
    (found,) = k.fold("tt.reduce", [row], 0, lambda sides: [k.binary(name, *sides)])
    k.store(k["out"], found)
    return k.done()


@pytest.mark.parametrize("name", ["arith.addi", "arith.muli", "arith.xori", "arith.maxsi"])
def test_the_same_in_every_order(name):
    module = total(name)
    verify(module)
    made = by_dimensions(module)
    verify(made)
    reductions = [op for op in made.kernel.body.ops if op.name == "tt.reduce"]
    assert [op.integer("axis") for op in reductions] == [1, 0]
    arrays = [some(I32, SIZE * SIZE) | 1, np.zeros(1, np.int32)]
    one, other = (evaluate(each, arrays, (1,)).arrays for each in (module, made))
    assert_same(one[1], other[1])


def test_they_compile():
    module = total("arith.addi")
    arrays = {"x": some(I32, SIZE * SIZE).reshape(SIZE, SIZE), "out": np.zeros(1, np.int32)}
    found, expected, function = both_ways(module, arrays)
    assert_same(found["out"], expected["out"])
    with compiler() as process:
        assert not problems(process, function, arrays)


def test_what_depends_on_the_order_stays():
    """A combination of several values, and one along a dimension of a tensor."""
    k = Kernel(x=PointerType(I32), out=PointerType(I32))
    values = k.reshape(k.load(k.point(k["x"], k.arange(64))), 8, 8)
    (sums,) = k.fold("tt.reduce", [values], 1, lambda sides: [k.add(*sides)])
    row = k.reshape(values, 64)

    def later(sides):
        return [sides[2], sides[3]]

    last, _ = k.fold("tt.reduce", [row, row], 0, later)
    k.store(k.point(k["out"], k.arange(8)), k.add(sums, last))
    module = k.done()
    assert by_dimensions(module) is module
