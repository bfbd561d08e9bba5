"""Known kernels are analysed as a person would read them, and exactly."""

import numpy as np
import pytest
from address_oracle import assert_agrees
from kernel_builder import F32_POINTER, I32_POINTER, Kernel, array, launch
from matmul_kernel import matmul, matmul_launch

from reading import indices, kinds, limits
from translators.access.analysis import analyze
from translators.access.classify import AccessClass
from translators.access.delinearize import Position
from translators.access.explain import explain
from translators.graph.errors import GraphError
from translators.graph.graph import Function, Module, Value, make_module
from translators.graph.types import I32, I64, PointerType


def vector_add(block: int) -> Module:
    k = Kernel(x=F32_POINTER, out=F32_POINTER, n=I32)
    k.at("offsets = pid * BLOCK + tl.arange(0, BLOCK)")
    offsets = k.add(k.mul(k.pid(), block), k.arange(block))
    mask = k.less(offsets, k["n"])
    k.at("x = tl.load(x_ptr + offsets, mask=mask)")
    loaded = k.load(k.point(k["x"], offsets), mask)
    k.at("tl.store(out_ptr + offsets, x, mask=mask)")
    k.store(k.point(k["out"], offsets), loaded, mask)
    return k.done()


def test_vector_add_with_a_tail_is_blocks_cut_at_the_edge() -> None:
    module = vector_add(16)
    analysis = assert_agrees(
        module, launch(module, 4, scalars={"n": 50}, x=array("x", 50), out=array("out", 50))
    )
    assert kinds(analysis) == [AccessClass.BLOCK] * 2
    for access in analysis.accesses:
        assert indices(access) == ["16*pid0 + lane0"]
        assert limits(access) == [("index 0 < 50", True)]
        assert access.mask is not None and access.mask.exact_edges
        assert not access.assumptions


def test_vector_add_without_a_tail_has_a_mask_that_is_always_true() -> None:
    module = vector_add(16)
    analysis = assert_agrees(
        module, launch(module, 4, scalars={"n": 64}, x=array("x", 64), out=array("out", 64))
    )
    assert all(each.mask is not None and each.mask.always for each in analysis.accesses)
    assert "always true for these sizes" in explain(analysis)


def test_a_flat_kernel_over_a_contiguous_matrix_sees_one_dimension() -> None:
    module = vector_add(16)
    x = array("x", 5, 10)
    analysis = assert_agrees(
        module, launch(module, 4, scalars={"n": 50}, x=x, out=array("out", 50))
    )
    position = analysis.accesses[0].position
    assert isinstance(position, Position)
    assert [each.axes for each in position.dimensions] == [(0, 1)]
    assert kinds(analysis)[0] is AccessClass.BLOCK


def test_a_flat_kernel_over_a_padded_matrix_is_not_taken_apart() -> None:
    module = vector_add(16)
    x = array("x", 5, 10, strides=(12, 1))
    analysis = assert_agrees(
        module, launch(module, 4, scalars={"n": 50}, x=x, out=array("out", 50))
    )
    first = analysis.accesses[0]
    assert first.kind is AccessClass.IRREGULAR
    assert "not contiguous" in first.reasons[0].text
    assert first.reasons[0].location == first.op.location


def test_row_softmax_takes_the_row_and_cuts_the_power_of_two() -> None:
    k = Kernel(x=F32_POINTER, stride=I32, n=I32)
    row = k.point(k["x"], k.mul(k.pid(), k["stride"]))
    columns = k.arange(128)
    k.load(k.point(row, columns), k.less(columns, k["n"]))
    module = k.done()
    analysis = assert_agrees(
        module,
        launch(
            module, 6, scalars={"stride": 112, "n": 100}, x=array("x", 6, 100, strides=(112, 1))
        ),
    )
    (access,) = analysis.accesses
    assert access.kind is AccessClass.BLOCK
    assert indices(access) == ["pid0", "lane0"]
    assert limits(access) == [("index 1 < 100", True)]


