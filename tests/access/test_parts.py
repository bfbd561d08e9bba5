"""A comparison with a least or greatest number is the comparisons with each of them."""

from itertools import product

import pytest
from address_oracle import assert_agrees
from kernel_builder import F32_POINTER, Kernel, array, launch

from reading import indices, kinds, limits
from translators.access.classify import AccessClass
from translators.access.division import maximum, minimum
from translators.access.expression import (
    Affine,
    Interval,
    Leaf,
    ProgramId,
    constant,
    evaluate,
    of,
)
from translators.access.parts import bounds_of, parts_of

ONE, OTHER = (of(ProgramId(axis=axis, extent=9)) for axis in range(2))


def least(left: Affine, right: Affine) -> Affine:
    found = minimum(left, right)
    assert found is not None
    return found


def greatest(left: Affine, right: Affine) -> Affine:
    found = maximum(left, right)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        (least(ONE, constant(5)) - OTHER, 2),
        (least(ONE.times(2), OTHER.plus(1)).times(3).plus(-7), 2),
        (OTHER - greatest(ONE, constant(4)), 2),
        (least(least(ONE, OTHER), constant(6)).plus(-2), 3),
        (least(ONE, constant(5)) - greatest(OTHER, constant(3)), 4),
        (greatest(ONE, constant(4)) - OTHER, 1),
        (OTHER - least(ONE, constant(4)), 1),
        (ONE - OTHER, 1),
    ],
)
def test_the_parts_hold_together_just_where_the_whole_does(expression: Affine, count: int) -> None:
    parts = parts_of(expression)
    assert len(parts) == count
    for values in product(range(9), repeat=2):

        def number(leaf: Leaf, values: tuple[int, ...] = values) -> int:
            assert isinstance(leaf, ProgramId)
            return values[leaf.axis]

        together = all(evaluate(part, number) >= 0 for part in parts)
        assert together == (evaluate(expression, number) >= 0)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (least(ONE.times(4).plus(4), constant(21)) - ONE.times(4), Interval(-11, 4)),
        (ONE.times(4) - least(ONE.times(4).plus(4), constant(21)), Interval(-4, 11)),
        (greatest(ONE, OTHER) - ONE, Interval(0, 8)),
        (ONE - OTHER, Interval(-8, 8)),
    ],
)
def test_bounds_see_what_operands_and_the_rest_have_in_common(
    expression: Affine, expected: Interval
) -> None:
    assert bounds_of(expression) == expected


def test_more_parts_than_are_worth_their_time_stay_together() -> None:
    expression = constant(0)
    for number in range(4):
        expression += least(ONE.times(number + 2), OTHER.plus(number))
    assert parts_of(expression) == (expression,)


def test_chunks_of_rows_that_are_no_multiple_of_the_chunk_are_blocks_of_the_row() -> None:
    """`lane < min(CHUNK, length - chunk * CHUNK)`: the rest of the row, not the next row."""
    rows, length, chunk = 3, 40, 16
    k = Kernel(x=F32_POINTER, out=F32_POINTER)
    start = k.mul(k.pid(1), chunk)
    limit = k.minimum(k.sub(length, start), chunk)
    lanes = k.arange(chunk)
    inside = k.less(lanes, limit)
    place = k.add(k.add(k.mul(k.pid(0), length), start), lanes)
    k.store(k.point(k["out"], place), k.load(k.point(k["x"], place), inside), inside)
    module = k.done()
    analysis = assert_agrees(
        module, launch(module, rows, 3, x=array("x", rows, length), out=array("out", rows, length))
    )
    assert kinds(analysis) == [AccessClass.BLOCK] * 2
    for access in analysis.accesses:
        assert indices(access) == ["pid0", "16*pid1 + lane0"]
        assert limits(access) == [("index 1 < 40", True)]
