"""Ops that move or combine elements: shapes, reductions, scans, products."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_oracles import apply, held
from hypothesis import given, settings
from hypothesis import strategies as st

from translators.graph.builder import Builder
from translators.graph.errors import GraphError, UndefinedError
from translators.graph.evaluator import evaluate
from translators.graph.graph import Function, Region, make_module, make_region
from translators.graph.numerics import Array, dtype_of
from translators.graph.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    PointerType,
    TensorType,
    Type,
    element_of,
    shape_of,
    shaped,
)
from translators.graph.verifier import verify

CUBE = TensorType((2, 3, 4), I32)
VALUES = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def test_shapes() -> None:
    def one(name: str, *results: Type, **attributes: Any) -> Array:
        return apply(name, [(CUBE, VALUES)], results=results or None, **attributes)[0]

    np.testing.assert_array_equal(one("tt.trans", order=(2, 0, 1)), VALUES.transpose(2, 0, 1))
    np.testing.assert_array_equal(one("tt.expand_dims", axis=1), VALUES[:, None])
    flat = one("tt.reshape", TensorType((6, 4), I32), allow_reorder=True)
    np.testing.assert_array_equal(flat, VALUES.reshape(6, 4))
    column = TensorType((2, 1, 4), I32)
    wide = apply("tt.broadcast", [(column, VALUES[:, :1])], results=[CUBE])[0]
    np.testing.assert_array_equal(wide, np.broadcast_to(VALUES[:, :1], (2, 3, 4)))
    assert (apply("tt.splat", [(I32, 5)], results=[CUBE])[0] == 5).all()
    assert int(apply("tt.unsplat", [(TensorType((1, 1), I32), [[3]])])[0]) == 3
    assert apply("tt.make_range", [], start=3, end=7)[0].tolist() == [3, 4, 5, 6]
    both = apply("tt.cat", [(CUBE, VALUES), (CUBE, -VALUES)])[0]
    np.testing.assert_array_equal(both, np.concatenate([VALUES, -VALUES]))


def test_split_undoes_join() -> None:
    joined = apply("tt.join", [(CUBE, VALUES), (CUBE, -VALUES)])[0]
    assert joined[1, 2, 3].tolist() == [23, -23]
    first, second = apply("tt.split", [(TensorType((2, 3, 4, 2), I32), joined)])
    np.testing.assert_array_equal(first, VALUES)
    np.testing.assert_array_equal(second, -VALUES)
    assert apply("tt.join", [(I32, 1), (I32, 2)])[0].tolist() == [1, 2]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_takes_along_one_axis(axis: int) -> None:
    random = np.random.default_rng(axis)
    shape = list(VALUES.shape)
    shape[axis] = 5
    indices = random.integers(0, VALUES.shape[axis], shape)
    operands = [(CUBE, VALUES), (TensorType(tuple(shape), I32), indices)]
    found = apply("tt.gather", operands, axis=axis)[0]
    np.testing.assert_array_equal(found, np.take_along_axis(VALUES, indices, axis))


def test_gather_beyond_the_axis_is_an_error() -> None:
    operands = [(TensorType((4,), I32), [1, 2, 3, 4]), (TensorType((2,), I32), [0, 4])]
    with pytest.raises(UndefinedError, match="element 4 of an axis of 4"):
        apply("tt.gather", operands, axis=0)


def test_histogram_counts_what_the_mask_keeps() -> None:
    values = [0, 1, 1, 3, 7, -1, 3, 3]
    source = TensorType((8,), I32)
    counted = [TensorType((4,), I32)]
    assert apply("tt.histogram", [(source, values)], results=counted)[0].tolist() == [1, 2, 0, 3]
    mask = (TensorType((8,), I1), [1, 0, 1, 1, 1, 1, 0, 1])
    found = apply("tt.histogram", [(source, values), mask], results=counted)[0]
    assert found.tolist() == [1, 1, 0, 2]


def test_select_chooses_by_element_or_as_a_whole() -> None:
    type_ = TensorType((3,), F32)
    branches = [(type_, [1, np.nan, 3]), (type_, [4, 5, 6])]
    found = apply("arith.select", [(TensorType((3,), I1), [1, 0, 1]), *branches])[0]
    assert found.tolist() == [1, 5, 3]
    assert apply("arith.select", [(I1, 0), *branches])[0].tolist() == [4, 5, 6]


Write = Callable[[Builder, Region], None]


def combine(
    name: str,
    operands: list[tuple[TensorType, Any]],
    results: list[Type],
    write: Write,
    **attributes: Any,
) -> list[Array]:
    """Runs a reduction, scan or map of constants and stores its results."""
    twice = 1 if name == "tt.map_elementwise" else 2
    inner = make_region([each.element for each, _ in operands] * twice)
    pointers = [PointerType(element_of(each)) for each in results]  # type: ignore[arg-type]
    body = make_region(pointers)
    builder = Builder(body)
    with builder.inside(inner):
        write(builder, inner)
    values = [
        builder.constant(tuple(held(type_, given).reshape(-1).tolist()), type_)
        for type_, given in operands
    ]
    wanted = results if name == "tt.map_elementwise" else None
    op = builder.op(name, *values, results=wanted, regions=[inner], **attributes)
    for pointer, result in zip(body.arguments, op.results, strict=True):
        shape = shape_of(result.type)
        count = int(np.prod(shape, initial=1))
        flat = result
        if shape:
            flat = builder.value(
                "tt.reshape", result, results=[shaped((count,), element_of(result.type))]
            )  # type: ignore[arg-type]
            lanes = builder.value("tt.make_range", start=0, end=count)
            pointer = builder.value(
                "tt.splat", pointer, results=[TensorType((count,), pointer.type)]
            )  # type: ignore[arg-type]
            pointer = builder.value("tt.addptr", pointer, lanes)
        builder.op("tt.store", pointer, flat)
    builder.op("tt.return")
    module = make_module([Function(name="combine", body=body)])
    verify(module)
    outs = [np.zeros(shape_of(each) or (1,), dtype_of(element_of(each))) for each in results]  # type: ignore[arg-type]
    found = evaluate(module, outs, (1,)).arrays
    return [each.reshape(shape_of(type_)) for each, type_ in zip(found, results, strict=True)]  # type: ignore[union-attr]


def writes(op: str, end: str) -> Write:
    def write(builder: Builder, region: Region) -> None:
        builder.op(end, builder.value(op, *region.arguments))

    return write


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("arith.addi", np.add),
        ("arith.muli", np.multiply),
        ("arith.maxsi", np.maximum),
        ("arith.xori", np.bitwise_xor),
    ],
)
def test_reduce_combines_along_its_axis(axis: int, op: str, function: np.ufunc) -> None:
    shape = tuple(np.delete(VALUES.shape, axis).tolist())
    found = combine(
        "tt.reduce",
        [(CUBE, VALUES)],
        [shaped(shape, I32)],
        writes(op, "tt.reduce.return"),
        axis=axis,
    )
    np.testing.assert_array_equal(found[0], function.reduce(VALUES, axis=axis))


def argmax(tie_left: bool) -> Write:
    """As Triton's `argmax` writes it."""

    def write(builder: Builder, region: Region) -> None:
        a, i, b, j = region.arguments
        greater = builder.value("arith.cmpf", a, b, predicate="ogt")
        if tie_left:
            equal = builder.value("arith.cmpf", a, b, predicate="oeq")
            first = builder.value("arith.cmpi", i, j, predicate="slt")
            tie = builder.value("arith.andi", equal, first)
            greater = builder.value("arith.ori", greater, tie)
        value = builder.value("arith.select", greater, a, b)
        index = builder.value("arith.select", greater, i, j)
        builder.op("tt.reduce.return", value, index)

    return write


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=9), st.booleans())
@settings(max_examples=40)
def test_argmax_breaks_ties_as_its_region_says(values: list[float], tie_left: bool) -> None:
    """To the left if asked, else wherever the greatest value is."""
    n = len(values)
    operands = [(TensorType((n,), F32), values), (TensorType((n,), I32), range(n))]
    value, index = combine("tt.reduce", operands, [F32, I32], argmax(tie_left), axis=0)
    assert value == max(values) and values[int(index)] == max(values)
    if tie_left:
        assert index == np.argmax(values)


