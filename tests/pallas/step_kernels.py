"""Kernels of programs that do little each, or whose steps may follow one another anyhow."""

import triton
import triton.language as tl


@triton.jit
def rows_of_their_own(x_ptr, y_ptr, total_ptr, COLUMNS, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Each program goes through rows of its own, and adds them up."""
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < COLUMNS
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for index in range(ROWS):
        at = (program * ROWS + index) * COLUMNS + offsets
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(y_ptr + at, x * 2 + tl.sum(x, axis=0), mask=mask)
        total += x
    tl.store(total_ptr + program * COLUMNS + offsets, total, mask=mask)


@triton.jit
def rows_as_they_are(x_ptr, y_ptr, COUNT, COLUMNS, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Each program goes through rows of its own, the last one through fewer."""
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    for index in range(tl.minimum(ROWS, COUNT - program * ROWS)):
        at = (program * ROWS + index) * COLUMNS + offsets
        tl.store(y_ptr + at, tl.load(x_ptr + at) + 1)


@triton.jit
def by_group(x_ptr, w_ptr, group_ptr, out_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):  # fmt: skip
    """A product of each block of rows with the matrix of its group."""
    block = tl.program_id(0)
    rows = block * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    group = tl.load(group_ptr + block)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :])
        w = tl.load(w_ptr + group * K * N + inner[:, None] * N + columns[None, :])
        total = tl.dot(x, w, total, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total)


@triton.jit
def from_the_diagonal(q_ptr, k_ptr, out_ptr, LENGTH, WIDTH: tl.constexpr, BM: tl.constexpr,
                      BN: tl.constexpr):  # fmt: skip
    """Sums over the rows from the diagonal on, in other blocks than those of columns."""
    block = tl.program_id(0)
    columns = block * BN + tl.arange(0, BN)
    width = tl.arange(0, WIDTH)
    k = tl.load(k_ptr + columns[:, None] * WIDTH + width[None, :])
    total = tl.zeros([BN, WIDTH], dtype=tl.float32)
    for start in range(block * BN // BM * BM, LENGTH, BM):
        rows = start + tl.arange(0, BM)
        q = tl.load(q_ptr + rows[:, None] * WIDTH + width[None, :])
        score = tl.dot(k, tl.trans(q), input_precision="ieee")
        score = tl.where(rows[None, :] >= columns[:, None], score, 0.0)
        total = tl.dot(score, q, total, input_precision="ieee")
    tl.store(out_ptr + columns[:, None] * WIDTH + width[None, :], total)
