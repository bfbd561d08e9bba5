"""Scans: sums, products, a kernel's own function, in either direction along any axis."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

R, C = 8, 32


@triton.jit
def scan(
    x_ptr,
    out_ptr,
    OP: tl.constexpr,
    AXIS: tl.constexpr,
    REVERSE: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
):
    places = tl.program_id(0) * R * C + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + places)
    if OP == "sum":
        out = tl.cumsum(x, axis=AXIS, reverse=REVERSE)
    else:
        out = tl.cumprod(x, axis=AXIS, reverse=REVERSE)
    tl.store(out_ptr + places, out)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def recur(decay_a, state_a, decay_b, state_b):
    return decay_b * decay_a, decay_b * state_a + state_b


@triton.jit
def last_set(value_a, set_a, value_b, set_b):
    """The value of the last lane that is set."""
    return tl.where(set_b != 0, value_b, value_a), set_a | set_b


@triton.jit
def running_max(x_ptr, out_ptr, REVERSE: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    places = tl.program_id(0) * R * C + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    out = tl.associative_scan(tl.load(x_ptr + places), 1, larger, reverse=REVERSE)
    tl.store(out_ptr + places, out)


@triton.jit
def recurrence(decay_ptr, x_ptr, out_ptr, REVERSE: tl.constexpr, C: tl.constexpr):
    """A linear recurrence: two values in step, in an order that matters."""
    lanes = tl.program_id(0) * C + tl.arange(0, C)
    decay, x = tl.load(decay_ptr + lanes), tl.load(x_ptr + lanes)
    _, state = tl.associative_scan((decay, x), 0, recur, reverse=REVERSE)
    tl.store(out_ptr + lanes, state)


@triton.jit
def fill_forward(x_ptr, set_ptr, out_ptr, C: tl.constexpr):
    lanes = tl.program_id(0) * C + tl.arange(0, C)
    x, given = tl.load(x_ptr + lanes), tl.load(set_ptr + lanes)
    value, _ = tl.associative_scan((x, given), 0, last_set)
    tl.store(out_ptr + lanes, value)


@triton.jit
def carried_sum(x_ptr, out_ptr, blocks, C: tl.constexpr):
    """A scan over a long row, block after block, with the sum so far carried along."""
    row = tl.program_id(0) * blocks * C
    before = 0.0
    for block in range(0, blocks):
        lanes = row + block * C + tl.arange(0, C)
        x = tl.load(x_ptr + lanes)
        tl.store(out_ptr + lanes, tl.cumsum(x, axis=0) + before)
        before += tl.sum(x, axis=0)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"scans: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected={"out_ptr": expected},
        grid=(2,),
        **rest,
    )


def _along(function, x, axis, reverse):
    x = np.flip(x, axis) if reverse else x
    with np.errstate(all="ignore"):
        found = function.accumulate(x, axis=axis, dtype=x.dtype)
    return np.flip(found, axis) if reverse else found


def _cases():
    rng = np.random.default_rng(1)
    sizes = {"R": R, "C": C}
    for dtype in (np.int8, np.int32, np.float32):
        for op, function in (("sum", np.add), ("prod", np.multiply)):
            for axis in (0, 1):
                for reverse in (False, True):
                    whole = np.dtype(dtype).kind == "i"
                    x = (
                        rng.integers(-128, 128, (2, R, C))
                        if whole
                        else rng.standard_normal((2, R, C))
                    )
                    x = x.astype(dtype)
                    wide = np.int32 if dtype == np.int8 else dtype
                    expected = _along(function, x.astype(wide), axis + 1, reverse)
                    yield _case(
                        "scan",
                        f"{op} of {np.dtype(dtype).name} along {axis}{', reversed' * reverse}",
                        {"x_ptr": x, "out_ptr": np.ones((2, R, C), wide)},
                        expected,
                        constants={"OP": op, "AXIS": axis, "REVERSE": reverse, **sizes},
                        tolerance=0.0 if whole else 1e-4,
                        absolute=0.0 if whole else 1e-4,
                    )
    x = rng.standard_normal((2, R, C)).astype(np.float32)
    for reverse in (False, True):
        arrays = {"x_ptr": x, "out_ptr": np.ones((2, R, C), np.float32)}
        expected = _along(np.maximum, x, 2, reverse)
        constants = {"REVERSE": reverse, **sizes}
        name = f"running maximum{', reversed' * reverse}"
        yield _case("running_max", name, arrays, expected, constants=constants)
        decay = rng.uniform(0.5, 1.0, (2, C)).astype(np.float32)
        inputs = rng.standard_normal((2, C)).astype(np.float32)
        wanted, state = np.zeros((2, C)), np.zeros(2)
        for lane in range(C)[:: -1 if reverse else 1]:
            state = decay[:, lane] * state + inputs[:, lane]
            wanted[:, lane] = state
        yield _case(
            "recurrence",
            f"linear recurrence{', reversed' * reverse}",
            {"decay_ptr": decay, "x_ptr": inputs, "out_ptr": np.ones((2, C), np.float32)},
            wanted,
            constants={"REVERSE": reverse, "C": C},
            absolute=1e-5,
        )
    values = rng.integers(-99, 99, (2, C)).astype(np.int32)
    given = (rng.random((2, C)) < 0.3).astype(np.int32)
    wanted = values.copy()
    for row in range(2):
        for lane in range(1, C):
            wanted[row, lane] = values[row, lane] if given[row, lane] else wanted[row, lane - 1]
    arrays = {"x_ptr": values, "set_ptr": given, "out_ptr": np.ones((2, C), np.int32)}
    yield _case("fill_forward", "last value that is set", arrays, wanted, constants={"C": C})
    x = rng.standard_normal((2, 4 * C)).astype(np.float32)
    yield _case(
        "carried_sum",
        "a long row in blocks",
        {"x_ptr": x, "out_ptr": np.ones_like(x)},
        x.cumsum(1, np.float64),
        scalars={"blocks": 4},
        constants={"C": C},
        absolute=1e-4,
    )


CASES = tuple(_cases())
