"""Short ways to write the kernels that probes compile."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .forms import ONLY, Row

TYPES = {
    "f32": jnp.float32,
    "bf16": jnp.bfloat16,
    "f16": jnp.float16,
    "f8e4m3fn": jnp.float8_e4m3fn,
    "f8e5m2": jnp.float8_e5m2,
    "i32": jnp.int32,
    "u32": jnp.uint32,
    "i16": jnp.int16,
    "u16": jnp.uint16,
    "i8": jnp.int8,
    "u8": jnp.uint8,
    "i4": jnp.int4,
    "u4": jnp.uint4,
    "bool": jnp.bool_,
}


@dataclass(frozen=True, slots=True)
class Program:
    """A function, and the shapes and types of the arrays that it is compiled for."""

    function: Callable
    arguments: tuple[jax.ShapeDtypeStruct, ...]


def rows(columns, table):
    """Rows that differ by the element type in their columns.

    Args:
      columns: names of element types, between spaces.
      table: names of rows to functions that make a program of an element type.
    """
    names = tuple(columns.split())
    return tuple(
        Row(name, names, lambda column, build=build: build(TYPES[column]))
        for name, build in table.items()
    )


def single(table):
    """Rows of one form each, of a mapping from names to functions without parameters."""
    return tuple(
        Row(name, (ONLY,), lambda _, build=build: build()) for name, build in table.items()
    )


def array(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def within(space):
    """The specification of a whole array in a memory space."""
    return pl.BlockSpec(memory_space=space)


def multiple(count, start):
    """`start` times `count`, with the promise that it is such a multiple."""
    return pl.multiple_of(start * count, count)


def kernel(body, out, *arguments, **options):
    """A kernel with whole arrays in VMEM, unless `options` of `pallas_call` say otherwise."""
    return Program(pl.pallas_call(body, out_shape=out, **options), arguments)


def values(function, *arguments):
    """A kernel that loads whole arrays, and stores what a function makes of them.

    A scalar is stored as an array full of it, booleans as `int32`.
    """

    def stored(*inputs):
        result = function(*inputs)
        if result.dtype == jnp.bool_:
            result = result.astype(jnp.int32)
        return jnp.full((8, 128), result) if result.ndim == 0 else result

    def body(*refs):
        refs[-1][...] = stored(*(ref[...] for ref in refs[:-1]))

    return kernel(body, jax.eval_shape(stored, *arguments), *arguments)


def of(function, *shape):
    """Builds, for an element type, a kernel of a function of one array."""
    return lambda dtype: values(function, array(dtype, *shape))


def with_scalars(count, body, out, *arguments, **options):
    """A kernel whose first argument holds `int32` scalars in SMEM, which only a run tells.

    `body` takes so many scalars, then the references of the other arguments.
    """

    def read(numbers, *refs):
        body(*(numbers[each] for each in range(count)), *refs)

    return kernel(
        read,
        out,
        array(jnp.int32, count),
        *arguments,
        in_specs=[within(pltpu.SMEM), *(within(pltpu.VMEM) for _ in arguments)],
        **options,
    )
