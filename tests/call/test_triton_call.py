"""A kernel called from JAX computes what the same mathematics computes in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("triton.language")

import triton

from translators import triton_call


def drawn(shape, seed=0, dtype="float32"):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def add(kernels, x, y, **options):
    return triton_call(
        x,
        y,
        kernel=kernels.vector_add,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        n=x.size,
        grid=lambda meta: triton.cdiv(x.size, meta["BLOCK"]),
        BLOCK=128,
        **options,
    )


def softmax(kernels, x):
    rows, columns = x.shape
    return triton_call(
        out_stride=columns,
        x_stride=columns,
        columns=columns,
        x_ptr=x,
        kernel=kernels.softmax,
        out_type=x,
        grid=(rows,),
        BLOCK=triton.next_power_of_2(columns),
    )


def matmul(kernels, a, b, activation="none"):
    (m, k), n = a.shape, b.shape[1]
    strides = {"stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1}
    return triton_call(
        a,
        b,
        M=m,
        N=n,
        K=k,
        **strides,
        stride_cm=n,
        stride_cn=1,
        kernel=kernels.matmul,
        out_type=jax.ShapeDtypeStruct((m, n), jnp.float32),
        grid=lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])),
        BLOCK_M=32,
        BLOCK_N=32,
        BLOCK_K=16,
        ACTIVATION=activation,
    )


def layer_norm(kernels, x, weight, bias, eps=1e-5):
    rows, columns = x.shape
    outputs = (x, jax.ShapeDtypeStruct((rows,), x.dtype), jax.ShapeDtypeStruct((rows,), x.dtype))
    return triton_call(
        x_ptr=x,
        w_ptr=weight,
        b_ptr=bias,
        stride=columns,
        columns=columns,
        eps=eps,
        kernel=kernels.layer_norm,
        out_type=outputs,
        grid=(rows,),
        BLOCK=64,
    )


@pytest.mark.parametrize("emit", ["auto", "jax", "stablehlo"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_vector_add(kernels, wrap, emit):
    x, y = drawn(1000), drawn(1000, 1)
    got = wrap(lambda x, y: add(kernels, x, y, emit=emit))(x, y)
    np.testing.assert_array_equal(got, x + y)


@pytest.mark.parametrize("columns", [64, 781])
def test_softmax(kernels, columns):
    x = drawn((37, columns))
    got = jax.jit(lambda x: softmax(kernels, x))(x)
    np.testing.assert_allclose(got, jax.nn.softmax(x), rtol=1e-6)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 96, 48), (50, 70, 33)])
def test_matmul_with_activation(kernels, m, n, k):
    a, b = drawn((m, k)), drawn((k, n), 1)
    got = jax.jit(lambda a, b: matmul(kernels, a, b, "relu"))(a, b)
    wanted = jax.nn.relu(jnp.matmul(a, b, precision="highest"))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_layer_norm_gives_its_outputs_in_the_order_of_the_kernel(kernels):
    x, weight, bias = drawn((20, 100)), drawn(100, 1), drawn(100, 2)
    got, mean, rstd = jax.jit(lambda *given: layer_norm(kernels, *given))(x, weight, bias)
    np.testing.assert_allclose(mean, x.mean(1), atol=1e-6)
    wanted_rstd = 1 / jnp.sqrt(x.var(1) + 1e-5)
    np.testing.assert_allclose(rstd, wanted_rstd, rtol=1e-5)
    wanted = (x - x.mean(1)[:, None]) * wanted_rstd[:, None] * weight + bias
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_gradient_of_softmax(kernels):
    x, weight = drawn((16, 100)), drawn((16, 100), 1)
    got = jax.grad(lambda x: (softmax(kernels, x) * weight).sum())(x)
    wanted = jax.grad(lambda x: (jax.nn.softmax(x) * weight).sum())(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


def test_gradient_of_matmul(kernels):
    a, b, weight = drawn((64, 48)), drawn((48, 96), 1), drawn((64, 96), 2)

    def loss(product):
        return jax.grad(lambda a, b: (product(a, b) * weight).sum(), argnums=(0, 1))(a, b)

    got = loss(lambda a, b: matmul(kernels, a, b))
    wanted = loss(lambda a, b: jnp.matmul(a, b, precision="highest"))
    for each, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("emit", ["jax", "stablehlo"])
def test_gradient_by_each_emitter(called, emit):
    def scaled(x, factor):
        return triton_call(
            x, factor, kernel=called.scale, out_type=x, grid=1, BLOCK=64, emit=emit
        ).sum()

    x = drawn(64)
    to_x, to_factor = jax.grad(scaled, argnums=(0, 1))(x, jnp.float32(3.0))
    np.testing.assert_allclose(to_x, np.full(64, 3.0))
    np.testing.assert_allclose(to_factor, x.sum(), rtol=1e-5)


def test_vmap_of_a_call(kernels):
    x = drawn((3, 16, 50))
    got = jax.vmap(lambda x: softmax(kernels, x))(x)
    np.testing.assert_allclose(got, jax.nn.softmax(x), rtol=1e-6)


@pytest.mark.parametrize(
    "grid",
    [4, (4,), [4, 1], (4, 1, 1), lambda meta: 4, lambda meta: (256 // meta["BLOCK"], 1)],
    ids=["int", "tuple", "list", "three", "function_int", "function_tuple"],
)
def test_every_form_of_grid(called, grid):
    x, y = drawn(256), drawn(256, 1)
    got = triton_call(x, y, 256, kernel=called.add_after, out_type=x, grid=grid)
    np.testing.assert_array_equal(got, x + y)


@pytest.mark.parametrize(
    "outputs",
    [lambda x: (x, x), lambda x: [x, x], lambda x: {"first": x, "rest": (x,)}],
    ids=["tuple", "list", "dict"],
)
def test_outputs_come_in_the_structure_asked_for(called, outputs):
    x = jnp.array([42])
    got = triton_call(x, kernel=called.copy_twice, out_type=outputs(x), grid=1)
    assert jax.tree.structure(got) == jax.tree.structure(outputs(x))
    assert [int(each[0]) for each in jax.tree.leaves(got)] == [42, 43]


def test_elements_that_the_kernel_does_not_write_are_zero(called):
    x = drawn(64)
    got = triton_call(x, n=64, kernel=called.first_half, out_type=x, grid=1, BLOCK=64)
    np.testing.assert_array_equal(got, jnp.where(jnp.arange(64) < 32, x, 0))


def test_an_empty_grid_leaves_outputs_as_they_start(called):
    x = drawn(8)
    got = triton_call(
        x, 8, kernel=called.increment, out_type=x, grid=(0,), BLOCK=8, input_output_aliases={0: 0}
    )
    np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_alias_without_a_parameter_of_its_own(called, wrap):
    def incremented(x):
        return triton_call(
            x,
            x.size,
            kernel=called.increment,
            out_type=x,
            grid=(8,),
            BLOCK=16,
            input_output_aliases={0: 0},
        )

    x = drawn(100)
    np.testing.assert_array_equal(wrap(incremented)(x), x + 1)


def test_alias_counts_numbers_where_it_has_no_parameter_of_its_own(called):
    x = drawn(100)
    got = triton_call(
        100,
        x,
        kernel=called.increment_after_size,
        out_type=x,
        grid=(8,),
        BLOCK=16,
        input_output_aliases={1: 0},
    )
    np.testing.assert_array_equal(got, x + 1)


def test_alias_with_a_parameter_of_its_own_counts_arrays(called):
    x, y = drawn(100), drawn(100, 1)
    got = triton_call(
        x,
        y,
        100,
        kernel=called.add_to,
        out_shape=x,
        grid=2,
        BLOCK=64,
        input_output_aliases={0: 0},
    )
    np.testing.assert_array_equal(got, x + y)


def test_alias_whose_parameter_comes_first(kernels):
    x = drawn((4, 32))
    got = triton_call(
        x_ptr=x,
        out_stride=32,
        x_stride=32,
        columns=32,
        kernel=kernels.softmax,
        out_shape=x,
        grid=4,
        BLOCK=32,
        input_output_aliases={0: 0},
    )
    np.testing.assert_allclose(got, jax.nn.softmax(x), rtol=1e-6)


@pytest.mark.parametrize("zeroed", [(0,), lambda meta: [0] if meta["BLOCK"] == 16 else []])
def test_zeroed_outputs_start_as_zeros_even_where_they_are_inputs(called, zeroed):
    x = drawn(100)
    got = triton_call(
        x,
        100,
        kernel=called.increment,
        out_type=x,
        grid=8,
        BLOCK=16,
        input_output_aliases={0: 0},
        zeroed_outputs=zeroed,
    )
    np.testing.assert_array_equal(got, np.ones(100))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_references_are_changed(called, wrap):
    x, y = drawn(40), drawn(40, 1)
    first, second = jax.new_ref(x), jax.new_ref(y)

    def increment(first, second):
        return triton_call(
            (first, second), 40, kernel=called.increment_pair, out_type=(), grid=3, BLOCK=16
        )

    assert wrap(increment)(first, second) == ()
    np.testing.assert_array_equal(first[...], x + 1)
    np.testing.assert_array_equal(second[...], y + 2)


def test_inputs_that_are_no_outputs_keep_their_contents(called):
    x = drawn(40)
    before = np.asarray(x).copy()
    assert triton_call(x, 40, kernel=called.increment, out_type=(), grid=3, BLOCK=16) == ()
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    "factor",
    [2, 2.0, np.float32(2), np.float64(2), np.int64(2), jnp.float32(2), jnp.int32(2)],
    ids=lambda factor: type(factor).__name__ + str(getattr(factor, "dtype", "")),
)
def test_numbers_of_every_library(called, factor):
    x = drawn(64)
    got = triton_call(x, factor, kernel=called.scale, out_type=x, grid=1, BLOCK=64)
    np.testing.assert_array_equal(got, x * 2)


@pytest.mark.parametrize("factor", [float("inf"), -float("inf"), float("nan"), 1e-30])
def test_numbers_beyond_the_usual(called, translated, factor):
    x = jnp.ones(64)
    got = triton_call(x, factor, kernel=called.scale, out_type=x, grid=1, BLOCK=64)
    np.testing.assert_array_equal(got, x * factor)
    assert len(translated) == 1


def test_an_array_without_dimensions_is_memory_where_the_kernel_loads_it(called):
    x = drawn(64)
    got = triton_call(
        x, jnp.float32(2), kernel=called.scale_by_memory, out_type=x, grid=1, BLOCK=64
    )
    np.testing.assert_array_equal(got, x * 2)


def test_a_traced_floating_point_number_is_an_input(called, translated):
    @jax.jit
    def scaled(x, factor):
        return triton_call(x, factor, kernel=called.scale, out_type=x, grid=1, BLOCK=64)

    x = drawn(64)
    np.testing.assert_array_equal(scaled(x, 2.0), x * 2)
    np.testing.assert_array_equal(scaled(x, 3.0), x * 3)
    assert len([each for each in translated if each.arguments[1].type == "fp32"]) == 1


def test_an_autotuner_takes_its_first_configuration_that_fits(kernels, called, translated):
    x, y = drawn(200), drawn(200, 1)
    got = triton_call(
        x,
        y,
        n=200,
        kernel=kernels.tuned_add,
        out_type=x,
        grid=lambda meta: (triton.cdiv(200, meta["BLOCK"]),),
    )
    np.testing.assert_array_equal(got, x + y)
    got = triton_call(
        x, 200, kernel=called.tuned_increment, out_type=x, grid=4, input_output_aliases={0: 0}
    )
    np.testing.assert_array_equal(got, x + 1)
    constants = [{each.name: each.value for each in launch.singles[3:]} for launch in translated]
    assert constants[0]["BLOCK"] == 64
    assert constants[0]["EVEN"] is False
    assert translated[1].singles[-1].value == 64  # 512 is ruled out by the tuner itself


def test_an_autotuner_keeps_to_a_constant_that_is_given(kernels, translated):
    x = drawn(256)
    got = triton_call(x, x, n=256, kernel=kernels.tuned_add, out_type=x, grid=2, BLOCK=128)
    np.testing.assert_array_equal(got, x + x)
    assert translated[0].singles[-1].value is True


def test_a_second_trace_does_not_translate_again(kernels, translated):
    x, y = drawn(1000), drawn(1000, 1)
    jax.jit(lambda x, y: add(kernels, x, y))(x, y)
    jax.jit(lambda x, y: add(kernels, x, y) * 2)(x, y)
    add(kernels, x, y)
    assert len(translated) == 1
    add(kernels, x[:500], y[:500])
    add(kernels, x.astype(jnp.bfloat16), y.astype(jnp.bfloat16))
    assert len(translated) == 3


def test_floating_point_numbers_do_not_translate_again(kernels, translated):
    given = drawn((4, 64)), drawn(64, 1), drawn(64, 2)
    results = [layer_norm(kernels, *given, eps=eps)[2] for eps in (1e-5, 0.5)]
    assert len(translated) == 1
    for rstd, eps in zip(results, (1e-5, 0.5), strict=True):
        np.testing.assert_allclose(rstd, 1 / jnp.sqrt(given[0].var(1) + eps), rtol=1e-5)


def test_constants_that_compare_equal_are_told_apart(called):
    x = jnp.ones(1)
    got = [
        float(triton_call(x, kernel=called.divide, out_type=x, grid=1, DIVISOR=divisor)[0])
        for divisor in (0.0, -0.0, 0.0)
    ]
    assert got == [np.inf, -np.inf, np.inf]


def test_functions_given_as_constants_are_told_apart(called):
    x = drawn(64)
    for function, wanted in ((called.square, x * x), (called.negate, -x), (called.square, x * x)):
        got = triton_call(x, kernel=called.apply, out_type=x, grid=1, FUNCTION=function, BLOCK=64)
        np.testing.assert_array_equal(got, wanted)


def test_64_bit_arrays_where_they_are_enabled(called):
    with jax.enable_x64(True):
        x = drawn(64, dtype="float64")
        got = triton_call(x, kernel=called.double, out_type=x, grid=1, BLOCK=64)
        assert got.dtype == jnp.float64
        np.testing.assert_array_equal(got, x * 2)


def test_debug_prints_what_the_kernel_became(kernels, capsys):
    add(kernels, drawn(100), drawn(100), debug=True)
    printed = capsys.readouterr().out
    assert "def vector_add(" in printed
    assert "tt.load" in printed


def test_importing_the_package_imports_neither_jax_nor_triton():
    import subprocess
    import sys

    code = "import sys, translators; print([n for n in ('jax', 'triton') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
