"""Functions of libdevice, which Triton's interpreter does not have."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case
from scipy import special
from triton.language.extra import libdevice

N = 64


@triton.jit
def unary(x_ptr, out_ptr, FUNCTION: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, getattr(libdevice, FUNCTION)(tl.load(x_ptr + lanes)))


@triton.jit
def binary(x_ptr, y_ptr, out_ptr, FUNCTION: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x, y = tl.load(x_ptr + lanes), tl.load(y_ptr + lanes)
    tl.store(out_ptr + lanes, getattr(libdevice, FUNCTION)(x, y))


def _round_half_away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


ANY, POSITIVE, UNIT = "any", "positive", "between -1 and 1"
# Function, where it is defined, and how many units in the last place it may be off.
UNARY = {
    "acos": (np.arccos, UNIT, 16),
    "acosh": (lambda x: np.arccosh(x + 1), "above 1", 16),
    "asin": (np.arcsin, UNIT, 16),
    "asinh": (np.arcsinh, ANY, 16),
    "atan": (np.arctan, ANY, 16),
    "atanh": (np.arctanh, UNIT, 64),
    "cbrt": (np.cbrt, ANY, 16),
    "ceil": (np.ceil, ANY, 0),
    "cos": (np.cos, ANY, 16),
    "cosh": (np.cosh, ANY, 16),
    "erf": (special.erf, ANY, 16),
    "erfc": (special.erfc, ANY, 64),
    "exp": (np.exp, ANY, 16),
    "exp10": (lambda x: 10.0**x, ANY, 64),
    "exp2": (np.exp2, ANY, 16),
    "expm1": (np.expm1, ANY, 16),
    "fast_cosf": (np.cos, ANY, 16),
    "fast_expf": (np.exp, ANY, 16),
    "fast_log2f": (np.log2, POSITIVE, 16),
    "fast_logf": (np.log, POSITIVE, 16),
    "fast_sinf": (np.sin, ANY, 16),
    "floor": (np.floor, ANY, 0),
    "lgamma": (special.gammaln, POSITIVE, 64),
    "log": (np.log, POSITIVE, 16),
    "log10": (np.log10, POSITIVE, 16),
    "log1p": (np.log1p, POSITIVE, 16),
    "log2": (np.log2, POSITIVE, 16),
    "nearbyint": (np.rint, ANY, 0),
    "rint": (np.rint, ANY, 0),
    "round": (_round_half_away, ANY, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 16),
    "sin": (np.sin, ANY, 16),
    "sinh": (np.sinh, ANY, 16),
    "sqrt": (np.sqrt, POSITIVE, 2),
    "tan": (np.tan, ANY, 64),
    "tanh": (np.tanh, ANY, 16),
    "tgamma": (special.gamma, POSITIVE, 64),
    "trunc": (np.trunc, ANY, 0),
    "abs": (np.abs, ANY, 0),
}
BINARY = {
    "atan2": (np.arctan2, ANY, 16),
    "copysign": (np.copysign, ANY, 0),
    "fdim": (lambda x, y: np.maximum(x - y, 0), ANY, 2),
    "fmod": (np.fmod, ANY, 0),
    "hypot": (np.hypot, ANY, 16),
    "pow": (np.power, POSITIVE, 64),
    "fast_powf": (np.power, POSITIVE, 64),
    "div_rn": (np.divide, ANY, 0),
    "fast_dividef": (np.divide, ANY, 4),
}
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit, "finitef": np.isfinite}
TO_INTEGERS = {"float2int_rn": np.rint, "float2int_rd": np.floor, "llrint": np.rint}
REFUSED = ("j0", "erfinv", "rcp_rd")
# A symbol each for `f32` and `f64`: a few of the latter stand for all.
IN_DOUBLE = ("abs", "erfc", "exp10", "expm1", "lgamma", "round", "fmod", "pow", "div_rn")


def _values(dtype, domain, seed):
    values = np.random.default_rng(seed).standard_normal(2 * N) * 2
    values[:6] = [0.5, -0.5, 1.5, 2.5, -1.5, -2.5]
    if domain == UNIT:
        values = np.tanh(values)
    elif domain != ANY:
        values = np.abs(values) + 0.01
    return values.astype(dtype)


def _case(kernel, function, arrays, expected=None, **rest):
    return Case(
        name=f"libdevice: {function} of {arrays['x_ptr'].dtype}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        constants={"N": N, "FUNCTION": function},
        expected={} if expected is None else {"out_ptr": expected},
        grid=(2,),
        interpreted=False,
        **rest,
    )


def _cases():
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        ulp = float(np.finfo(dtype).eps)
        for name, (function, domain, ulps) in UNARY.items():
            if name not in IN_DOUBLE and dtype == np.float64:
                continue
            x = _values(dtype, domain, 1)
            shift = 1 if domain == "above 1" else 0
            arrays = {"x_ptr": x + dtype.type(shift), "out_ptr": _values(dtype, ANY, 3)}
            exact = function((x + dtype.type(shift)).astype(np.float64) - shift)
            tolerances = {"tolerance": ulps * ulp, "absolute": ulps * ulp}
            yield _case("unary", name, arrays, exact.astype(dtype), **tolerances)
        for name, (function, domain, ulps) in BINARY.items():
            if name not in IN_DOUBLE and dtype == np.float64:
                continue
            x, y = _values(dtype, domain, 1), _values(dtype, ANY, 2)
            exact = function(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
            arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": _values(dtype, ANY, 3)}
            yield _case("binary", name, arrays, exact, tolerance=ulps * ulp)
    x = _values(np.float32, ANY, 1)
    x[8:14] = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0]
    for name, function in TESTS.items():
        arrays = {"x_ptr": x, "out_ptr": np.full(2 * N, 9, np.int32)}
        yield _case("unary", name, arrays, function(x).astype(np.int32))
    for name, function in TO_INTEGERS.items():
        x = _values(np.float32, ANY, 1) * 50
        arrays = {"x_ptr": x, "out_ptr": np.full(2 * N, 9, np.int64)}
        yield _case("unary", name, arrays, function(x).astype(np.int64))
    for name in REFUSED:
        arrays = {"x_ptr": _values(np.float32, ANY, 1), "out_ptr": _values(np.float32, ANY, 3)}
        message = r"calls `__nv_\w+`, whose meaning is not known"
        yield _case("unary", name, arrays, refused=message, untranslated=message)


CASES = tuple(_cases())
