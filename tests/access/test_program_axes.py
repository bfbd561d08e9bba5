"""The grid is laid out anew so that positions are sums, and every program keeps its place."""

import hypothesis.strategies as st
import numpy as np
import pytest
from address_oracle import assert_agrees, digits_of
from hypothesis import given, settings
from kernel_builder import F32_POINTER, Kernel, Term, array, launch
from matmul_kernel import matmul, matmul_launch

from reading import indices, kinds
from translators.access import programs
from translators.access.analysis import Analysis, analyze
from translators.access.classify import AccessClass
from translators.access.expression import (
    Derived,
    Digit,
    ProgramId,
    constant,
    derived_in,
    evaluate,
    lane,
    leaves,
    of,
)
from translators.access.launch import Specialization
from translators.access.programs import program_axes
from translators.graph.graph import Module, Value


def laid_out(module: Module, given_: Specialization, data=None) -> Analysis:
    """The analysis in terms of the axes that it finds itself, held against a run."""
    return analyze(module, given_, program_axes(assert_agrees(module, given_, data)))


def named(value: Value, name: str) -> Value:
    value.name = name
    return value


def axes_of(analysis: Analysis) -> list[tuple[str, int]]:
    assert analysis.axes is not None
    return [(each.name, each.extent) for each in analysis.axes.axes]


def tiles_at(k: Kernel, row: Term, column: Term, tile: int, width: int) -> None:
    """Loads a tile of a matrix."""
    rows = k.add(k.mul(row, tile), k.arange(tile))
    columns = k.add(k.mul(column, tile), k.arange(tile))
    offsets = k.add(k.mul(k.expand(rows, 1), width), k.expand(columns, 0))
    k.load(k.point(k["x"], offsets))


def test_a_grid_whose_ids_are_used_as_they_are_keeps_them() -> None:
    k = Kernel(x=F32_POINTER)
    row = named(k.pid(0), "row")
    k.load(k.point(k["x"], k.add(k.mul(row, 24), k.add(k.mul(k.pid(2), 8), k.arange(8)))))
    module = k.done()
    analysis = laid_out(module, launch(module, 5, 1, 3, x=array("x", 5, 24)))
    assert axes_of(analysis) == [("row", 5), ("pid2", 3)]
    assert analysis.axes.plain
    assert indices(analysis.accesses[0]) == ["row", "8*pid2 + lane0"]
    assert analysis.axes.table[4, 2].tolist() == [4, 0, 2]


def test_one_program_has_no_axes() -> None:
    k = Kernel(x=F32_POINTER)
    k.load(k.point(k["x"], k.add(k.pid(), k.arange(8))))
    module = k.done()
    analysis = laid_out(module, launch(module, 1, x=array("x", 8)))
    assert axes_of(analysis) == []
    assert analysis.axes.table.tolist() == [0, 0, 0]
    assert indices(analysis.accesses[0]) == ["lane0"]


def test_quotient_and_remainder_become_the_axes() -> None:
    k = Kernel(x=F32_POINTER)
    pid = k.pid()
    tiles_at(k, named(k.div(pid, 3), "pid_m"), named(k.rem(pid, 3), "pid_n"), 4, 12)
    module = k.done()
    analysis = laid_out(module, launch(module, 15, x=array("x", 20, 12)))
    assert axes_of(analysis) == [("pid_m", 5), ("pid_n", 3)]
    assert not analysis.axes.plain
    assert indices(analysis.accesses[0]) == ["4*pid_m + lane0", "4*pid_n + lane1"]
    assert kinds(analysis) == [AccessClass.BLOCK]


def test_a_quotient_alone_is_completed_by_the_programs_that_share_it() -> None:
    k = Kernel(x=F32_POINTER, y=F32_POINTER)
    pid = k.pid()
    k.load(k.point(k["x"], k.add(k.mul(k.div(pid, 4), 8), k.arange(8))))
    k.store(k.point(k["y"], k.add(k.mul(pid, 8), k.arange(8))))
    module = k.done()
    analysis = laid_out(module, launch(module, 12, x=array("x", 24), y=array("y", 96)))
    assert [extent for _, extent in axes_of(analysis)] == [3, 4]
    assert indices(analysis.accesses[0]) == ["8*program0 + lane0"]
    assert indices(analysis.accesses[1]) == ["32*program0 + 8*program1 + lane0"]


