"""How much memory kernels may use."""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .forms import Group, Limit
from .probe import array, kernel, multiple, within

F32 = jnp.float32
I32 = jnp.int32
MIB = 1 << 20
BEYOND = 256 * MIB
"""More than the VMEM of any chip."""
WIDTH = 128
ROWS_OF_MIB = MIB // (4 * WIDTH)


def tile(at):
    """The rows of a tile of 8."""
    return pl.ds(multiple(8, at), 8)


def scratch(limit=None):
    """Builds a kernel with so many MiB of scratch in VMEM, all of which it uses."""

    def build(mib):
        count = int(mib * ROWS_OF_MIB)

        def body(x, out, held):
            def put(at, nothing):
                held[tile(at), :] = x[...] + at.astype(F32)
                return nothing

            lax.fori_loop(0, count // 8, put, None)
            out[...] = lax.fori_loop(
                0, count // 8, lambda at, total: total + held[tile(at), :], jnp.zeros_like(x)
            )

        return kernel(
            body,
            array(F32, 8, WIDTH),
            array(F32, 8, WIDTH),
            scratch_shapes=[pltpu.VMEM((count, WIDTH), F32)],
            compiler_params=pltpu.CompilerParams(vmem_limit_bytes=limit),
        )

    return build


def copied(steps):
    """Builds a copy in so many steps, with blocks of so many MiB."""

    def build(mib):
        count = int(mib * ROWS_OF_MIB)

        def body(x, out):
            def put(at, nothing):
                out[tile(at), :] = x[tile(at), :]
                return nothing

            lax.fori_loop(0, count // 8, put, None)

        specification = pl.BlockSpec((count, WIDTH), lambda i: (i, 0))
        return kernel(
            body,
            array(F32, steps * count, WIDTH),
            array(F32, steps * count, WIDTH),
            grid=(steps,),
            in_specs=[specification],
            out_specs=specification,
        )

    return build


def scalars(*shape):
    """Builds a kernel with an array of `i32` in SMEM, of so many rows of a shape."""

    def build(count):
        def body(numbers, x, out):
            out[...] = x[...] + numbers[(0, *(0 for _ in shape))]

        return kernel(
            body,
            array(I32, 8, WIDTH),
            array(I32, int(count), *shape),
            array(I32, 8, WIDTH),
            in_specs=[within(pltpu.SMEM), within(pltpu.VMEM)],
        )

    return build


STEP = 1 / 16

LIMITS = Group(
    "Memory",
    "The most that compiles, found by halving, in steps of 1/16 MiB, of 1024 elements, or of 8"
    " rows.",
    (
        Limit("MiB of scratch in VMEM, by default", scratch(), 1, 160, STEP),
        Limit("MiB of scratch in VMEM, with `vmem_limit_bytes`", scratch(BEYOND), 1, 160, STEP),
        Limit("MiB of `f32` copied in one step, by default", copied(1), 1, 80, STEP),
        Limit("MiB of a block of `f32` copied in 4 steps, by default", copied(4), 1, 40, STEP),
        Limit("elements of `i32` in SMEM, of (n,)", scalars(), 1024, 1 << 20, 1024),
        Limit("rows of `i32` in SMEM, of (n, 1)", scalars(1), 8, 1 << 14, 8),
        Limit("rows of `i32` in SMEM, of (n, 128)", scalars(128), 8, 1 << 14, 8),
    ),
)

GROUPS = (LIMITS,)