def affine(end: str) -> Write:
    """`x -> a x + b` after `x -> c x + d`: associative, and its order matters."""

    def write(builder: Builder, region: Region) -> None:
        c, d, a, b = region.arguments
        slope = builder.value("arith.muli", a, c)
        moved = builder.value("arith.muli", a, d)
        builder.op(end, slope, builder.value("arith.addi", moved, b))

    return write


def compose(first: tuple[int, int], then: tuple[int, int]) -> tuple[int, int]:
    (c, d), (a, b) = first, then
    return a * c, a * d + b


pairs = st.lists(st.tuples(st.integers(-2, 2), st.integers(-5, 5)), min_size=1, max_size=9)


@given(pairs)
@settings(max_examples=40)
def test_reduce_keeps_the_order_of_elements(maps: list[tuple[int, int]]) -> None:
    type_ = TensorType((len(maps),), I64)
    operands = [(type_, [a for a, _ in maps]), (type_, [b for _, b in maps])]
    found = combine("tt.reduce", operands, [I64, I64], affine("tt.reduce.return"), axis=0)
    assert tuple(int(each) for each in found) == functools.reduce(compose, maps)


@given(pairs, st.booleans())
@settings(max_examples=40)
def test_scan_gives_every_prefix_or_suffix(maps: list[tuple[int, int]], reverse: bool) -> None:
    type_ = TensorType((len(maps),), I64)
    operands = [(type_, [a for a, _ in maps]), (type_, [b for _, b in maps])]
    found = combine(
        "tt.scan", operands, [type_, type_], affine("tt.scan.return"), axis=0, reverse=reverse
    )
    wanted = list(itertools.accumulate(maps[::-1] if reverse else maps, compose))
    wanted = wanted[::-1] if reverse else wanted
    assert [tuple(each) for each in np.stack(found, 1).tolist()] == wanted


