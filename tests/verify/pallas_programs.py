"""Kernels in Pallas written by hand, right ones and ones with what each rung has to notice.

Each is text, as it would be emitted: a whole file with one function.
"""

import textwrap

from subjects import COMMON, OURS, Signature, launched, softmax, vector_add

from translators.triton.kernel_graph import kernel_graph
from translators.verify.emitted import Emitted
from translators.verify.program import Program
from translators.verify.subject import Subject

HEAD = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
"""

ARRAYS = ("x_ptr", "y_ptr", "out_ptr")


def program(name, text):
    return Program(name=name, source=HEAD + textwrap.dedent(text))


def pallas_subject(launch_of, text, *, name, parameters=ARRAYS, results=("out_ptr",), scalars=()):
    """A launch with a program in the place of what would be emitted."""
    kernel, launch = launch_of
    made = program(name, text)
    signature = Signature(tuple(parameters), tuple(results), tuple(scalars), False, True)
    return Subject(
        launch=launch,
        module=kernel_graph(kernel, launch),
        emitted=Emitted(signature=signature, call=made.load(), program=made),
        kernel=kernel,
    )


def add(text, n=1000, size=1024):
    """The kernel `out[:n] = x[:n] + y[:n]`."""
    return pallas_subject(vector_add(n, size), text, name="vector_add")


def adding(*, n=1000, old="old_ref[...]", chosen="jnp.where(index < n, total, old)", alias=""):
    """The text of an addition of eight rows a step, for elements before one of them."""
    return f"""
    def _vector_add(x_ref, y_ref, old_ref, out_ref):
        rows = pl.program_id(0) * 8 + lax.broadcasted_iota(jnp.int32, (8, 128), 0)
        index = rows * 128 + lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        n = {n}
        kept = (index < n).astype(jnp.float32)
        total, old = x_ref[...] + y_ref[...], {old}
        out_ref[...] = {chosen}


    def vector_add(x_ptr, y_ptr, out_ptr, *, interpret=False):
        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        x, y, old = (each.reshape(-1, 128) for each in (x_ptr, y_ptr, out_ptr))
        return pl.pallas_call(
            _vector_add,
            grid=(x.shape[0] // 8,),
            in_specs=[block] * 3,
            out_specs=block,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            {alias}
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
            interpret=interpret,
        )(x, y, old).reshape(out_ptr.shape)
    """


RIGHT = adding()
WRONG_MASK = adding(n=1001)

# Nothing comes of the block beyond the end: where numbers are clamped it is the last one again.
OUT_OF_BOUNDS = """
def _vector_add(x_ref, y_ref, beyond_ref, out_ref):
    out_ref[...] = x_ref[...] + y_ref[...]


def vector_add(x_ptr, y_ptr, *, interpret=False):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x, y = (each.reshape(-1, 128) for each in (x_ptr, y_ptr))
    return pl.pallas_call(
        _vector_add,
        grid=(x.shape[0] // 8,),
        in_specs=[block, block, pl.BlockSpec((8, 128), lambda i: (i + 1, 0))],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x, y, y).reshape(x_ptr.shape)
"""

# A TPU keeps a block of the output as long as the next step has the same, and no longer.
TWO_TERMS = """
def _vector_add(x_ref, y_ref, out_ref):
    @pl.when(pl.program_id({term}) == 0)
    def _():
        out_ref[...] = x_ref[...]

    @pl.when(pl.program_id({term}) == 1)
    def _():
        out_ref[...] += y_ref[...]


def vector_add(x_ptr, y_ptr, *, interpret=False):
    block = pl.BlockSpec(({rows}, 128), lambda {indices}: (i, 0))
    x, y = (each.reshape(-1, 128) for each in (x_ptr, y_ptr))
    return pl.pallas_call(
        _vector_add,
        grid={grid},
        in_specs=[block, block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=({order})),
        interpret=interpret,
    )(x, y).reshape(x_ptr.shape)
"""
INNER_TERMS = TWO_TERMS.format(
    term=1, indices="i, t", grid="(2, 2)", rows=8, order="'parallel', 'arbitrary'"
)
REVISITED = TWO_TERMS.format(
    term=0, indices="t, i", grid="(2, 2)", rows=8, order="'arbitrary', 'arbitrary'"
)
REORDERED = TWO_TERMS.format(
    term=1, indices="i, t", grid="(2, 2)", rows=8, order="'parallel', 'parallel'"
)
RACING = TWO_TERMS.format(
    term=1, indices="i, t", grid="(1, 2)", rows=16, order="'parallel', 'parallel'"
)

# What is there already is read from the result, which no TPU fills before it is written.
UNINITIALISED = adding(old="out_ref[...]", alias="input_output_aliases={2: 0},")

# One element in each row of 128 lanes.
PADDED = """
def _vector_add(x_ref, y_ref, out_ref):
    out_ref[...] = x_ref[...] + y_ref[...]


def vector_add(x_ptr, y_ptr, *, interpret=False):
    block = pl.BlockSpec((1024, 1), lambda i: (i, 0))
    x, y = (each.reshape(-1, 1) for each in (x_ptr, y_ptr))
    return pl.pallas_call(
        _vector_add,
        grid=(x.shape[0] // 1024,),
        in_specs=[block, block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x, y).reshape(x_ptr.shape)
"""

ENDLESS = """
import time


def vector_add(x_ptr, y_ptr, *, interpret=False):
    if isinstance(interpret, pltpu.InterpretParams):
        time.sleep(600)
    return x_ptr + y_ptr
"""

ABORTING = """
import os


def vector_add(x_ptr, y_ptr, *, interpret=False):
    if not interpret:
        os.abort()
    return x_ptr + y_ptr
"""

HALVED = """
def _halved(x_ref, out_ref):
    out_ref[...] = (x_ref[...].astype(jnp.float32) / 2).astype(out_ref.dtype)


def halved(x_ptr, *, interpret=False):
    x = x_ptr.reshape(-1, 128)
    return pl.pallas_call(
        _halved, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=interpret
    )(x).reshape(x_ptr.shape)
"""


def two(text):
    """An addition of all elements, of which the function takes no old ones."""
    arguments = [*(f"{name}=f32[2048]" for name in ARRAYS), "n=2048"]
    launch_of = launched(COMMON, "vector_add", arguments, ["BLOCK=256"], "8")
    return pallas_subject(launch_of, text, name="vector_add", parameters=ARRAYS[:2])


def half(dtype):
    """Half of each element, in a type that TPUs have not."""
    arguments = [f"{name}={dtype}[1024]" for name in ("x_ptr", "out_ptr")]
    launch_of = launched(OURS, "halved", arguments, ["BLOCK=256"], "4")
    return pallas_subject(launch_of, HALVED, name="halved", parameters=["x_ptr"])


SOFTMAX = """
def _softmax(x_ref, out_ref):
    x = x_ref[...]
    numerator = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    out_ref[...] = numerator / jnp.sum(numerator, axis=-1, keepdims=True)


def softmax(x_ptr, *, interpret=False):
    rows, columns = x_ptr.shape
    block = pl.BlockSpec((8, columns), lambda row: (row, 0))
    return pl.pallas_call(
        _softmax,
        grid=(pl.cdiv(rows, 8),),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((rows, columns), x_ptr.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(x_ptr)
"""


def softened():
    """A softmax of rows that do not fill their last block."""
    return pallas_subject(softmax(20, 37), SOFTMAX, name="softmax", parameters=["x_ptr"])


SCALED = """
def _scaled(scale_ref, x_ref, out_ref):
    out_ref[...] = x_ref[...] * {factor}


def scaled(x_ptr, *, scale=2.5, interpret=False):
    x = x_ptr.reshape(-1, 128)
    scale = jnp.asarray(scale, jnp.float32).reshape(1)
    return pl.pallas_call(
        _scaled,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()],
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(scale, x).reshape(x_ptr.shape)
"""


def scaled(factor):
    arguments = ["x_ptr=f32[1024]", "out_ptr=f32[1024]", "scale=2.5"]
    launch_of = launched(OURS, "scaled", arguments, ["BLOCK=256"], "4")
    text = SCALED.format(factor=factor)
    given = {"parameters": ["x_ptr"], "scalars": ["scale"]}
    return pallas_subject(launch_of, text, name="scaled", **given)


RELU = """
def _relu_max(x_ref, out_ref):
    x = x_ref[...]
    out_ref[...] = {value}


def relu_max(x_ptr, *, interpret=False):
    x = x_ptr.reshape(-1, 128)
    return pl.pallas_call(
        _relu_max, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=interpret
    )(x).reshape(x_ptr.shape)
"""


def relu(value):
    arguments = ["x_ptr=f32[1024]", "out_ptr=f32[1024]"]
    launch_of = launched(OURS, "relu_max", arguments, ["BLOCK=256"], "4")
    text = RELU.format(value=value)
    return pallas_subject(launch_of, text, name="relu_max", parameters=["x_ptr"])
