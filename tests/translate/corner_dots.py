"""Products of matrices: precisions, element types, accumulators, layouts, batches."""

from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from launch_case import Case

M, N, K = 32, 16, 64
FORMATS = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "int8": np.dtype(np.int8),
}


@triton.jit
def dot(
    a_ptr,
    b_ptr,
    out_ptr,
    PRECISION: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """One product for each program."""
    pid = tl.program_id(0)
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + pid * M * K + rows[:, None] * K + inner[None, :])
    b = tl.load(b_ptr + pid * K * N + inner[:, None] * N + columns[None, :])
    out = tl.dot(a, b, input_precision=PRECISION)
    tl.store(out_ptr + pid * M * N + rows[:, None] * N + columns[None, :], out)


@triton.jit
def accumulated(a_ptr, b_ptr, out_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Starts from what lies in memory, and adds products of slices along K."""
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    total = tl.load(out_ptrs)
    for step in range(0, steps):
        k = step * K + inner
        a = tl.load(a_ptr + rows[:, None] * (steps * K) + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + columns[None, :])
        total = tl.dot(a, b, acc=total, input_precision="ieee")
    tl.store(out_ptrs, total)


@triton.jit
def transposed(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Both operands lie transposed in memory: one is loaded so, the other turned after."""
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[None, :] + inner[:, None] * M)
    b = tl.load(b_ptr + columns[None, :] * K + inner[:, None])
    out = tl.dot(tl.trans(a), b, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], out)


@triton.jit
def batched(a_ptr, b_ptr, out_ptr, B: tl.constexpr, N: tl.constexpr):
    batch = tl.arange(0, B)[:, None, None]
    square = tl.arange(0, N)[None, :, None] * N + tl.arange(0, N)[None, None, :]
    a = tl.load(a_ptr + batch * N * N + square)
    b = tl.load(b_ptr + batch * N * N + square)
    out = tl.dot(a, tl.permute(b, (0, 2, 1)), input_precision="ieee")
    tl.store(out_ptr + batch * N * N + square, out)


@triton.jit
def chained(a_ptr, b_ptr, out_ptr, scale, N: tl.constexpr):
    """A product feeds an element-wise step and a second product, as attention does."""
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + tl.program_id(0) * N * N + square)
    b = tl.load(b_ptr + tl.program_id(0) * N * N + square)
    first = tl.dot(a, tl.trans(b), input_precision="ieee") * scale
    kept = tl.where(tl.arange(0, N)[:, None] >= tl.arange(0, N)[None, :], first, 0.0)
    out = tl.dot(kept.to(a.dtype), b, input_precision="ieee")
    tl.store(out_ptr + tl.program_id(0) * N * N + square, out)


