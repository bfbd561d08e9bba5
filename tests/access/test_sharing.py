"""Programs that touch what others write are found, by listing what each of them touches."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from kernel_builder import F32_POINTER, I32_POINTER, Kernel, array, launch

from translators.access.analysis import analyze
from translators.access.sharing import conflict_between_programs
from translators.graph.evaluator import evaluate
from translators.graph.types import F32, TensorType
from translators.graph.verifier import verify


def tile(kernel, step, offset, length=8, limit=None):
    place = kernel.add(kernel.add(kernel.mul(kernel.pid(0), step), kernel.arange(length)), offset)
    mask = None if limit is None else kernel.less(place, limit)
    return kernel.point(kernel["x"], place), mask


def read_and_write(loaded, stored, programs=4, size=64):
    """A kernel that reads one tile and writes another, and its analysis."""
    kernel = Kernel(x=F32_POINTER)
    pointer, mask = tile(kernel, *loaded)
    value = kernel.load(pointer, mask)
    twice = kernel.builder.value("arith.addf", value, value)
    target, mask = tile(kernel, *stored)
    kernel.store(target, twice, mask)
    module = kernel.done()
    verify(module)
    return module, analyze(module, launch(module, programs, x=array("x", size)))


def test_a_tile_of_its_own_is_no_conflict():
    _, analysis = read_and_write((8, 0), (8, 0))
    assert conflict_between_programs(analysis) is None


def test_the_tile_of_the_neighbour_is_one():
    _, analysis = read_and_write((8, 0), (8, 8))
    found = conflict_between_programs(analysis)
    assert found is not None
    assert found.known
    assert (found.write.name, found.other.name) == ("tt.store", "tt.load")


def test_lanes_that_the_mask_leaves_out_touch_nothing():
    _, open_ended = read_and_write((6, 0), (6, 0), size=40)
    assert conflict_between_programs(open_ended) is not None
    kernel = Kernel(x=F32_POINTER)
    lanes = kernel.arange(8)
    pointer = kernel.point(kernel["x"], kernel.add(kernel.mul(kernel.pid(0), 6), lanes))
    mask = kernel.less(lanes, 6)
    kernel.store(pointer, kernel.load(pointer, mask), mask)
    module = kernel.done()
    masked = analyze(module, launch(module, 4, x=array("x", 40)))
    assert conflict_between_programs(masked) is None


def rows_in_blocks(rows, each, programs, columns=8):
    """Each program doubles `each` rows in place, the last ones fewer: as norms do backwards."""
    kernel = Kernel(x=F32_POINTER)
    first = kernel.mul(kernel.pid(0), each)
    end = kernel.minimum(kernel.add(first, each), rows)

    def body(row, carried):
        place = kernel.add(kernel.mul(row, columns), kernel.arange(columns))
        value = kernel.load(kernel.point(kernel["x"], place))
        twice = kernel.builder.value("arith.addf", value, value)
        kernel.store(kernel.point(kernel["x"], place), twice)
        return ()

    kernel.loop(first, end, 1, (), body)
    module = kernel.done()
    verify(module)
    return analyze(module, launch(module, programs, x=array("x", rows, columns)))


@pytest.mark.parametrize(("rows", "each", "programs"), [(21, 4, 6), (21, 4, 8), (5, 1, 8)])
def test_iterations_that_a_loop_does_not_have_touch_nothing(rows, each, programs):
    assert conflict_between_programs(rows_in_blocks(rows, each, programs)) is None


def test_rows_that_two_programs_take_are_a_conflict():
    kernel = Kernel(x=F32_POINTER)
    first = kernel.mul(kernel.pid(0), 3)

    def body(row, carried):
        pointer = kernel.point(kernel["x"], kernel.add(kernel.mul(row, 8), kernel.arange(8)))
        kernel.store(pointer, kernel.load(pointer))
        return ()

    kernel.loop(first, kernel.minimum(kernel.add(first, 4), 20), 1, (), body)
    module = kernel.done()
    analysis = analyze(module, launch(module, 5, x=array("x", 20, 8)))
    found = conflict_between_programs(analysis)
    assert found is not None
    assert found.known


def test_additions_do_not_count_against_one_another():
    kernel = Kernel(x=F32_POINTER)
    values = kernel.builder.constant(1.0, TensorType((8,), F32))
    pointer = kernel.point(kernel["x"], kernel.arange(8))
    for _ in range(2):
        kernel.builder.op(
            "tt.atomic_rmw", pointer, values, atomic_rmw_op="fadd", sem="relaxed", scope="gpu"
        )
    module = kernel.done()
    analysis = analyze(module, launch(module, 4, x=array("x", 8)))
    assert conflict_between_programs(analysis) is None


def test_an_index_from_data_is_not_ruled_out():
    kernel = Kernel(x=F32_POINTER, data=F32_POINTER)
    pointer, _ = tile(kernel, 8, 0)
    kernel.store(pointer, kernel.load(pointer))
    number = kernel.builder.value(
        "arith.fptosi", kernel.load(kernel.point(kernel["data"], 0)), results=(kernel.pid(0).type,)
    )
    kernel.store(kernel.point(kernel["x"], number), kernel.load(kernel.point(kernel["data"], 1)))
    module = kernel.done()
    analysis = analyze(module, launch(module, 4, x=array("x", 64), data=array("data", 4)))
    found = conflict_between_programs(analysis)
    assert found is not None
    assert not found.known


def test_what_is_known_comes_before_what_data_decide():
    kernel = Kernel(x=F32_POINTER, index=I32_POINTER)
    number = kernel.load(kernel.point(kernel["index"], kernel.pid(0)))
    lane = kernel.load(kernel.point(kernel["x"], number))
    kernel.store(kernel.point(kernel["x"], kernel.pid(0)), lane)
    kernel.store(kernel.point(kernel["x"], kernel.add(kernel.pid(0), 1)), lane)
    module = kernel.done()
    analysis = analyze(module, launch(module, 4, x=array("x", 8), index=array("index", 4)))
    found = conflict_between_programs(analysis)
    assert found is not None
    assert found.known


STEPS = st.sampled_from([0, 4, 6, 8, 12])


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 9), STEPS, st.integers(0, 9), st.integers(1, 4))
def test_without_a_conflict_any_order_of_programs_gives_the_same(
    step, offset, other_step, other_offset, programs
):
    module, analysis = read_and_write(
        (step, offset), (other_step, other_offset), programs=programs, size=80
    )
    memory = np.random.default_rng(step).standard_normal(80).astype(np.float32)
    grid = (programs, 1, 1)
    forwards = evaluate(module, [memory], grid).arrays[0]
    order = [(each, 0, 0) for each in reversed(range(programs))]
    backwards = evaluate(module, [memory], grid, order=order).arrays[0]
    writes_once = other_step >= 8 or programs == 1
    if conflict_between_programs(analysis) is None and writes_once:
        np.testing.assert_array_equal(forwards, backwards)
