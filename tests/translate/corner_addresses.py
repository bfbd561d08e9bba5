"""Where elements lie: masks, strides, wrapped indices, aliases."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32


@triton.jit
def masked_copy(x_ptr, out_ptr, first, last, OTHER: tl.constexpr, N: tl.constexpr):
    """Both ends cut off; what is not stored stays, what is not loaded is zero or `OTHER`."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    inside = (lanes >= first) & (lanes < last)
    if OTHER is None:
        x = tl.load(x_ptr + lanes, mask=inside)
        tl.store(out_ptr + lanes, tl.where(inside, x, 5) * 2)
    else:
        x = tl.load(x_ptr + lanes, mask=inside, other=OTHER)
        tl.store(out_ptr + lanes, x + 1, mask=(lanes % 3 != 0) & (lanes < last + 4))


@triton.jit
def zero_without_other(x_ptr, out_ptr, size, N: tl.constexpr):
    """A sum over lanes whose rest no one gave a value for."""
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * size + lanes, mask=lanes < size)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def tile_copy(
    x_ptr,
    out_ptr,
    rows,
    columns,
    stride_xr,
    stride_xc,
    stride_or,
    stride_oc,
    M: tl.constexpr,
    N: tl.constexpr,
):
    """A matrix by tiles, whatever the strides of either side."""
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    c = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inside = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * stride_xr + c * stride_xc, mask=inside)
    tl.store(out_ptr + r * stride_or + c * stride_oc, x * 2, mask=inside)


@triton.jit
def wrapped_product(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The matmul tutorial: rows and columns wrap around, pointers move along K."""
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    rows = (pid // across * BM + tl.arange(0, BM)) % M
    columns = (pid % across * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_ptrs += BK
        b_ptrs += BK * N
    r = pid // across * BM + tl.arange(0, BM)
    c = pid % across * BN + tl.arange(0, BN)
    inside = (r[:, None] < M) & (c[None, :] < N)
    tl.store(c_ptr + r[:, None] * N + c[None, :], total, mask=inside)


@triton.jit
def wrapped_sum(x_ptr, out_ptr, size, N: tl.constexpr):
    """Wrapped lanes are used, so that they are really the first ones again."""
    lanes = (tl.program_id(0) * N + tl.arange(0, N)) % size
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + lanes), axis=0))


@triton.jit
def in_place(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * 2 + tl.load(y_ptr + lanes))


@triton.jit
def rewritten(x_ptr, out_ptr, N: tl.constexpr):
    """Reads what it wrote, and writes one place twice."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) + 1)
    tl.debug_barrier()
    again = tl.load(out_ptr + lanes) * 3
    tl.store(out_ptr + lanes, again)
    tl.store(x_ptr + lanes, again, mask=lanes % 2 == 0)


@triton.jit
def two_outputs(x_ptr, even_ptr, sum_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * 2 * N + tl.arange(0, 2 * N))
    halves = tl.reshape(x, (N, 2))
    tl.store(sum_ptr + pid, tl.sum(x, axis=0))
    tl.store(even_ptr + pid * N + tl.arange(0, N), tl.max(halves, axis=1))


@triton.jit
def flags(x_ptr, out_ptr, any_ptr, N: tl.constexpr):
    """Booleans in memory, read and written."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, ~x)
    tl.store(any_ptr + tl.program_id(0), tl.max(x.to(tl.int32), axis=0) != 0)


@triton.jit
def reversed_copy(x_ptr, out_ptr, size, N: tl.constexpr):
    """Addresses run down."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + (size - 1 - lanes), mask=lanes < size)
    tl.store(out_ptr + lanes, x, mask=lanes < size)


@triton.jit
def strided_lanes(x_ptr, out_ptr, N: tl.constexpr):
    """Every other element in, and out to the two halves."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    total = tl.num_programs(0) * N
    tl.store(out_ptr + lanes, tl.load(x_ptr + 2 * lanes))
    tl.store(out_ptr + total + lanes, tl.load(x_ptr + 2 * lanes + 1))


@triton.jit
def shifted(x_ptr, out_ptr, size, N: tl.constexpr):
    """Neighbours on either side: a window of three."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    left = tl.load(x_ptr + lanes - 1, mask=(lanes > 0) & (lanes <= size), other=0.0)
    x = tl.load(x_ptr + lanes, mask=lanes < size, other=0.0)
    right = tl.load(x_ptr + lanes + 1, mask=lanes + 1 < size, other=0.0)
    tl.store(out_ptr + lanes, left + 2 * x - right, mask=lanes < size)


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"addresses: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected if isinstance(expected, dict) else {"out_ptr": expected},
        **{"unordered": True, "constants": {"N": N}, **rest},
    )