@triton.jit
def scaled(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    out_ptr,
    A: tl.constexpr,
    B: tl.constexpr,
    PACKED: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """Block-scaled operands; of `e2m1` two elements share a byte, along K or along the other."""
    a_rows: tl.constexpr = M if A != "e2m1" or PACKED else M // 2
    a_inner: tl.constexpr = K if A != "e2m1" or not PACKED else K // 2
    b_inner: tl.constexpr = K if B != "e2m1" or not PACKED else K // 2
    b_columns: tl.constexpr = N if B != "e2m1" or PACKED else N // 2
    groups = tl.arange(0, K // 32)
    a_at = tl.arange(0, a_rows)[:, None] * a_inner + tl.arange(0, a_inner)[None, :]
    b_at = tl.arange(0, b_inner)[:, None] * b_columns + tl.arange(0, b_columns)[None, :]
    a_scale = tl.load(a_scale_ptr + tl.arange(0, M)[:, None] * (K // 32) + groups[None, :])
    out = out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a, b, c = tl.load(a_ptr + a_at), tl.load(b_ptr + b_at), tl.load(out)
    if b_scale_ptr is None:
        c = tl.dot_scaled(a, a_scale, A, b, None, B, acc=c, lhs_k_pack=PACKED, rhs_k_pack=PACKED)
    else:
        b_scale = tl.load(b_scale_ptr + tl.arange(0, N)[:, None] * (K // 32) + groups[None, :])
        c = tl.dot_scaled(a, a_scale, A, b, b_scale, B, acc=c, lhs_k_pack=PACKED, rhs_k_pack=PACKED)
    tl.store(out, c)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"dot: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected={"out_ptr": expected},
        **rest,
    )


def _normal(seed, *shape, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(FORMATS[dtype])


def _product(a, b):
    return np.matmul(a.astype(np.float64), b.astype(np.float64))


def _types():
    sizes = {"M": M, "N": N, "K": K}
    # Of f32: how many bits of each factor a product keeps.
    bits = {"ieee": 22, "tf32": 9, "tf32x3": 18, "bf16x3": 14, "bf16x6": 20}
    a, b = _normal(1, 2, M, K), _normal(2, 2, K, N)
    scale = np.abs(_product(np.abs(a), np.abs(b))).max()
    for precision, kept in bits.items():
        yield _case(
            "dot",
            f"f32 as {precision}",
            {"a_ptr": a, "b_ptr": b, "out_ptr": _normal(3, 2, M, N)},
            _product(a, b).astype(np.float32),
            constants={"PRECISION": precision, **sizes},
            grid=(2,),
            absolute=float(scale) * 2.0**-kept,
            interpreted=not precision.startswith("bf16"),
        )
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float64"):
        a, b = _normal(1, 2, M, K, dtype=name), _normal(2, 2, K, N, dtype=name)
        wide = np.float64 if name == "float64" else np.float32
        yield _case(
            "dot",
            f"{name}, summed in {np.dtype(wide).name}",
            {"a_ptr": a, "b_ptr": b, "out_ptr": np.ones((2, M, N), wide)},
            _product(a, b).astype(wide),
            constants={"PRECISION": "ieee", **sizes},
            grid=(2,),
            absolute=64 * 4 * float(np.finfo(wide).eps),
            interpreted=name in ("float16", "float64"),
        )
    rng = np.random.default_rng(4)
    a = rng.integers(-128, 128, (2, M, K)).astype(np.int8)
    b = rng.integers(-128, 128, (2, K, N)).astype(np.int8)
    yield _case(
        "dot",
        "int8, summed in int32",
        {"a_ptr": a, "b_ptr": b, "out_ptr": np.ones((2, M, N), np.int32)},
        np.matmul(a.astype(np.int32), b.astype(np.int32)),
        constants={"PRECISION": "ieee", **sizes},
        grid=(2,),
    )


def _shapes():
    sizes = {"M": M, "N": N}
    for name, wide in (("float32", np.float32), ("bfloat16", np.float32), ("int8", np.int32)):
        rng = np.random.default_rng(5)
        small = [rng.integers(-9, 9, shape) for shape in ((M, 3 * K), (3 * K, N), (M, N))]
        a, b, start = small[0].astype(FORMATS[name]), small[1].astype(FORMATS[name]), small[2]
        yield _case(
            "accumulated",
            f"accumulator of {name} from memory, over slices",
            {"a_ptr": a, "b_ptr": b, "out_ptr": start.astype(wide)},
            start + small[0] @ small[1],
            constants={"K": K, **sizes},
            scalars={"steps": 3},
            interpreted=name != "bfloat16",
        )
    a, b = _normal(1, K, M), _normal(2, N, K)
    yield _case(
        "transposed",
        "transposed operands",
        {"a_ptr": a, "b_ptr": b, "out_ptr": _normal(3, M, N)},
        _product(a.T, b.T),
        constants={"K": K, **sizes},
        absolute=1e-4,
    )
    a, b = _normal(1, 4, 16, 16), _normal(2, 4, 16, 16)
    yield _case(
        "batched",
        "a batch, the second turned",
        {"a_ptr": a, "b_ptr": b, "out_ptr": _normal(3, 4, 16, 16)},
        _product(a, b.transpose(0, 2, 1)),
        constants={"B": 4, "N": 16},
        absolute=1e-4,
    )
    for name, tolerance in (("float32", 1e-4), ("bfloat16", 0.3)):
        a, b = (_normal(seed, 2, 32, 32, dtype=name) for seed in (1, 2))
        first = np.tril(_product(a, b.transpose(0, 2, 1)) * 0.25).astype(FORMATS[name])
        yield _case(
            "chained",
            f"two products of {name}",
            {"a_ptr": a, "b_ptr": b, "out_ptr": _normal(3, 2, 32, 32)},
            _product(first, b),
            constants={"N": 32},
            scalars={"scale": 0.25},
            grid=(2,),
            absolute=tolerance,
            interpreted=name != "bfloat16",
        )


def _four_bit(codes):
    """What codes of four bits mean: a sign, two bits of exponent, one of mantissa."""
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    return magnitudes[codes & 7] * np.where(codes & 8, -1, 1)


def _elements(rng, form, shape, packed):
    """An operand as it lies in memory, and as numbers; of bytes two elements along an axis."""
    if form != "e2m1":
        kinds = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "bf16": "bfloat16"}
        kinds["fp16"] = "float16"
        values = rng.standard_normal(shape).astype(FORMATS[kinds[form]])
        return values, values.astype(np.float64)
    codes = rng.integers(0, 16, shape).astype(np.uint8)
    low, high = (np.take(codes, range(each, shape[packed], 2), packed) for each in (0, 1))
    return low | high << 4, _four_bit(codes)


def _scaled():
    rng = np.random.default_rng(5)
    sizes = {"M": 32, "N": 64, "K": 64}
    m, n, k = sizes.values()
    for a_form, b_form, packed in (
        ("e2m1", "e2m1", True),
        ("e2m1", "e2m1", False),
        ("e4m3", "e5m2", True),
        ("e2m1", "bf16", True),
        ("e4m3", "fp16", True),
    ):
        scales = [rng.integers(120, 130, (size, k // 32)).astype(np.uint8) for size in (m, n)]
        factors = [np.repeat(2.0 ** (each.astype(np.float64) - 127), 32, 1) for each in scales]
        a, left = _elements(rng, a_form, (m, k), 1 if packed else 0)
        b, right = _elements(rng, b_form, (k, n), 0 if packed else 1)
        if b_form in ("bf16", "fp16"):
            scales[1], factors[1] = None, np.ones((n, k))
        else:
            scales[1][3, 1], factors[1][3, 32:] = 255, np.nan
        out = _normal(4, m, n)
        arrays = {"a_ptr": a, "a_scale_ptr": scales[0], "b_ptr": b, "out_ptr": out}
        constants = {"A": a_form, "B": b_form, "PACKED": packed, **sizes}
        if scales[1] is None:
            constants["b_scale_ptr"] = None
        else:
            arrays["b_scale_ptr"] = scales[1]
        yield _case(
            "scaled",
            f"scaled {a_form} and {b_form}{'' if packed else ', packed across'}",
            arrays,
            left * factors[0] @ (right * factors[1].T) + out,
            constants=constants,
            absolute=1e-4,
            tolerance=1e-5,
            interpreted=False,  # this interpreter has none
        )


CASES = (*_types(), *_shapes(), *_scaled())