@pytest.mark.parametrize("transposed", [False, True])
def test_matmul_of_whole_tiles_is_all_blocks(transposed: bool) -> None:
    module = matmul(32, 16, 16, wrap=True)
    analysis = assert_agrees(module, matmul_launch(module, 32, 16, 16, transposed))
    assert kinds(analysis) == [AccessClass.BLOCK] * 3
    assert all(each.mask is not None and each.mask.always for each in analysis.accesses)
    assert indices(analysis.accesses[0])[1] == "8*iteration0 + lane1"
    assert indices(analysis.accesses[1])[0] == "8*iteration0 + lane0"


@pytest.mark.parametrize("transposed", [False, True])
def test_matmul_with_tails_names_the_wrapping_loads(transposed: bool) -> None:
    module = matmul(20, 28, 12, wrap=True)
    analysis = assert_agrees(module, matmul_launch(module, 20, 28, 12, transposed))
    assert kinds(analysis) == [AccessClass.GATHERED, AccessClass.GATHERED, AccessClass.BLOCK]
    a, b, c = analysis.accesses
    for access in (a, b):
        (reason,) = access.reasons
        assert reason.op == "arith.remsi"
        assert reason.location is not None and "% M" in reason.location.text
    assert limits(a) == [("index 1 < 12", True)]
    assert limits(b) == [("index 0 < 12", True)]
    assert limits(c) == [("index 0 < 20", True), ("index 1 < 28", True)]


def test_an_embedding_gathers_one_dimension() -> None:
    k = Kernel(ids=I32_POINTER, table=F32_POINTER)
    tokens = k.add(k.mul(k.pid(), 8), k.arange(8))
    line = k.at("ids = tl.load(ids_ptr + tokens)")
    ids = k.widen(k.load(k.point(k["ids"], tokens)), I64)
    k.at("rows = tl.load(table + ids[:, None] * D + cols[None, :])")
    columns = k.widen(k.arange(32), I64)
    k.load(k.point(k["table"], k.add(k.mul(k.expand(ids, 1), 32), k.expand(columns, 0))))
    module = k.done()
    analysis = assert_agrees(
        module,
        launch(module, 2, ids=array("ids", 16), table=array("table", 50, 32)),
        {0: np.arange(16, dtype=np.int32) * 7 % 50},
    )
    assert kinds(analysis) == [AccessClass.BLOCK, AccessClass.GATHERED]
    (reason,) = analysis.accesses[1].reasons
    assert (reason.op, reason.location.line) == ("tt.load", line)
    assert not analysis.accesses[1].assumptions


def test_a_paged_start_depends_on_data() -> None:
    k = Kernel(table=I32_POINTER, cache=F32_POINTER)

    def body(counter, carried):
        k.at("page = tl.load(block_table + i)")
        page = k.widen(k.load(k.point(k["table"], counter)), I64)
        k.at("keys = tl.load(cache + page * 4 * 8 + ...)")
        inner = k.add(k.mul(k.expand(k.arange(4), 1), 8), k.expand(k.arange(8), 0))
        k.load(k.point(k["cache"], k.add(k.mul(page, 32), k.widen(inner, I64))))
        return ()

    k.loop(0, 5, 1, (), body)
    module = k.done()
    analysis = assert_agrees(
        module,
        launch(module, 1, table=array("table", 5), cache=array("cache", 9, 4, 8)),
        {0: np.array([3, 1, 8, 0, 2], np.int32)},
    )
    assert kinds(analysis) == [AccessClass.BLOCK, AccessClass.DATA_START]
    assert [each.length for each in analysis.accesses[1].tiles] == [1, 4, 8]


def test_an_index_that_may_wrap_in_32_bits_is_kept_as_an_assumption() -> None:
    k = Kernel(ids=I32_POINTER, table=F32_POINTER)
    row = k.load(k.point(k["ids"], k.pid()))
    k.load(k.point(k["table"], k.add(k.mul(row, 32), k.arange(32))))
    module = k.done()
    analysis = assert_agrees(
        module,
        launch(module, 2, ids=array("ids", 2), table=array("table", 9, 32)),
        {0: np.array([8, 2], np.int32)},
    )
    access = analysis.accesses[1]
    assert access.kind is AccessClass.DATA_START
    assert [each.op for each in access.assumptions] == ["arith.muli", "arith.addi"]
    assert "wraps around in `i32`" in explain(analysis)


