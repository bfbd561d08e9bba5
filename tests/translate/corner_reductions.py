"""Reductions: of narrow types, along any axis, with ties and NaN, with a kernel's own function."""

from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from launch_case import Case

R, C = 8, 32
BF16 = np.dtype(ml_dtypes.bfloat16)


@triton.jit
def reduce(x_ptr, out_ptr, OP: tl.constexpr, AXIS: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * R * C + rows[:, None] * C + columns[None, :])
    if OP == "sum":
        out = tl.sum(x, axis=AXIS)
    elif OP == "max":
        out = tl.max(x, axis=AXIS)
    elif OP == "min":
        out = tl.min(x, axis=AXIS)
    elif OP == "argmax":
        out = tl.argmax(x, axis=AXIS)
    elif OP == "argmin":
        out = tl.argmin(x, axis=AXIS)
    elif OP == "xor":
        out = tl.xor_sum(x, axis=AXIS)
    else:
        out = tl.reduce_or(x, axis=AXIS)
    lanes = columns if AXIS == 0 else rows
    tl.store(out_ptr + pid * (C if AXIS == 0 else R) + lanes, out)


@triton.jit
def reduce_all(x_ptr, sum_ptr, max_ptr, R: tl.constexpr, C: tl.constexpr):
    """Over both axes at once, and one axis of a rank of three, kept."""
    pid = tl.program_id(0)
    cube = tl.arange(0, R)[:, None, None] * C + tl.arange(0, C)[None, None, :]
    cube += tl.arange(0, 4)[None, :, None] * R * C
    x = tl.load(x_ptr + pid * 4 * R * C + cube)
    tl.store(sum_ptr + pid, tl.sum(x))
    kept = tl.max(x, axis=1, keep_dims=True)
    out = tl.arange(0, R)[:, None, None] * C + tl.arange(0, C)[None, None, :]
    tl.store(max_ptr + pid * R * C + out, kept)


@triton.jit
def index_of_extreme(
    x_ptr, value_ptr, index_ptr, LARGEST: tl.constexpr, LEFT: tl.constexpr, C: tl.constexpr
):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * C + tl.arange(0, C))
    if LARGEST:
        value, index = tl.max(x, axis=0, return_indices=True, return_indices_tie_break_left=LEFT)
    else:
        value, index = tl.min(x, axis=0, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(value_ptr + pid, value)
    tl.store(index_ptr + pid, index)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def smaller_magnitude(a, b):
    return tl.where(tl.abs(a) <= tl.abs(b), a, b)


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def reduce_by_function(x_ptr, out_ptr, FUNCTION: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + tl.program_id(0) * R * C + rows[:, None] * C + columns[None, :])
    if FUNCTION == "product":
        out = tl.reduce(x, 1, multiply)
    elif FUNCTION == "smaller magnitude":
        out = tl.reduce(x, 1, smaller_magnitude)
    else:
        out = tl.reduce(x, 1, both)
    tl.store(out_ptr + tl.program_id(0) * R + rows, out)


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def variance(x_ptr, mean_ptr, var_ptr, size, R: tl.constexpr, C: tl.constexpr):
    """Three values in step, as Inductor's kernels do; lanes beyond the row count for nothing."""
    rows, columns = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, C)
    inside = (columns < size)[None, :] & (rows >= 0)[:, None]
    x = tl.load(x_ptr + rows[:, None] * size + columns[None, :], mask=inside, other=0.0)
    count = tl.where(inside, 1.0, 0.0)
    mean, m2, total = tl.reduce((x, tl.zeros((R, C), tl.float32), count), 1, welford)
    tl.store(mean_ptr + rows, mean)
    tl.store(var_ptr + rows, m2 / total)


@triton.jit
def then(scale_a, shift_a, scale_b, shift_b):
    """Two affine maps, the first one first: the order matters."""
    return scale_b * scale_a, scale_b * shift_a + shift_b