def _masks():
    lanes = np.arange(4 * N)
    for dtype in (np.float32, np.int32):
        x, out = (_normal(seed, 4 * N) * 50 for seed in (1, 2))
        x, out = x.astype(dtype), out.astype(dtype)
        inside = (lanes >= 5) & (lanes < 100)
        doubled = np.where(inside, x, 5) * 2
        other = -2 if dtype == np.int32 else -2.5
        stored = np.where((lanes % 3 != 0) & (lanes < 104), np.where(inside, x, other) + 1, out)
        for name, value, wanted in (("none", "none", doubled), ("given", other, stored)):
            yield _case(
                "masked_copy",
                f"masked {np.dtype(dtype).name}, other {name}",
                {"x_ptr": x, "out_ptr": out},
                wanted.astype(dtype),
                scalars={"first": 5, "last": 100},
                constants={"OTHER": None if value == "none" else value, "N": N},
                grid=(4,),
            )
    x = _normal(3, 5, 20)
    arrays, scalars = {"x_ptr": x, "out_ptr": _normal(4, 5)}, {"size": 20}
    yield _case(
        "zero_without_other",
        "masked lanes without other are zero",
        arrays,
        x.sum(1, np.float64),
        scalars=scalars,
        grid=(5,),
        absolute=1e-5,
    )


