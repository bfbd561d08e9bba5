"""Elements moved about: reshaped, turned, joined, sorted, gathered within a program."""

from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32
BF16 = np.dtype(ml_dtypes.bfloat16)


@triton.jit
def shapes(x_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    """4 N elements in, as many out."""
    lanes = tl.program_id(0) * 4 * N + tl.arange(0, 4 * N)
    x = tl.load(x_ptr + lanes)
    if OP == "reshape":
        out = tl.reshape(tl.reshape(x, (2, N, 2)), (N, 4)) + tl.arange(0, 4)[None, :]
    elif OP == "trans":
        out = tl.trans(tl.reshape(x, (4, N)))
    elif OP == "permute":
        out = tl.permute(tl.reshape(x, (2, N, 2)), (2, 0, 1))
    elif OP == "ravel":
        out = tl.ravel(tl.trans(tl.reshape(x, (N, 4))))
    elif OP == "split join":
        left, right = tl.split(tl.reshape(x, (N, 2, 2)))
        out = tl.join(right, left * 2)
    elif OP == "interleave":
        left, right = tl.split(tl.reshape(x, (2 * N, 2)))
        out = tl.interleave(right, left)
    elif OP == "broadcast":
        y = tl.reshape(x, (N, 4))
        low, high = tl.min(y, axis=1, keep_dims=True), tl.max(y, axis=0, keep_dims=True)
        out = tl.broadcast_to(low, (N, 4)) + high
    elif OP == "flip":
        out = tl.flip(x)
    elif OP == "flip rows":
        out = tl.flip(tl.reshape(x, (4, N)), 0)
    elif OP == "sort":
        out = tl.sort(x)
    elif OP == "sort down":
        out = tl.sort(tl.reshape(x, (4, N)), descending=True)
    else:
        out = tl.expand_dims(x, 1) + tl.zeros((4 * N, 1), x.dtype)
    tl.store(out_ptr + lanes, tl.reshape(out, (4 * N,)))


@triton.jit
def concatenate(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + lanes), tl.load(y_ptr + lanes), can_reorder=True)
    tl.store(out_ptr + tl.program_id(0) * 2 * N + tl.arange(0, 2 * N), both)


@triton.jit
def top(x_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * N + tl.arange(0, N))
    tl.store(out_ptr + pid * K + tl.arange(0, K), tl.topk(x, K))


@triton.jit
def gather_within(x_ptr, index_ptr, out_ptr, AXIS: tl.constexpr, R: tl.constexpr, N: tl.constexpr):
    places = tl.program_id(0) * R * N + tl.arange(0, R)[:, None] * N + tl.arange(0, N)[None, :]
    out = tl.gather(tl.load(x_ptr + places), tl.load(index_ptr + places), AXIS)
    tl.store(out_ptr + places, out)


@triton.jit
def histogram(x_ptr, out_ptr, size, BINS: tl.constexpr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * size + lanes, mask=lanes < size, other=0)
    counts = tl.histogram(x, BINS, mask=lanes < size)
    tl.store(out_ptr + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)


@triton.jit
def ranks(x_ptr, out_ptr, size, N: tl.constexpr):
    """Every element against every other one of its row."""
    lanes = tl.arange(0, N)
    row = x_ptr + tl.program_id(0) * size
    x = tl.load(row + lanes, mask=lanes < size, other=float("inf"))
    less = (x[None, :] < x[:, None]) | (
        (x[None, :] == x[:, None]) & (lanes[None, :] < lanes[:, None])
    )
    tl.store(
        out_ptr + tl.program_id(0) * size + lanes,
        tl.sum(less.to(tl.int32), axis=1),
        mask=lanes < size,
    )


