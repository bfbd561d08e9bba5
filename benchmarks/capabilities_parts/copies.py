"""Probes of copies that a kernel starts itself, and of pipelines within kernels."""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .forms import Group
from .probe import Program, array, kernel, multiple, rows, within

ALL = slice(None)
I32 = jnp.int32
WIDE = (256, 512)
NARROW = (256, 128)
FLAT = (8192,)


def window(size, count=1):
    """An index: `size` rows or elements from `count` times a scalar on."""
    return lambda i: (pl.ds(i if count == 1 else multiple(count, i), size),)


def lane_window(size, count=1):
    return lambda i: (ALL, *window(size, count)(i))


def whole(i):
    return (...,)


def fetched(shape, source, held, target=whole):
    """Builds a copy from HBM to scratch in VMEM, and on from there."""

    def build(dtype):
        def body(numbers, x, out, buffer, semaphore):
            i = numbers[0]
            pltpu.async_copy(x.at[source(i)], buffer.at[target(i)], semaphore).wait()
            out[...] = buffer[...]

        return kernel(
            body,
            array(dtype, *held),
            array(I32, 1),
            array(dtype, *shape),
            in_specs=[within(pltpu.SMEM), within(pl.ANY)],
            scratch_shapes=[pltpu.VMEM(held, dtype), pltpu.SemaphoreType.DMA],
        )

    return build


def sent(shape, target, held, source=whole):
    """Builds a copy from VMEM to HBM."""

    def build(dtype):
        def body(numbers, x, out, semaphore):
            i = numbers[0]
            pltpu.async_copy(x.at[source(i)], out.at[target(i)], semaphore).wait()

        return kernel(
            body,
            array(dtype, *shape),
            array(I32, 1),
            array(dtype, *held),
            in_specs=[within(pltpu.SMEM), within(pltpu.VMEM)],
            out_specs=within(pl.ANY),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        )

    return build


def row_changed(dtype):
    """A row of an array in HBM, fetched, changed and put back."""

    def body(numbers, x, y, out, buffer, semaphore):
        at = (pl.ds(numbers[0], 1),)
        pltpu.async_copy(out.at[at], buffer, semaphore).wait()
        buffer[...] += x[...]
        pltpu.async_copy(buffer, out.at[at], semaphore).wait()

    return kernel(
        body,
        array(dtype, 256, 1, 512),
        array(I32, 1),
        array(dtype, 1, 1, 512),
        array(dtype, 256, 1, 512),
        in_specs=[within(pltpu.SMEM), within(pltpu.VMEM), within(pl.ANY)],
        out_specs=within(pl.ANY),
        scratch_shapes=[pltpu.VMEM((1, 1, 512), dtype), pltpu.SemaphoreType.DMA],
        input_output_aliases={2: 0},
    )