def _layouts():
    """The same copy from and to every layout; gaps hold NaN, and must keep it."""
    rows, columns = 21, 37

    def memory(seed, *shape):
        values = _normal(seed, *shape)
        return values

    def padded(seed):
        wide = np.full((rows, columns + 11), np.nan, np.float32)
        wide[:, :columns] = _normal(seed, rows, columns)
        return wide[:, :columns]

    def sparse(seed):
        wide = np.full((2 * rows, 3 * columns), np.nan, np.float32)
        wide[::2, ::3] = _normal(seed, rows, columns)
        return wide[::2, ::3]

    def inner(seed):
        wide = np.full((rows + 4, columns + 4), np.nan, np.float32)
        wide[2:-2, 3:-1] = _normal(seed, rows, columns)
        return wide[2:-2, 3:-1]

    layouts = {
        "row-major": lambda seed: memory(seed, rows, columns),
        "transposed": lambda seed: memory(seed, columns, rows).T,
        "padded rows": padded,
        "every other": sparse,
        "a window": inner,
    }
    sources = {
        **layouts,
        "one row for all": lambda seed: np.broadcast_to(memory(seed, columns), (rows, columns)),
        "one column for all": lambda seed: np.broadcast_to(memory(seed, rows, 1), (rows, columns)),
    }
    pairs = [(source, "row-major") for source in sources]
    pairs += [("row-major", target) for target in layouts if target != "row-major"]
    for source, target in (*pairs, ("transposed", "padded rows")):
        x, out = sources[source](1), layouts[target](2)
        names = ("stride_xr", "stride_xc", "stride_or", "stride_oc")
        strides = [step // 4 for step in (*x.strides, *out.strides)]
        yield _case(
            "tile_copy",
            f"{source} to {target}",
            {"x_ptr": x, "out_ptr": out},
            x * 2,
            scalars={"rows": rows, "columns": columns, **dict(zip(names, strides, strict=True))},
            constants={"M": 16, "N": 16},
            grid=(2, 3),
        )


def _wrapped():
    m, n, k = 40, 50, 35
    a, b = _normal(1, m, k), _normal(2, k, n)
    yield _case(
        "wrapped_product",
        "wrapped rows of a product, pointers moved in the loop",
        {"a_ptr": a, "b_ptr": b, "c_ptr": _normal(3, m, n)},
        {"c_ptr": a @ b},
        scalars={"M": m, "N": n, "K": k},
        constants={"BM": 32, "BN": 32, "BK": 16},
        grid=(4,),
        absolute=1e-4,
    )
    x = _normal(4, 50)
    index = np.arange(3 * N).reshape(3, N) % 50
    arrays, scalars = {"x_ptr": x, "out_ptr": _normal(5, 3)}, {"size": 50}
    wanted = x[index].sum(1, np.float64)
    yield _case(
        "wrapped_sum",
        "wrapped lanes that count",
        arrays,
        wanted,
        scalars=scalars,
        grid=(3,),
        absolute=1e-5,
    )


def _memory():
    x, y, out = _normal(1, 2 * N), _normal(2, 2 * N), _normal(3, 2 * N)
    total = x * 2 + y
    arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": x}
    yield _case("in_place", "in place", arrays, {"x_ptr": total}, grid=(2,), absolute=1e-6)
    arrays = {"x_ptr": x, "y_ptr": x, "out_ptr": out}
    yield _case("in_place", "one array twice", arrays, x * 2 + x, grid=(2,), absolute=1e-6)
    both = np.concatenate([x, y])
    arrays = {"x_ptr": both[: 2 * N], "y_ptr": both[2 * N :], "out_ptr": out}
    yield _case("in_place", "two halves of one memory", arrays, total, grid=(2,), absolute=1e-6)
    wanted = (x + 1) * 3
    yield _case(
        "rewritten",
        "reads what it wrote",
        {"x_ptr": x, "out_ptr": out},
        {"out_ptr": wanted, "x_ptr": np.where(np.arange(2 * N) % 2 == 0, wanted, x)},
        grid=(2,),
        absolute=1e-5,
    )
    x = _normal(4, 3, 2 * N)
    arrays = {"x_ptr": x, "even_ptr": _normal(5, 3, N), "sum_ptr": _normal(6, 3)}
    expected = {"even_ptr": x.reshape(3, N, 2).max(2), "sum_ptr": x.sum(1, np.float64)}
    yield _case("two_outputs", "two outputs", arrays, expected, grid=(3,), absolute=1e-5)
    x = np.random.default_rng(7).random((3, N)) < 0.5
    x[1] = False
    arrays = {"x_ptr": x, "out_ptr": np.zeros((3, N), bool), "any_ptr": np.ones(3, bool)}
    yield _case("flags", "booleans", arrays, {"out_ptr": ~x, "any_ptr": x.any(1)}, grid=(3,))
    x, scalars = _normal(8, 50), {"size": 50}
    arrays = {"x_ptr": x, "out_ptr": _normal(9, 60)}
    expected = arrays["out_ptr"].copy()
    expected[:50] = x[::-1]
    yield _case("reversed_copy", "backwards", arrays, expected, scalars=scalars, grid=(2,))
    x = _normal(1, 4 * N)
    arrays = {"x_ptr": x, "out_ptr": _normal(2, 4 * N)}
    halves = np.concatenate([x[::2], x[1::2]])
    yield _case("strided_lanes", "every other element", arrays, halves, grid=(2,))
    x = _normal(3, 50)
    arrays = {"x_ptr": x, "out_ptr": _normal(4, 50)}
    around = np.pad(x, 1)
    expected = around[:-2] + 2 * x - around[2:]
    yield _case(
        "shifted", "a window of three", arrays, expected, scalars=scalars, grid=(2,), absolute=1e-5
    )


CASES = (*_masks(), *_layouts(), *_wrapped(), *_memory())
