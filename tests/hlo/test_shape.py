"""Shapes and layouts: the text and the value are one thing, and bytes follow from the layout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_against_xla import plain_shape

import xla_oracle
from hlo_tools.hlo.shape import (
    MAX_NESTING,
    Layout,
    Shape,
    format_layout,
    format_shape,
    parse_layout,
    parse_shape,
)
from strategies import array_shapes, shapes


@given(shapes())
def test_a_formatted_shape_reads_back(shape: Shape) -> None:
    assert parse_shape(format_shape(shape)) == shape


@given(st.text("f32bs[](){},:<=?/*index1 TSE", max_size=40))
def test_any_text_is_a_shape_or_none(text: str) -> None:
    shape = parse_shape(text)
    if shape is not None:
        assert shape.logical_bytes >= 0
        assert parse_shape(format_shape(shape)) == shape


@given(array_shapes())
def test_padding_never_takes_bytes_away(shape: Shape) -> None:
    assert shape.padded_bytes >= shape.logical_bytes
    assert shape.logical_bytes >= shape.element_count * shape.element_bits // 8
    bare = Shape(element_type=shape.element_type, dimensions=shape.dimensions)
    assert bare.element_count == shape.element_count


@given(array_shapes(element_type="f32"))
def test_grown_dimensions_account_for_all_padding(shape: Shape) -> None:
    grown = shape.padding_by_dimension()
    count = 1
    for dim, size in enumerate(shape.dimensions):
        count *= grown.get(dim, size)
    assert (
        shape.layout is None
        or len(shape.layout.tiles) > 1
        or shape.padded_bytes
        in (
            4 * count,
            4 * count * padded_rank_factor(shape),
        )
    )


def padded_rank_factor(shape: Shape) -> int:
    """An array of fewer dimensions than its tile is padded along those that it lacks."""
    tile = shape.layout.tiles[0] if shape.layout and shape.layout.tiles else ()
    factor = 1
    for size in tile[: max(0, len(tile) - len(shape.dimensions))]:
        factor *= size
    return factor


@given(st.lists(shapes(), max_size=5))
def test_a_tuple_is_the_sum_of_its_members(members: list[Shape]) -> None:
    whole = Shape(element_type="tuple", elements=tuple(members))
    assert whole.padded_bytes == sum(s.padded_bytes for s in members)
    assert whole.logical_bytes == sum(s.logical_bytes for s in members)
    assert whole.element_count == sum(s.element_count for s in members)
    assert list(whole.leaves()) == [leaf for s in members for leaf in s.leaves()]


# Each beside what the TPU compiler's buffer assignment says of it.
@pytest.mark.parametrize(
    ("text", "padded"),
    [
        ("bf16[256,1000]{0,1:T(8,128)(2,1)}", 512000),
        ("bf16[4,250,513]{1,0,2:T(4,128)(2,1)}", 1050624),
        ("f32[1,1]{1,0:T(1,128)}", 512),
        ("f32[]{:T(128)}", 512),
        ("s4[100,3]{0,1:T(8,128)(8,1)E(4)}", 512),
        ("pred[1000,256]{1,0:T(8,128)(4,1)S(1)SC(0:504)}", 129024),
        ("f32[33,17,9,5]{0,1,3,2:T(8,128)S(1)SC(0:5)}", 307200),
        ("u32[]{:S(2)}", 4),
    ],
)
def test_padded_bytes_of_the_compiler(text: str, padded: int) -> None:
    shape = parse_shape(text)
    assert shape is not None
    assert shape.padded_bytes == padded


@pytest.mark.skipif(not xla_oracle.AVAILABLE, reason="this jaxlib has no parser of HLO text")
@pytest.mark.parametrize(
    "text",
    [
        "f32[]",
        "f32[2,3]",
        "f32[2,3]{0,1}",
        "bf16[256,1000]{0,1:T(8,128)(2,1)S(1)}",
        "s4[100,3]{0,1:T(8,128)(8,1)E(4)}",
        "pred[1000,256]{1,0:T(8,128)(4,1)S(1)SC(0:504)}",
        "f32[8,128]{1,0:T(8,128)L(4)}",
        "f32[4,<=8]{1,0}",
        "f32[?,8]",
        "token[]",
        "opaque[]",
        "b(f32[3])",
        "(f32[2]{0}, (s32[], (pred[]), ()), /*index=2*/token[])",
        "f8e4m3fn[3]{0:T(1024)(128)(4,1)}",
        "c128[2]{0:S(5)}",
        "f32[2,3]{1,0:D(D,C)}",
        "f32[2,3]{1,0:D(D,C)P((f32[2]{0}))}",
        "f32[2,3]{1,0:T(8,128)M(16)}",
        "f32[2,3]{1,0:#(u32)}",
    ],
)
def test_same_shape_as_xla(text: str) -> None:
    program = f"HloModule m\nENTRY %main {{\n  ROOT %p = {text} parameter(0)\n}}\n"
    try:
        theirs = xla_oracle.parse(program)
    except xla_oracle.RefusedError as error:
        pytest.skip(f"this XLA refuses it: {error}")
    shape = parse_shape(text)
    assert shape is not None
    assert plain_shape(shape) == theirs.computations["main"].instructions[0].shape


@pytest.mark.parametrize(
    "text",
    ["", "f32", "f32[", "f32[a]", "f32[-1]", "f32[2]{1}", "f32[2,2]{0,0}", "(f32[2]", "f32[2])",
     "f32[2] f32[3]", "()()", "b(f32[2], f32[3])", "f32[" + "9" * 40 + "]", "\u0661[2]"],
)  # fmt: skip
def test_no_shape(text: str) -> None:
    assert parse_shape(text) is None


def test_deep_nesting_is_refused_without_a_deep_stack() -> None:
    assert parse_shape("(" * MAX_NESTING + ")" * MAX_NESTING) is not None
    assert parse_shape("(" * (MAX_NESTING + 1) + ")" * (MAX_NESTING + 1)) is None
    assert parse_shape("(" * 1_000_000) is None


def test_fields_that_mean_nothing_here_are_printed_again() -> None:
    for text in ("1,0:D(D,C)P((f32[2]{0}))", "1,0:T(8,128)M(16)", "1,0:#(u32)*(s32)"):
        layout = parse_layout(text)
        assert layout is not None
        assert format_layout(layout) == "{" + text + "}"


def test_a_layout_is_read_physically() -> None:
    layout = Layout(minor_to_major=(0, 2, 1))
    assert layout.physical_dimensions((10, 20, 30)) == (20, 30, 10)