@triton.jit
def compose(scale_ptr, shift_ptr, out_ptr, C: tl.constexpr):
    lanes = tl.program_id(0) * C + tl.arange(0, C)
    scale, shift = tl.reduce((tl.load(scale_ptr + lanes), tl.load(shift_ptr + lanes)), 0, then)
    tl.store(out_ptr + tl.program_id(0), scale * 2 + shift)


@triton.jit
def masked_softmax(x_ptr, out_ptr, size, C: tl.constexpr):
    """Lanes beyond the row are -inf, then zero."""
    columns = tl.arange(0, C)
    inside = columns < size
    x = tl.load(x_ptr + tl.program_id(0) * size + columns, mask=inside, other=float("-inf"))
    tl.store(out_ptr + tl.program_id(0) * size + columns, tl.softmax(x), mask=inside)


@triton.jit
def average(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    """In a type given to the sum."""
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + rows[:, None] * C + columns[None, :])
    tl.store(out_ptr + rows, tl.sum(x, axis=1, dtype=tl.float32) / C)


def _values(dtype, *shape, seed=1):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def _case(kernel, name, arrays, expected, **rest):
    rest.setdefault("constants", {"R": R, "C": C})
    return Case(
        name=f"reductions: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected,
        **{"grid": (2,), **rest},
    )


def _library_cases():
    for dtype in ("int8", "uint8", "int32", "int64", "float16", BF16, "float32"):
        dtype = np.dtype(dtype)
        whole, ulp = dtype.kind in "iu", 0.0 if dtype.kind in "iu" else 32 * 2.0**-7
        x = _values(dtype, 2, R, C)
        x[:, 3, 5:9] = x[:, 3, 4:5]  # ties
        wide = x.astype(np.float64) if not whole else x.astype(np.int64)
        narrow_sum = {"int8": np.int32, "int16": np.int32, "uint8": np.uint32}
        total = narrow_sum.get(dtype.name, dtype)
        ops = {
            "sum": np.sum,
            "max": np.max,
            "min": np.min,
            "argmax": np.argmax,
            "argmin": np.argmin,
        }
        if whole:
            ops |= {"xor": np.bitwise_xor.reduce, "or": np.bitwise_or.reduce}
        for op, function in ops.items():
            axis = 0 if op in ("max", "argmin") else 1
            kept = total if op == "sum" else np.int32 if op.startswith("arg") else dtype
            expected = function(wide, axis=axis + 1).astype(kept)
            yield _case(
                "reduce",
                f"{op} of {dtype.name}",
                {"x_ptr": x, "out_ptr": np.ones_like(expected)},
                {"out_ptr": expected},
                constants={"OP": op, "AXIS": axis, "R": R, "C": C},
                absolute=(ulp if dtype.itemsize == 2 else 1e-5) if op == "sum" and ulp else 0.0,
                interpreted=dtype != BF16 or op in ("max", "min"),
            )
    x = _values(np.float32, 2, 4, R, C)
    arrays = {
        "x_ptr": x,
        "sum_ptr": _values(np.float32, 2),
        "max_ptr": _values(np.float32, 2, R, C),
    }
    expected = {"sum_ptr": x.sum((1, 2, 3), np.float64), "max_ptr": x.max(1)}
    yield _case(
        "reduce_all", "every axis, and the middle of three", arrays, expected, absolute=1e-4
    )
    x = _values(np.int8, R, C)
    arrays = {"x_ptr": x, "out_ptr": _values(np.float32, R)}
    yield _case("average", "sum in a given type", arrays, {"out_ptr": x.mean(1)}, grid=(1,))


