"""Calls that a person writes, against Python's own reading of them."""

import re
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("triton.language")

import triton.language as tl

from translators.triton import host_arrays
from translators.triton.call_text import parse_call
from translators.triton.launches import LaunchError

RNG = np.random.default_rng(0)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text("ab ,()[]=.:'", max_size=5),
    st.text('f32[4]"', max_size=5),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=3), st.dictionaries(st.from_regex(r"\A[a-z_]\w*\Z"), VALUES))
def test_values_are_those_that_python_reads(positional, named):
    """What Python prints of a value is that value again: nesting, commas and quotes alike."""
    written = [*map(repr, positional), *(f"{name} = {value!r}" for name, value in named.items())]
    call = parse_call(f"f({', '.join(written)})", RNG)
    assert call.positional == tuple(positional)
    assert call.named == named
    # As text, in which `1`, `1.0` and `True` differ.
    assert repr(call.positional) == repr(tuple(positional))


def test_parentheses_are_tuples_as_in_python():
    call = parse_call("norm.apply((3), (3,), (3, 4), (), ((1, 2), [3]), [3,],)", RNG)
    assert call.function == "norm.apply"
    assert call.positional == (3, (3,), (3, 4), (), ((1, 2), [3]), [3])


def test_lists_hold_arrays():
    """As the host functions of grouped products take them."""
    (first, second), third = parse_call("f([f32[2,3], f16[4]:[2]], f32[1])", RNG).positional
    assert (tuple(first.shape), tuple(second.shape), second.stride(0)) == ((2, 3), (4,), 2)
    assert str(second.dtype) == "torch.float16"
    assert tuple(third.shape) == (1,)


@pytest.mark.parametrize("torch", [False, True], ids=["stand-ins", "torch"])
def test_element_types_are_those_of_the_arrays_or_tritons_own(torch, monkeypatch):
    if not torch:
        monkeypatch.setattr(host_arrays, "find_spec", lambda name: None)
    elif find_spec("torch") is None:
        pytest.skip("torch is not installed")
    call = parse_call("f(torch.float16, f16, float16, bf16[3], tl.float16, tl.int1)", RNG)
    *plain, array, own, boolean = call.positional
    assert [str(each) for each in plain] == ["torch.float16"] * 3
    assert len(set(plain)) == 1
    assert type(plain[0]) is type(array.dtype)
    assert (own, boolean) == (tl.float16, tl.int1)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("f", "is not a call"),
        ("f(1", "is not a call"),
        ("f(,1)", "from `,1` on"),
        ("f(1,,2)", "from `,2` on"),
        ("f(1 2)", "from `2` on"),
        ("f(1)(2)", "from `)(2` on"),
        ("f([1)", "at its end"),
        ("f([1, (2])", "from `]` on"),
        ("f(1])", "from `]` on"),
        ("f([1]2)", "from `2` on"),
        ("f(x=)", "at its end"),
        ("f(x=y=1)", "from `y=1` on"),
        ("f([x=1])", "from `x=1]` on"),
        ("f('a)", "from `'a` on"),
        ("f(f32[n])", "from `[n]` on"),
        ("f(x=1, 2)", "without a name after one with a name"),
        ("f(x=1, x=2)", "`x` twice"),
        ("f(relu)", "`relu` is no array such as"),
        ("f(n:i64)", "`n:i64` is no array such as"),
        ("f({1:2})", "`{1:2}` is no array such as"),
        ("f(f33[4])", "`f33[4]`: `f33` is no element type"),
        ("f(f32[4]:[1,2])", "`f32[4]:[1,2]`: `array` has 1 dimensions and 2 strides"),
        ("f(fp8e4b15)", "no array on the host"),
        ("f(tl.float31)", "`tl.float31` is no element type"),
    ],
)
def test_what_is_no_call_is_said_without_words_of_ours(text, part):
    with pytest.raises(LaunchError, match=re.escape(part)) as caught:
        parse_call(text, RNG)
    assert "_=" not in caught.value.message