COPIES = Group(
    "Copies between HBM and VMEM",
    "By `pltpu.async_copy`; `i` is a scalar from SMEM, a multiple of it is marked with"
    " `pl.multiple_of`. The whole of the array in VMEM takes part, unless said otherwise.",
    rows(
        "f32 bf16 i8",
        {
            "fetch rows 8:40 of (256, 512)": fetched(WIDE, lambda i: (slice(8, 40),), (32, 512)),
            "fetch rows 3:35 of (256, 512)": fetched(WIDE, lambda i: (slice(3, 35),), (32, 512)),
            "fetch rows ds(i, 32) of (256, 512)": fetched(WIDE, window(32), (32, 512)),
            "fetch rows ds(8·i, 32) of (256, 512)": fetched(WIDE, window(32, 8), (32, 512)),
            "fetch rows ds(16·i, 32) of (256, 512)": fetched(WIDE, window(32, 16), (32, 512)),
            "fetch rows ds(32·i, 32) of (256, 512)": fetched(WIDE, window(32, 32), (32, 512)),
            "fetch rows ds(i, 32) of (256, 128)": fetched(NARROW, window(32), (32, 128)),
            "fetch row ds(i, 1) of (256, 512)": fetched(WIDE, window(1), (1, 512)),
            "fetch row ds(i, 1) of (256, 500)": fetched((256, 500), window(1), (1, 500)),
            "fetch row ds(i, 1) of (256, 512) into row ds(i, 1) of (32, 512)": fetched(
                WIDE, window(1), (32, 512), window(1)
            ),
            "fetch row ds(i, 1) of (256, 1, 512) into row ds(i, 1) of (32, 1, 512)": fetched(
                (256, 1, 512), window(1), (32, 1, 512), window(1)
            ),
            "fetch row ds(i, 1) of (256, 1, 500) into row ds(i, 1) of (32, 1, 500)": fetched(
                (256, 1, 500), window(1), (32, 1, 500), window(1)
            ),
            "fetch [i] of (8, 32, 128)": fetched((8, 32, 128), lambda i: (i,), (32, 128)),
            "fetch lanes ds(i, 128) of (32, 512)": fetched((32, 512), lane_window(128), (32, 128)),
            "fetch lanes ds(128·i, 128) of (32, 512)": fetched(
                (32, 512), lane_window(128, 128), (32, 128)
            ),
            "fetch ds(i, 1024) of (8192,)": fetched(FLAT, window(1024), (1024,)),
            "fetch ds(128·i, 1024) of (8192,)": fetched(FLAT, window(1024, 128), (1024,)),
            "fetch ds(1024·i, 1024) of (8192,)": fetched(FLAT, window(1024, 1024), (1024,)),
            "send rows ds(i, 32) of (256, 512)": sent(WIDE, window(32), (32, 512)),
            "send rows ds(8·i, 32) of (256, 512)": sent(WIDE, window(32, 8), (32, 512)),
            "send rows ds(32·i, 32) of (256, 512)": sent(WIDE, window(32, 32), (32, 512)),
            "send row ds(i, 1) of (256, 512)": sent(WIDE, window(1), (1, 512)),
            "send row ds(i, 1) of (256, 1, 512) from row ds(i, 1) of (32, 1, 512)": sent(
                (256, 1, 512), window(1), (32, 1, 512), window(1)
            ),
        },
    )
    + rows("f32 bf16 i32", {"fetch, add to and send row ds(i, 1) of (256, 1, 512)": row_changed}),
)


def pipelined(steps, grid=(), **spec):
    """Builds a kernel with a pipeline over blocks in HBM."""

    def build(dtype):
        def step(x, out):
            out[...] = x[...]

        def body(numbers, x, out):
            pltpu.emit_pipeline(
                step,
                grid=(steps(numbers),),
                in_specs=[pl.BlockSpec((32, 512), lambda i: (i, 0), **spec)],
                out_specs=[pl.BlockSpec((32, 512), lambda i: (i, 0))],
            )(x, out)

        return kernel(
            body,
            array(dtype, *WIDE),
            array(I32, 1),
            array(dtype, *WIDE),
            grid=grid,
            in_specs=[within(pltpu.SMEM), within(pl.ANY)],
            out_specs=within(pl.ANY),
        )

    return build


def one_core():
    """A mesh of one TensorCore; jax 0.10 has a function for it, jax 0.12 a class."""
    if hasattr(pltpu, "TensorCoreMesh"):
        return pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    return pltpu.create_tensorcore_mesh("core", num_cores=1)


def on_mesh(dtype):
    def function(x):
        return pl.kernel(
            pltpu.sync_copy,
            out_type=array(dtype, *WIDE),
            mesh=one_core(),
        )(x)

    return Program(function, (array(dtype, *WIDE),))


def scoped(dtype):
    def body(x, out):
        def within_scope(buffer):
            pltpu.sync_copy(x, buffer)
            out[...] = buffer[...]

        pl.run_scoped(within_scope, pltpu.VMEM(WIDE, dtype))

    return kernel(body, array(dtype, *WIDE), array(dtype, *WIDE), in_specs=[within(pl.ANY)])


PIPELINES = Group(
    "Pipelines within kernels",
    "Over blocks of (32, 512) of a (256, 512) array in HBM; `i` is a scalar from SMEM.",
    rows(
        "f32 bf16",
        {
            "emit_pipeline, 8 steps": pipelined(lambda numbers: 8),
            "emit_pipeline, i steps": pipelined(lambda numbers: numbers[0]),
            "emit_pipeline, program_id + 1 steps": pipelined(
                lambda numbers: pl.program_id(0) + 1, (8,)
            ),
            "emit_pipeline, pl.Buffered(3)": pipelined(
                lambda numbers: 8, pipeline_mode=pl.Buffered(3)
            ),
            "pl.kernel on a TensorCore mesh": on_mesh,
            "pl.run_scoped": scoped,
        },
    ),
)

GROUPS = (COPIES, PIPELINES)
