"""Probes of reductions, scans, sorts, gathers and rolls."""

import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import tpu as pltpu

from .forms import Group
from .probe import array, of, rows, values, with_scalars

SHAPE = (32, 128)
WAYS = {
    "axis 1, keepdims": {"axis": 1, "keepdims": True},
    "axis 0, keepdims": {"axis": 0, "keepdims": True},
    "axis 1": {"axis": 1},
    "axis 0": {"axis": 0},
    "to a scalar": {},
}
KEPT = ("axis 1, keepdims", "axis 0, keepdims")
SCALAR = ("to a scalar",)
DROPPED = ("axis 1", "axis 0", "to a scalar")


def reduced(columns, name, function, ways):
    return rows(
        columns,
        {f"{name}, {way}": of(lambda x, how=WAYS[way]: function(x, **how), *SHAPE) for way in ways},
    )


def of_order(x):
    """A reduction by a function whose order of arguments matters."""
    return lax.reduce(x, jnp.float32(0), lambda held, each: held * 0.5 + each, (1,))


REDUCTIONS = Group(
    "Reductions",
    "Of (32, 128) arrays, unless said otherwise. Axis 1 is that of lanes. `jnp.sum` adds `bf16` in"
    " `f32`, and integers of fewer bits in `i32`.",
    reduced("f32 bf16 i32 u32 i16 i8", "sum", jnp.sum, KEPT)
    + reduced("f32 bf16 i32", "sum", jnp.sum, DROPPED)
    + rows(
        "f32 bf16 i16",
        {
            "lax.reduce_sum, axis 1": of(lambda x: lax.reduce_sum(x, (1,)), *SHAPE),
            "lax.reduce_sum, axis 0": of(lambda x: lax.reduce_sum(x, (0,)), *SHAPE),
        },
    )
    + rows(
        "f32 bf16",
        {
            "sum of (1000,), to a scalar": of(jnp.sum, 1000),
            "sum of (5, 37), axis 1, keepdims": of(
                lambda x: jnp.sum(x, axis=1, keepdims=True), 5, 37
            ),
            "sum of (5, 37), axis 0": of(lambda x: jnp.sum(x, axis=0), 5, 37),
            "sum of (4, 8, 128), axis 0": of(lambda x: jnp.sum(x, axis=0), 4, 8, 128),
            "sum of (4, 8, 128), axis 1": of(lambda x: jnp.sum(x, axis=1), 4, 8, 128),
            "sum of (4, 8, 128), axis 2": of(lambda x: jnp.sum(x, axis=2), 4, 8, 128),
            "sum of (4, 8, 128), axes 0 and 2": of(lambda x: jnp.sum(x, axis=(0, 2)), 4, 8, 128),
        },
    )
    + reduced("f32 bf16 i32 u32 i16 i8", "max", jnp.max, KEPT)
    + reduced("f32 bf16 i32", "max", jnp.max, SCALAR)
    + rows("f32 i32", {"max of (1000,), to a scalar": of(jnp.max, 1000)})
    + reduced("f32 bf16 i32", "min", jnp.min, KEPT)
    + reduced("f32 bf16 i32", "argmax", jnp.argmax, KEPT)
    + reduced("f32", "argmax", jnp.argmax, DROPPED)
    + rows("f32", {"argmax of (1000,), to a scalar": of(jnp.argmax, 1000)})
    + reduced("f32 bf16 i32", "argmin", jnp.argmin, KEPT)
    + reduced("f32 bf16 i8", "any(x > 0)", lambda x, **how: jnp.any(x > 0, **how), WAYS)
    + reduced("f32 bf16 i8", "all(x > 0)", lambda x, **how: jnp.all(x > 0, **how), KEPT)
    + reduced("f32 bf16 i32", "prod", jnp.prod, KEPT)
    + rows(
        "i32",
        {
            "reduce_or, axis 1": of(lambda x: lax.reduce_or(x, (1,)), *SHAPE),
            "reduce_xor, axis 1": of(lambda x: lax.reduce_xor(x, (1,)), *SHAPE),
        },
    )
    + rows("f32", {"lax.reduce with a function of two values": of(of_order, *SHAPE)}),
)


def gathered(axis, shape, indices, mode="promise_in_bounds", index=jnp.int32):
    return lambda dtype: values(
        lambda x, i: jnp.take_along_axis(x, i, axis, mode=mode),
        array(dtype, *shape),
        array(index, *indices),
    )


def rolled(axis, *shape):
    """Builds a roll by a scalar that only the run tells."""

    def build(dtype):
        def body(shift, x, out):
            out[...] = pltpu.roll(x[...], shift, axis)

        return with_scalars(1, body, array(dtype, *shape), array(dtype, *shape))

    return build


def added_at(x, i):
    return x.at[i].add(x[:8])


