"""Probes of casts, of bits taken as another type, and of conditions."""

import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import tpu as pltpu

from .forms import Group, Row
from .probe import TYPES, array, of, rows, single, values

SHAPE = (32, 128)
CAST_TYPES = tuple(name for name in TYPES if name not in ("f16", "u16", "u4"))
TO_F16 = ("f32", "bf16", "i16")


def converted(convert, source, target):
    return values(lambda x: convert(x, TYPES[target]), array(TYPES[source], *SHAPE))


def cast(source, columns):
    return Row(
        f"from `{source}`",
        tuple(columns),
        lambda target: converted(lambda x, to: x.astype(to), source, target),
    )


def targets(source):
    """The types to which a type is cast; all refuse `f16` alike."""
    return (
        target
        for target in (*CAST_TYPES, "f16")
        if target != source and (target != "f16" or source in TO_F16)
    )


CASTS = Group(
    "Casts",
    "`x.astype(...)` of (32, 128) arrays, from the row's type to the column's.",
    (*(cast(source, targets(source)) for source in CAST_TYPES), cast("f16", ("f32", "bf16"))),
)


def bits(name, convert, pairs):
    """Rows of pairs of types."""
    return single(
        {
            f"{name}, `{source}` to `{target}`": lambda source=source, target=target: converted(
                convert, source, target
            )
            for source, _, target in (pair.partition(" ") for pair in pairs)
        }
    )


BITS = Group(
    "Bits of one type as another",
    "Of (32, 128) arrays. `pltpu.bitcast` joins or splits sublanes where widths differ.",
    bits(
        "lax.bitcast_convert_type",
        lax.bitcast_convert_type,
        (
            *("f32 i32", "i32 f32", "u32 i32", "bf16 i16", "i16 bf16", "u16 bf16", "i16 f16"),
            *("f8e4m3fn i8", "u8 i8"),
        ),
    )
    + bits(
        "pltpu.bitcast",
        pltpu.bitcast,
        (
            *("i32 bf16", "bf16 i32", "i32 i8", "i8 i32", "i16 i8", "i8 i4", "u8 i4"),
            *("f8e4m3fn i8", "i8 f8e4m3fn"),
        ),
    ),
)


def condition(function, *shape):
    """Builds a kernel of a function of the condition `x > 1`."""
    return of(lambda x: function(x > x.dtype.type(1)), *shape)


def two(function, other=None):
    """Builds a kernel of a function of two conditions, of two types where another is given."""
    return lambda dtype: values(
        lambda x, y: function(x > x.dtype.type(1), y > y.dtype.type(2)),
        array(dtype, *SHAPE),
        array(other or dtype, *SHAPE),
    )


CONDITIONS = Group(
    "Conditions",
    "`m` is `x > 1` for an array of the column's type, (32, 128) unless said otherwise, `n` another"
    " of that type. What comes out is stored as `i32`.",
    rows(
        "f32 bf16 i8",
        {
            "m": condition(lambda m: m, *SHAPE),
            "m of (5, 37)": condition(lambda m: m, 5, 37),
            "m of (1000,)": condition(lambda m: m, 1000),
            "~m": condition(lambda m: ~m, *SHAPE),
            "m & n": two(lambda m, n: m & n),
            "m ^ n": two(lambda m, n: m ^ n),
            "m == n": two(lambda m, n: m == n),
            "where(m, n, ~n)": two(lambda m, n: jnp.where(m, n, ~n)),
            "m & n, n of `i32`": two(lambda m, n: m & n, jnp.int32),
            "m[:, None] & m[None, :] of (128,)": condition(lambda m: m[:, None] & m[None, :], 128),
            "m of (32, 1), broadcast": condition(lambda m: jnp.broadcast_to(m, SHAPE), 32, 1),
            "m of (1, 128), broadcast": condition(lambda m: jnp.broadcast_to(m, SHAPE), 1, 128),
            "m of (1024,), reshape to (8, 128)": condition(lambda m: m.reshape(8, 128), 1024),
            "m of (8, 128), reshape to (1024,)": condition(lambda m: m.reshape(1024), 8, 128),
            "transpose of m": condition(jnp.transpose, *SHAPE),
            "m[8:16]": condition(lambda m: m[8:16], *SHAPE),
            "concatenate([m, m], 1)": condition(lambda m: jnp.concatenate([m, m], 1), *SHAPE),
            "pltpu.roll(m, 3, 1)": condition(lambda m: pltpu.roll(m, 3, 1), *SHAPE),
        },
    ),
)

GROUPS = (CASTS, BITS, CONDITIONS)
