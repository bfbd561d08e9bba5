"""Values that are one of several, or that ops move about, keep what is known of all of them."""

from typing import Any

import numpy as np
import pytest
from address_oracle import assert_agrees
from kernel_builder import F32_POINTER, I32_POINTER, Kernel, array, launch

from reading import indices, interval, kinds
from translators.access.analysis import Analysis
from translators.access.classify import AccessClass
from translators.access.expression import Interval
from translators.access.states import Pointer, UnknownPointer
from translators.graph.graph import Value
from translators.graph.types import I32


def select(k: Kernel, condition: Value, held: Value, otherwise: Value) -> Value:
    return k.builder.value("arith.select", condition, held, otherwise)


def flag_kernel() -> tuple[Kernel, Value]:
    """A kernel that loads whether to do one thing or another."""
    k = Kernel(x=F32_POINTER, y=F32_POINTER, flag=I32_POINTER)
    return k, k.less(k.load(k.point(k["flag"], k.pid())), 1)


def counting_kernel() -> tuple[Kernel, Value]:
    """A kernel that loads how often a loop is to run."""
    k = Kernel(x=F32_POINTER, y=F32_POINTER, flag=I32_POINTER)
    return k, k.load(k.point(k["flag"], k.pid()))


def agrees(k: Kernel) -> Analysis:
    module = k.done()
    given = launch(module, 2, x=array("x", 64), y=array("y", 64), flag=array("flag", 2))
    return assert_agrees(module, given, {2: np.array([0, 1], np.int32)})


def test_branches_that_move_a_pointer_apart_leave_it_in_its_buffer() -> None:
    k, flag = flag_kernel()
    (pointer,) = k.choose(
        flag, lambda: [k.point(k["x"], 8)], lambda: [k.point(k["x"], k.mul(k.pid(), 16))]
    )
    k.load(k.point(pointer, k.arange(8)))
    analysis = agrees(k)
    state = analysis.states[pointer]
    assert isinstance(state, Pointer)
    assert state.argument == 0
    assert state.offset.interval == Interval(0, 16)
    assert analysis.accesses[1].kind is AccessClass.DATA_START


def test_branches_of_two_buffers_give_no_pointer() -> None:
    k, flag = flag_kernel()
    (pointer,) = k.choose(flag, lambda: [k["x"]], lambda: [k["y"]])
    k.load(pointer)
    analysis = agrees(k)
    assert isinstance(analysis.states[pointer], UnknownPointer)
    assert analysis.accesses[1].kind is AccessClass.IRREGULAR


def test_integers_of_branches_lie_between_the_least_and_the_greatest() -> None:
    k, flag = flag_kernel()
    (chosen,) = k.choose(flag, lambda: [k.number(3)], lambda: [k.add(k.mul(k.pid(), 5), 20)])
    (lanes,) = k.choose(flag, lambda: [k.arange(8)], lambda: [k.arange(12, 4)])
    k.load(k.point(k["x"], k.add(lanes, chosen)))
    analysis = agrees(k)
    assert interval(analysis, chosen) == Interval(3, 25)
    assert interval(analysis, lanes) == Interval(0, 11)
    assert analysis.accesses[1].kind is AccessClass.GATHERED


def test_a_branch_that_is_never_taken_decides_nothing() -> None:
    k, _ = flag_kernel()
    (chosen,) = k.choose(k.less(k.pid(), 5), lambda: [k.point(k["x"], k.pid())], lambda: [k["y"]])
    k.load(chosen)
    analysis = agrees(k)
    assert indices(analysis.accesses[1]) == ["pid0"]


def test_select_of_two_pointers_stays_in_their_buffer() -> None:
    k, flag = flag_kernel()
    lanes = k.arange(8)
    even = k.less(k.rem(lanes, 2), 1)
    pair = k.point(k["x"], lanes), k.point(k["x"], k.add(lanes, 8))
    k.load(select(k, even, *pair))
    k.load(select(k, flag, *pair))
    analysis = agrees(k)
    assert kinds(analysis)[1:] == [AccessClass.GATHERED] * 2


def test_an_interval_that_rests_on_an_assumption_is_not_handed_on() -> None:
    """The product wraps around where it is chosen, so that it can be anything."""
    k, loaded = counting_kernel()
    chosen = select(k, k.less(loaded, 1), k.mul(loaded, 1 << 20), k.number(3))
    k.load(k.point(k["x"], chosen))
    module = k.done()
    given = launch(module, 2, x=array("x", 64), y=array("y", 64), flag=array("flag", 2))
    analysis = assert_agrees(module, given, {2: np.array([-(1 << 20), 1], np.int32)})
    assert interval(analysis, chosen) == Interval(I32.smallest, I32.largest)
    assert not analysis.states[chosen].assumptions