ORDER = Group(
    "Scans, sorts, gathers, rolls",
    "Of (32, 128) arrays, unless said otherwise. Indices are `i32` and, unless a mode is said,"
    " promised to be in bounds; `i` is a scalar from SMEM.",
    rows(
        "f32",
        {
            "cumsum, axis 0": of(lambda x: jnp.cumsum(x, 0), *SHAPE),
            "cumsum, axis 1": of(lambda x: jnp.cumsum(x, 1), *SHAPE),
            "cumsum of (1024,)": of(jnp.cumsum, 1024),
            "cumprod, axis 1": of(lambda x: jnp.cumprod(x, 1), *SHAPE),
            "cummax, axis 1": of(lambda x: lax.cummax(x, 1), *SHAPE),
            "associative_scan, axis 1": of(
                lambda x: lax.associative_scan(jnp.add, x, axis=1), *SHAPE
            ),
            "sort, axis 1": of(lambda x: jnp.sort(x, 1), *SHAPE),
            "argsort, axis 1": of(lambda x: jnp.argsort(x, 1), *SHAPE),
            "top_k(8)": of(lambda x: lax.top_k(x, 8)[0], *SHAPE),
            "flip, axis 0": of(lambda x: jnp.flip(x, 0), *SHAPE),
            "flip, axis 1": of(lambda x: jnp.flip(x, 1), *SHAPE),
        },
    )
    + rows(
        "f32 bf16",
        {
            "take_along_axis 0 of (8, 128)": gathered(0, (8, 128), (8, 128)),
            "take_along_axis 1 of (8, 128)": gathered(1, (8, 128), (8, 128)),
            "take_along_axis 1 of (8, 128), mode fill": gathered(1, (8, 128), (8, 128), "fill"),
            "take_along_axis 1 of (8, 128), mode clip": gathered(1, (8, 128), (8, 128), "clip"),
            "take_along_axis 0 of (16, 128)": gathered(0, (16, 128), (16, 128)),
            "take_along_axis 0 of (32, 128)": gathered(0, SHAPE, SHAPE),
            "take_along_axis 1 of (32, 128)": gathered(1, SHAPE, SHAPE),
            "take_along_axis 1 of (8, 256)": gathered(1, (8, 256), (8, 256)),
            "take_along_axis 1 of (8, 512) by (8, 128)": gathered(1, (8, 512), (8, 128)),
            "take_along_axis 0 of (128,)": gathered(0, (128,), (128,)),
            "take_along_axis 0 of (1024,)": gathered(0, (1024,), (1024,)),
            "take of rows": lambda dtype: values(
                lambda x, i: jnp.take(x, i, axis=0, mode="clip"),
                array(dtype, *SHAPE),
                array(jnp.int32, 128),
            ),
            "x.at[i].add": lambda dtype: values(
                added_at, array(dtype, *SHAPE), array(jnp.int32, 8)
            ),
        },
    )
    + rows(
        "bf16 i16 i8",
        {
            "take_along_axis 0 of (32, 128), indices of `i16`": gathered(
                0, SHAPE, SHAPE, index=jnp.int16
            ),
            "take_along_axis 0 of (32, 128), indices of `i8`": gathered(
                0, SHAPE, SHAPE, index=jnp.int8
            ),
        },
    )
    + rows(
        "f32 bf16 i32 i8",
        {
            "jnp.roll by 3, axis 0": of(lambda x: jnp.roll(x, 3, 0), *SHAPE),
            "jnp.roll by 3, axis 1": of(lambda x: jnp.roll(x, 3, 1), *SHAPE),
            "pltpu.roll by 3, axis 0": of(lambda x: pltpu.roll(x, 3, 0), *SHAPE),
            "pltpu.roll by 3, axis 1": of(lambda x: pltpu.roll(x, 3, 1), *SHAPE),
            "pltpu.roll by 3, axis 1 of (8, 200)": of(lambda x: pltpu.roll(x, 3, 1), 8, 200),
            "pltpu.roll by 3, axis 0 of (5, 128)": of(lambda x: pltpu.roll(x, 3, 0), 5, 128),
            "pltpu.roll by i, axis 0": rolled(0, *SHAPE),
            "pltpu.roll by i, axis 1": rolled(1, *SHAPE),
            "pltpu.roll by i, axis 1 of (8, 512)": rolled(1, 8, 512),
            "pltpu.roll by i, axis 0 of (4, 8, 128)": rolled(0, 4, 8, 128),
            "pltpu.roll by i of (1024,)": rolled(0, 1024),
        },
    ),
)


def counted(axis):
    return lambda dtype: values(
        lambda x: lax.broadcasted_iota(dtype, SHAPE, axis).astype(jnp.int32) + x,
        array(jnp.int32, *SHAPE),
    )


def ranged(size):
    return lambda dtype: values(
        lambda x: jnp.arange(size, dtype=dtype).astype(jnp.int32) + x, array(jnp.int32, size)
    )


IOTA = Group(
    "Numbers in order",
    "Of (32, 128) arrays, unless said otherwise; cast to `i32` and added to what is loaded.",
    rows(
        "f32 i32 u32 i16 i8",
        {"broadcasted_iota, axis 0": counted(0), "broadcasted_iota, axis 1": counted(1)},
    )
    + rows("f32 i32 i8", {"arange(1024)": ranged(1024), "arange(100)": ranged(100)}),
)

GROUPS = (REDUCTIONS, ORDER, IOTA)
