"""Accesses through tensor descriptors are addresses and bounds like any others."""

import hypothesis.strategies as st
import numpy as np
from address_oracle import assert_agrees
from hypothesis import given, settings
from kernel_builder import F32_POINTER, I32_POINTER, Kernel, Term, array, launch

from reading import indices, kinds, limits
from translators.access.analysis import analyze
from translators.access.classify import AccessClass
from translators.access.explain import explain
from translators.graph.graph import Value
from translators.graph.types import F32, I32, I64, DescriptorType, TensorType


def described(
    k: Kernel, pointer: Value, sizes: list[Term], strides: list[Term], *block: int, pad="zero"
) -> Value:
    """A descriptor made in the kernel."""
    numbers = [k.number(each) if isinstance(each, int) else each for each in sizes]
    steps = [k.number(each, I64) if isinstance(each, int) else each for each in strides]
    return k.builder.value(
        "tt.make_tensor_descriptor",
        pointer,
        *numbers,
        *steps,
        results=(DescriptorType(TensorType(block, F32)),),
        padding=pad,
    )


def read(k: Kernel, descriptor: Value, *starts: Term, shape: tuple[int, ...] = ()) -> Value:
    block = descriptor.type.block
    result = TensorType(shape, block.element) if shape else block
    places = [k.number(each) if isinstance(each, int) else each for each in starts]
    return k.builder.value("tt.descriptor_load", descriptor, *places, results=(result,))


def write(k: Kernel, descriptor: Value, *starts: Term, kind: str = "") -> None:
    ones = k.builder.constant(1.0, descriptor.type.block)
    places = [k.number(each) if isinstance(each, int) else each for each in starts]
    if kind:
        k.builder.op("tt.descriptor_reduce", descriptor, ones, *places, kind=kind)
    else:
        k.builder.op("tt.descriptor_store", descriptor, ones, *places)


def test_blocks_of_a_described_matrix_are_blocks_cut_at_its_edges() -> None:
    """A tiled copy whose last tiles hang over, in a loop over the columns."""
    k = Kernel(x=F32_POINTER, out=F32_POINTER, rows=I32, stride=I64)
    source = described(k, k["x"], [k["rows"], 20], [k["stride"], 1], 8, 16, pad="nan")
    target = described(k, k["out"], [k["rows"], 20], [20, 1], 8, 16)
    row = k.mul(k.pid(), 8)

    def body(counter, carried):
        read(k, source, row, k.mul(counter, 16))
        write(k, target, row, k.mul(counter, 16))
        write(k, target, row, k.mul(counter, 16), kind="add")
        return ()

    k.loop(0, 2, 1, (), body)
    module = k.done()
    x, out = array("x", 13, 20, strides=(24, 1)), array("out", 13, 20)
    given_ = launch(module, 2, scalars={"rows": 13, "stride": 24}, x=x, out=out)
    analysis = assert_agrees(module, given_)
    assert kinds(analysis) == [AccessClass.BLOCK] * 3
    for access in analysis.accesses:
        assert access.shape == (8, 16)
        assert indices(access) == ["8*pid0 + lane0", "16*iteration0 + lane1"]
        assert limits(access) == [("index 0 < 13", True), ("index 1 < 20", True)]
    assert [each.padding for each in analysis.accesses] == ["nan", "zero", "zero"]
    text = explain(analysis)
    assert "array: `x`, shape (13, 20)" in text
    assert "index 1 < 20 (the array's edge)" in text


def test_a_descriptor_that_the_host_made_describes_its_array() -> None:
    block = TensorType((4, 8), F32)
    k = Kernel(x=DescriptorType(block))
    read(k, k["x"], k.sub(k.mul(k.pid(), 4), 4), 0)
    module = k.done()
    x = array("x", 10, 8)
    analysis = assert_agrees(module, launch(module, 4, x=x))
    (access,) = analysis.accesses
    assert access.padding == "zero"
    assert indices(access) == ["4*pid0 + lane0 - 4", "lane1"]
    assert limits(access) == [("index 0 >= 0", True), ("index 0 < 10", True)]


def test_a_descriptor_of_an_array_that_is_not_given_is_listed_with_its_line() -> None:
    k = Kernel(x=DescriptorType(TensorType((4,), F32)))
    line = k.at("desc.load([0])")
    read(k, k["x"], 0)
    module = k.done()
    (access,) = analyze(module, launch(module, 1)).accesses
    assert access.kind is AccessClass.IRREGULAR
    assert (access.mask, access.padding) == (None, None)
    assert "the launch does not give" in access.reasons[0].text
    assert access.reasons[0].location is not None
    assert access.reasons[0].location.line == line


