"""What a call cannot do is refused while JAX traces, at the kernel's line."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

pytest.importorskip("triton.language")

from hlo_tools.errors import InputError
from translators import triton_call

X = jnp.arange(64, dtype=jnp.float32)


def refused(message, *args, at="def", **options):
    with pytest.raises(InputError, match=message) as caught:
        triton_call(*args, **options)
    error = caught.value
    assert Path(error.path).name == "called_kernels.py"
    assert at in Path(error.path).read_text(encoding="utf-8").splitlines()[error.line - 1]


def test_what_has_no_translation_at_its_own_line(called):
    with pytest.raises(InputError) as caught:
        jax.jit(
            lambda x: triton_call(x, kernel=called.assembly, out_type=x, grid=1, BLOCK=64)
        ).lower(jax.ShapeDtypeStruct((64,), jnp.int32))
    lines = Path(caught.value.path).read_text(encoding="utf-8").splitlines()
    assert "inline_asm_elementwise" in lines[caught.value.line - 1]


def test_traced_integers(called):
    def scaled(n):
        return triton_call(X, n, kernel=called.increment, out_type=(), grid=1, BLOCK=64)

    with pytest.raises(InputError, match="`n` is a number of the type `i32` that is not known"):
        jax.jit(scaled)(5)


def test_traced_constants(called):
    def copied(block):
        return triton_call(X, kernel=called.double, out_type=X, grid=1, BLOCK=block)

    with pytest.raises(InputError, match="the constant `BLOCK` is given an array"):
        jax.jit(copied)(64)


def test_64_bit_types_where_they_are_not_enabled(called):
    wide = jax.ShapeDtypeStruct((64,), jnp.float64)
    refused(
        "needs 64-bit types.*jax_enable_x64",
        X,
        kernel=called.double,
        out_type=wide,
        grid=1,
        BLOCK=64,
    )


def test_pallas_for_now(called):
    with pytest.raises(InputError, match="pallas"):
        triton_call(X, kernel=called.double, out_type=X, grid=1, BLOCK=64, emit="pallas")


def test_unknown_emitters(called):
    with pytest.raises(InputError, match="`cuda`"):
        triton_call(X, kernel=called.double, out_type=X, grid=1, BLOCK=64, emit="cuda")


def test_outputs_under_no_name_or_two(called):
    for outputs in ({}, {"out_type": X, "out_shape": X}):
        with pytest.raises(InputError, match="one of `out_type` and `out_shape`"):
            triton_call(X, kernel=called.double, grid=1, BLOCK=64, **outputs)


def test_more_outputs_than_parameters(called):
    refused("2 outputs", X, kernel=called.double, out_type=(X, X), grid=1, BLOCK=64)


def test_fewer_outputs_than_parameters(called):
    refused("0 outputs", X, kernel=called.double, out_type=(), grid=1, BLOCK=64)


def test_an_argument_given_twice(called):
    refused("`x_ptr` twice", X, x_ptr=X, kernel=called.double, out_type=X, grid=1, BLOCK=64)


def test_too_many_arguments(called):
    refused("3 parameters", X, X, X, X, kernel=called.double, out_type=X, grid=1)


def test_names_that_are_neither_parameters_nor_options(called):
    refused("`BLOKC`", X, kernel=called.double, out_type=X, grid=1, BLOCK=64, BLOKC=3)


def test_options_given_twice(called):
    with pytest.raises(InputError, match="num_warps"):
        triton_call(
            X,
            kernel=called.double,
            out_type=X,
            grid=1,
            BLOCK=64,
            num_warps=2,
            backend_options={"num_warps": 4},
        )


@pytest.mark.parametrize("aliases", [{1: 0}, {0: 1}, {5: 0}])
def test_aliases_of_what_is_no_array_or_no_output(called, aliases):
    refused(
        "input_output_aliases",
        X,
        64,
        kernel=called.increment,
        out_type=X,
        grid=1,
        BLOCK=64,
        input_output_aliases=aliases,
    )


def test_aliases_of_another_type(called):
    refused(
        "another type",
        X,
        64,
        kernel=called.increment,
        out_type=jax.ShapeDtypeStruct((64,), jnp.int32),
        grid=1,
        BLOCK=64,
        input_output_aliases={0: 0},
    )


def test_configurations_that_change_the_arguments(called):
    refused("pre_hook", X, n=64, kernel=called.hooked, out_type=X, grid=1)


def test_constants_that_no_configuration_has(called):
    refused(
        "none of the autotuner's configurations",
        X,
        64,
        kernel=called.tuned_increment,
        out_type=(),
        grid=1,
        BLOCK=128,
    )


def test_grids_of_four_axes(called):
    refused("grid", X, kernel=called.double, out_type=X, grid=(1, 1, 1, 1), BLOCK=64)


def test_tuples_within_tuples(called):
    refused(
        "tuple within a tuple",
        ((X, X), X),
        64,
        kernel=called.increment_pair,
        out_type=(),
        grid=1,
        BLOCK=64,
    )


def test_values_that_are_no_argument(called):
    refused("of the type `object`", object(), kernel=called.double, out_type=X, grid=1, BLOCK=64)


def test_element_types_that_triton_has_not(called):
    complex_ = jnp.zeros(64, jnp.complex64)
    refused("complex64", complex_, kernel=called.double, out_type=X, grid=1, BLOCK=64)


def test_kernels_that_are_none():
    with pytest.raises(InputError, match="`kernel` is of the type `builtin_function_or_method`"):
        triton_call(X, kernel=print, out_type=X, grid=1)


def test_global_constants_that_changed(called, monkeypatch):
    import triton.language as tl

    x = jnp.ones(1)
    triton_call(x, kernel=called.add_global, out_type=x, grid=1)
    monkeypatch.setattr(called, "OFFSET", tl.constexpr(4))
    refused("`OFFSET`.*has changed", x, kernel=called.add_global, out_type=x, grid=1)