def _extreme_cases():
    for dtype in (np.float32, np.int32, np.int8):
        x = np.random.default_rng(2).integers(-3, 4, (4, C)).astype(dtype)
        for largest in (True, False):
            for left in (True, False):
                index = (np.argmax if largest else np.argmin)(x, axis=1)
                # With the other rule any of the best may be chosen: let there be one.
                sole = x.copy()
                sole[np.arange(4), index] = 9 if largest else -9
                arrays = {"x_ptr": x if left else sole, "index_ptr": np.ones(4, np.int32)}
                arrays["value_ptr"] = np.ones(4, dtype)
                value = arrays["x_ptr"][np.arange(4), index]
                yield _case(
                    "index_of_extreme",
                    f"{'arg max' if largest else 'arg min'} of {np.dtype(dtype).name}, "
                    + ("ties to the left" if left else "ties to any"),
                    arrays,
                    {"value_ptr": value, "index_ptr": index},
                    constants={"LARGEST": largest, "LEFT": left, "C": C},
                    grid=(4,),
                )
    x = _values(np.float32, 2, R, C)
    x[:, 2, 3] = np.nan
    x[:, 4, :] = np.nan
    for op, function in (("max", np.fmax), ("min", np.fmin)):
        yield _case(
            "reduce",
            f"{op} leaves out NaN unless all are",
            {"x_ptr": x, "out_ptr": _values(np.float32, 2, R)},
            {"out_ptr": function.reduce(x, axis=2)},
            constants={"OP": op, "AXIS": 1, "R": R, "C": C},
        )


def _function_cases():
    for dtype in (np.float32, np.int32):
        x = _values(dtype, 2, R, C)
        with np.errstate(all="ignore"):
            product = np.multiply.reduce(x, axis=2)
        picked = np.take_along_axis(x, np.abs(x).argmin(2)[..., None], 2)[..., 0]
        expected = {"product": product, "smaller magnitude": picked}
        if dtype == np.int32:
            expected["and"] = np.bitwise_and.reduce(x | 0x10001, axis=2)
            x = x | 0x10001
            with np.errstate(all="ignore"):
                expected["product"] = np.multiply.reduce(x, axis=2)
            where = np.abs(x).argmin(2)[..., None]
            expected["smaller magnitude"] = np.take_along_axis(x, where, 2)[..., 0]
        for name, wanted in expected.items():
            yield _case(
                "reduce_by_function",
                f"{name} of {np.dtype(dtype).name}",
                {"x_ptr": x, "out_ptr": np.ones((2, R), dtype)},
                {"out_ptr": wanted},
                constants={"FUNCTION": name, "R": R, "C": C},
                tolerance=1e-4 if name == "product" and dtype == np.float32 else 0.0,
            )
    x = _values(np.float32, 2 * R, 27)
    arrays = {"x_ptr": x, "mean_ptr": np.ones(2 * R, np.float32)}
    arrays["var_ptr"] = np.ones(2 * R, np.float32)
    expected = {"mean_ptr": x.mean(1, np.float64), "var_ptr": x.astype(np.float64).var(1)}
    yield _case(
        "variance", "three values in step", arrays, expected, scalars={"size": 27}, absolute=1e-5
    )
    rng = np.random.default_rng(3)
    scale, shift = rng.integers(-3, 4, (2, C)).astype(np.int32), _values(np.int32, 2, C)
    scale[scale == 0] = 1
    wanted = np.full(2, 2, np.int32)
    with np.errstate(all="ignore"):
        for lane in range(C):
            wanted = wanted * scale[:, lane] + shift[:, lane]
    yield _case(
        "compose",
        "an order that matters",
        {"scale_ptr": scale, "shift_ptr": shift, "out_ptr": np.ones(2, np.int32)},
        {"out_ptr": wanted},
        constants={"C": C},
    )
    x = _values(np.float32, 3, 27)
    shifted = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    yield _case(
        "masked_softmax",
        "softmax with lanes masked",
        {"x_ptr": x, "out_ptr": _values(np.float32, 3, 27, seed=2)},
        {"out_ptr": shifted / shifted.sum(1, keepdims=True)},
        scalars={"size": 27},
        constants={"C": C},
        grid=(3,),
        tolerance=1e-5,
    )


CASES = (*_library_cases(), *_extreme_cases(), *_function_cases())