@triton.jit
def packed(x_ptr, out_ptr, N: tl.constexpr):
    """Two four-bit numbers a byte, sign and all."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    low = (x << 4).to(tl.int8) >> 4
    high = x >> 4
    both = tl.interleave(low, high)
    tl.store(out_ptr + tl.program_id(0) * 2 * N + tl.arange(0, 2 * N), both.to(tl.float32) * 0.5)


@triton.jit
def outer(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """A product of all with all, and its diagonal taken back out."""
    lanes = tl.arange(0, N)
    x, y = tl.load(x_ptr + tl.program_id(0) * N + lanes), tl.load(y_ptr + lanes)
    product = x[:, None] * y[None, :]
    diagonal = tl.where(lanes[:, None] == lanes[None, :], product, 0.0)
    tl.store(out_ptr + tl.program_id(0) * N + lanes, tl.sum(diagonal, axis=0))


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"shapes: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected={"out_ptr": expected},
        **{"grid": (2,), "constants": {"N": N}, **rest},
    )


def _moved(x):
    """What each op of `shapes` gives for one program."""
    pairs = x.reshape(2 * N, 2)
    table = x.reshape(N, 4)
    yield "reshape", table + np.arange(4, dtype=x.dtype)
    yield "trans", x.reshape(4, N).T
    yield "permute", x.reshape(2, N, 2).transpose(2, 0, 1)
    yield "ravel", table.T
    left, right = np.moveaxis(x.reshape(N, 2, 2), 2, 0)
    yield "split join", np.stack([right, left * x.dtype.type(2)], axis=-1)
    yield "interleave", pairs[:, ::-1]
    yield "broadcast", table.min(1, keepdims=True) + table.max(0, keepdims=True)
    yield "flip", x[::-1]
    yield "flip rows", x.reshape(4, N)[::-1]
    yield "sort", np.sort(x)
    yield "sort down", np.sort(x.reshape(4, N), axis=1)[:, ::-1]
    yield "expand", x


def _cases():
    rng = np.random.default_rng(1)
    for dtype in (np.dtype(np.float32), np.dtype(np.int32)):
        x = (rng.standard_normal((2, 4 * N)) * 20).astype(dtype)
        for (name, first), (_, second) in zip(_moved(x[0]), _moved(x[1]), strict=True):
            expected = np.stack([first.reshape(-1), second.reshape(-1)])
            yield _case(
                "shapes",
                f"{name} of {dtype.name}",
                {"x_ptr": x, "out_ptr": np.ones_like(x)},
                expected,
                constants={"OP": name, "N": N},
            )
    x = (rng.standard_normal((2, 4 * N)) * 20).astype(BF16)
    arrays = {"x_ptr": x, "out_ptr": np.ones_like(x)}
    expected = np.sort(x.astype(np.float32), axis=1)
    constants = {"OP": "sort", "N": N}
    yield _case(
        "shapes", "sort of bfloat16", arrays, expected, constants=constants, interpreted=False
    )
    x, y = (rng.standard_normal((2, N)).astype(np.float32) for _ in range(2))
    arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": np.ones((2, 2 * N), np.float32)}
    yield _case("concatenate", "concatenated", arrays, np.concatenate([x, y], axis=1))
    x = rng.standard_normal((2, N)).astype(np.float32)
    for k in (1, 4):
        arrays = {"x_ptr": x, "out_ptr": np.ones((2, k), np.float32)}
        expected, constants = np.sort(x, axis=1)[:, ::-1][:, :k], {"K": k, "N": N}
        yield _case("top", f"top {k}", arrays, expected, constants=constants)
    x = rng.standard_normal((2, 8, N)).astype(np.float32)
    for axis in (0, 1):
        index = rng.integers(0, (8, N)[axis], x.shape).astype(np.int32)
        yield _case(
            "gather_within",
            f"gather along {axis}",
            {"x_ptr": x, "index_ptr": index, "out_ptr": np.ones_like(x)},
            np.take_along_axis(x, index, axis + 1),
            constants={"AXIS": axis, "R": 8, "N": N},
        )
    x = rng.integers(0, 16, (2, 27)).astype(np.int32)
    yield _case(
        "histogram",
        "histogram, masked",
        {"x_ptr": x, "out_ptr": np.ones((2, 16), np.int32)},
        np.stack([np.bincount(row, minlength=16) for row in x]),
        constants={"BINS": 16, "N": N},
        scalars={"size": 27},
    )
    x = rng.integers(0, 9, (2, 27)).astype(np.float32)
    arrays = {"x_ptr": x, "out_ptr": np.ones((2, 27), np.int32)}
    ranks_of = np.argsort(np.argsort(x, axis=1, kind="stable"), axis=1)
    yield _case("ranks", "ranks", arrays, ranks_of, scalars={"size": 27})
    x = rng.integers(-128, 128, (2, N)).astype(np.int8)
    nibbles = np.stack([(x << 4).astype(np.int8) >> 4, x >> 4], axis=-1)
    arrays = {"x_ptr": x, "out_ptr": np.ones((2, 2 * N), np.float32)}
    yield _case("packed", "four bits a number", arrays, nibbles.reshape(2, -1) * np.float32(0.5))
    x, y = rng.standard_normal((2, N)).astype(np.float32), rng.standard_normal(N).astype(np.float32)
    arrays = {"x_ptr": x, "y_ptr": y, "out_ptr": np.ones((2, N), np.float32)}
    yield _case("outer", "outer product", arrays, x * y)


CASES = tuple(_cases())
