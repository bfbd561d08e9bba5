"""Probes of grids: shapes of blocks, index maps, blocks that steps share."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .forms import Group
from .probe import Program, array, kernel, rows, single, within

F32 = jnp.float32
I32 = jnp.int32
ARRAY = (256, 512)
BLOCK = (32, 512)


def move(x, out):
    """The body of a kernel that copies a block."""
    out[...] = x[...]


def copied(shape, block, grid=None, index=lambda *at: at, **spec):
    """Builds a copy, block by block, which goes through the array in order unless told."""
    if grid is None:
        pairs = zip(shape, block, strict=True)
        grid = tuple(size if step is None else -(-size // step) for size, step in pairs)

    def build(dtype):
        specification = pl.BlockSpec(block, index, **spec)
        return kernel(
            move,
            array(dtype, *shape),
            array(dtype, *shape),
            grid=grid,
            in_specs=[specification],
            out_specs=specification,
        )

    return build


BLOCKS = (
    *((ARRAY, (8, 128)), (ARRAY, (32, 128)), (ARRAY, (12, 128)), (ARRAY, (4, 128))),
    *((ARRAY, (1, 512)), (ARRAY, (8, 64))),
    *(((250, 500), (8, 128)), ((250, 37), (8, 37)), ((5, 37), (5, 37)), ((5, 37), (8, 128))),
    *(((64, 1, 128), (1, 1, 128)), ((64, 8, 128), (3, 8, 128)), ((64, 4, 128), (8, 4, 128))),
    *(((64, 4, 128), (8, 2, 128)), ((4, 256, 128), (None, 8, 128))),
    *(((256, 128), (None, 128)), ((256, 1, 128), (None, 1, 128)), ((256, 1, 128), (8, None, 128))),
    *(((256, 4, 128), (8, None, 128)), ((2, 4, 256, 64), (None, None, 128, 64))),
    *(((2, 256, 4, 64), (None, 128, None, 64)), ((2, 256, 4, 128), (None, 128, None, 128))),
)
FLAT_BLOCKS = (
    *(((8192,), (64,)), ((8192,), (128,)), ((8192,), (256,)), ((8192,), (384,)), ((8192,), (512,))),
    *(((8192,), (1024,)), ((8192,), (3072,)), ((1000,), (1000,)), ((1000,), (1024,))),
    *(((5000,), (1024,)), ((100,), (128,))),
)
ELEMENTS = (pl.Element(8), pl.Element(128))


def scalars_copied(block, index):
    """Builds a kernel whose blocks are in SMEM; it copies their first rows' first elements."""

    def build(dtype):
        def body(x, out):
            out[0, 0] = x[0, 0]

        specification = pl.BlockSpec(block, index, memory_space=pltpu.SMEM)
        return kernel(
            body,
            array(dtype, *ARRAY),
            array(dtype, *ARRAY),
            grid=(8,),
            in_specs=[specification],
            out_specs=specification,
        )

    return build


SHAPES = Group(
    "Shapes of blocks",
    "Copies block by block: an array's shape and its `block_shape`.",
    rows("f32 bf16 i8", {f"{shape} in {block}": copied(shape, block) for shape, block in BLOCKS})
    + rows(
        "f32 bf16 i8 bool",
        {f"{shape} in {block}": copied(shape, block) for shape, block in FLAT_BLOCKS},
    )
    + rows(
        "f32 bf16 i8",
        {
            "(256, 512) in (8, 512), in SMEM": scalars_copied((8, 512), lambda i: (i, 0)),
            "(256, 512) in (1, 512), in SMEM": scalars_copied((1, 512), lambda i: (i, 0)),
            "pl.Element(8), pl.Element(128), from (8·i, 128·j) on": copied(
                ARRAY, ELEMENTS, (32, 4), lambda i, j: (i * 8, j * 128)
            ),
            "pl.Element(8), pl.Element(128), from (4·i, 128·j) on": copied(
                ARRAY, ELEMENTS, (32, 4), lambda i, j: (i * 4, j * 128)
            ),
            "pl.Element(16, padding=(8, 0)), from 8·i on": copied(
                ARRAY, (pl.Element(16, (8, 0)), pl.Element(512)), (32,), lambda i: (i * 8, 0)
            ),
            "pl.Buffered(1)": copied(ARRAY, BLOCK, pipeline_mode=pl.Buffered(1)),
            "pl.Buffered(3)": copied(ARRAY, BLOCK, pipeline_mode=pl.Buffered(3)),
        },
    ),
)


