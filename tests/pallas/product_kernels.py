"""Products of matrices, whose loops over what they sum can be steps of the grid."""

import triton
import triton.language as tl


@triton.jit
def with_masks(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        at = k * BK + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (at[None, :] < K)
        b_mask = (at[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + at[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total)
    total = tl.maximum(total, 0.0)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=mask)


@triton.jit
def with_pointers(a_ptr, b_ptr, bias_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr):
    """Pointers move on, the total begins as a bias, and rows are summed on the way."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, 32)
    a_at = a_ptr + rows[:, None] * K + inner[None, :]
    b_at = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32) + tl.load(bias_ptr + columns)[None, :]
    sums = tl.zeros((BM,), dtype=tl.float32)
    for _ in range(0, K, 32):
        a = tl.load(a_at)
        total += tl.dot(a, tl.load(b_at))
        sums += tl.sum(a, axis=1)
        a_at += 32
        b_at += 32 * N
    scaled = total * tl.sigmoid(sums * 0.01)[:, None]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], scaled)


@triton.jit
def of_two(x_ptr, gate_ptr, up_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr):
    """Two products of the same rows."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    gates = tl.zeros((BM, BN), dtype=tl.float32)
    ups = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, 64):
        at = k + tl.arange(0, 64)
        x = tl.load(x_ptr + rows[:, None] * K + at[None, :])
        gates = tl.dot(x, tl.load(gate_ptr + at[:, None] * N + columns[None, :]), gates)
        ups = tl.dot(x, tl.load(up_ptr + at[:, None] * N + columns[None, :]), ups)
    out = gates * tl.sigmoid(gates) * ups
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], out)


@triton.jit
def of_integers(x_ptr, w_ptr, scale_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, 32):
        at = k + tl.arange(0, 32)
        x = tl.load(x_ptr + rows[:, None] * K + at[None, :])
        total += tl.dot(x, tl.load(w_ptr + at[:, None] * N + columns[None, :]))
    scaled = total.to(tl.float32) * tl.load(scale_ptr + columns)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], scaled)
