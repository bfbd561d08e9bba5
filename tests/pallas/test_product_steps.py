"""Products whose sums are brought by several steps are those of all steps together."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from emitted_kernels import compiler, problems
from launch_case import Case, evaluated, launched
from pallas_case import assert_same

from translators.emit.pallas.lengths import UnknownDimensionError
from translators.graph.errors import GraphError
from translators.translation import translate
from translators.triton.binding import bind
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_argument, parse_constant
from translators.triton.launches import grid_of_three
from translators.triton.loading import load_file

FILE = Path(__file__).with_name("product_kernels.py")


def floats(*shape):
    """Numbers whose products and sums are exact in f32."""
    rng = np.random.default_rng(shape)
    return (rng.integers(-8, 9, shape) / 4).astype(np.float32)


def case(kernel, m, n, k, block=32, **more):
    arrays = {
        "with_masks": {"a_ptr": floats(m, k), "b_ptr": floats(k, n), "c_ptr": floats(m, n)},
        "with_pointers": {
            **{"a_ptr": floats(m, k), "b_ptr": floats(k, n), "bias_ptr": floats(n)},
            "c_ptr": floats(m, n),
        },
        "of_two": {
            **{"x_ptr": floats(m, k), "gate_ptr": floats(k, n), "up_ptr": floats(k, n)},
            "out_ptr": floats(m, n),
        },
        "of_integers": {
            "x_ptr": np.arange(m * k).reshape(m, k).astype(np.int8),
            "w_ptr": np.arange(k * n).reshape(k, n).astype(np.int8),
            **{"scale_ptr": floats(n), "out_ptr": floats(m, n)},
        },
    }[kernel]
    scalars = {"M": m, "N": n, "K": k} if kernel == "with_masks" else {"N": n, "K": k}
    return Case(
        name=f"{kernel} {m}x{n}x{k}",
        file=FILE,
        kernel=kernel,
        arrays=arrays,
        scalars=scalars,
        constants={"BM": block, "BN": block, **more},
        grid=(-(-m // block), -(-n // block)),
    )


CASES = [
    # The loop's iterations that a step does: several, of which the blocks are cut together.
    (case("with_masks", 96, 64, 512, BK=32), {"k": 4}, 4),
    (case("with_masks", 96, 64, 512, BK=32), {"k": 8}, 2),
    # One each, with a last block that reaches over the end of all dimensions.
    (case("with_masks", 70, 50, 500, BK=128), {"k": 1}, 4),
    (case("with_pointers", 64, 64, 256), {"step": 4}, 2),
    (case("of_two", 64, 32, 512), {"k": 2}, 4),
    (case("of_integers", 64, 32, 256), {"k": 4}, 2),
]


def title(each):
    return f"{each[0]}, {each[1]}" if isinstance(each, tuple) else None


@pytest.mark.parametrize("each", CASES, ids=title)
def test_steps_add_up(each):
    from jax.experimental.pallas import tpu as pltpu

    product, lengths, steps = each
    translation = translate(*launched(product), "pallas", lengths)
    source = translation.function.source
    assert f"_step == {steps - 1})" in source
    assert "scratch_shapes=" in source
    expected = evaluated(product)
    tolerance = 1e-5  # of the functions that follow the sums, which are exact
    assert_same(product, translation, expected, tolerance, 1e-6)
    # Memory holds NaN at first here: what a total begins as is written, not found.
    interpreted = pltpu.InterpretParams()
    assert_same(product, translation, expected, tolerance, 1e-6, interpret=interpreted)


@pytest.mark.parametrize("each", CASES[2:], ids=title)
def test_steps_compile(each):
    product, lengths, _ = each
    function = translate(*launched(product), "pallas", lengths).function
    arrays = {name: product.arrays[name] for name in function.parameters}
    with compiler() as process:
        assert not problems(process, function, arrays)


def large(k):
    """The text for a product of large matrices."""
    kernel = find_kernel(load_file(FILE), "with_masks")
    arrays = {"a_ptr": f"bf16[4096,{k}]", "b_ptr": f"bf16[{k},4096]", "c_ptr": "fp32[4096,4096]"}
    given = {**arrays, "M": 4096, "N": 4096, "K": k}
    arguments = [
        parse_argument(f"{name}={value}", buffer=index)
        for index, (name, value) in enumerate(given.items())
    ]
    arguments += [parse_constant(f"{name}=64") for name in ("BM", "BN", "BK")]
    launch = bind(kernel, arguments, grid=grid_of_three((64, 64)))
    return translate(kernel, launch, "pallas").function.source


def test_only_what_has_no_room_is_divided():
    """Sums that fit are brought by one step, however many steps there could be."""
    assert "scratch_shapes" not in large(1024)
    source = large(1 << 15)
    assert "scratch_shapes=[pltpu.VMEM((1024, 1024), jnp.float32)]" in source
    assert 'dimension_semantics=("parallel", "parallel", "arbitrary")' in source


def test_one_iteration_is_no_loop():
    with pytest.raises(UnknownDimensionError):
        translate(*launched(case("with_masks", 64, 64, 64, BK=64)), "pallas", {"k": 1})


def test_steps_that_are_asked_for_have_to_divide_the_loop():
    with pytest.raises(GraphError, match="have to divide its 16 iterations"):
        translate(*launched(case("with_masks", 64, 64, 512, BK=32)), "pallas", {"k": 5})