def test_arithmetic_that_does_wrap_is_not_followed() -> None:
    k = Kernel(x=F32_POINTER)
    line = k.at("offsets = (pid + 1) * 1000000000 + lanes")
    offsets = k.mul(k.add(k.pid(), 1), 1_000_000_000)
    k.load(k.point(k["x"], k.add(offsets, k.arange(4))))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 4, x=array("x", 100)))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.DATA_START
    assert (access.reasons[0].op, access.reasons[0].location.line) == ("arith.muli", line)


def test_a_carried_integer_and_a_nested_loop_become_iterations() -> None:
    k = Kernel(x=F32_POINTER)
    start = k.point(k["x"], k.arange(4))

    def outer(counter, carried):
        def inner(counter, carried):
            k.load(carried[0])
            return (k.point(carried[0], 4),)

        (pointer,) = k.loop(0, 3, 1, (carried[0],), inner)
        k.load(k.point(k["x"], k.add(carried[1], k.arange(4))))
        return k.point(pointer, 4), k.add(carried[1], 16)

    k.loop(2, 9, 2, (start, k.number(0)), outer)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 64)))
    assert [indices(each) for each in analysis.accesses] == [
        ["16*iteration0 + 4*iteration1 + lane0"],
        ["16*iteration0 + lane0"],
    ]
    assert kinds(analysis) == [AccessClass.BLOCK] * 2


def test_a_pointer_that_grows_by_what_varies_stays_in_its_buffer() -> None:
    k = Kernel(x=F32_POINTER)

    def body(counter, carried):
        k.load(carried[0])
        return (k.point(carried[0], k.to(counter, (4,))),)

    k.loop(0, 4, 1, (k.point(k["x"], k.arange(4)),), body)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 64)))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.GATHERED
    assert "does not grow steadily" in access.reasons[0].text


def test_pointers_that_change_places_are_not_known() -> None:
    k = Kernel(x=F32_POINTER, y=F32_POINTER)
    line = k.at("for i in range(4):")

    def body(counter, carried):
        k.load(carried[0])
        return carried[1], carried[0]

    k.loop(0, 4, 1, (k["x"], k["y"]), body)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 4), y=array("y", 4)))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.IRREGULAR
    assert access.reasons[0].op == "scf.for"
    assert access.reasons[0].location.line >= line


def test_a_persistent_loop_counts_from_the_program() -> None:
    k = Kernel(x=F32_POINTER)

    def body(counter, carried):
        offsets = k.add(k.mul(counter, 8), k.arange(8))
        k.load(k.point(k["x"], offsets), k.less(offsets, 52))
        return ()

    k.loop(k.pid(), 7, k.programs(), (), body)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 3, x=array("x", 52)))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.BLOCK
    assert indices(access) == ["8*pid0 + 24*iteration0 + lane0"]
    assert limits(access) == [("index 0 < 52", True)]


def test_a_loop_bound_that_is_loaded_leaves_the_start_regular() -> None:
    k = Kernel(lengths=I32_POINTER, x=F32_POINTER)
    length = k.load(k.point(k["lengths"], k.pid()))

    def body(counter, carried):
        offsets = k.add(counter, k.arange(4))
        row = k.point(k["x"], k.mul(k.pid(), 32))
        k.load(k.point(row, offsets), k.less(offsets, length))
        return ()

    k.loop(0, length, 4, (), body)
    module = k.done()
    analysis = assert_agrees(
        module,
        launch(module, 2, lengths=array("lengths", 2), x=array("x", 2, 32)),
        {0: np.array([9, 30], np.int32)},
    )
    access = analysis.accesses[1]
    assert access.kind is AccessClass.BLOCK
    assert not analysis.loops[0].iteration.fixed
    assert access.mask is not None
    (bound,) = access.mask.bounds
    assert (bound.dimension, bound.upper, bound.edge) == (1, True, False)


