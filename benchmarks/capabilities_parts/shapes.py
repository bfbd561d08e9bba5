"""Probes of reshapes, transposes and the like, of values in registers."""

import jax.numpy as jnp
from jax import lax

from .forms import Group
from .probe import array, of, rows, with_scalars

RESHAPES = (
    *(((8192,), (64, 128)), ((64, 128), (8192,)), ((1000,), (8, 125))),
    *(((8, 256), (2048,)), ((8, 1024), (64, 128)), ((64, 128), (8, 1024))),
    *(((8, 128), (8, 2, 64)), ((8, 2, 64), (8, 128)), ((16, 64), (8, 128))),
    *(((8, 256), (8, 2, 128)), ((8, 2, 128), (8, 256))),
    *(((32, 128), (4, 8, 128)), ((4, 8, 128), (32, 128)), ((32, 128), (16, 2, 128))),
    *(((16, 2, 128), (32, 128)), ((20, 128), (4, 5, 128)), ((4, 5, 128), (20, 128))),
    *(((8, 128), (1, 8, 128)), ((8, 128), (8, 1, 128)), ((8, 128), (8, 128, 1))),
    *(((128,), (1, 128)), ((128,), (128, 1)), ((1, 128), (128,)), ((128, 1), (128,))),
)

RESHAPE = Group(
    "Reshapes",
    "Of values in registers.",
    rows(
        "f32 bf16 i8",
        {f"{old} to {new}": of(lambda x, new=new: x.reshape(new), *old) for old, new in RESHAPES},
    ),
)


def transposed(order, *shape):
    return f"transpose {order} of {shape}", of(lambda x: jnp.transpose(x, order), *shape)


def stretched(old, new):
    return f"broadcast {old} to {new}", of(lambda x: jnp.broadcast_to(x, new), *old)


def dynamic_slice(dtype):
    def body(start, x, out):
        out[...] = lax.dynamic_slice(x[...], (start, 0), (8, 128))

    return with_scalars(1, body, array(dtype, 8, 128), array(dtype, 32, 128))


def dynamic_update(dtype):
    def body(start, x, out):
        out[...] = lax.dynamic_update_slice(x[...], x[:8], (start, 0))

    return with_scalars(1, body, array(dtype, 32, 128), array(dtype, 32, 128))


SHAPES = Group(
    "Transposes, broadcasts, slices, joins",
    "Of values in registers; `i` is a scalar from SMEM.",
    rows(
        "f32 bf16 i8",
        {
            **dict(
                (
                    transposed((1, 0), 32, 128),
                    transposed((1, 0), 128, 128),
                    transposed((1, 0), 5, 37),
                    transposed((1, 0, 2), 4, 8, 128),
                    transposed((0, 2, 1), 4, 8, 128),
                    transposed((2, 1, 0), 2, 8, 128),
                    transposed((2, 0, 1), 2, 8, 128),
                    transposed((0, 2, 1, 3), 2, 4, 8, 128),
                    stretched((1, 128), (32, 128)),
                    stretched((32, 1), (32, 128)),
                    stretched((1, 1), (32, 128)),
                    stretched((8, 1, 128), (8, 4, 128)),
                )
            ),
            "x[:, None] of (128,), broadcast to (128, 128)": of(
                lambda x: jnp.broadcast_to(x[:, None], (128, 128)), 128
            ),
            "x[None, :] of (128,), broadcast to (128, 128)": of(
                lambda x: jnp.broadcast_to(x[None, :], (128, 128)), 128
            ),
            "x[:, None] of (100,), broadcast to (100, 200)": of(
                lambda x: jnp.broadcast_to(x[:, None], (100, 200)), 100
            ),
            "x[:, None, :] of (8, 128)": of(lambda x: x[:, None, :], 8, 128),
            "x[:, :, None] of (8, 128)": of(lambda x: x[:, :, None], 8, 128),
            "concatenate of two (32, 128), axis 0": of(
                lambda x: jnp.concatenate([x, x], 0), 32, 128
            ),
            "concatenate of two (32, 128), axis 1": of(
                lambda x: jnp.concatenate([x, x], 1), 32, 128
            ),
            "concatenate of two (5, 128), axis 0": of(lambda x: jnp.concatenate([x, x], 0), 5, 128),
            "concatenate of two (32, 37), axis 1": of(lambda x: jnp.concatenate([x, x], 1), 32, 37),
            "concatenate of two (100,)": of(lambda x: jnp.concatenate([x, x]), 100),
            "stack of two (8, 128), axis 1": of(lambda x: jnp.stack([x, x], 1), 8, 128),
            "stack of two (8, 128), axis 2": of(lambda x: jnp.stack([x, x], 2), 8, 128),
            "the same, reshape to (8, 256)": of(
                lambda x: jnp.stack([x, x], 2).reshape(8, 256), 8, 128
            ),
            "repeat of (8, 128), axis 1": of(lambda x: jnp.repeat(x, 2, 1), 8, 128),
            "pad of (32, 128) to (35, 130)": of(lambda x: jnp.pad(x, ((1, 2), (2, 0))), 32, 128),
            "x[8:16, 128:] of (32, 256)": of(lambda x: x[8:16, 128:], 32, 256),
            "x[3:10, 5:50] of (32, 128)": of(lambda x: x[3:10, 5:50], 32, 128),
            "x[::2] of (32, 128)": of(lambda x: x[::2], 32, 128),
            "x[:, ::2] of (32, 128)": of(lambda x: x[:, ::2], 32, 128),
            "x[:, 0] of (32, 128)": of(lambda x: x[:, 0], 32, 128),
            "x[..., 0] of (8, 64, 2)": of(lambda x: x[..., 0], 8, 64, 2),
            "x[5] of (32, 128)": of(lambda x: x[5], 32, 128),
            "x[1, 3] of (32, 128)": of(lambda x: x[1, 3], 32, 128),
            "x[100:300] of (1024,)": of(lambda x: x[100:300], 1024),
            "dynamic_slice at row i": dynamic_slice,
            "dynamic_update_slice at row i": dynamic_update,
        },
    ),
)

GROUPS = (RESHAPE, SHAPES)
