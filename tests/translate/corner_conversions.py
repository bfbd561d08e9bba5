"""Conversions: between formats of floats, to and from integers, and of bits alone."""

from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 64
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
FLOATS = (np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64))


@triton.jit
def convert(x_ptr, out_ptr, ROUNDING: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    if ROUNDING == "default":
        out = x.to(out_ptr.dtype.element_ty)
    else:
        out = x.to(out_ptr.dtype.element_ty, fp_downcast_rounding=ROUNDING)
    tl.store(out_ptr + lanes, out)


@triton.jit
def bits(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, x.to(out_ptr.dtype.element_ty, bitcast=True))


def _special(dtype, seed):
    """Two programs' worth: every pair of NaN, infinities, zeros and ones, then anything."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(2 * N) * 4
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]
    pairs = np.array([(a, b) for a in odd for b in odd])
    values[: len(pairs)] = pairs[:, seed % 2]
    return values.astype(dtype)


def _normal(dtype, seed, scale=4.0):
    values = np.random.default_rng(seed).standard_normal(2 * N) * scale
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"conversions: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        constants={"N": N, **rest.pop("constants", {})},
        expected={"out_ptr": expected},
        grid=(2,),
        **rest,
    )


def _to_eight_bits(values, dtype):
    """To nearest even; what is too large becomes the largest value."""
    limit = float(ml_dtypes.finfo(dtype).max)
    return np.clip(values.astype(np.float64), -limit, limit).astype(dtype)


def _conversion_cases():
    floats = {each.name: each for each in (*FLOATS, E4M3, E5M2)}
    pairs = [
        *(("float32", "float16"), ("float32", "bfloat16"), ("float64", "float32")),
        *(("float16", "float32"), ("bfloat16", "float32"), ("float32", "float64")),
        *(("float16", "bfloat16"), ("float64", "bfloat16"), ("float64", "float16")),
        *(("float32", "float8_e4m3fn"), ("float32", "float8_e5m2"), ("float8_e5m2", "float32")),
        *(("float8_e4m3fn", "float32"), ("float16", "float8_e4m3fn"), ("float8_e5m2", "bfloat16")),
    ]
    for source, target in pairs:
        x = _special(floats[source], 1)
        if floats[source].itemsize > 1:
            x[60:100] = _normal(floats[source], 9, 3e4)[60:100]
        small = floats[target].itemsize == 1
        if small:
            x = np.where(np.isnan(x), 1, x).astype(x.dtype)
        with np.errstate(all="ignore"):
            expected = _to_eight_bits(x, floats[target]) if small else x.astype(floats[target])
        once = source != "float16" or target != "bfloat16"
        yield _case(
            "convert",
            f"{source} to {target}",
            {"x_ptr": x, "out_ptr": np.ones(2 * N, floats[target])},
            expected if once else x.astype(np.float64).astype(BF16),
            constants={"ROUNDING": "default"},
            interpreted=not small
            and source[:6] not in ("float6", "float8")
            and target != "bfloat16",
        )
    x = _normal(np.float32, 9, 100.0)
    for target, kept in (("float16", 11), ("bfloat16", 8)):
        mantissa, exponent = np.frexp(x.astype(np.float64))
        cut = np.ldexp(np.trunc(np.ldexp(mantissa, kept)), exponent - kept)
        yield _case(
            "convert",
            f"float32 to {target} toward zero",
            {"x_ptr": x, "out_ptr": np.ones(2 * N, floats[target])},
            cut.astype(floats[target]),
            constants={"ROUNDING": "rtz"},
            interpreted=False,
        )
    for source in ("float16", "bfloat16", "float32", "float64"):
        for target in ("int8", "int32", "int64", "uint8", "uint32"):
            limit = 120.0 if "8" in target else 30000.0
            x = _normal(floats[source], 9, limit / 4).clip(-limit, limit).astype(floats[source])
            x[:8] = [0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.0, -0.0]
            x = np.abs(x) if target.startswith("u") else x
            yield _case(
                "convert",
                f"{source} to {target}",
                {"x_ptr": x, "out_ptr": np.ones(2 * N, target)},
                np.trunc(x.astype(np.float64)).astype(target),
                constants={"ROUNDING": "default"},
                interpreted=source != "bfloat16",
            )
    for source in ("int32", "int64", "uint32", "uint64", "bool", "uint8"):
        for target in ("float16", "bfloat16", "float32", "float64"):
            rng = np.random.default_rng(5)
            shift = rng.integers(0, 60, 2 * N)
            x = rng.integers(0, 1 << 63, 2 * N, np.uint64) >> shift.astype(np.uint64)
            if source == "bool":
                x = x % np.uint64(2) == 0
            with np.errstate(all="ignore"):
                x = x.astype(source)
                expected = _round_once(x, floats[target])
            yield _case(
                "convert",
                f"{source} to {target}",
                {"x_ptr": x, "out_ptr": np.ones(2 * N, floats[target])},
                expected,
                constants={"ROUNDING": "default"},
                interpreted=target not in ("bfloat16", "float16"),
            )
    for source, target in (("float32", "int32"), ("int32", "float32"), ("bfloat16", "int16")):
        x = _special(floats.get(source, np.float32), 1)
        x = x.view(source) if source not in floats else x
        yield _case(
            "bits",
            f"bits of {source} as {target}",
            {"x_ptr": x, "out_ptr": np.ones(2 * N, floats.get(target, target))},
            x.view(floats.get(target, target)),
        )


def _round_once(values, dtype):
    """Integers to nearest even in whole numbers, as a double on the way would round too."""
    precision = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]

    def nearest(value):
        unit = 1 << max(value.bit_length() - precision, 0)
        count, rest = divmod(value, unit)
        return (count + (2 * rest > unit or (2 * rest == unit and count % 2))) * unit

    rounded = [float(nearest(int(value))) for value in values]
    with np.errstate(over="ignore"):
        return np.array(rounded, np.float64).astype(dtype)


CASES = tuple(_conversion_cases())