@pytest.mark.parametrize("axis", [0, 1])
def test_scan_along_either_axis(axis: int) -> None:
    type_ = TensorType((4, 8), F64)
    values = np.random.default_rng(1).normal(size=(4, 8))
    write = writes("arith.addf", "tt.scan.return")
    (found,) = combine("tt.scan", [(type_, values)], [type_], write, axis=axis, reverse=False)
    np.testing.assert_allclose(found, np.cumsum(values, axis))


def test_a_region_with_control_flow_is_run_for_each_element() -> None:
    """The greater of two by `scf.if`, which whole tensors cannot take."""

    def write(builder: Builder, region: Region) -> None:
        a, b = region.arguments
        greater = builder.value("arith.cmpi", a, b, predicate="sgt")
        arms = []
        for chosen in (a, b):
            arm = make_region()
            with builder.inside(arm):
                builder.op("scf.yield", chosen)
            arms.append(arm)
        chosen = builder.value("scf.if", greater, results=[I32], regions=arms)
        builder.op("tt.reduce.return", chosen)

    (found,) = combine("tt.reduce", [(CUBE, VALUES)], [TensorType((2, 4), I32)], write, axis=1)
    np.testing.assert_array_equal(found, VALUES.max(1))


def test_map_runs_its_region_on_each_element() -> None:
    def write(builder: Builder, region: Region) -> None:
        a, b = region.arguments
        builder.op(
            "tt.map_elementwise.return",
            builder.value("arith.addi", a, b),
            builder.constant(7, I64),
        )

    operands = [(CUBE, VALUES), (CUBE, VALUES)]
    sevens = TensorType(CUBE.shape, I64)
    total, constant = combine("tt.map_elementwise", operands, [CUBE, sevens], write, pack=1)
    np.testing.assert_array_equal(total, 2 * VALUES)
    assert (constant == 7).all()