def count_down(k: Kernel, handed: Any) -> Any:
    """The test of a loop that runs while its first value is positive."""
    return lambda carried: (k.less(carried[0], 0, "sgt"), handed(carried))


def test_a_pointer_that_a_while_loop_moves_stays_in_its_buffer() -> None:
    k, start = counting_kernel()

    def body(carried):
        k.load(carried[1])
        return k.sub(carried[0], 1), k.point(carried[1], 4)

    last = k.repeat((start, k.point(k["x"], k.arange(4))), count_down(k, list), body)
    k.load(last[1])
    analysis = agrees(k)
    assert kinds(analysis)[1:] == [AccessClass.GATHERED] * 2
    assert all(isinstance(each.pointer, Pointer) for each in analysis.accesses)


def test_what_a_while_loop_hands_on_unchanged_is_known_inside_and_after() -> None:
    k, start = counting_kernel()
    row = k.point(k["x"], k.add(k.mul(k.pid(), 8), k.arange(4)))

    def body(carried):
        k.load(carried[1])
        return k.sub(carried[0], 1), carried[1]

    last = k.repeat((start, row), count_down(k, list), body)
    k.load(last[1])
    analysis = agrees(k)
    assert [indices(each) for each in analysis.accesses[1:]] == [["8*pid0 + lane0"]] * 2
    assert kinds(analysis)[1:] == [AccessClass.BLOCK] * 2


def test_pointers_that_change_places_in_a_while_loop_are_not_known() -> None:
    k, start = counting_kernel()

    def body(carried):
        k.load(carried[1])
        return k.sub(carried[0], 1), carried[2], carried[1]

    k.repeat((start, k["x"], k["y"]), count_down(k, list), body)
    assert kinds(agrees(k))[1:] == [AccessClass.IRREGULAR]


def test_what_the_test_of_a_loop_computes_is_a_value_of_its_own_in_the_body() -> None:
    """The body sees what was loaded in the test of the same round, the code after the last one."""
    k = Kernel(x=F32_POINTER, y=F32_POINTER, flag=I32_POINTER)
    start = k.number(5)

    def test(carried):
        found = k.load(k.point(k["flag"], k.rem(carried[0], 2)))
        return k.less(carried[0], 0, "sgt"), (carried[0], k.add(found, carried[0]), k.number(7))

    def body(carried):
        k.load(k.point(k["x"], carried[1]))
        k.load(k.point(k["x"], carried[2]))
        return (k.sub(carried[0], 1),)

    last = k.repeat((start,), test, body)
    k.load(k.point(k["x"], last[1]))
    analysis = agrees(k)
    assert kinds(analysis) == [
        *(AccessClass.DATA_START, AccessClass.DATA_START),
        *(AccessClass.BLOCK, AccessClass.DATA_START),
    ]
    assert indices(analysis.accesses[2]) == ["7"]


def test_joined_ranges_are_steps_along_the_new_axis() -> None:
    k = Kernel(x=F32_POINTER)
    lanes = k.arange(8)
    joined = k.builder.value("tt.join", lanes, k.add(lanes, 8))
    k.load(k.point(k["x"], joined))
    for half in k.builder.op("tt.split", joined).results:
        k.load(k.point(k["x"], half))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 16)))
    assert [indices(each) for each in analysis.accesses] == [
        *(["lane0 + 8*lane1"], ["lane0"], ["lane0 + 8"]),
    ]
    assert kinds(analysis) == [AccessClass.BLOCK] * 3


def test_joined_ranges_of_different_steps_are_gathered() -> None:
    k = Kernel(x=F32_POINTER)
    lanes = k.arange(8)
    joined = k.builder.value("tt.join", lanes, k.mul(lanes, 3))
    k.load(k.point(k["x"], joined))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 32)))
    assert interval(analysis, joined) == Interval(0, 21)
    assert kinds(analysis) == [AccessClass.GATHERED]


def test_joined_pointers_are_one_tensor_of_pointers() -> None:
    k = Kernel(x=F32_POINTER)
    row = k.point(k["x"], k.arange(8))
    k.load(k.builder.value("tt.join", row, k.point(row, 32)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 2, 32)))
    assert indices(analysis.accesses[0]) == ["lane1", "lane0"]


