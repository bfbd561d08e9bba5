"""Probes of slices of references: where reads and writes of a block may start."""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .forms import Group
from .probe import array, kernel, multiple, rows, with_scalars, within

ALL = slice(None)
WIDE = (256, 512)
NARROW = (256, 128)
FLAT = (4096,)


def row_window(size, count=1, stride=None):
    """An index: `size` rows from `count` times a scalar on."""
    return lambda i: (pl.ds(i if count == 1 else multiple(count, i), size, stride=stride), ALL)


def lane_window(size, count=1):
    return lambda i: (ALL, pl.ds(i if count == 1 else multiple(count, i), size))


def flat_window(size, count=1):
    return lambda i: (pl.ds(i if count == 1 else multiple(count, i), size),)


def fixed(*index):
    """An index that no scalar has a part in."""
    return lambda i: index


# What is read or written: the name, the array's shape, the index, and the shape at the index.
WINDOWS = (
    ("rows 3:10, lanes 5:50", WIDE, fixed(slice(3, 10), slice(5, 50)), (7, 45)),
    ("rows 0:256:2", WIDE, fixed(slice(0, 256, 2), ALL), (128, 512)),
    ("rows 0:256:2 of (256, 128)", NARROW, fixed(slice(0, 256, 2), ALL), (128, 128)),
    ("lanes 0:512:2", WIDE, fixed(ALL, slice(0, 512, 2)), (256, 256)),
    ("column 5", WIDE, fixed(ALL, 5), (256,)),
    ("row i", WIDE, lambda i: (i,), (512,)),
    ("rows ds(i, 1)", WIDE, row_window(1), (1, 512)),
    ("rows ds(i, 1) of (256, 128)", NARROW, row_window(1), (1, 128)),
    ("rows ds(i, 8)", WIDE, row_window(8), (8, 512)),
    ("rows ds(i, 8) of (256, 128)", NARROW, row_window(8), (8, 128)),
    ("rows ds(4·i, 32)", WIDE, row_window(32, 4), (32, 512)),
    ("rows ds(8·i, 32)", WIDE, row_window(32, 8), (32, 512)),
    ("rows ds(32·i, 32)", WIDE, row_window(32, 32), (32, 512)),
    ("rows ds(8·i, 5)", WIDE, row_window(5, 8), (5, 512)),
    ("rows ds(i, 16, stride=2) of (256, 128)", NARROW, row_window(16, stride=2), (16, 128)),
    ("lanes ds(i, 128)", WIDE, lane_window(128), (256, 128)),
    ("lanes ds(64·i, 128)", WIDE, lane_window(128, 64), (256, 128)),
    ("lanes ds(128·i, 128)", WIDE, lane_window(128, 128), (256, 128)),
    ("lanes ds(128·i, 37)", WIDE, lane_window(37, 128), (256, 37)),
    ("[i] of (4, 32, 128)", (4, 32, 128), lambda i: (i,), (32, 128)),
    ("[:, i] of (4, 32, 128)", (4, 32, 128), lambda i: (ALL, i), (4, 128)),
    ("[i] of (256, 1, 128)", (256, 1, 128), lambda i: (i,), (1, 128)),
    ("(4096,): ds(i, 128)", FLAT, flat_window(128), (128,)),
    ("(4096,): ds(128·i, 128)", FLAT, flat_window(128, 128), (128,)),
    ("(4096,): ds(256·i, 256)", FLAT, flat_window(256, 256), (256,)),
    ("(4096,): ds(1024·i, 1024)", FLAT, flat_window(1024, 1024), (1024,)),
)
ONLY_READ = (
    *("rows 0:256:2", "lanes 0:512:2", "rows ds(4·i, 32)", "lanes ds(64·i, 128)"),
    *("[:, i] of (4, 32, 128)", "(4096,): ds(256·i, 256)"),
)
ABOUT = (
    "Of (256, 512) arrays in VMEM unless said otherwise; `i` is a scalar from SMEM, and multiples"
    " of it are marked with `pl.multiple_of`."
)


def read(shape, index, window):
    def build(dtype):
        def body(i, x, out):
            out[...] = x[index(i)]

        return with_scalars(1, body, array(dtype, *window), array(dtype, *shape))

    return build


def written(shape, index, window):
    def build(dtype):
        def body(i, x, out):
            out[index(i)] = x[...]

        return with_scalars(1, body, array(dtype, *shape), array(dtype, *window))

    return build


READS = Group(
    "Reads of slices of references",
    ABOUT,
    rows("f32 bf16 i8", {name: read(*window) for name, *window in WINDOWS}),
)
WRITES = Group(
    "Writes of slices of references",
    ABOUT,
    rows(
        "f32 bf16 i8",
        {name: written(*window) for name, *window in WINDOWS if name not in ONLY_READ},
    ),
)


def element_read(space, index):
    def build(dtype):
        def body(numbers, x, out):
            out[...] = jnp.full((32, 128), x[index(numbers[0])])

        return kernel(
            body,
            array(dtype, 32, 128),
            array(jnp.int32, 1),
            array(dtype, 32, 128),
            in_specs=[within(pltpu.SMEM), within(space)],
        )

    return build


def element_written(space, index):
    def build(dtype):
        def body(numbers, x, out):
            out[index(numbers[0])] = x[0]

        return kernel(
            body,
            array(dtype, 32, 128),
            array(jnp.int32, 1),
            array(dtype, 1),
            in_specs=[within(pltpu.SMEM), within(pltpu.SMEM)],
            out_specs=within(space),
        )

    return build


def masked_load(dtype):
    def body(x, chosen, out):
        out[...] = pltpu.load(x, mask=chosen[...] > 0)

    return kernel(body, array(dtype, 32, 128), array(dtype, 32, 128), array(jnp.int32, 32, 128))


def masked_store(dtype):
    def body(x, chosen, out):
        pltpu.store(out, x[...], mask=chosen[...] > 0)

    return kernel(body, array(dtype, 32, 128), array(dtype, 32, 128), array(jnp.int32, 32, 128))


ELEMENTS = Group(
    "Single elements and masks",
    "Of (32, 128) arrays; `i` is a scalar from SMEM.",
    rows(
        "f32 bf16 i32 i8 bool",
        {
            "read [1, 3] in SMEM": element_read(pltpu.SMEM, lambda i: (1, 3)),
            "read [i, 3] in SMEM": element_read(pltpu.SMEM, lambda i: (i, 3)),
            "write [i, 3] in SMEM": element_written(pltpu.SMEM, lambda i: (i, 3)),
            "read [1, 3] in VMEM": element_read(pltpu.VMEM, lambda i: (1, 3)),
            "read [i, 3] in VMEM": element_read(pltpu.VMEM, lambda i: (i, 3)),
            "read [i, i] in VMEM": element_read(pltpu.VMEM, lambda i: (i, i)),
            "write [1, 3] in VMEM": element_written(pltpu.VMEM, lambda i: (1, 3)),
        },
    )
    + rows(
        "f32 bf16 i32",
        {
            "pltpu.load with a mask": masked_load,
            "pltpu.store with a mask": masked_store,
        },
    ),
)

GROUPS = (READS, WRITES, ELEMENTS)
