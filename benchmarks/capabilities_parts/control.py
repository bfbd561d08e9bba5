"""Probes of loops, branches and arithmetic of scalars."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .forms import Group
from .probe import array, kernel, rows, single, with_scalars, within

F32 = jnp.float32
TILE = (32, 128)


def controlled(change):
    """Builds a kernel of a function of two scalars and two references."""
    return lambda: with_scalars(2, change, array(F32, *TILE), array(F32, *TILE))


def computed(function):
    """Builds a kernel that stores what a function of two scalars and a reference gives."""

    def change(i, j, x, out):
        out[...] = function(i, j, x)

    return controlled(change)


def added(x):
    """The body of a loop that adds what a reference holds."""
    return lambda _, held: held + x[...]


def nested(i, j, x):
    return lax.fori_loop(i, j, lambda steps, held: lax.fori_loop(0, steps, added(x), held), x[...])


def while_below(i, j, x):
    return lax.while_loop(
        lambda state: state[0] < j,
        lambda state: (state[0] * 2 + 1, state[1] + x[...]),
        (i, x[...]),
    )[1]


def while_both(i, j, x):
    return lax.while_loop(
        lambda state: (state[0] < j) & (state[1] > 0),
        lambda state: (state[0] + 1, state[1] - 2, state[2] + x[...]),
        (i, j, x[...]),
    )[2]


def while_large(i, j, x):
    return lax.while_loop(lambda held: jnp.max(held) > 1.0, lambda held: held * 0.5, x[...])


def scanned(i, j, x):
    return lax.scan(lambda held, _: (held + x[...], None), x[...], None, length=8)[0]


def rows_summed(i, j, x):
    first = jnp.zeros((1, 128), F32)
    return x[...] + lax.fori_loop(i, j, lambda at, held: held + x[pl.ds(at, 1), :], first)


def rows_written(i, j, x, out):
    def step(at, nothing):
        out[pl.ds(at, 1), :] = x[pl.ds(at, 1), :] * 2
        return nothing

    lax.fori_loop(i, j, step, None)


LOOPS = Group(
    "Loops",
    "With a (32, 128) array of `f32` in VMEM; `i` and `j` are scalars from SMEM.",
    single(
        {
            "fori_loop(0, 8)": computed(lambda i, j, x: lax.fori_loop(0, 8, added(x), x[...])),
            "fori_loop(0, 8, unroll=True)": computed(
                lambda i, j, x: lax.fori_loop(0, 8, added(x), x[...], unroll=True)
            ),
            "fori_loop(0, 8, unroll=2)": computed(
                lambda i, j, x: lax.fori_loop(0, 8, added(x), x[...], unroll=2)
            ),
            "fori_loop(i, j)": computed(lambda i, j, x: lax.fori_loop(i, j, added(x), x[...])),
            "fori_loop in fori_loop": computed(nested),
            "fori_loop(i, j) that writes rows": controlled(rows_written),
            "fori_loop(i, j) that sums rows": computed(rows_summed),
            "scan without inputs, 8 steps": computed(scanned),
            "while_loop on a scalar": computed(while_below),
            "while_loop on two scalars": computed(while_both),
            "while_loop on the maximum of a vector": computed(while_large),
        }
    ),
)


def swapped(held):
    """The body of a loop that needs nothing of what it carries."""
    return held[1], held[0]


def scalar_carried(dtype):
    def body(numbers, scalars, out):
        first = (scalars[0], scalars[1])
        held = lax.fori_loop(0, numbers[0], lambda _, held: swapped(held), first)
        out[0] = held[0]

    return kernel(
        body,
        array(dtype, 1),
        array(jnp.int32, 1),
        array(dtype, 2),
        in_specs=[within(pltpu.SMEM), within(pltpu.SMEM)],
        out_specs=within(pltpu.SMEM),
    )


def vectors_carried(*shape):
    def build(dtype):
        def body(count, x, y, out):
            out[...] = lax.fori_loop(0, count, lambda _, held: swapped(held), (x[...], y[...]))[0]

        return with_scalars(1, body, *(array(dtype, *shape) for _ in range(3)))

    return build


CARRIED_SHAPES = ((1024,), (100,), (32, 128), (32, 1))

CARRIED = Group(
    "What loops carry",
    "Two of the column's type, which each step swaps; the number of steps is a scalar from SMEM.",
    rows("f32 bf16 i32 u32 i16 i8 bool", {"scalars": scalar_carried})
    + rows(
        "f32 bf16 i32 i8 bool",
        {f"{shape}": vectors_carried(*shape) for shape in CARRIED_SHAPES},
    ),
)


def when(i, j, x, out):
    @pl.when(i < j)
    def _():
        out[...] = x[...]


def when_else(i, j, x, out):
    def first():
        out[...] = x[...]

    def second():
        out[...] = x[...] * 2

    lax.cond(i < j, first, second)


def either(i, j, x):
    return lax.cond(i < j, lambda: x[...] * 2, lambda: x[...] + 1)


def either_scalar(i, j, x):
    return x[...] + lax.cond(i < j, lambda: 2.0, lambda: 3.0)


def either_flat(i, j, x):
    return x[...] + lax.cond(i < j, lambda: jnp.sum(x[...], 1), lambda: jnp.max(x[...], 1))[:, None]


def either_condition(i, j, x):
    chosen = lax.cond(i < j, lambda: x[...] > 0, lambda: x[...] < 1)
    return jnp.where(chosen, x[...], 0.0)


def either_by_vector(i, j, x):
    return lax.cond(jnp.max(x[...]) > 0, lambda: x[...] * 2, lambda: x[...] + 1)


def switched(i, j, x):
    return lax.switch(i, [lambda: x[...], lambda: x[...] * 2, lambda: x[...] + 1])


def loop_in_branch(i, j, x):
    return lax.cond(
        i < j, lambda: lax.fori_loop(0, j, added(x), x[...]), lambda: jnp.zeros(TILE, F32)
    )


def branch_in_loop(i, j, x):
    def step(at, held):
        return lax.cond(at == i, lambda: held * 2, lambda: held + x[...])

    return lax.fori_loop(0, j, step, x[...])


def when_in_loop(i, j, x, out):
    def step(at, nothing):
        @pl.when(at > i)
        def _():
            out[pl.ds(at, 1), :] = x[pl.ds(at, 1), :]

        return nothing

    lax.fori_loop(0, j, step, None)


BRANCHES = Group(
    "Branches",
    "With a (32, 128) array of `f32` in VMEM; `i` and `j` are scalars from SMEM, and conditions are"
    " `i < j` unless said otherwise.",
    single(
        {
            "pl.when that writes": controlled(when),
            "cond that writes": controlled(when_else),
            "cond with a (32, 128) result": computed(either),
            "cond with a scalar result": computed(either_scalar),
            "cond with a (32,) result": computed(either_flat),
            "cond with a condition of (32, 128) as result": computed(either_condition),
            "cond on the maximum of a vector": computed(either_by_vector),
            "switch of 3 on i": computed(switched),
            "loop in cond": computed(loop_in_branch),
            "cond in loop": computed(branch_in_loop),
            "pl.when in loop": controlled(when_in_loop),
            "where(i < j, x, 2 * x)": computed(
                lambda i, j, x: jnp.where(i < j, x[...], x[...] * 2)
            ),
            "(x > 0) & (i < j)": computed(
                lambda i, j, x: jnp.where((x[...] > 0) & (i < j), x[...], 0.0)
            ),
        }
    ),
)


def of_scalars(function):
    """Builds a kernel of a function of two scalars of the column's type."""

    def build(dtype):
        def body(numbers, out):
            out[0] = function(numbers[0], numbers[1])

        result = jax.eval_shape(function, array(dtype), array(dtype))
        return kernel(
            body,
            array(result.dtype, 1),
            array(dtype, 2),
            in_specs=[within(pltpu.SMEM)],
            out_specs=within(pltpu.SMEM),
        )

    return build


