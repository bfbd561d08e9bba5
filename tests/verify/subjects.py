"""Launches of kernels with functions written by hand in the place of emitted ones."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp

from translators.triton.binding import bind
from translators.triton.kernel_graph import kernel_graph
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import (
    parse_argument,
    parse_constant,
    parse_grid,
    share_memory,
)
from translators.triton.loading import load_file
from translators.verify.emitted import Emitted
from translators.verify.subject import Subject

HERE = Path(__file__).parent
OURS = HERE / "verified_kernels.py"
COMMON = HERE.parent / "triton" / "kernels.py"


@dataclass(frozen=True)
class Signature:
    parameters: tuple = ()
    results: tuple = ()
    scalars: tuple = ()
    wide: bool = False
    pallas: bool = False
    reblocked: bool = False


def launched(file, name, arguments, constants=(), grid="1", aliases=()):
    """A kernel and its launch."""
    kernel = find_kernel(load_file(file), name)
    parsed = [parse_argument(text, buffer=index) for index, text in enumerate(arguments)]
    parsed = list(share_memory(parsed, aliases)) + [parse_constant(text) for text in constants]
    return kernel, bind(kernel, parsed, grid=parse_grid(grid))


def subject(launch_of, function, *, results, parameters=None, scalars=(), wide=False, values=None):
    kernel, launch = launch_of
    arrays = parameters or tuple(dict.fromkeys(array.name for array in launch.arrays))
    signature = Signature(tuple(arrays), tuple(results), tuple(scalars), wide)
    return Subject(
        launch=launch,
        module=kernel_graph(kernel, launch),
        emitted=Emitted(signature=signature, call=function),
        kernel=kernel,
        values=values,
    )


def rung(report, name):
    """The rung of that name."""
    (found,) = (each for each in report.rungs if each.name == name)
    return found


def vector_add(n=1000, size=1024):
    return launched(
        COMMON,
        "vector_add",
        [f"x_ptr=f32[{size}]", f"y_ptr=f32[{size}]", f"out_ptr=f32[{size}]", f"n={n}"],
        ["BLOCK=256"],
        "4",
    )


def added(x, y, out, n=1000):
    mask = jnp.arange(out.shape[0]) < n
    return jnp.where(mask, x + y, out)


def softmax(rows=5, columns=37, strides=""):
    return launched(
        COMMON,
        "softmax",
        [
            f"out_ptr=f32[{rows},{columns}]:[40,1]",
            f"x_ptr=f32[{rows},{columns}]",
            *("out_stride=40", f"x_stride={columns}", f"columns={columns}"),
        ],
        ["BLOCK=64"],
        f"{rows}",
    )


def softened(out, x):
    return jax.nn.softmax(x, axis=1)


def matmul(m=40, n=50, k=35, dtype="f32"):
    return launched(
        COMMON,
        "matmul",
        [
            *(f"a_ptr={dtype}[{m},{k}]", f"b_ptr={dtype}[{k},{n}]", f"c_ptr=f32[{m},{n}]"),
            *(f"M={m}", f"N={n}", f"K={k}"),
            *(f"stride_am={k}", "stride_ak=1", f"stride_bk={n}", "stride_bn=1"),
            *(f"stride_cm={n}", "stride_cn=1"),
        ],
        ["BLOCK_M=32", "BLOCK_N=32", "BLOCK_K=16", "ACTIVATION=none"],
        "2,2",
    )


def multiplied(a, b, c):
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


def layer_norm(rows=3, columns=100, eps="1e-5"):
    return launched(
        COMMON,
        "layer_norm",
        [
            *(f"x_ptr=f32[{rows},{columns}]", f"y_ptr=f32[{rows},{columns}]"),
            *(f"w_ptr=f32[{columns}]", f"b_ptr=f32[{columns}]"),
            *(f"mean_ptr=f32[{rows}]", f"rstd_ptr=f32[{rows}]"),
            *(f"stride={columns}", f"columns={columns}", f"eps={eps}"),
        ],
        ["BLOCK=32"],
        f"{rows}",
    )


def normed(x, y, w, b, mean, rstd, *, eps=1e-5):
    mean = jnp.mean(x, axis=1)
    centred = x - mean[:, None]
    rstd = 1 / jnp.sqrt(jnp.mean(centred * centred, axis=1) + eps)
    return centred * rstd[:, None] * w + b, mean, rstd