def test_tiles_within_a_row_are_blocks_of_the_row_and_the_column() -> None:
    k = Kernel(x=F32_POINTER)
    flat = k.add(k.mul(k.pid(), 8), k.arange(8))
    row, column = k.div(flat, 32), k.rem(flat, 32)
    k.load(k.point(k["x"], k.add(k.mul(row, 40), column)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 12, x=array("x", 3, 32, strides=(40, 1))))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.BLOCK
    assert indices(access) == ["(pid0 // 4)", "8*(pid0 % 4) + lane0"]


def test_loops_nested_beyond_the_limit_are_walked_once() -> None:
    k = Kernel(x=F32_POINTER)

    def nest(depth: int, pointer: Value) -> Value:
        def body(counter: Value, carried: tuple[Value, ...]) -> tuple[Value, ...]:
            inner = nest(depth - 1, carried[0]) if depth else carried[0]
            return (k.point(inner, 1),)

        return k.loop(0, 1, 1, (pointer,), body)[0]

    k.load(nest(40, k["x"]))
    module = k.done()
    analysis = analyze(module, launch(module, 1, x=array("x", 64)))
    assert kinds(analysis) == [AccessClass.IRREGULAR]


def test_indices_taken_apart_by_division_find_their_dimensions() -> None:
    k = Kernel(x=F32_POINTER)
    flat = k.add(k.mul(k.pid(), 32), k.arange(32))
    row, column = k.div(flat, 8), k.rem(flat, 8)
    k.load(k.point(k["x"], k.add(k.mul(row, 10), column)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 3, x=array("x", 12, 8, strides=(10, 1))))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.BLOCK
    assert [(each.length, each.step) for each in access.tiles] == [(4, 1), (8, 1)]


def test_division_put_together_again_is_the_index() -> None:
    k = Kernel(x=F32_POINTER)
    flat = k.add(k.mul(k.pid(), 10), k.arange(16))
    k.load(k.point(k["x"], k.add(k.mul(k.div(flat, 7), 7), k.rem(flat, 7))))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 3, x=array("x", 36)))
    (access,) = analysis.accesses
    assert indices(access) == ["10*pid0 + lane0"]
    assert access.kind is AccessClass.SLICE
    assert "not a multiple of 16" in access.reasons[0].text


def test_reshapes_and_transposes_keep_the_addresses() -> None:
    k = Kernel(x=F32_POINTER)
    square = k.reshape(k.arange(32), 4, 8)
    k.load(k.point(k["x"], square))
    k.load(k.point(k["x"], k.trans(square, 1, 0)))
    k.load(k.point(k["x"], k.reshape(k.trans(square, 1, 0), 32)))
    k.load(k.point(k["x"], k.reshape(k.reshape(k.sub(k.arange(40, 8), 8), 8, 4), 2, 16)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 4, 8)))
    assert kinds(analysis)[:3] == [AccessClass.BLOCK] * 3


def test_a_shifted_row_is_bounded_below_and_stays_in_its_row() -> None:
    k = Kernel(x=F32_POINTER)
    steps = k.sub(k.add(k.mul(k.pid(1), 8), k.arange(8)), 3)
    mask = k.both(k.less(steps, 0, "sge"), k.less(steps, 20))
    k.load(k.point(k.point(k["x"], k.mul(k.pid(), 20)), steps), mask)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 4, 3, x=array("x", 4, 20)))
    (access,) = analysis.accesses
    assert indices(access) == ["pid0", "8*pid1 + lane0 - 3"]
    assert limits(access) == [("index 1 >= 0", True), ("index 1 < 20", True)]
    assert access.kind is AccessClass.SLICE


def test_a_diagonal_is_irregular() -> None:
    k = Kernel(x=F32_POINTER)
    k.load(k.point(k["x"], k.mul(k.arange(8), 9)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 8, 8)))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.IRREGULAR
    assert "several dimensions at once" in access.reasons[0].text