SCALARS = Group(
    "Arithmetic of scalars",
    "Of two elements of an array in SMEM; the result is written there.",
    rows(
        "f32 bf16 i32 u32 i16",
        {
            "x + y": of_scalars(lambda x, y: x + y),
            "x * y": of_scalars(lambda x, y: x * y),
            "maximum": of_scalars(jnp.maximum),
            "where(x < y, x, y)": of_scalars(lambda x, y: jnp.where(x < y, x, y)),
            "div": of_scalars(lax.div),
            "to `f32`": of_scalars(lambda x, y: x.astype(F32)),
            "to `i32`": of_scalars(lambda x, y: x.astype(jnp.int32)),
            "to `bf16`": of_scalars(lambda x, y: x.astype(jnp.bfloat16)),
        },
    )
    + rows(
        "f32",
        {
            "exp": of_scalars(lambda x, y: jnp.exp(x)),
            "log": of_scalars(lambda x, y: jnp.log(x)),
            "sqrt": of_scalars(lambda x, y: jnp.sqrt(x)),
            "rsqrt": of_scalars(lambda x, y: lax.rsqrt(x)),
            "tanh": of_scalars(lambda x, y: jnp.tanh(x)),
            "sin": of_scalars(lambda x, y: jnp.sin(x)),
            "floor": of_scalars(lambda x, y: jnp.floor(x)),
            "bits as `i32`": of_scalars(lambda x, y: lax.bitcast_convert_type(x, jnp.int32)),
        },
    )
    + rows(
        "i32",
        {
            "rem": of_scalars(lax.rem),
            "x // y": of_scalars(lambda x, y: x // y),
            "x % y": of_scalars(lambda x, y: x % y),
            "x & y": of_scalars(lambda x, y: x & y),
            "shift_left": of_scalars(lax.shift_left),
            "shift_right_logical": of_scalars(lax.shift_right_logical),
            "population_count": of_scalars(lambda x, y: lax.population_count(x)),
            "clz": of_scalars(lambda x, y: lax.clz(x)),
        },
    ),
)

GROUPS = (LOOPS, CARRIED, BRANCHES, SCALARS)
