import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import (
    OURS,
    added,
    launched,
    layer_norm,
    matmul,
    multiplied,
    normed,
    softened,
    softmax,
    subject,
    vector_add,
)

from translators.verify.backward import BackwardNames, guessed_names
from translators.verify.errors import VerificationError
from translators.verify.ladder import Settings, climb, climb_backward, climb_gradient
from translators.verify.report import Status

BLOCKS = ["BLOCK=16"]
SMOOTH = ["x_ptr=f32[16]", "w_ptr=f32[16]", "out_ptr=f32[16]"]


def smooth(function=lambda x, w, out: jnp.exp(x) * w):
    return subject(launched(OURS, "smooth", SMOOTH, BLOCKS), function, results=["out_ptr"])


def elementwise(name, function, dtype="f32"):
    arguments = [f"x_ptr={dtype}[64]", f"out_ptr={dtype}[64]"]
    return subject(launched(OURS, name, arguments, BLOCKS, "4"), function, results=["out_ptr"])


RIGHT = {
    "vector_add": lambda: subject(vector_add(), added, results=["out_ptr"]),
    "softmax": lambda: subject(softmax(), softened, results=["out_ptr"]),
    "matmul": lambda: subject(matmul(), multiplied, results=["c_ptr"]),
    "layer_norm": lambda: subject(
        layer_norm(), normed, results=["y_ptr", "mean_ptr", "rstd_ptr"], scalars=["eps"]
    ),
    "smooth": smooth,
    "bf16": lambda: elementwise("halved", lambda x, out: x / 2, "bf16"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_gradient_of_a_right_function_is_that_of_the_kernel(name):
    found = climb_gradient(RIGHT[name]())
    assert found.status is Status.PASSED, found


def with_gradient(function, backward):
    """The function with a gradient of its own for its first argument."""

    @jax.custom_vjp
    def wrong(x, *rest):
        return function(x, *rest)

    def forward(x, *rest):
        return function(x, *rest), (x, *rest)

    def back(saved, cotangent):
        _, pull = jax.vjp(function, *saved)
        first, *rest = pull(cotangent)
        return (backward(first), *rest)

    wrong.defvjp(forward, back)
    return wrong


@pytest.mark.parametrize(
    "wrong",
    [
        lambda gradient: gradient * 1.01,
        lambda gradient: gradient.at[3].set(0.0),
        lambda gradient: -gradient,
    ],
    ids=["one per cent", "one element", "sign"],
)
def test_a_wrong_gradient_of_a_right_function_fails(wrong):
    function = with_gradient(lambda x, w, out: jnp.exp(x) * w, wrong)
    assert climb(smooth(function)).passed
    found = climb_gradient(smooth(function))
    assert (found.status, found.array) == (Status.FAILED, "x_ptr")
    assert "a slope differs" in found.reason


def test_a_gradient_that_is_nan_where_the_function_is_not_fails():
    function = with_gradient(
        lambda x, w, out: jnp.exp(x) * w, lambda gradient: gradient.at[5].set(jnp.nan)
    )
    found = climb_gradient(smooth(function))
    assert (found.status, found.array, found.index) == (Status.FAILED, "x_ptr", (5,))


def test_a_kernel_that_jumps_has_no_gradient_to_compare():
    found = climb_gradient(elementwise("kinked", lambda x, out: jnp.floor(x * 1e6)))
    assert found.status is Status.SKIPPED
    assert "not smooth" in found.reason


def test_a_kink_at_zero_is_stepped_around():
    found = climb_gradient(elementwise("relu_max", lambda x, out: jnp.maximum(x, 0)))
    assert found.status is Status.PASSED, found


def test_a_function_that_jax_cannot_differentiate_fails():
    def looping(x, out):
        def once(state):
            return state[0] + 1, state[1] / 2

        return jax.lax.while_loop(lambda state: state[0] < 1, once, (0, x))[1]

    found = climb_gradient(elementwise("halved", looping))
    assert found.status is Status.FAILED
    assert "JAX cannot differentiate" in found.reason


def test_integers_and_bits_have_no_gradient():
    whole = subject(
        launched(OURS, "doubled_integers", ["x_ptr=i32[16]", "out_ptr=i32[16]"], BLOCKS),
        lambda x, out: x * 2,
        results=["out_ptr"],
    )
    bits = elementwise("squeezed", lambda x, out: x + 1)
    for found in (climb_gradient(whole), climb_gradient(bits)):
        assert found.status is Status.SKIPPED


def backward(function, names=("dout_ptr", "x_ptr", "w_ptr", "dx_ptr", "dw_ptr")):
    arguments = ["dout_ptr", "x_ptr", "w_ptr", "dx_ptr", "dw_ptr"]
    launch = launched(OURS, "smooth_backward", [f"{name}=f32[16]" for name in arguments], BLOCKS)
    return subject(launch, function, parameters=names, results=["dx_ptr", "dw_ptr"])


def both_gradients(dout, x, w, dx, dw):
    return dout * jnp.exp(x) * w, dout * jnp.exp(x)


def test_a_right_backward_kernel_is_the_vjp_of_the_forward():
    given = backward(both_gradients)
    assert climb(given).passed
    found = climb_backward(smooth(), given)
    assert found.status is Status.PASSED, found
    assert "`dx_ptr`, `dw_ptr`" in found.reason


def test_a_wrong_backward_kernel_fails_with_the_gradient_that_is_wrong():
    def forgetful(dout, x, w, dx, dw):
        right, _ = both_gradients(dout, x, w, dx, dw)
        return right, dout * x

    found = climb_backward(smooth(), backward(forgetful))
    assert (found.status, found.array) == (Status.FAILED, "dw_ptr")
    assert "is not the gradient of `w_ptr`" in found.reason


def test_names_are_guessed():
    assert guessed_names(smooth(), backward(both_gradients)) == BackwardNames(
        cotangents={"dout_ptr": "out_ptr"},
        gradients={"dx_ptr": "x_ptr", "dw_ptr": "w_ptr"},
        saved={"x_ptr": "x_ptr", "w_ptr": "w_ptr"},
    )


class Named:
    """A function known by its names alone."""

    def __init__(self, parameters, results):
        self.emitted = type("Emitted", (), {})()
        self.emitted.signature = type(
            "Signature", (), {"parameters": parameters, "results": results}
        )()


@pytest.mark.parametrize(
    ("parameters", "results", "cotangents", "gradients"),
    [
        (("dY", "X"), ("dX",), {"dY": "Y"}, {"dX": "X"}),
        (("grad_y", "x_ptr", "x_grad"), ("x_grad",), {"grad_y": "Y"}, {"x_grad": "X"}),
        (("Y_grad_ptr", "DX_ptr"), ("DX_ptr",), {"Y_grad_ptr": "Y"}, {"DX_ptr": "X"}),
    ],
)
def test_spellings_of_gradients(parameters, results, cotangents, gradients):
    names = guessed_names(Named(("X", "Y"), ("Y",)), Named(parameters, results))
    assert (names.cotangents, names.gradients) == (cotangents, gradients)


@pytest.mark.parametrize(
    ("forward", "given", "message"),
    [
        ((("X", "Y"), ("Y",)), (("dY", "scratch"), ("dX",)), "`scratch` .* does not say what"),
        ((("X", "dX", "Y"), ("Y",)), (("dY", "X", "dX"), ("dX",)), "may stand for"),
        ((("X", "Y"), ("Y",)), (("X",), ("dX",)), "gradient of a result"),
    ],
    ids=["unknown", "ambiguous", "no cotangent"],
)
def test_names_that_say_too_little_are_refused_with_what_is_needed(forward, given, message):
    with pytest.raises(VerificationError, match=message):
        guessed_names(Named(*forward), Named(*given))


def test_names_can_be_given():
    swapped = BackwardNames(
        cotangents={"dout_ptr": "out_ptr"},
        gradients={"dx_ptr": "w_ptr", "dw_ptr": "x_ptr"},
        saved={"x_ptr": "x_ptr", "w_ptr": "w_ptr"},
    )
    found = climb_backward(smooth(), backward(both_gradients), swapped, Settings(seed=3))
    assert found.status is Status.FAILED
    assert np.isfinite(float(found.expected))
