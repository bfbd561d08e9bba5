"""Attribute lists are split where XLA's lexer would split them, and values read in every form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.hlo.attributes import (
    MAX_DEVICES,
    find_attribute,
    iterate_attributes,
    parse_integers,
    parse_json,
    parse_replica_groups,
    parse_string,
)

_STRINGS = st.text(max_size=12).map(
    lambda s: '"' + s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
)
_WORDS = st.from_regex(r"[A-Za-z0-9_.%\->]{1,10}", fullmatch=True)
_VALUES = st.recursive(
    st.one_of(_STRINGS, _WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda v: "{" + ",".join(v) + "}"),
        st.lists(inner, max_size=3).map(lambda v: "[" + ", ".join(v) + "]"),
        st.lists(inner, max_size=3).map(lambda v: "{" + " ".join(f"k={x}" for x in v) + "}"),
    ),
    max_leaves=8,
)
_KEYS = st.from_regex(r"[a-z_][a-z_0-9\-]{0,12}", fullmatch=True)


@given(st.lists(st.tuples(_KEYS, _VALUES), max_size=6))
def test_lists_are_split_at_the_commas_between_attributes(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f", {key}={value}" for key, value in pairs)
    assert list(iterate_attributes(text)) == pairs
    for key, value in reversed(pairs):
        assert find_attribute(text, key) == dict(reversed(pairs))[key]
        assert value in text


@given(st.text('ab=,{}[]()"\\/* \n', max_size=60))
def test_any_text_ends(text: str) -> None:
    for key, value in iterate_attributes(text):
        assert key in text
        assert value in text


def test_strings_hide_what_looks_like_attributes() -> None:
    text = ', metadata={op_name="a, calls=%x // {" source_line=3}, calls=%y, backend_config="}{"'
    assert dict(iterate_attributes(text)) == {
        "metadata": '{op_name="a, calls=%x // {" source_line=3}',
        "calls": "%y",
        "backend_config": '"}{"',
    }
    assert find_attribute(text, "calls") == "%y"
    assert find_attribute(text, "op_name") is None


def test_values_of_unusual_form() -> None:
    text = (
        ", window={size=3x3 pad=0_0x1_1}, dim_labels=bf_io->bf, "
        "replica_groups=mesh['axis_0'=4,'axis_1'=4] {'axis_0'}, slice={[0:1], [2:3:4]}, "
        "sharding={devices=[2,1]<=[2]}, literal=s32[2]{0} {1, 2}, flag=true"
    )
    assert dict(iterate_attributes(text)) == {
        "window": "{size=3x3 pad=0_0x1_1}",
        "dim_labels": "bf_io->bf",
        "replica_groups": "mesh['axis_0'=4,'axis_1'=4] {'axis_0'}",
        "slice": "{[0:1], [2:3:4]}",
        "sharding": "{devices=[2,1]<=[2]}",
        "literal": "s32[2]{0} {1, 2}",
        "flag": "true",
    }


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{{0},{1}}", ((0,), (1,))),
        ("{}", ()),
        ("{{}}", ()),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x','y'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
    ],
)
def test_replica_groups(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    parsed = parse_replica_groups(text)
    assert parsed is not None
    assert parsed.groups == groups


@given(st.permutations([2, 3, 4]), st.permutations([0, 1, 2]), st.sampled_from([1, 2, 4, 12]))
def test_iota_groups_hold_every_device_once(dims: list[int], order: list[int], size: int) -> None:
    listed = ",".join(map(str, dims))
    text = f"[{24 // size},{size}]<=[{listed}]T({','.join(map(str, order))})"
    parsed = parse_replica_groups(text)
    assert parsed is not None
    assert parsed.size == size
    assert sorted(d for group in parsed.groups for d in group) == list(range(24))


@pytest.mark.parametrize(
    "text",
    ["", "x", "[2,2]<=[5]", "[2,2]<=[4]T(1)", f"[1,{MAX_DEVICES * 2}]<=[{MAX_DEVICES * 2}]",
     "[0]<=[0]", "mesh['x'=2] {'z'}", "mesh['x'=99999999] {'x'}"],
)  # fmt: skip
def test_no_replica_groups(text: str) -> None:
    assert parse_replica_groups(text) is None


@given(st.text(max_size=30))
def test_strings_lose_their_quotes(value: str) -> None:
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert parse_string(quoted) == value


def test_json_in_each_of_its_forms() -> None:
    assert parse_json('{"a":[1,"b"]}') == {"a": [1, "b"]}
    assert parse_json(r'"{\"a\":1}"') == {"a": 1}
    assert parse_json("{not json}") is None
    assert parse_json("[" * 100_000) is None


def test_integers() -> None:
    assert parse_integers("{0,1,-2}") == (0, 1, -2)
    assert parse_integers("{}") == ()
