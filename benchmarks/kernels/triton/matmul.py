"""Products of matrices: programs in groups of rows, a loop over the inner dimension."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * tiles_n
    first = pid // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    rows = (first + pid % in_group % size) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid % in_group // size * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + at[None, :],
            mask=(rows[:, None] < M) & (at[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + at[:, None] * stride_bk + columns[None, :],
            mask=(at[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    tl.store(
        c_ptr + rows[:, None] * stride_cm + columns[None, :],
        total.to(c_ptr.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


@triton.jit
def int8_matmul(
    x_ptr, w_ptr, scale_ptr, out_ptr,
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        x = tl.load(x_ptr + rows[:, None] * K + at[None, :], mask=rows[:, None] < M, other=0.0)
        w = tl.load(w_ptr + at[:, None] * N + columns[None, :])
        total = tl.dot(x, w.to(x.dtype), total)
    total *= tl.load(scale_ptr + columns)[None, :]
    tl.store(
        out_ptr + rows[:, None] * N + columns[None, :],
        total.to(out_ptr.dtype.element_ty),
        mask=rows[:, None] < M,
    )


@triton.jit
def int4_matmul(
    x_ptr, w_ptr, scale_ptr, out_ptr,
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A byte of `w` holds rows k and K / 2 + k: four bits each, 8 added to them."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    half = K // 2
    for k in range(0, half, BLOCK_K):
        at = k + inner
        x_low = tl.load(x_ptr + rows[:, None] * K + at[None, :], mask=rows[:, None] < M, other=0.0)
        x_high = tl.load(
            x_ptr + rows[:, None] * K + half + at[None, :], mask=rows[:, None] < M, other=0.0
        )
        w = tl.load(w_ptr + at[:, None] * N + columns[None, :]).to(tl.int32)
        total = tl.dot(x_low, ((w & 15) - 8).to(x_low.dtype), total)
        total = tl.dot(x_high, ((w >> 4 & 15) - 8).to(x_high.dtype), total)
    total *= tl.load(scale_ptr + columns)[None, :]
    tl.store(
        out_ptr + rows[:, None] * N + columns[None, :],
        total.to(out_ptr.dtype.element_ty),
        mask=rows[:, None] < M,
    )


@triton.jit
def grouped_matmul(
    x_ptr, w_ptr, expert_ptr, out_ptr,
    N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Rows sorted by expert, whole blocks of each; the expert of a block is looked up."""
    block = tl.program_id(0)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    expert = tl.load(expert_ptr + block)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        x = tl.load(x_ptr + rows[:, None] * K + at[None, :])
        w = tl.load(w_ptr + expert * K * N + at[:, None] * N + columns[None, :])
        total = tl.dot(x, w, total)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total.to(out_ptr.dtype.element_ty))
