"""What facts say of an expression holds for all values of its variables, and says enough."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from translators.access.expression import Affine, Interval, Iteration, Lane, ProgramId, of
from translators.access.ranges import interval_under

PROGRAM, ITERATION = ProgramId(axis=0, extent=4), Iteration(loop=0, extent=5, fixed=True)
LANE = Lane(axis=0, extent=8)
VARIABLES = (PROGRAM, ITERATION, LANE)


def affine(factors: tuple[int, ...], offset: int) -> Affine:
    found = Affine(offset=offset)
    for variable, factor in zip(VARIABLES, factors, strict=True):
        found = found + of(variable).times(factor)
    return found


def test_a_counter_by_multiples_ends_before_an_end_that_is_one() -> None:
    counter = of(PROGRAM).times(8) + of(ITERATION).times(8)
    assert interval_under(counter + of(LANE), [counter.times(-1).plus(39)]) == Interval(0, 39)
    assert interval_under(counter + of(LANE), [counter.times(-1).plus(38)]) == Interval(0, 39)


SMALL = st.tuples(*[st.integers(-6, 6)] * 3)


@given(SMALL, st.integers(-20, 20), st.lists(st.tuples(SMALL, st.integers(-20, 20)), max_size=3))
def test_no_value_lies_outside(
    factors: tuple[int, ...], offset: int, facts: list[tuple[tuple[int, ...], int]]
) -> None:
    found = interval_under(affine(factors, offset), [affine(*each) for each in facts])
    values = []
    for place in product(*(range(each.interval.high + 1) for each in VARIABLES)):
        if all(sum(map(int.__mul__, each, place)) + by >= 0 for each, by in facts):
            values.append(sum(map(int.__mul__, factors, place)) + offset)
    assert found is not None or not values
    if values:
        assert found is not None
        assert found.low <= min(values)
        assert found.high >= max(values)