@pytest.mark.parametrize("length", [1, 4])
def test_ranges_put_after_each_other_are_one_range(length: int) -> None:
    k = Kernel(x=F32_POINTER)
    lanes = k.add(k.mul(k.arange(length), 3), 5)
    k.load(k.point(k["x"], k.builder.value("tt.cat", lanes, k.add(lanes, 3 * length))))
    k.load(k.point(k["x"], k.builder.value("tt.cat", lanes, k.add(lanes, 9))))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 64)))
    assert indices(analysis.accesses[0]) == ["3*lane0 + 5"]
    assert (analysis.accesses[1].kind is AccessClass.GATHERED) == (length > 1)


def test_gathered_indices_are_read_at_the_positions_given() -> None:
    k = Kernel(x=F32_POINTER, order=I32_POINTER)
    source = k.mul(k.arange(8), 4)
    back = k.sub(7, k.arange(8))
    k.load(k.point(k["x"], k.builder.value("tt.gather", source, back, axis=0)))
    loaded = k.load(k.point(k["order"], k.arange(8)))
    k.load(k.point(k["x"], k.builder.value("tt.gather", source, loaded, axis=0)))
    module = k.done()
    given = launch(module, 1, x=array("x", 32), order=array("order", 8))
    data = {1: np.array([3, 1, 4, 1, 5, 2, 6, 0], np.int32)}
    analysis = assert_agrees(module, given, data)
    assert indices(analysis.accesses[0]) == ["-4*lane0 + 28"]
    assert analysis.accesses[2].kind is AccessClass.GATHERED


def masked_choice(*, guarded: bool, negated: bool = False) -> Kernel:
    """`where(valid, row, 0)` is the row of a load, under a mask that says `valid` and more."""
    k = Kernel(x=F32_POINTER, flag=I32_POINTER)
    rows = k.add(k.mul(k.pid(), 8), k.arange(8))
    valid = k.less(rows, 13)
    zero = k.to(k.number(0), (8,))
    condition = k.less(rows, 13, "sge") if negated else valid
    safe = select(k, condition, *((zero, rows) if negated else (rows, zero)))
    columns = k.expand(k.arange(4), 0)
    mask = k.to(k.less(columns, 3), (8, 4))
    if guarded:
        mask = k.both(mask, k.to(k.expand(valid, 1), (8, 4)))
    offsets = k.add(k.mul(k.expand(safe, 1), 4), columns)
    k.load(k.point(k["x"], offsets), mask)
    return k


@pytest.mark.parametrize("negated", [False, True])
def test_a_choice_that_the_mask_decides_is_what_it_chooses(negated: bool) -> None:
    module = masked_choice(guarded=True, negated=negated).done()
    given = launch(module, 2, x=array("x", 13, 4), flag=array("flag", 1))
    (access,) = assert_agrees(module, given).accesses
    assert indices(access) == ["8*pid0 + lane0", "lane1"]
    assert access.kind is AccessClass.BLOCK


def test_a_choice_that_the_mask_leaves_open_is_gathered() -> None:
    module = masked_choice(guarded=False).done()
    given = launch(module, 2, x=array("x", 13, 4), flag=array("flag", 1))
    (access,) = assert_agrees(module, given).accesses
    assert access.kind is AccessClass.GATHERED


def test_a_choice_by_what_is_loaded_is_decided_by_a_mask_of_the_same() -> None:
    k = Kernel(x=F32_POINTER, flag=I32_POINTER)
    lanes = k.arange(8)
    keep = k.less(k.load(k.point(k["flag"], lanes)), 4)
    inner = select(k, keep, lanes, k.to(k.number(0), (8,)))
    outer = select(k, k.less(lanes, 6), inner, k.to(k.number(1), (8,)))
    k.load(k.point(k["x"], outer), k.both(keep, k.less(lanes, 5)))
    k.load(k.point(k["x"], outer), k.less(lanes, 5))
    module = k.done()
    given = launch(module, 1, x=array("x", 8), flag=array("flag", 8))
    data = {1: np.array([5, 0, 3, 9, 4, 1, 2, 7], np.int32)}
    _, decided, open_ = assert_agrees(module, given, data).accesses
    assert indices(decided) == ["lane0"]
    assert open_.kind is AccessClass.GATHERED
