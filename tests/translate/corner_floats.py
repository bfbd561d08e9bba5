"""Floats: NaN in every comparison, rounding at every op."""

from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from launch_case import Case
from scipy import special

N = 64
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
FLOATS = (np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64))
# One unit in the last place of each format, relative to its value.
ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


@triton.jit
def binary(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    y = tl.load(y_ptr + lanes)
    if OP == "add":
        out = x + y
    elif OP == "sub":
        out = x - y
    elif OP == "mul":
        out = x * y
    elif OP == "div":
        out = x / y
    elif OP == "mod":
        out = x % y
    elif OP == "maximum":
        out = tl.maximum(x, y)
    elif OP == "minimum":
        out = tl.minimum(x, y)
    elif OP == "maximum_nan":
        out = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "minimum_nan":
        out = tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "div_rn":
        out = tl.div_rn(x, y)
    else:
        out = tl.fdiv(x, y)
    tl.store(out_ptr + lanes, out)


@triton.jit
def compare(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """Six comparisons and their negations as the bits of one integer."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    y = tl.load(y_ptr + lanes)
    bits = (x < y).to(tl.int32) | ((x <= y).to(tl.int32) << 1) | ((x > y).to(tl.int32) << 2)
    bits |= ((x >= y).to(tl.int32) << 3) | ((x == y).to(tl.int32) << 4)
    bits |= ((x != y).to(tl.int32) << 5) | ((~(x < y)).to(tl.int32) << 6)
    bits |= ((~(x >= y)).to(tl.int32) << 7) | ((x != x).to(tl.int32) << 8)
    tl.store(out_ptr + lanes, bits | ((~(x == y)).to(tl.int32) << 9))


@triton.jit
def clamp(x_ptr, out_ptr, low, high, ALL: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    if ALL:
        out = tl.clamp(x, low, high, propagate_nan=tl.PropagateNan.ALL)
    else:
        out = tl.clamp(x, low, high)
    tl.store(out_ptr + lanes, out)


@triton.jit
def unary(x_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    if OP == "neg":
        out = -x
    elif OP == "abs":
        out = tl.abs(x)
    elif OP == "exp":
        out = tl.exp(x)
    elif OP == "exp2":
        out = tl.exp2(x)
    elif OP == "log":
        out = tl.log(x)
    elif OP == "log2":
        out = tl.log2(x)
    elif OP == "sqrt":
        out = tl.sqrt(x)
    elif OP == "rsqrt":
        out = tl.rsqrt(x)
    elif OP == "sin":
        out = tl.sin(x)
    elif OP == "cos":
        out = tl.cos(x)
    elif OP == "erf":
        out = tl.erf(x)
    elif OP == "floor":
        out = tl.floor(x)
    elif OP == "ceil":
        out = tl.ceil(x)
    elif OP == "sigmoid":
        out = tl.sigmoid(x)
    else:
        out = tl.sqrt_rn(x)
    tl.store(out_ptr + lanes, out)


@triton.jit
def multiply_add(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x, y, z = tl.load(x_ptr + lanes), tl.load(y_ptr + lanes), tl.load(z_ptr + lanes)
    tl.store(out_ptr + lanes, tl.fma(x, y, z))


@triton.jit
def rounded_chain(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """What rounding takes from the sum does not come back."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    y = tl.load(y_ptr + lanes)
    tl.store(out_ptr + lanes, ((x + y) - x) * y)


@triton.jit
def widened_chain(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """The same in the precision of `f32`, rounded once."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes).to(tl.float32)
    y = tl.load(y_ptr + lanes).to(tl.float32)
    tl.store(out_ptr + lanes, ((x + y) - x) * y)


@triton.jit
def chosen(x_ptr, out_ptr, N: tl.constexpr):
    """The branch not taken is NaN, infinite, or divides by zero."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    safe = tl.where(x > 0, tl.sqrt(x), -1.0)
    tl.store(out_ptr + lanes, tl.where(x == 0, safe * 2, safe / x))


@triton.jit
def mixed_types(x_ptr, h_ptr, n_ptr, out_ptr, scale, N: tl.constexpr):
    """A narrow float and an integer beside `f32`, and a number known only at launch."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x, h, n = tl.load(x_ptr + lanes), tl.load(h_ptr + lanes), tl.load(n_ptr + lanes)
    tl.store(out_ptr + lanes, (h * 0.5) * scale + x * n)


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
        name=f"floats: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        constants={"N": N, **rest.pop("constants", {})},
        expected={"out_ptr": expected},
        grid=(2,),
        **rest,
    )


def _computed(dtype, function, *operands):
    """A function of `f64`, rounded once."""
    with np.errstate(all="ignore"):
        return function(*(each.astype(np.float64) for each in operands)).astype(dtype)


def _binary_cases():
    table = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "mod": np.fmod,
        "maximum": np.fmax,
        "minimum": np.fmin,
        "maximum_nan": np.maximum,
        "minimum_nan": np.minimum,
    }
    for dtype in FLOATS:
        # A zero of either sign is right where both are given, so that no pair of them is.
        x, y = _special(dtype, 1), np.where(np.arange(2 * N) % 7 == 4, 2, _special(dtype, 2))
        y = np.where((x == 0) & (y == 0), 3, y).astype(dtype)
        for op, function in table.items():
            exact = dtype.itemsize > 2 or op not in ("div", "mod")
            quotient = op == "div" and dtype.itemsize == 4
            yield _case(
                "binary",
                f"{op} of {dtype.name}",
                {"x_ptr": x, "y_ptr": y, "out_ptr": _normal(dtype, 3)},
                _computed(dtype, function, x, y),
                constants={"OP": op},
                # `/` of f32 is not correctly rounded in Triton.
                tolerance=2 * ULP[dtype.name] if quotient or not exact else 0.0,
                interpreted=dtype != BF16,
            )
        x, y = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(invalid="ignore"):
            columns = (x < y, x <= y, x > y, x >= y, x == y, x != y)
            columns = (*columns, ~(x < y), ~(x >= y), x != x, ~(x == y))
        codes = sum(column.astype(np.int32) << bit for bit, column in enumerate(columns))
        arrays = {"x_ptr": x.astype(dtype), "y_ptr": y.astype(dtype)}
        arrays["out_ptr"] = np.zeros(2 * N, np.int32)
        yield _case("compare", f"compare {dtype.name}", arrays, codes, interpreted=dtype != BF16)
    x, y = _normal(np.float32, 4), _normal(np.float32, 5) + 9
    for op in ("div_rn", "fdiv"):
        arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": _normal(np.float32, 3)}
        tolerance = 0.0 if op == "div_rn" else 2 * ULP["float32"]
        constants = {"OP": op}
        yield _case("binary", op, arrays, x / y, constants=constants, tolerance=tolerance)


def _unary_cases():
    table = {
        "neg": (np.negative, 0),
        "abs": (np.abs, 0),
        "floor": (np.floor, 0),
        "ceil": (np.ceil, 0),
        "sqrt": (np.sqrt, 2),
        "sqrt_rn": (np.sqrt, 0),
        "exp": (np.exp, 16),
        "exp2": (np.exp2, 16),
        "log": (np.log, 16),
        "log2": (np.log2, 16),
        "rsqrt": (lambda x: 1 / np.sqrt(x), 4),
        "sin": (np.sin, 16),
        "cos": (np.cos, 16),
        "erf": (special.erf, 16),
        "sigmoid": (special.expit, 16),
    }
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        for op, (function, ulps) in table.items():
            if op == "sqrt_rn" and dtype == np.float64:
                continue
            x = _special(dtype, 1)
            if op in ("sin", "cos"):
                x = np.where(np.isinf(x), 1, x).astype(dtype)
            yield _case(
                "unary",
                f"{op} of {dtype.name}",
                {"x_ptr": x, "out_ptr": _normal(dtype, 3)},
                _computed(dtype, function, x),
                constants={"OP": op},
                tolerance=ulps * ULP[dtype.name],
                absolute=ulps * ULP[dtype.name] if op in ("sin", "cos", "log", "log2") else 0.0,
            )
    for dtype in (np.dtype(np.float16), BF16):
        for op in ("neg", "abs"):
            x = _special(dtype, 1)
            arrays = {"x_ptr": x, "out_ptr": _normal(dtype, 3)}
            expected = _computed(dtype, table[op][0], x)
            name, constants = f"{op} of {dtype.name}", {"OP": op}
            yield _case(
                "unary", name, arrays, expected, constants=constants, interpreted=dtype != BF16
            )
    for flag in (False, True):
        x = _special(np.float32, 1)
        held = np.clip(np.where(np.isnan(x), np.nan if flag else -1.5, x), -1.5, 2.5)
        yield _case(
            "clamp",
            f"clamp with NaN {'kept' if flag else 'replaced'}",
            {"x_ptr": x, "out_ptr": _normal(np.float32, 3)},
            held.astype(np.float32),
            scalars={"low": -1.5, "high": 2.5},
            constants={"ALL": flag},
            interpreted=flag,
        )


def _rounding_cases():
    for dtype in (np.dtype(np.float16), BF16, np.dtype(np.float32)):
        x, y = _normal(dtype, 6, 500.0), _normal(dtype, 7, 1.0)
        arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": _normal(dtype, 3)}
        total = _computed(dtype, np.add, x, y)
        difference = _computed(dtype, np.subtract, total, x)
        yield _case(
            "rounded_chain",
            f"rounding at every op in {dtype.name}",
            arrays,
            _computed(dtype, np.multiply, difference, y),
            interpreted=dtype != BF16,
        )
        a, b = x.astype(np.float32), y.astype(np.float32)
        yield _case(
            "widened_chain",
            f"rounding once from f32 to {dtype.name}",
            arrays,
            (((a + b) - a) * b).astype(dtype),
            interpreted=dtype != BF16,
        )
    x, y, z = (_normal(np.float32, seed) for seed in (1, 2, 4))
    yield _case(
        "multiply_add",
        "fma",
        {"x_ptr": x, "y_ptr": y, "z_ptr": z, "out_ptr": x},
        _computed(np.float32, lambda a, b, c: a * b + c, x, y, z),
        absolute=16 * ULP["float32"] * 16,
    )
    large = np.tile([60000.0, -60000.0, 2048.0, 6e-8, 5.9e-8, 65504.0, 65519.0, 1.0], 16)
    x, y = large.astype(np.float16), np.roll(large, 1).astype(np.float16)
    yield _case(
        "binary",
        "f16 overflows and underflows",
        {"x_ptr": x, "y_ptr": y, "out_ptr": x.copy()},
        _computed(np.float16, np.multiply, x, y),
        constants={"OP": "mul"},
    )
    x, h = _normal(np.float32, 1), _normal(np.float16, 2)
    n = np.random.default_rng(3).integers(-9, 9, 2 * N).astype(np.int32)
    half = (h * np.float16(0.5)).astype(np.float32)
    yield _case(
        "mixed_types",
        "f16 and i32 beside f32",
        {"x_ptr": x, "h_ptr": h, "n_ptr": n, "out_ptr": x},
        half * np.float32(0.3) + x * n.astype(np.float32),
        scalars={"scale": 0.3},
        tolerance=8 * ULP["float32"],
        absolute=1e-5,
        interpreted=False,  # it takes `scale` for a constant, which takes the type of `h`
    )
    x = np.where(np.arange(2 * N) % 3 == 0, 0, _normal(np.float32, 8)).astype(np.float32)
    with np.errstate(all="ignore"):
        safe = np.where(x > 0, np.sqrt(x), -1)
        expected = np.where(x == 0, safe * 2, safe / x)
    yield _case(
        "chosen",
        "NaN in the branch not chosen",
        {"x_ptr": x, "out_ptr": x},
        expected.astype(np.float32),
        tolerance=4 * ULP["float32"],
    )


CASES = (*_binary_cases(), *_unary_cases(), *_rounding_cases())