def mapped(index, grid=(8,), **parameters):
    """Builds a copy whose input blocks an index map chooses."""

    def build():
        return kernel(
            move,
            array(F32, *ARRAY),
            array(F32, *ARRAY),
            grid=grid,
            in_specs=[pl.BlockSpec(BLOCK, index)],
            # A literal 0 would have 64 bits where such types are on.
            out_specs=pl.BlockSpec(BLOCK, lambda i, *_: (i, i * 0)),
            compiler_params=pltpu.CompilerParams(**parameters),
        )

    return build


def with_wide_types(build):
    """Builds a program that is traced with 64-bit types on."""

    def wide():
        program = build()

        def function(*arguments):
            with jax.enable_x64(True):
                return program.function(*arguments)

        return Program(function, program.arguments)

    return wide


def traced_grid():
    def function(count, x):
        specification = pl.BlockSpec(BLOCK, lambda i: (i, 0))
        return pl.pallas_call(
            move,
            out_shape=array(F32, *ARRAY),
            grid=(count,),
            in_specs=[specification],
            out_specs=specification,
        )(x)

    return Program(function, (array(I32), array(F32, *ARRAY)))


def one_block(x):
    return pl.pallas_call(move, out_shape=array(F32, 32, 128))(x)


def mapped_over():
    return Program(jax.vmap(one_block), (array(F32, 4, 32, 128),))


def differentiated():
    return Program(lambda x: jax.jvp(one_block, (x,), (x,))[1], (array(F32, 32, 128),))


def random_bits():
    def body(seed, out):
        pltpu.prng_seed(seed[0])
        out[...] = pltpu.bitcast(pltpu.prng_random_bits((32, 128)), I32)

    return kernel(body, array(I32, 32, 128), array(I32, 1), in_specs=[within(pltpu.SMEM)])


def printed():
    def body(x, out):
        out[...] = x[...]
        pl.debug_print("greatest: {}", jnp.max(x[...]))

    return kernel(body, array(I32, 32, 128), array(I32, 32, 128))


def prefetched(index, table=(8,), shape=ARRAY, block=BLOCK, of_output=False):
    """Builds a copy whose input or output blocks depend on an array in SMEM."""

    def in_order(i, table):
        return (i, *(0 for _ in shape[1:]))

    def build(dtype):
        def body(numbers, x, out):
            out[...] = x[...]

        maps = (in_order, index) if of_output else (index, in_order)
        specifications = [pl.BlockSpec(block, each) for each in maps]
        return kernel(
            body,
            array(dtype, *shape),
            array(I32, *table),
            array(dtype, *shape),
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(shape[0] // (block[0] or 1),),
                in_specs=specifications[:1],
                out_specs=specifications[1],
            ),
        )

    return build


def in_place(dtype):
    specification = pl.BlockSpec(BLOCK, lambda i: (i, 0))

    def body(x, out):
        out[:8, :] = x[8:16, :]

    return kernel(
        body,
        array(dtype, *ARRAY),
        array(dtype, *ARRAY),
        grid=(4,),
        in_specs=[specification],
        out_specs=specification,
        input_output_aliases={0: 0},
    )