def test_a_strided_access_is_a_slice_with_a_step() -> None:
    k = Kernel(x=F32_POINTER)
    k.load(k.point(k["x"], k.add(k.mul(k.arange(8), 2), 1)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 16)))
    (access,) = analysis.accesses
    assert (access.kind, access.tiles[0].step) == (AccessClass.SLICE, 2)


def test_positions_with_holes_between_are_a_slice() -> None:
    """The first half of each head, as rotary embeddings read it."""
    k = Kernel(x=F32_POINTER)
    lanes = k.arange(32)
    k.load(k.point(k["x"], k.add(k.mul(k.div(lanes, 4), 8), k.rem(lanes, 4))))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 64)))
    (access,) = analysis.accesses
    assert access.kind is AccessClass.SLICE
    assert "leaves holes" in access.reasons[0].text
    assert "= 0 + [0, 8) by 8 + [0, 4)" in explain(analysis)


def test_an_array_that_runs_backwards_is_indexed_from_its_first_element() -> None:
    """The pointer leads to the first element, which has the highest address."""
    k = Kernel(x=F32_POINTER)
    rows, columns = k.expand(k.arange(4), 1), k.expand(k.arange(8), 0)
    rows = k.add(k.mul(k.pid(), 4), rows)
    mask = k.to(k.less(rows, 6), (4, 8))
    k.load(k.point(k["x"], k.sub(k.mul(rows, -8), k.mul(columns, -1))), mask)
    k.load(k.point(k["x"], k.add(k.mul(rows, -8), k.mul(columns, -1))), mask)
    module = k.done()
    forwards = array("x", 6, 8, strides=(-8, 1))
    analysis = assert_agrees(module, launch(module, 2, x=forwards))
    first = analysis.accesses[0]
    assert indices(first) == ["4*pid0 + lane0", "lane1"]
    assert limits(first) == [("index 0 < 6", True)]
    assert first.kind is AccessClass.BLOCK
    both = array("x", 6, 8, strides=(-8, -1))
    second = assert_agrees(module, launch(module, 2, x=both)).accesses[1]
    assert indices(second) == ["4*pid0 + lane0", "lane1"]


def test_axes_that_run_in_opposite_directions_do_not_count_as_one() -> None:
    k = Kernel(x=F32_POINTER)
    k.load(k.point(k["x"], k.add(k.mul(k.arange(16), -1), 12)))
    module = k.done()
    given = launch(module, 1, x=array("x", 6, 8, strides=(-8, 1)))
    (access,) = assert_agrees(module, given).accesses
    assert access.kind is AccessClass.IRREGULAR
    assert "opposite directions" in access.reasons[0].text


def test_nothing_of_an_empty_array_is_accessed() -> None:
    module = vector_add(16)
    given = launch(module, 1, scalars={"n": 0}, x=array("x", 0), out=array("out", 0))
    analysis = assert_agrees(module, given)
    assert kinds(analysis) == [AccessClass.BLOCK] * 2
    assert all(each.never for each in analysis.accesses)
    unmasked = Kernel(x=F32_POINTER)
    unmasked.load(unmasked["x"])
    module = unmasked.done()
    (access,) = analyze(module, launch(module, 1, x=array("x", 3, 0))).accesses
    assert access.never


def test_a_pointer_from_memory_is_refused_with_its_line() -> None:
    k = Kernel(table=PointerType(F32_POINTER))
    line = k.at("a_ptr = tl.load(group_a_ptrs + g)")
    pointer = k.load(k["table"])
    k.at("a = tl.load(a_ptr + lanes)")
    k.load(k.point(pointer, k.arange(4)))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, table=array("table", 1)))
    access = analysis.accesses[1]
    assert access.kind is AccessClass.IRREGULAR
    assert (access.reasons[0].op, access.reasons[0].location.line) == ("tt.load", line)


def test_what_comes_after_an_early_return_is_guarded() -> None:
    k = Kernel(x=F32_POINTER)
    row = k.pid()
    k.branch(k.less(row, 5, "sge"), lambda: None, ends="tt.return")
    k.load(k.point(k["x"], k.add(k.mul(row, 8), k.arange(8))))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 8, x=array("x", 5, 8)))
    (access,) = analysis.accesses
    assert [str(each) for each in access.guard.predicates] == ["-pid0 + 4 >= 0"]
    assert isinstance(access.position, Position)
    assert all(each.proved for each in access.position.dimensions)