def test_grouped_heads_share_their_keys() -> None:
    """`b = pid // H; h = pid % H; kv = h // groups`, and the queries use `h` whole."""
    k = Kernel(q=F32_POINTER, kv=F32_POINTER)
    pid, heads, groups = k.pid(), 6, 3
    batch, head = named(k.div(pid, heads), "b"), named(k.rem(pid, heads), "h")
    shared = named(k.div(head, groups), "kv_head")
    lanes = k.arange(8)
    k.load(k.point(k["q"], k.add(k.mul(k.add(k.mul(batch, heads), head), 8), lanes)))
    k.load(k.point(k["kv"], k.add(k.mul(k.add(k.mul(batch, 2), shared), 8), lanes)))
    module = k.done()
    given_ = launch(module, 12, q=array("q", 2, 6, 8), kv=array("kv", 2, 2, 8))
    analysis = laid_out(module, given_)
    assert axes_of(analysis)[:2] == [("b", 2), ("kv_head", 2)]
    assert [extent for _, extent in axes_of(analysis)] == [2, 2, 3]
    assert kinds(analysis) == [AccessClass.BLOCK] * 2
    assert not any(derived_in(each.pointer.offset) for each in analysis.accesses)


@pytest.mark.parametrize(("m", "n"), [(32, 16), (40, 24), (24, 56), (8, 64), (64, 8)])
def test_the_grouped_order_of_tiles_is_undone(m: int, n: int) -> None:
    """Also where the last group has fewer rows of tiles than the others."""
    module = matmul(m, n, 16, wrap=True)
    analysis = laid_out(module, matmul_launch(module, m, n, 16, False))
    assert sorted(extent for _, extent in axes_of(analysis)) == sorted(
        each // 8 for each in (m, n) if each > 8
    )
    assert kinds(analysis) == [AccessClass.BLOCK] * 3
    assert not any(derived_in(each.pointer.offset) for each in analysis.accesses)


def test_programs_that_count_backwards_are_followed() -> None:
    k = Kernel(x=F32_POINTER)
    back = k.sub(7, k.pid())
    k.load(k.point(k["x"], k.add(k.mul(k.div(back, 2), 10), k.rem(back, 2))))
    module = k.done()
    analysis = laid_out(module, launch(module, 8, x=array("x", 4, 2, strides=(10, 1))))
    assert [extent for _, extent in axes_of(analysis)] == [4, 2]
    assert not derived_in(analysis.accesses[0].pointer.offset)


def test_an_id_of_several_axes_of_the_grid_is_taken_apart() -> None:
    k = Kernel(x=F32_POINTER)
    flat = k.add(k.mul(k.pid(1), 6), k.pid(0))
    tiles_at(k, k.div(flat, 4), k.rem(flat, 4), 2, 8)
    module = k.done()
    analysis = laid_out(module, launch(module, 6, 2, x=array("x", 6, 8)))
    assert [extent for _, extent in axes_of(analysis)] == [3, 4]
    assert kinds(analysis) == [AccessClass.BLOCK]


def test_axes_that_have_nothing_to_do_with_each_other_stay_apart() -> None:
    k = Kernel(x=F32_POINTER)
    head = k.pid(1)
    row = k.add(k.mul(k.div(head, 2), 12), k.mul(k.rem(head, 2), 4))
    k.load(k.point(k["x"], k.add(k.mul(k.pid(0), 48), k.add(row, k.arange(4)))))
    module = k.done()
    analysis = laid_out(module, launch(module, 3, 8, x=array("x", 3, 4, 12)))
    assert [len(block.ids) for block in analysis.axes.blocks] == [1, 1]
    assert [extent for _, extent in axes_of(analysis)] == [3, 4, 2]


def test_what_fits_no_layout_is_left_as_it_is_derived() -> None:
    """`pid` and `pid % 5` of 7 programs: no digits make sums of both."""
    k = Kernel(x=F32_POINTER, y=F32_POINTER)
    pid = k.pid()
    k.load(k.point(k["x"], k.rem(pid, 5)))
    k.store(k.point(k["y"], pid))
    module = k.done()
    analysis = laid_out(module, launch(module, 7, x=array("x", 5), y=array("y", 7)))
    assert axes_of(analysis) == [("pid0", 7)]
    assert indices(analysis.accesses[0]) == ["(pid0 % 5)"]
    assert isinstance(analysis.accesses[0].position.dimensions[0].index.terms[0][0], Derived)


def test_an_id_that_is_no_sum_of_the_axes_stays_an_id() -> None:
    """The mask compares the id itself; the positions are what the axes are made for."""
    module_of = matmul(40, 24, 16, wrap=False)
    analysis = laid_out(module_of, matmul_launch(module_of, 40, 24, 16, False))
    pid = ProgramId(axis=0, extent=15)
    assert analysis.axes.rewrite(of(pid)) == of(pid)
    mixed = analysis.axes.rewrite(of(pid).times(8) + lane(0, 8))
    assert any(isinstance(each, ProgramId) for each in leaves(mixed))


