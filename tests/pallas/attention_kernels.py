"""Attention, and rows of which the greatest element is taken, in which NaN is seen or not."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, LENGTH,
    WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
    GREATEST: tl.constexpr,
):  # fmt: skip
    """One head; the greatest score of each row, or the logarithm of its sum, beside the result."""
    block = tl.program_id(0)
    rows = block * BM + tl.arange(0, BM)
    inner = tl.arange(0, BN)
    width = tl.arange(0, WIDTH)
    q = tl.load(q_ptr + rows[:, None] * WIDTH + width[None, :])
    greatest = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    out = tl.zeros([BM, WIDTH], dtype=tl.float32)
    end = (block + 1) * BM if CAUSAL else LENGTH
    for start in range(0, end, BN):
        columns = start + inner
        k = tl.load(k_ptr + columns[:, None] * WIDTH + width[None, :])
        score = tl.dot(q, tl.trans(k)) * 0.125
        if CAUSAL:
            score = tl.where(rows[:, None] >= columns[None, :], score, -float("inf"))
        higher = tl.maximum(greatest, tl.max(score, axis=1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(greatest - higher)
        total = total * shrink + tl.sum(share, axis=1)
        v = tl.load(v_ptr + columns[:, None] * WIDTH + width[None, :])
        out = tl.dot(share.to(v.dtype), v, out * shrink[:, None])
        greatest = higher
    tl.store(lse_ptr + rows, greatest if GREATEST else greatest + tl.log2(total))
    out = out / total[:, None]
    tl.store(out_ptr + rows[:, None] * WIDTH + width[None, :], out.to(out_ptr.dtype.element_ty))


@triton.jit
def keys_first(
    q_ptr, k_ptr, out_ptr, LENGTH, BM: tl.constexpr, BN: tl.constexpr, WIDTH: tl.constexpr
):
    """For blocks of keys what queries at them or behind add up to."""
    block = tl.program_id(0)
    columns = block * BN + tl.arange(0, BN)
    width = tl.arange(0, WIDTH)
    k = tl.load(k_ptr + columns[:, None] * WIDTH + width[None, :])
    out = tl.zeros([BN, WIDTH], dtype=tl.float32)
    for start in range(block * BN // BM * BM, LENGTH, BM):
        rows = start + tl.arange(0, BM)
        q = tl.load(q_ptr + rows[:, None] * WIDTH + width[None, :])
        share = tl.dot(k, tl.trans(q)) * 0.125
        share = tl.where(rows[None, :] >= columns[:, None], share, 0.0)
        out = tl.dot(share.to(q.dtype), q, out)
    tl.store(out_ptr + columns[:, None] * WIDTH + width[None, :], out)


@triton.jit
def scaled(x_ptr, out_ptr, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    """Elements are looked at themselves, so that they are better not transposed."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x * 2.0)


@triton.jit
def row(x_ptr, out_ptr, SIZE: tl.constexpr, USE: tl.constexpr):
    """What is made of the greatest element of a row; `USE` says what."""
    lanes = tl.arange(0, SIZE)
    at = tl.program_id(0) * SIZE + lanes
    x = tl.load(x_ptr + at)
    greatest = tl.max(x, axis=0)
    share = tl.exp(x - greatest)
    if USE == "softmax":
        tl.store(out_ptr + at, share / tl.sum(share, axis=0))
    elif USE == "log of the sum":
        tl.store(out_ptr + at, tl.zeros_like(x) + (greatest + tl.log(tl.sum(share, axis=0))))
    elif USE == "input too":
        tl.store(out_ptr + at, x + tl.sum(share * 2.0, axis=0))
    elif USE == "greatest":
        tl.store(out_ptr + at, tl.zeros_like(x) + greatest)
    elif USE == "shares":
        tl.store(out_ptr + at, share)
    elif USE == "masked":
        share = tl.where(lanes % 4 != 3, share, 0.0)
        tl.store(out_ptr + at, share / tl.sum(share, axis=0))
    elif USE == "masked before":
        share = tl.exp(tl.where(lanes % 4 != 3, x, 0.0) - greatest)
        tl.store(out_ptr + at, share / tl.sum(share, axis=0))
    elif USE == "compared":
        tl.store(out_ptr + at, tl.where(x == greatest, 1.0, 0.0))
    elif USE == "clipped":
        tl.store(out_ptr + at, tl.maximum(share / tl.sum(share, axis=0), 0.5))
    elif USE == "greatest share":
        tl.store(out_ptr + at, tl.zeros_like(x) + tl.max(share, axis=0))
    elif USE == "choice":
        if greatest > 1.0:
            tl.store(out_ptr + at, x)
    elif USE == "whole numbers":
        tl.store(out_ptr + at, (tl.sum(share, axis=0) + x).to(tl.int32).to(tl.float32))


@triton.jit
def columns_of_rows(x_ptr, out_ptr, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """A NaN is in one row; what is added up is in all of them."""
    rows, lanes = tl.arange(0, ROWS), tl.arange(0, SIZE)
    x = tl.load(x_ptr + rows[:, None] * SIZE + lanes[None, :])
    share = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + lanes, tl.sum(share, axis=0))


@triton.jit
def other_rows(x_ptr, w_ptr, out_ptr, SIZE: tl.constexpr):
    """Each row of the product has to do with all rows of the right operand."""
    lanes = tl.arange(0, SIZE)
    at = lanes[:, None] * SIZE + lanes[None, :]
    x = tl.load(x_ptr + at)
    share = tl.exp(x - tl.max(x, axis=1)[:, None])
    share = share / tl.sum(share, axis=1)[:, None]
    tl.store(out_ptr + at, tl.dot(tl.load(w_ptr + at), share))


@triton.jit
def band(x_ptr, out_ptr, BM: tl.constexpr, BN: tl.constexpr, WINDOW: tl.constexpr):
    """Sums of the columns at or before each row, of the last `WINDOW` ones where that is not 0."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros([BM], dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        columns = start + tl.arange(0, BN)
        x = tl.load(x_ptr + columns)
        seen = rows[:, None] >= columns[None, :]
        if WINDOW:
            seen = seen & (rows[:, None] < columns[None, :] + WINDOW)
        total += tl.sum(tl.where(seen, x[None, :] + rows[:, None], 0.0), axis=1)
    tl.store(out_ptr + rows, total)


@triton.jit
def written(x_ptr, out_ptr, SIZE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A matrix whose elements above the diagonal are 0, written in a loop."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        columns = start + tl.arange(0, BN)
        at = rows[:, None] * SIZE + columns[None, :]
        x = tl.load(x_ptr + at)
        tl.store(out_ptr + at, tl.where(rows[:, None] >= columns[None, :], x, 0.0))
