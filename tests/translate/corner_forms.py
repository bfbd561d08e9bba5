"""Ways to write things: hints, optional arguments, masks and values that are stretched, tuples."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32


@triton.jit
def hints(x_ptr, out_ptr, steps, N: tl.constexpr):
    """What is said to the scheduler and the caches changes no value."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for step in tl.range(0, steps, num_stages=3, loop_unroll_factor=2, flatten=False):
        places = tl.multiple_of(step * 2 * N, N) + tl.max_contiguous(lanes, N)
        total += tl.load(
            x_ptr + places, cache_modifier=".cg", eviction_policy="evict_last", volatile=True
        )
    tl.debug_barrier()
    tl.store(out_ptr + lanes, total, cache_modifier=".wb", eviction_policy="evict_first")


@triton.jit
def optional(x_ptr, bias_ptr, out_ptr, scale, flag, N: tl.constexpr):
    """An array that may not be given, and a boolean known only at launch."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + lanes)
    if flag:
        x = x * scale
    tl.store(out_ptr + lanes, x)


@triton.jit
def first_above(x_ptr, out_ptr, steps, N: tl.constexpr):
    """Conditions of every lane carried through a loop."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    done = tl.zeros((N,), tl.int1)
    found = tl.full((N,), -1, tl.int32)
    for step in range(0, steps):
        x = tl.load(x_ptr + step * 2 * N + lanes)
        above = (x > 0.5) & (done == 0)
        found = tl.where(above, step, found)
        done = done | above
    tl.store(out_ptr + lanes, tl.where(done, found, -7))


@triton.jit
def stretched(x_ptr, row_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """A mask of one row, another value of one row, and one number stored to many places."""
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    c = tl.arange(0, N)[None, :]
    other = tl.load(row_ptr + c, mask=c < columns, other=0.0)
    x = tl.load(x_ptr + r * columns + c, mask=(c < columns) & (r < rows - 2), other=other)
    tl.store(out_ptr + r * columns + c, x, mask=(c < columns) & (r < rows))
    tl.store(out_ptr + r * columns + tl.arange(0, 2)[None, :], 7.0, mask=r < rows)


@triton.jit
def count(x_ptr, out_ptr, all_ptr, N: tl.constexpr):
    """Conditions added up."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x > 0, axis=-1))
    tl.store(all_ptr + tl.program_id(0), tl.min((x > -1.5).to(tl.int32), axis=0))


@triton.jit
def other_type(x_ptr, out_ptr, N: tl.constexpr):
    """A pointer to other elements of the same size: the sign is taken off by its bit."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    bits = tl.load(x_ptr.to(tl.pointer_type(tl.int32)) + lanes)
    tl.store(out_ptr.to(tl.pointer_type(tl.int32)) + lanes, bits & 0x7FFFFFFF)


@triton.jit
def ends(x, low, high):
    return low, high, x * 2


@triton.jit
def several(x_ptr, out_ptr, N: tl.constexpr):
    """Functions that give several values, some of them shapes."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    low, high, twice = ends(tl.load(x_ptr + lanes), -1.0, 1.0)
    pair = (twice, lanes.to(tl.float32))
    tl.store(out_ptr + lanes, tl.minimum(tl.maximum(pair[0], low), high) + pair[1])


@triton.jit
def typed_scalars(
    x_ptr, out_ptr, half: tl.float16, wide: tl.int64, byte: tl.uint8, N: tl.constexpr
):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, x * half + (wide + byte).to(tl.float32))


@triton.jit
def before_and_after(x_ptr, y_ptr, out_ptr, size, N: tl.constexpr):
    """Half a rotation: two halves of a row, each from both."""
    half = tl.arange(0, N)
    row = tl.program_id(0) * 2 * N
    a, b = tl.load(x_ptr + row + half), tl.load(x_ptr + row + N + half)
    angle = tl.load(y_ptr + (tl.program_id(0) % size) * N + half)
    cos, sin = tl.cos(angle), tl.sin(angle)
    tl.store(out_ptr + row + half, a * cos - b * sin)
    tl.store(out_ptr + row + N + half, b * cos + a * sin)


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"forms: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected if isinstance(expected, dict) else {"out_ptr": expected},
        **{"grid": (2,), "constants": {"N": N}, **rest},
    )


def _cases():
    x, y, out = _normal(1, 5, 2 * N), _normal(2, 2 * N), _normal(3, 2 * N)
    arrays, scalars = {"x_ptr": x, "out_ptr": out}, {"steps": 5}
    yield _case("hints", "hints", arrays, x.sum(0), scalars=scalars, absolute=1e-5)
    above = np.where((x > 0.5).any(0), (x > 0.5).argmax(0), -7)
    arrays = {"x_ptr": x, "out_ptr": np.zeros(2 * N, np.int32)}
    yield _case("first_above", "conditions carried along", arrays, above, scalars=scalars)
    x = x[0]
    for flag in (False, True):
        arrays = {"x_ptr": x, "bias_ptr": y, "out_ptr": out}
        scalars = {"scale": 3.0, "flag": flag}
        factor = np.float32(3 if flag else 1)
        name = f"a boolean, {flag}"
        yield _case("optional", name, arrays, (x + y) * factor, scalars=scalars, tolerance=1e-6)
        constants = {"bias_ptr": None, "N": N}
        arrays, name = {"x_ptr": x, "out_ptr": out}, f"no array, and {flag}"
        yield _case("optional", name, arrays, x * factor, scalars=scalars, constants=constants)
    table, row = _normal(4, 10, 20), _normal(5, 20)
    expected = np.where(np.arange(10)[:, None] < 8, table, row)
    expected[:, :2] = 7
    yield _case(
        "stretched",
        "masks, values and numbers stretched",
        {"x_ptr": table, "row_ptr": row, "out_ptr": _normal(6, 10, 20)},
        expected,
        scalars={"rows": 10, "columns": 20},
        constants={"M": 8, "N": N},
    )
    arrays = {"x_ptr": x, "out_ptr": np.zeros(2, np.int32), "all_ptr": np.zeros(2, np.int32)}
    halves = x.reshape(2, N)
    expected = {"out_ptr": (halves > 0).sum(1), "all_ptr": (halves > -1.5).all(1)}
    yield _case("count", "conditions added up", arrays, expected)
    arrays = {"x_ptr": x, "out_ptr": out}
    yield _case("other_type", "a pointer to other elements", arrays, np.abs(x))
    expected = np.clip(x * 2, -1, 1) + np.arange(2 * N, dtype=np.float32)
    yield _case("several", "functions that give several values", arrays, expected)
    scalars = {"half": 0.3, "wide": (-(1 << 40), "i64"), "byte": 200}
    expected = x * np.float32(np.float16(0.3)) + np.float32(200 - (1 << 40))
    yield _case(
        "typed_scalars",
        "numbers of given types",
        arrays,
        expected,
        scalars=scalars,
        tolerance=1e-6,
        interpreted=False,
    )
    x, y = _normal(9, 4, 2 * N), _normal(1, 2, N)
    angle = np.tile(y, (2, 1)).astype(np.float64)
    a, b = x[:, :N], x[:, N:]
    turned = [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)]
    yield _case(
        "before_and_after",
        "two halves, each from both",
        {"x_ptr": x, "y_ptr": y, "out_ptr": _normal(2, 4, 2 * N)},
        np.concatenate(turned, axis=1),
        scalars={"size": 2},
        grid=(4,),
        absolute=1e-5,
    )


CASES = tuple(_cases())