def test_branches_guard_what_is_in_them() -> None:
    k = Kernel(x=F32_POINTER, flag=I32_POINTER)
    first = k.less(k.pid(), 2)
    k.branch(
        first,
        lambda: k.store(k.point(k["x"], k.pid())),
        lambda: k.store(k.point(k["x"], k.sub(k.pid(), 2))),
    )
    loaded = k.less(k.load(k["flag"]), 1, "eq")
    k.branch(loaded, lambda: None, lambda: k.store(k["x"]))
    k.branch(k.less(k.pid(), 9), lambda: k.store(k["x"]), lambda: k.store(k["x"]))
    module = k.done()
    analysis = assert_agrees(
        module,
        launch(module, 4, x=array("x", 2), flag=array("flag", 1)),
        {1: np.array([0], np.int32)},
    )
    stores = [each for each in analysis.accesses if each.op.name == "tt.store"]
    assert [str(each.guard.predicates[0]) for each in stores[:2]] == [
        "-pid0 + 1 >= 0",
        "pid0 - 2 >= 0",
    ]
    assert [each.never for each in stores[3:]] == [False, True]
    for access in stores[:2]:
        assert isinstance(access.position, Position)
        assert all(each.proved for each in access.position.dimensions)


def test_every_line_of_the_explanation_is_located() -> None:
    module = matmul(20, 28, 12, wrap=True)
    text = explain(assert_agrees(module, matmul_launch(module, 20, 28, 12, False)))
    assert text.count("kernel.py:") >= 5
    assert "a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K)" in text
    assert "class: one gathered dimension" in text
    assert "index 1 < 12 (the array's edge)" in text


def test_a_return_inside_a_loop_guards_what_follows_and_earlier_iterations() -> None:
    k = Kernel(x=F32_POINTER, y=F32_POINTER)

    def body(counter: Value, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        k.store(k.point(k["x"], counter))
        k.branch(k.less(counter, k.pid(), "eq"), lambda: None, ends="tt.return")
        k.store(k.point(k["y"], counter))
        return ()

    k.loop(0, 3, 1, (), body)
    k.store(k["x"])
    module = k.done()
    analysis = assert_agrees(module, launch(module, 5, x=array("x", 8), y=array("y", 8)))
    # Not returned in an earlier iteration; not in this one either; not in the whole loop.
    assert [len(each.guard.leftovers) for each in analysis.accesses] == [1, 2, 1]
    assert not any(each.expected for access in analysis.accesses for each in access.guard.leftovers)


def test_an_atomic_is_an_access_with_its_mask() -> None:
    k = Kernel(counts=I32_POINTER)
    lanes = k.arange(8)
    target = k.point(k["counts"], lanes)
    k.builder.op(
        "tt.atomic_rmw",
        target,
        k.to(k.number(1), (8,)),
        k.less(lanes, 5),
        atomic_rmw_op="add",
        sem="acq_rel",
        scope="gpu",
    )
    module = k.done()
    (access,) = analyze(module, launch(module, 1, counts=array("counts", 5))).accesses
    assert access.kind is AccessClass.BLOCK
    assert limits(access) == [("index 0 < 5", True)]


def test_a_call_that_touches_memory_is_refused_with_its_line() -> None:
    callee = Kernel(pointer=F32_POINTER)
    callee.store(callee["pointer"])
    inner = callee.done().kernel
    k = Kernel(x=F32_POINTER)
    line = k.at("helper(x)")
    k.builder.op("tt.call", k["x"], results=(), callee="helper")
    module = k.done()
    helper = Function(name="helper", body=inner.body)
    whole = make_module([module.kernel, helper])
    with pytest.raises(GraphError, match="`helper` touches memory") as caught:
        analyze(whole, launch(whole, 1))
    assert caught.value.location is not None
    assert caught.value.location.line == line
