import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.triton.launch_text import (
    parse_argument,
    parse_constant,
    parse_grid,
    share_memory,
)
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    KernelSource,
    Launch,
    LaunchError,
    ScalarArgument,
    TypeConstant,
    canonical_dtype,
    grid_of_three,
    pair_by_name,
    row_major_strides,
    scalar_dtype,
)

SHAPES = st.lists(st.integers(1, 9), max_size=4).map(tuple)


@given(SHAPES, st.sampled_from(["f32", "bf16", "i64", "pred", "f8e5m2"]))
def test_a_written_array_is_row_major_in_its_own_memory(shape, dtype):
    argument = parse_argument(f"x = {dtype}[{','.join(map(str, shape))}]", buffer=3)
    assert argument == ArrayArgument(
        name="x",
        dtype=canonical_dtype(dtype),
        shape=shape,
        strides=row_major_strides(shape),
        buffer=3,
    )


@given(SHAPES)
def test_row_major_strides_number_the_elements_in_order(shape):
    """The last element lies just before the end: no gaps, and the last dimension runs fastest."""
    strides = row_major_strides(shape)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    assert last == math.prod(shape) - 1
    assert list(strides) == sorted(strides, reverse=True)


def test_strides_are_read_as_written():
    argument = parse_argument("x=f32[4,8]:[1,4]", buffer=0)
    assert isinstance(argument, ArrayArgument)
    assert argument.strides == (1, 4)


@given(st.integers(-(2**63), 2**64 - 1))
def test_an_integer_has_the_narrowest_type_that_triton_gives_it(value):
    dtype = scalar_dtype(value)
    bits = int(dtype[1:])
    low = 0 if dtype[0] == "u" else -(2 ** (bits - 1))
    assert low <= value < low + 2**bits
    assert (dtype == "i32") == (-(2**31) <= value < 2**31)
    assert parse_argument(f"n={value}", buffer=0) == ScalarArgument(
        name="n", dtype=dtype, value=value
    )


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("a=7:i64", "i64", 7),
        ("a=1e-5", "fp32", 1e-5),
        ("a=2:f64", "fp64", 2.0),
        ("a=true", "i1", True),
        ("a=200:u8", "u8", 200),
    ],
)
def test_numbers(text, dtype, value):
    assert parse_argument(text, buffer=0) == ScalarArgument(name="a", dtype=dtype, value=value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=32", 32),
        ("A=0.5", 0.5),
        ("A=false", False),
        ("A=None", None),
        ("A=relu", "relu"),
        ("A='7'", "7"),
        ("A=tl.float32", TypeConstant(dtype="fp32")),
    ],
)
def test_constants(text, value):
    assert parse_constant(text) == ConstantArgument(name="A", value=value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("f32[4]", "name=value"),
        ("x=", "name=value"),
        ("2x=4", "name=value"),
        ("x=f31[4]", "`f31`"),
        ("x=f32[4,8]:[1]", "2 dimensions and 1 strides"),
        ("x=hello", "no array such as"),
        ("x=300:i8", "`i8` cannot hold"),
        ("x=-1:u32", "`u32` cannot hold"),
        ("x=1.5:i32", "integer type `i32`"),
        (f"x={2**64}", "more than 64 bits"),
    ],
)
def test_what_is_no_argument_is_said(text, part):
    with pytest.raises(LaunchError, match=part.replace("[", r"\[")):
        parse_argument(text, buffer=0)


def test_grids():
    assert parse_grid("4") == (4, 1, 1)
    assert parse_grid("4, 2") == (4, 2, 1)
    assert grid_of_three((1, 2, 3)) == (1, 2, 3)
    for text in ("", "0", "-1", "1,2,3,4", "x"):
        with pytest.raises(LaunchError, match="grid"):
            parse_grid(text)


def test_arguments_that_share_memory_are_aliases():
    arguments = [parse_argument(f"{name}=f32[4]", buffer=at) for at, name in enumerate("xyz")]
    launch = Launch(
        kernel=KernelSource(function="f", file="f.py", line=1),
        arguments=tuple(share_memory(arguments, [("x", "z")])),
        grid=(1, 1, 1),
    )
    assert launch.aliases == (("x", "z"),)
    with pytest.raises(LaunchError, match="`w`"):
        list(share_memory(arguments, [("x", "w")]))


def test_an_argument_given_twice_is_said():
    with pytest.raises(LaunchError, match="`n` is given twice"):
        pair_by_name([parse_argument("n=4", buffer=0), parse_argument("n=5", buffer=0)])


def test_signatures_are_spelled_as_triton_spells_them():
    arguments = tuple(
        parse_argument(text, buffer=0) for text in ("p=pred[4]", "x=bf16[2]", "f=true", "n=3:i64")
    )
    launch = Launch(
        kernel=KernelSource(function="f", file="f.py", line=1),
        arguments=(*arguments, parse_constant("B=8")),
        grid=(1, 1, 1),
    )
    assert launch.signature == {
        "p": "*u1",
        "x": "*bf16",
        "f": "u1",
        "n": "i64",
        "B": "constexpr",
    }
