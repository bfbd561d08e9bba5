"""Probes of loads, stores, and of what is computed element by element."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from .forms import Group
from .probe import TYPES, array, of, rows, values

SHAPE = (32, 128)
NUMBERS = "f32 bf16 f16 f8e4m3fn i32 u32 i16 i8 u8 i4"


def unary(function):
    return of(function, *SHAPE)


def binary(function):
    return lambda dtype: values(function, array(dtype, *SHAPE), array(dtype, *SHAPE))


def with_other(other, function):
    """A function of two arrays of the column's type and two of another."""
    return lambda dtype: values(
        function, *(array(each, *SHAPE) for each in (dtype, dtype, other, other))
    )


def same(x):
    return x


MOVES = Group(
    "Loads and stores",
    "A whole array through registers.",
    rows(" ".join(TYPES), {"(32, 128)": of(same, *SHAPE)})
    + rows(
        "f32 bf16 i32 i16 i8 i4 bool",
        {
            "(5, 37)": of(same, 5, 37),
            "(1024,)": of(same, 1024),
            "(1000,)": of(same, 1000),
        },
    )
    + rows(
        "f32 bf16 i8",
        {
            "(1, 1)": of(same, 1, 1),
            "(3, 5, 128)": of(same, 3, 5, 128),
            "(2, 3, 5, 37)": of(same, 2, 3, 5, 37),
        },
    )
    + rows(
        "f32 bf16 i32 i16 i8 u8 bool",
        {
            "two constants, by a condition": lambda dtype: values(
                lambda x: jnp.where(x > 0, dtype(1), dtype(0)), array(jnp.int32, *SHAPE)
            )
        },
    ),
)

ARITHMETIC = Group(
    "Arithmetic",
    "Of (32, 128) arrays.",
    rows(
        NUMBERS,
        {
            "x + y": binary(lambda x, y: x + y),
            "x * y": binary(lambda x, y: x * y),
            "maximum": binary(jnp.maximum),
            "x == y": binary(lax.eq),
            "x < y": binary(lax.lt),
            "where(x < y, x, y)": binary(lambda x, y: jnp.where(x < y, x, y)),
        },
    )
    + rows(
        "f32 bf16 i32 u32 i16 i8",
        {
            "x - y": binary(lambda x, y: x - y),
            "-x": unary(lambda x: -x),
            "minimum": binary(jnp.minimum),
            "sign": unary(jnp.sign),
            "clip by constants": unary(lambda x: jnp.clip(x, 1, 3)),
            "where(i < j, x, y), i and j of `i32`": with_other(
                jnp.int32, lambda x, y, i, j: jnp.where(i < j, x, y)
            ),
            "where(x < y, i, j), i and j of `i32`": with_other(
                jnp.int32, lambda x, y, i, j: jnp.where(x < y, i, j)
            ),
        },
    )
    + rows("f32 bf16 i32 i16 i8", {"abs": unary(jnp.abs)})
    + rows(
        "f32 bf16",
        {
            "x / y": binary(lambda x, y: x / y),
            "rem": binary(lax.rem),
            "isnan": unary(jnp.isnan),
            "isfinite": unary(jnp.isfinite),
        },
    ),
)

FUNCTIONS = Group(
    "Elementwise functions",
    "Of (32, 128) arrays.",
    rows(
        "f32 bf16",
        {
            "exp": unary(jnp.exp),
            "exp2": unary(jnp.exp2),
            "expm1": unary(jnp.expm1),
            "log": unary(jnp.log),
            "log2": unary(jnp.log2),
            "log1p": unary(jnp.log1p),
            "sqrt": unary(jnp.sqrt),
            "rsqrt": unary(lax.rsqrt),
            "cbrt": unary(jnp.cbrt),
            "x ** y": binary(jnp.power),
            "x ** 3": unary(lambda x: x**3),
            "sin": unary(jnp.sin),
            "cos": unary(jnp.cos),
            "tan": unary(jnp.tan),
            "asin": unary(jnp.arcsin),
            "acos": unary(jnp.arccos),
            "atan": unary(jnp.arctan),
            "atan2": binary(jnp.arctan2),
            "sinh": unary(jnp.sinh),
            "cosh": unary(jnp.cosh),
            "tanh": unary(jnp.tanh),
            "asinh": unary(jnp.arcsinh),
            "acosh": unary(jnp.arccosh),
            "atanh": unary(jnp.arctanh),
            "sigmoid": unary(jax.nn.sigmoid),
            "erf": unary(lax.erf),
            "erfc": unary(lax.erfc),
            "erf_inv": unary(lax.erf_inv),
            "lgamma": unary(lax.lgamma),
            "digamma": unary(lax.digamma),
            "floor": unary(jnp.floor),
            "ceil": unary(jnp.ceil),
            "trunc": unary(jnp.trunc),
            "round, ties to even": unary(
                lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
            ),
            "round, ties away from zero": unary(
                lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)
            ),
            "nextafter": binary(lax.nextafter),
            "pl.reciprocal": unary(pl.reciprocal),
            "pl.reciprocal(approx=True)": unary(lambda x: pl.reciprocal(x, approx=True)),
            "reduce_precision(5, 10)": unary(lambda x: lax.reduce_precision(x, 5, 10)),
        },
    ),
)

INTEGERS = Group(
    "Integer operations",
    "Of (32, 128) arrays.",
    rows(
        "i32 u32 i16 i8 u8",
        {
            "div": binary(lax.div),
            "rem": binary(lax.rem),
            "x // y": binary(lambda x, y: x // y),
            "x // 8": unary(lambda x: x // 8),
            "x % 7": unary(lambda x: x % 7),
            "x & y": binary(lambda x, y: x & y),
            "x ^ y": binary(lambda x, y: x ^ y),
            "~x": unary(lambda x: ~x),
            "shift_left": binary(lax.shift_left),
            "shift_right_arithmetic": binary(lax.shift_right_arithmetic),
            "shift_right_logical": binary(lax.shift_right_logical),
            "population_count": unary(lax.population_count),
            "clz": unary(lax.clz),
        },
    ),
)

GROUPS = (MOVES, ARITHMETIC, FUNCTIONS, INTEGERS)