def added_in_output(dtype):
    def body(x, out):
        @pl.when(pl.program_id(0) == 0)
        def _():
            out[...] = jnp.zeros_like(out)

        out[...] += x[...]

    return folded(dtype, body)


def added_in_scratch(dtype):
    def body(x, out, held):
        @pl.when(pl.program_id(0) == 0)
        def _():
            held[...] = jnp.zeros_like(held)

        held[...] += x[...]

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            out[...] = held[...]

    return folded(dtype, body, scratch_shapes=[pltpu.VMEM(BLOCK, dtype)])


def folded(dtype, body, **options):
    """A kernel whose steps all have the same block of the output."""
    return kernel(
        body,
        array(dtype, *BLOCK),
        array(dtype, *ARRAY),
        grid=(8,),
        in_specs=[pl.BlockSpec(BLOCK, lambda i: (i, 0))],
        out_specs=pl.BlockSpec(BLOCK, lambda i: (0, 0)),
        **options,
    )


GRIDS = Group(
    "Grids",
    "Copies of (32, 512) blocks of a (256, 512) array of `f32`, in 8 steps, unless said otherwise.",
    single(
        {
            "index map i // 2": mapped(lambda i: (i // 2, 0)),
            "index map i % 3": mapped(lambda i: (i % 3, 0)),
            "index map where(i < 4, i, 7 - i)": mapped(lambda i: (jnp.where(i < 4, i, 7 - i), 0)),
            "index map minimum(i + 1, 7)": mapped(lambda i: (jnp.minimum(i + 1, 7), 0)),
            "index map (i, 0), 64-bit types on": with_wide_types(mapped(lambda i: (i, 0))),
            "index map (i, int32(0)), 64-bit types on": with_wide_types(
                mapped(lambda i: (i, jnp.int32(0)))
            ),
            "grid (8, 2)": mapped(lambda i, j: (i, 0), (8, 2)),
            "grid of a traced size": traced_grid,
            "dimension_semantics parallel": mapped(
                lambda i: (i, 0), dimension_semantics=("parallel",)
            ),
            "dimension_semantics arbitrary": mapped(
                lambda i: (i, 0), dimension_semantics=("arbitrary",)
            ),
            "vmap": mapped_over,
            "jvp": differentiated,
            "pltpu.prng_random_bits": random_bits,
            "pl.debug_print of an `i32` scalar": printed,
        }
    ),
)

SHARED = Group(
    "Blocks that data chooses, blocks that steps share",
    "`t` is an array of `i32` in SMEM, which is prefetched; blocks of (32, 512) of a (256, 512)"
    " array, unless said otherwise.",
    rows(
        "f32 bf16 i8",
        {
            "index map t[i]": prefetched(lambda i, t: (t[i], 0)),
            "index map t[i] // 2": prefetched(lambda i, t: (t[i] // 2, 0)),
            "index map t[i, 0] of (8, 1)": prefetched(lambda i, t: (t[i, 0], 0), (8, 1)),
            "index map t[i], (256, 1, 512) in (1, 1, 512)": prefetched(
                lambda i, t: (t[i], 0, 0), (256,), (256, 1, 512), (1, 1, 512)
            ),
            "index map t[i], (256, 1, 512) in (None, 1, 512)": prefetched(
                lambda i, t: (t[i], 0, 0), (256,), (256, 1, 512), (None, 1, 512)
            ),
            "index map t[i], (256, 512) in (1, 512)": prefetched(
                lambda i, t: (t[i], 0), (256,), ARRAY, (1, 512)
            ),
            "index map t[i], of the output": prefetched(lambda i, t: (t[i], 0), of_output=True),
            "input_output_aliases, part of a block written": in_place,
        },
    )
    + rows(
        "f32 bf16 i32",
        {
            "8 steps add to a block of the output": added_in_output,
            "8 steps add to scratch in VMEM": added_in_scratch,
        },
    ),
)

GROUPS = (SHAPES, GRIDS, SHARED)