def test_a_condition_that_every_program_decides_alike_is_decided() -> None:
    """No interval alone says that `pid % 4 * 3 + pid // 4 < 12`."""
    k = Kernel(x=F32_POINTER)
    pid = k.pid()
    twisted = k.add(k.mul(k.rem(pid, 4), 3), k.div(pid, 4))
    k.load(k.point(k["x"], k.add(k.mul(pid, 4), k.arange(4))), k.less(twisted, 12))
    module = k.done()
    given_ = launch(module, 12, x=array("x", 48))
    analysis = laid_out(module, given_)
    assert analysis.accesses[0].mask is not None and analysis.accesses[0].mask.always


def test_a_loop_over_what_programs_derive_is_counted() -> None:
    """A causal loop: as many blocks of keys as the block of queries has before it."""
    k = Kernel(x=F32_POINTER)
    pid = k.pid()
    block, head = named(k.rem(pid, 4), "block"), named(k.div(pid, 4), "head")

    def body(counter, carried):
        k.load(k.point(k["x"], k.add(k.mul(head, 64), k.add(counter, k.arange(8)))))
        return ()

    k.loop(0, k.mul(k.add(block, 1), 16), 8, (), body)
    module = k.done()
    analysis = laid_out(module, launch(module, 8, x=array("x", 2, 64)))
    assert axes_of(analysis) == [("head", 2), ("block", 4)]
    assert str(analysis.loops[0].trips) == "2*block + 2"


def test_too_many_programs_are_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 10)
    k = Kernel(x=F32_POINTER)
    pid = named(k.pid(1), "pid")
    tiles_at(k, k.div(pid, 3), k.rem(pid, 3), 4, 12)
    module = k.done()
    analysis = laid_out(module, launch(module, 2, 15, x=array("x", 20, 12)))
    assert axes_of(analysis) == [("pid0", 2), ("pid", 15)]
    assert [block.programs is None for block in analysis.axes.blocks] == [False, True]
    assert indices(analysis.accesses[0]) == ["4*(pid // 3) + lane0", "4*(pid % 3) + lane1"]
    assert digits_of(analysis.axes)[1, 7, 0] == (1, 7)


def test_a_name_that_is_taken_is_made_another() -> None:
    k = Kernel(x=F32_POINTER)
    pid = k.pid()
    row, column = named(k.div(pid, 3), "i"), named(k.rem(pid, 3), "i")
    tiles_at(k, row, column, 4, 12)
    module = k.done()
    analysis = laid_out(module, launch(module, 15, x=array("x", 20, 12)))
    assert axes_of(analysis) == [("i", 5), ("i_2", 3)]


@st.composite
def ids(draw: st.DrawFn, k: Kernel) -> list[Value]:
    """Integers made of program ids alone."""
    pool = [k.pid(0), k.pid(1)]
    for _ in range(draw(st.integers(1, 5))):
        left, right = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        number = draw(st.integers(1, 6))
        match draw(st.sampled_from(["div", "rem", "min", "sum", "back"])):
            case "div":
                pool.append(k.div(left, number))
            case "rem":
                pool.append(k.rem(left, number))
            case "min":
                pool.append(k.minimum(left, number))
            case "sum":
                pool.append(k.add(k.mul(left, number), right))
            case _:
                pool.append(k.sub(number * 8, left))
    return pool


@given(data=st.data(), grid=st.tuples(st.integers(1, 12), st.integers(1, 6)))
@settings(max_examples=80)
def test_any_layout_is_a_bijection_and_rewriting_keeps_every_number(
    data: st.DataObject, grid: tuple[int, int]
) -> None:
    k = Kernel(x=F32_POINTER)
    pool = data.draw(ids(k))
    for _ in range(2):
        k.load(k.point(k["x"], k.add(data.draw(st.sampled_from(pool)), k.arange(2))))
    module = k.done()
    analysis = assert_agrees(module, launch(module, *grid, x=array("x", 512)))
    axes = program_axes(analysis)
    places = digits_of(axes)
    assert np.prod(axes.extents, dtype=int) == grid[0] * grid[1] == len(places)
    for state in analysis.states.values():
        expression = getattr(state, "expression", constant(0))
        new = axes.rewrite(expression)
        assert axes.rewrite(new) == new
        for program, digits in places.items():

            def leaf(each, program=program, digits=digits):
                match each:
                    case ProgramId(axis=axis):
                        return program[axis]
                    case Digit(axis=axis):
                        return digits[axis]
                return each.interval.low

            found = evaluate(new, leaf)
            assert found == evaluate(expression, leaf)
            assert new.interval.low <= found <= new.interval.high
