"""Programs that take tiles in turns compute what a grid of the tiles computes."""

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from launch_case import Case, differ, evaluated, launched
from launch_case import translated as in_jax
from pallas_case import assert_same
from test_step_sizes import FILE, floats

from translators.graph.errors import GraphError
from translators.translation import translate


def rows(kernel, count, programs, columns=128):
    arrays = {"x_ptr": floats(count, columns), "y_ptr": floats(columns, count).T.copy()}
    if kernel == "rows_upon_rows":
        del arrays["x_ptr"]
    return Case(
        name=f"{kernel} {count}/{programs}",
        file=FILE,
        kernel=kernel,
        arrays=arrays,
        scalars={"COUNT": count},
        constants={"COLUMNS": columns},
        grid=(programs,),
    )


def tiles(m, n, k, programs):
    return Case(
        name=f"tiles {m}x{n}x{k}/{programs}",
        file=FILE,
        kernel="tiles_in_turns",
        arrays={"a_ptr": floats(m, k), "b_ptr": floats(k, n), "c_ptr": floats(m, n)},
        scalars={"M": m, "N": n, "K": k},
        constants={"PROGRAMS": programs, "BM": 16, "BN": 16, "BK": 16},
        grid=(programs,),
    )


SPREAD = [
    tiles(80, 96, 32, 8),
    tiles(70, 50, 32, 3),
    tiles(32, 16, 16, 8),  # more programs than tiles
    rows("rows_in_turns", 50, 8),
    rows("rows_in_turns", 5, 7),
    rows("rows_in_wide_turns", 50, 8),
]
KEPT = [
    rows("rows_by_whom", 50, 8),
    rows("sums_in_turns", 50, 8),
]
# Refused as a kernel of blocks, for what it reads and not for the order of its tiles.
ONE_AFTER_ANOTHER = rows("rows_upon_rows", 50, 8)


@pytest.mark.parametrize("case", SPREAD, ids=str)
def test_tiles_become_a_grid(case):
    translation = translate(*launched(case), "pallas")
    assert "fori_loop" not in translation.function.source
    assert_same(case, translation, evaluated(case))


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_what_a_program_knows_of_itself_is_kept(case):
    """Tiles are not alike where it matters which program has them, or what it did before."""
    assert_same(case, translate(*launched(case), "pallas"), evaluated(case))


def test_tiles_that_need_those_before_are_no_grid():
    with pytest.raises(GraphError, match="begins in front of the array"):
        translate(*launched(ONE_AFTER_ANOTHER), "pallas")


@pytest.mark.parametrize("case", [*SPREAD, *KEPT, ONE_AFTER_ANOTHER], ids=str)
def test_they_are_the_same_in_jax(case):
    for found, expected in zip(in_jax(case), evaluated(case), strict=True):
        assert not differ(found, expected, 0.0, 0.0)
