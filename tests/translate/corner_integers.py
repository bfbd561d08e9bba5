"""Integers: they wrap around, divide toward zero, and are signed or not by their type."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

SIGNED = ("int8", "int32", "int64")
TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")
N = 64
# Which give other bits for signed and for unsigned integers.
BY_SIGN = ("quotient", "remainder", "right", "min", "max")
CONVERSIONS = (
    *(("int8", "int32"), ("uint8", "int32"), ("uint8", "int64"), ("int8", "uint8")),
    *(("int32", "int8"), ("int32", "int16"), ("int64", "int32"), ("int64", "uint8")),
    *(("int32", "int64"), ("uint32", "int64"), ("int8", "uint64"), ("int32", "bool")),
    *(("int64", "bool"), ("uint8", "bool"), ("bool", "int32"), ("bool", "int8"), ("bool", "int64")),
)


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
    elif OP == "quotient":
        out = x // y
    elif OP == "remainder":
        out = x % y
    elif OP == "and":
        out = x & y
    elif OP == "or":
        out = x | y
    elif OP == "xor":
        out = x ^ y
    elif OP == "left":
        out = x << y
    elif OP == "right":
        out = x >> y
    elif OP == "min":
        out = tl.minimum(x, y)
    else:
        out = tl.maximum(x, y)
    tl.store(out_ptr + lanes, out)


@triton.jit
def compare(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """Six comparisons as the bits of one integer."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    y = tl.load(y_ptr + lanes)
    bits = (x < y).to(tl.int32) | ((x <= y).to(tl.int32) << 1) | ((x > y).to(tl.int32) << 2)
    bits |= ((x >= y).to(tl.int32) << 3) | ((x == y).to(tl.int32) << 4)
    tl.store(out_ptr + lanes, bits | ((x != y).to(tl.int32) << 5))


@triton.jit
def unary(x_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    if OP == "neg":
        out = -x
    elif OP == "not":
        out = ~x
    else:
        out = tl.abs(x)
    tl.store(out_ptr + lanes, out)


@triton.jit
def high_product(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.umulhi(tl.load(x_ptr + lanes), tl.load(y_ptr + lanes)))


@triton.jit
def convert(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, x.to(out_ptr.dtype.element_ty))


@triton.jit
def mixed(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """The narrower operand is widened as its own type says before anything is computed."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * 3 + tl.load(y_ptr + lanes))


@triton.jit
def scalar_arithmetic(out_ptr, a, b, N: tl.constexpr):
    """Numbers known only at launch, and the program id, divided with the sign of the dividend."""
    pid = tl.program_id(0)
    shifted = pid - 3
    out = (a // b) * 1000 + (a % b) * 100 + (shifted // 2) * 10 + shifted % 2
    tl.store(out_ptr + pid * N + tl.arange(0, N), out + tl.arange(0, N))


@triton.jit
def hash_lanes(out_ptr, seed, N: tl.constexpr):
    """Products that leave 32 bits again and again."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    mixed_bits = lanes * 1664525 + seed
    mixed_bits = (mixed_bits ^ (mixed_bits >> 13)) * 1103515245
    tl.store(out_ptr + lanes, mixed_bits ^ (mixed_bits << 7))


@triton.jit
def wide_offsets(x_ptr, out_ptr, stride: tl.int64, N: tl.constexpr):
    """Offsets in 64 bits whose parts leave 32."""
    pid = tl.program_id(0).to(tl.int64)
    big = (pid + 1) * stride
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + (big - stride + lanes - pid * (stride - N)))
    tl.store(out_ptr + pid * N + lanes, x)


def _values(dtype, seed):
    """Two programs' worth: the extremes, small values of both signs, and anything."""
    dtype = np.dtype(dtype)
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, 2 * N, dtype, endpoint=True)
    small = np.array([*range(8), *(-each if info.min else each for each in range(1, 9))])
    values[:16] = rng.permutation(small).astype(dtype)
    values[16:20] = [info.min, info.max, info.min + 1, info.max - 1]
    return values


def _case(kernel, name, arrays, **rest):
    constants = {"N": N, **rest.pop("constants", {})}
    return Case(
        name=f"integers: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        constants=constants,
        grid=(2,),
        **rest,
    )


