"""How much a step does, and in which order steps are done, changes no result."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from emitted_kernels import compiler, problems
from hypothesis import given
from hypothesis import strategies as st
from launch_case import Case, evaluated, launched
from pallas_case import assert_same

from translators.access.expression import ProgramId
from translators.emit.pallas.traffic import Fetched, least_traffic
from translators.translation import translate

FILE = Path(__file__).with_name("step_kernels.py")


def floats(*shape):
    """Numbers whose products and sums are exact in f32."""
    rng = np.random.default_rng(shape)
    return (rng.integers(-8, 9, shape) / 4).astype(np.float32)


def case(kernel, arrays, scalars, constants, grid):
    return Case(
        name=kernel,
        file=FILE,
        kernel=kernel,
        arrays=arrays,
        scalars=scalars,
        constants=constants,
        grid=grid,
    )


def own_rows(programs, rows, columns, block):
    count = programs * rows
    arrays = {
        **{"x_ptr": floats(count, columns), "y_ptr": floats(count, columns)},
        "total_ptr": floats(programs, columns),
    }
    constants = {"ROWS": rows, "BLOCK": block}
    return case("rows_of_their_own", arrays, {"COLUMNS": columns}, constants, (programs,))


def compiles(case, function):
    arrays = {name: case.arrays[name] for name in function.parameters}
    with compiler() as process:
        assert not problems(process, function, arrays)


@pytest.mark.parametrize(
    "each", [own_rows(32, 8, 128, 128), own_rows(24, 16, 100, 128)], ids=["whole", "masked"]
)
def test_programs_with_rows_of_their_own_share_a_step(each):
    translation = translate(*launched(each), "pallas")
    assert f"grid=({each.grid[0]},)" not in translation.function.source
    assert_same(each, translation, evaluated(each))
    compiles(each, translation.function)


def test_programs_that_do_not_fit_into_a_step_are_in_several():
    each = own_rows(32, 16, 4096, 4096)
    translation = translate(*launched(each), "pallas")
    assert "grid=(4,)" in translation.function.source
    assert_same(each, translation, evaluated(each), 1e-6)


def test_programs_that_go_through_different_numbers_of_rows_are_steps_of_their_own():
    arrays = {"x_ptr": floats(60, 128), "y_ptr": floats(60, 128)}
    scalars = {"COUNT": 60, "COLUMNS": 128}
    each = case("rows_as_they_are", arrays, scalars, {"ROWS": 8, "BLOCK": 128}, (8,))
    translation = translate(*launched(each), "pallas")
    assert_same(each, translation, evaluated(each))


@pytest.mark.parametrize(("programs", "columns"), [(2, 1), (3, 4), (16, 1)])
def test_blocks_of_few_columns(programs, columns):
    arrays = {"x_ptr": floats(programs * 50, columns), "y_ptr": floats(programs, columns)}
    constants = {"ROWS": 64, "COLUMNS": columns}
    each = case("of_one_column", arrays, {"COUNT": 50}, constants, (programs,))
    assert_same(each, translate(*launched(each), "pallas"), evaluated(each))


@pytest.mark.parametrize("columns", [60, 63, 64, 65, 100, 128, 200])
def test_rows_of_another_length_than_the_array_has(columns):
    """A number in memory counts in rows of the kernel's; whole ones only where both are alike."""
    at = np.array([0, 1, 5, 17, 29, 3], np.int32)
    arrays = {"x_ptr": floats(40, columns), "at_ptr": at, "y_ptr": floats(6, 64)}
    each = case("looked_up", arrays, {}, {"WIDTH": 64}, (6,))
    assert_same(each, translate(*launched(each), "pallas"), evaluated(each))


@pytest.mark.parametrize("columns", [64, 128])
def test_rows_put_where_an_array_says(columns):
    at = np.array([4, -1, 0, 9, 2, -1], np.int32)
    arrays = {"x_ptr": floats(6, 64), "at_ptr": at, "y_ptr": floats(20, columns)}
    each = case("put_where", arrays, {}, {"WIDTH": 64}, (6,))
    assert_same(each, translate(*launched(each), "pallas"), evaluated(each))


def test_what_repeats_is_not_fetched_again():
    """Blocks of rows go inside: those of one group follow one another, and share its matrix."""
    arrays = {
        **{"x_ptr": floats(128, 64), "w_ptr": floats(3, 64, 2048)},
        "group_ptr": np.array([0, 0, 2, 2], np.int32),
        "out_ptr": floats(128, 2048),
    }
    constants = {"BM": 32, "BN": 128, "BK": 64}
    each = case("by_group", arrays, {"N": 2048, "K": 64}, constants, (4, 16))
    translation = translate(*launched(each), "pallas")
    assert "lambda columns, block" in translation.function.source
    assert_same(each, translation, evaluated(each))


def test_blocks_become_longer_where_loops_begin_at_the_diagonal():
    arrays = {name: floats(1024, 16) for name in ("q_ptr", "k_ptr", "out_ptr")}
    constants = {"WIDTH": 16, "BM": 64, "BN": 128}
    each = case("from_the_diagonal", arrays, {"LENGTH": 1024}, constants, (8,))
    kernel, launch = launched(each)
    translation = translate(kernel, launch, "pallas", enlarge=True)
    notes = [note.text for note in translation.function.notes]
    assert "blocks of another length than the launch's: BM=512, BN=512" in notes
    assert_same(each, translation, evaluated(each), 1e-5)


VARIABLES = [ProgramId(axis=axis, extent=2) for axis in range(3)]


def fetched_bytes(order, counts, blocks):
    """What a grid fetches, step by step: a block is fetched where its place has changed."""
    total, last = 0, [None] * len(blocks)
    for step in product(*(range(counts[each]) for each in order)):
        at = dict(zip(order, step, strict=True))
        for index, block in enumerate(blocks):
            place = tuple(at[each] for each in VARIABLES if each in block.moved)
            total += block.bytes if place != last[index] else 0
            last[index] = place
    return total


BLOCKS = st.builds(
    lambda size, moved: Fetched(bytes=size, moved=moved, led=frozenset()),
    st.integers(1, 100),
    st.frozensets(st.sampled_from(VARIABLES)),
)


@given(
    st.lists(BLOCKS, min_size=1, max_size=4),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    st.permutations(VARIABLES),
)
def test_no_order_fetches_less(blocks, lengths, start):
    counts = dict(zip(VARIABLES, lengths, strict=True))
    found = least_traffic(start, counts, blocks, lambda order: True)
    best = fetched_bytes(found, counts, blocks)
    others = [list(each) for each in product(VARIABLES, repeat=3) if len(set(each)) == 3]
    assert best == min(fetched_bytes(each, counts, blocks) for each in others)


@given(st.lists(BLOCKS, min_size=1, max_size=4), st.permutations(VARIABLES))
def test_only_possible_orders_are_chosen(blocks, start):
    counts = dict.fromkeys(VARIABLES, 3)
    last = start[-1]
    found = least_traffic(start, counts, blocks, lambda order: order[-1] == last)
    assert found[-1] == last and set(found) == set(VARIABLES)
