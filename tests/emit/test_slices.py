"""Accesses by counting become slices: random ones, against the evaluator."""

import hypothesis.strategies as st
import numpy as np
import pytest

pytest.importorskip("jax")

from emitted import agrees
from hypothesis import given, settings
from kernel_builder import F32_POINTER, Kernel

from translators.access.classify import AccessClass


def numbers(count):
    return np.random.default_rng(count).standard_normal(count).astype(np.float32)


def position(kernel, weights, counters):
    """A sum of weights times program ids and lanes, as a tensor of two dimensions."""
    total = kernel.number(weights[-1])
    for weight, counter in zip(weights, counters, strict=False):
        total = kernel.add(kernel.mul(counter, weight), total)
    return total


@st.composite
def copies(draw):
    """A kernel that copies a tile a program from random places to places of its own."""
    grid = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    rows, columns = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 8]))
    extents = (*grid, rows, columns)
    kernel = Kernel(x=F32_POINTER, out=F32_POINTER)
    counters = (
        kernel.pid(0),
        kernel.pid(1),
        kernel.expand(kernel.arange(rows), 1),
        kernel.expand(kernel.arange(columns), 0),
    )
    if draw(st.booleans()):  # as blocks are laid out: each weight a multiple of what is inside
        weights, inner = [], 1
        for extent in reversed(extents):
            inner *= draw(st.integers(1, 3))
            weights.insert(0, inner * draw(st.sampled_from([1, 1, -1])))
            inner *= extent
    else:
        weights = [draw(st.integers(-6, 40)) for _ in extents]
    least = sum(
        min(0, weight * (extent - 1)) for weight, extent in zip(weights, extents, strict=True)
    )
    most = sum(
        max(0, weight * (extent - 1)) for weight, extent in zip(weights, extents, strict=True)
    )
    start = draw(st.integers(0, 5)) - least
    size = start + most + 1 + draw(st.integers(0, 5))
    masked = draw(st.booleans())
    limit = draw(st.integers(0, size)) if masked else size
    offset = position(kernel, (*weights, start), counters)
    dense = [int(np.prod(extents[axis + 1 :])) for axis in range(4)]
    mask = kernel.less(offset, limit) if masked else None
    tile = (rows, columns)
    found = kernel.load(
        kernel.point(kernel["x"], kernel.to(offset, tile)), mask and kernel.to(mask, tile)
    )
    target = kernel.to(position(kernel, (*dense, 0), counters), tile)
    kernel.store(kernel.point(kernel["out"], target), found)
    arrays = {"x": numbers(size), "out": numbers(int(np.prod(extents)) + 3)}
    return kernel.done(), arrays, grid


@settings(max_examples=60, deadline=None)
@given(copies())
def test_a_copy_moves_the_elements_that_it_moves_program_by_program(case):
    module, arrays, grid = case
    agrees(module, arrays, grid)


@st.composite
def matrices(draw):
    """A kernel that copies blocks of a matrix, transposed or not, under masks at its edges."""
    rows, columns = draw(st.integers(2, 20)), draw(st.integers(2, 20))
    high, wide = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 4, 8]))
    grid = (-(-rows // high), -(-columns // wide))
    transposed = draw(st.booleans())
    kernel = Kernel(x=F32_POINTER, out=F32_POINTER)
    row = kernel.add(kernel.mul(kernel.pid(0), high), kernel.arange(high))
    column = kernel.add(kernel.mul(kernel.pid(1), wide), kernel.arange(wide))
    row, column = kernel.expand(row, 1), kernel.expand(column, 0)
    tile = (high, wide)
    inside = kernel.binary(
        "arith.andi",
        kernel.to(kernel.less(row, rows), tile),
        kernel.to(kernel.less(column, columns), tile),
    )
    source = kernel.to(kernel.add(kernel.mul(row, columns), column), tile)
    found = kernel.load(kernel.point(kernel["x"], source), inside)
    goal = kernel.add(kernel.mul(column, rows), row) if transposed else source
    kernel.store(kernel.point(kernel["out"], kernel.to(goal, tile)), found, inside)
    shape = (columns, rows) if transposed else (rows, columns)
    arrays = {
        "x": numbers(rows * columns).reshape(rows, columns),
        "out": numbers(rows * columns + 1)[1:].reshape(shape).copy(),
    }
    return kernel.done(), arrays, grid


@settings(max_examples=60, deadline=None)
@given(matrices())
def test_blocks_of_a_matrix_are_slices_and_never_gathered(case):
    module, arrays, grid = case
    analysis, function = agrees(module, arrays, grid)
    assert {each.kind for each in analysis.accesses} <= {AccessClass.BLOCK, AccessClass.SLICE}
    assert "take(" not in function.source
    assert ".at[" not in function.source


def test_blocks_that_only_divide_an_array_leave_no_trace():
    kernel = Kernel(x=F32_POINTER, y=F32_POINTER, out=F32_POINTER)
    place = kernel.add(kernel.mul(kernel.pid(0), 16), kernel.arange(16))
    mask = kernel.less(place, 100)
    one, other = (kernel.load(kernel.point(kernel[name], place), mask) for name in "xy")
    total = kernel.builder.value("arith.addf", one, other)
    kernel.store(kernel.point(kernel["out"], place), total, mask)
    arrays = {"x": numbers(100), "y": numbers(101)[1:].copy(), "out": numbers(102)[2:].copy()}
    _, function = agrees(kernel.done(), arrays, (7,))
    assert function.parameters == ("x", "y")
    assert not any(word in function.source for word in ("reshape", "pad", "where"))