def _toward_zero(x, y):
    """Exact quotients, rounded toward zero, with the remainders that go with them."""
    pairs = [(abs(a) // abs(b), a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    quotients = [q if (a < 0) == (b < 0) else -q for q, a, b in pairs]
    rests = [a - b * q for q, (_, a, b) in zip(quotients, pairs, strict=True)]
    return np.array(quotients, x.dtype), np.array(rests, x.dtype)


def _binary_cases():
    for dtype in TYPES:
        x, y, out = (_values(dtype, seed) for seed in (1, 2, 3))
        bits = np.iinfo(dtype).bits
        divisor = np.where((y == 0) | (y.astype(object) == -1), 7, y).astype(dtype)
        quotient, remainder = _toward_zero(x, divisor)
        shift = (np.arange(2 * N) % bits).astype(dtype)
        with np.errstate(all="ignore"):
            table = [
                ("add", y, x + y),
                ("sub", y, x - y),
                ("mul", y, x * y),
                ("quotient", divisor, quotient),
                ("remainder", divisor, remainder),
                ("and", y, x & y),
                ("or", y, x | y),
                ("xor", y, x ^ y),
                ("left", shift, x << shift),
                ("right", shift, x >> shift),
                ("min", y, np.minimum(x, y)),
                ("max", y, np.maximum(x, y)),
            ]
        for op, right, expected in table:
            if dtype not in SIGNED and op not in BY_SIGN:
                continue
            yield _case(
                "binary",
                f"{op} of {dtype}",
                {"x_ptr": x, "y_ptr": right, "out_ptr": out},
                constants={"OP": op},
                expected={"out_ptr": expected},
            )
        columns = (x < y, x <= y, x > y, x >= y, x == y, x != y)
        codes = sum(column.astype(np.int32) << bit for bit, column in enumerate(columns))
        arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": np.zeros(2 * N, np.int32)}
        yield _case("compare", f"compare {dtype}", arrays, expected={"out_ptr": codes})
    for dtype in SIGNED:
        x, out = _values(dtype, 4), _values(dtype, 5)
        with np.errstate(all="ignore"):
            results = {"neg": -x, "not": ~x, "abs": np.abs(x)}
        for op, expected in results.items():
            arrays, constants = {"x_ptr": x, "out_ptr": out}, {"OP": op}
            yield _case(
                "unary",
                f"{op} of {dtype}",
                arrays,
                constants=constants,
                expected={"out_ptr": expected},
            )


def _other_cases():
    for dtype in ("int32", "uint32", "int64", "uint64"):
        x, y, out = (_values(dtype, seed) for seed in (1, 2, 3))
        bits = np.iinfo(dtype).bits
        mask = (1 << bits) - 1
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        high = [((a & mask) * (b & mask)) >> bits for a, b in pairs]
        expected = np.array(high, f"uint{bits}").view(dtype)
        arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": out}
        yield _case(
            "high_product",
            f"umulhi of {dtype}",
            arrays,
            expected={"out_ptr": expected},
            interpreted=dtype.startswith("u"),
        )
    for source, target in CONVERSIONS:
        x = _values("int8", 6) > 0 if source == "bool" else _values(source, 6)
        with np.errstate(all="ignore"):
            expected = x.astype(target)
        yield _case(
            "convert",
            f"{source} to {target}",
            {"x_ptr": x, "out_ptr": np.ones(2 * N, target)},
            expected={"out_ptr": expected},
        )
    for narrow, wide in (("int8", "int32"), ("uint8", "int32"), ("int16", "int64")):
        x, y, out = _values(narrow, 1), _values(wide, 2), _values(wide, 3)
        with np.errstate(all="ignore"):
            expected = (x * np.array(3, narrow)).astype(wide) + y
        arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": out}
        yield _case("mixed", f"{narrow} with {wide}", arrays, expected={"out_ptr": expected})


def _scalar_cases():
    for a, b in ((-7, 3), (7, -3), (-7, -3), (7, 3), (-6, 3)):
        programs = np.arange(2) - 3
        quotient, rest = _toward_zero(np.array([a]), np.array([b]))
        halves, parity = _toward_zero(programs, np.array([2, 2]))
        base = quotient * 1000 + rest * 100 + halves * 10 + parity
        expected = (base[:, None] + np.arange(N)).reshape(-1)
        yield _case(
            "scalar_arithmetic",
            f"{a} by {b} known at launch",
            {"out_ptr": np.zeros(2 * N, np.int32)},
            scalars={"a": a, "b": b},
            expected={"out_ptr": expected},
        )
    lanes = np.arange(2 * N, dtype=np.int32)
    with np.errstate(all="ignore"):
        bits = lanes * np.int32(1664525) + np.int32(123456789)
        bits = (bits ^ (bits >> np.int32(13))) * np.int32(1103515245)
        expected = bits ^ (bits << np.int32(7))
    yield _case(
        "hash_lanes",
        "products that wrap around",
        {"out_ptr": lanes},
        scalars={"seed": 123456789},
        expected={"out_ptr": expected},
    )
    x = np.arange(2 * N, dtype=np.float32)
    yield _case(
        "wide_offsets",
        "offsets beyond 32 bits",
        {"x_ptr": x, "out_ptr": np.zeros(2 * N, np.float32)},
        scalars={"stride": 3 << 31},
        expected={"out_ptr": x},
    )


CASES = (*_binary_cases(), *_other_cases(), *_scalar_cases())