def dot(left: Any, right: Any, addend: Any, types: tuple[Any, Any], **attributes: Any) -> Array:
    operand, result = types
    return apply(
        "tt.dot",
        [
            (TensorType(left.shape, operand), left),
            (TensorType(right.shape, operand), right),
            (TensorType(addend.shape, result), addend),
        ],
        **attributes,
    )[0]


@pytest.mark.parametrize(
    ("precision", "bound"),
    [
        ("tf32", 2.0**-10),
        ("tf32x3", 2.0**-20),
        ("bf16x3", 2.0**-14),
        ("bf16x6", 2.0**-21),
        ("ieee", 0),
    ],
)
def test_a_dot_is_as_precise_as_it_asks(precision: str, bound: float) -> None:
    """The error, relative to the sum of magnitudes, stays below twice the operands' rounding."""
    random = np.random.default_rng(3)
    a, b = (random.normal(size=(2, 16, 16)).astype(np.float32) for _ in range(2))
    c = random.normal(size=(2, 16, 16)).astype(np.float32)
    found = dot(a, b, c, (F32, F32), inputPrecision=precision).astype(np.float64)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) + np.abs(c)
    error = (np.abs(found - exact) / scale).max()
    assert error <= bound + 2.0**-24
    assert error > bound / 100, "the precision asked for is what limits it"


def test_tf32_rounds_the_inputs_of_a_dot() -> None:
    a = np.array([[1 + 2.0**-11]], np.float32)
    one = np.ones((1, 1), np.float32)
    zero = np.zeros((1, 1), np.float32)
    assert float(dot(a, one, zero, (F32, F32), inputPrecision="tf32")[0, 0]) == 1 + 2.0**-10
    assert float(dot(a, one, zero, (F32, F32), inputPrecision="ieee")[0, 0]) == 1 + 2.0**-11
    infinite = np.array([[np.inf]], np.float32)
    assert dot(infinite, one, zero, (F32, F32), inputPrecision="bf16x6")[0, 0] == np.inf


@pytest.mark.parametrize("type_", [F16, BF16], ids=str)
def test_a_dot_of_narrow_floats_accumulates_in_f32(type_: Any) -> None:
    k = 512
    ones = np.ones((1, k)).astype(dtype_of(type_))
    tiny = np.full((k, 1), 1 + 2.0**-7).astype(dtype_of(type_))
    found = dot(ones, tiny, np.zeros((1, 1)), (type_, F32))
    assert float(found[0, 0]) == k * (1 + 2.0**-7)


def test_an_integer_dot_wraps() -> None:
    a = np.full((1, 4), -128, np.int8)
    top = np.array([[(1 << 31) - 1]], np.int32)
    found = dot(a, a.T, top, (I8, I32))
    assert int(found[0, 0]) == (1 << 31) - 1 + 4 * 128 * 128 - (1 << 32)


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "message"),
    [
        ("tt.trans", [(CUBE, VALUES)], {"order": (0, 1, 1)}, "no permutation"),
        ("tt.expand_dims", [(CUBE, VALUES)], {"axis": 4}, "no place for axis 4"),
        ("tt.split", [(CUBE, VALUES)], {}, "last dimension of 2"),
        ("tt.make_range", [], {"start": 4, "end": 4}, "goes from 4 to 4"),
        ("tt.join", [(CUBE, VALUES), (I32, 1)], {}, "operands of one type"),
        (
            "tt.gather",
            [(CUBE, VALUES), (TensorType((4,), I32), [0] * 4)],
            {"axis": 0},
            "differ along",
        ),
        ("arith.constant", [], {"value": 1}, "needs 1 result types"),
    ],
)
def test_a_shape_that_does_not_fit_is_an_error(
    name: str, operands: list[Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        apply(name, operands, **attributes)