def test_dimensions_of_one_that_the_tensor_lacks_stay_in_the_block() -> None:
    k = Kernel(x=F32_POINTER)
    made = described(k, k["x"], [2, 3, 16], [48, 16, 1], 1, 1, 8)
    read(k, made, k.pid(0), k.pid(1), 8, shape=(8,))
    module = k.done()
    analysis = assert_agrees(module, launch(module, 2, 3, x=array("x", 2, 3, 16)))
    (access,) = analysis.accesses
    assert access.shape == (1, 1, 8)
    assert indices(access) == ["pid0", "pid1", "lane2 + 8"]
    assert access.mask is not None and access.mask.always
    assert access.kind is AccessClass.BLOCK


def test_a_descriptor_of_a_part_starts_where_its_pointer_does() -> None:
    """Each head of a packed array is described by itself, its rows with the array's stride."""
    k = Kernel(x=F32_POINTER)
    head = k.point(k["x"], k.mul(k.pid(), 8))
    made = described(k, head, [6, 8], [24, 1], 4, 8)
    read(k, made, 4, 0)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 3, x=array("x", 6, 3, 8)))
    (access,) = analysis.accesses
    assert indices(access) == ["lane0 + 4", "pid0", "lane1"]
    assert limits(access) == [("index 0 < 6", True)]


def test_rows_that_are_named_are_gathered_and_the_others_left_out() -> None:
    k = Kernel(rows=I32_POINTER, x=DescriptorType(TensorType((1, 8), F32)))
    named = k.load(k.point(k["rows"], k.arange(4)))
    result = TensorType((4, 8), F32)
    found = k.builder.value("tt.descriptor_gather", k["x"], named, k.number(8), results=(result,))
    k.builder.op("tt.descriptor_scatter", k["x"], named, k.number(-8), found)
    module = k.done()
    given_ = launch(module, 1, rows=array("rows", 4), x=array("x", 6, 12))
    analysis = assert_agrees(module, given_, {0: np.array([5, 0, 7, -1], np.int32)})
    _, gathered, scattered = analysis.accesses
    assert gathered.shape == (4, 8)
    assert gathered.kind is AccessClass.GATHERED
    assert limits(gathered)[-1] == ("index 1 < 12", True)
    assert scattered.never


def test_a_descriptor_that_a_loop_carries_is_still_the_same() -> None:
    k = Kernel(x=F32_POINTER)
    made = described(k, k["x"], [32], [1], 8)

    def body(counter, carried):
        read(k, carried[0], k.mul(counter, 8))
        return carried

    (after,) = k.loop(0, 4, 1, (made,), body)
    read(k, after, 0)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 32)))
    assert kinds(analysis) == [AccessClass.BLOCK] * 2


def test_descriptors_that_change_places_are_not_known() -> None:
    k = Kernel(x=F32_POINTER, y=F32_POINTER)
    pair = [described(k, k[name], [32], [1], 8) for name in ("x", "y")]

    def body(counter, carried):
        read(k, carried[0], 0)
        return carried[1], carried[0]

    k.loop(0, 4, 1, pair, body)
    module = k.done()
    analysis = assert_agrees(module, launch(module, 1, x=array("x", 32), y=array("y", 32)))
    assert kinds(analysis) == [AccessClass.IRREGULAR]


def test_a_stride_that_varies_is_followed_where_the_index_does_not() -> None:
    k = Kernel(strides=I32_POINTER, x=F32_POINTER)
    stride = k.widen(k.load(k["strides"]), I64)
    made = described(k, k["x"], [4, 8], [stride, 1], 1, 8)
    read(k, made, 2, 0, shape=(8,))
    read(k, made, k.pid(), 0, shape=(8,))
    module = k.done()
    given_ = launch(module, 2, strides=array("strides", 1), x=array("x", 4, 8))
    analysis = assert_agrees(module, given_, {0: np.array([8], np.int32)})
    assert kinds(analysis)[1:] == [AccessClass.DATA_START, AccessClass.IRREGULAR]
    assert "which varies" in analysis.accesses[2].reasons[0].text


@given(
    data=st.data(),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    grid=st.tuples(st.integers(1, 4), st.integers(1, 3)),
)
@settings(max_examples=60)
def test_any_block_is_where_the_descriptor_says(data, sizes, grid) -> None:
    k = Kernel(x=F32_POINTER)
    rank = len(sizes)
    block = [data.draw(st.sampled_from([1, 2, 4, 8])) for _ in sizes]
    shown = [data.draw(st.integers(1, size)) for size in sizes]
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size + data.draw(st.sampled_from([0, 0, 3])))
    ids = [k.pid(0), k.pid(1), k.number(0), k.number(-3)]
    starts = [
        k.mul(data.draw(st.sampled_from(ids)), data.draw(st.sampled_from([1, length, 3])))
        for length in block
    ]
    made = described(k, k["x"], shown, strides, *block)
    read(k, made, *starts)
    if data.draw(st.booleans()):
        write(k, made, *reversed(starts)) if rank == 1 else write(k, made, *starts)
    module = k.done()
    x = array("x", *sizes, strides=tuple(strides))
    assert_agrees(module, launch(module, *grid, x=x))
