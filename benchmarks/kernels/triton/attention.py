"""Attention: forward, backward, and one query against pages of keys and values."""

import triton
import triton.language as tl


@triton.jit
def forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr,
    LENGTH, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    head = tl.program_id(1)
    q_ptr += head * LENGTH * WIDTH
    k_ptr += head * LENGTH * WIDTH
    v_ptr += head * LENGTH * WIDTH
    out_ptr += head * LENGTH * WIDTH
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, BLOCK_N)
    width = tl.arange(0, WIDTH)
    q = tl.load(q_ptr + rows[:, None] * WIDTH + width[None, :])
    greatest = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    out = tl.zeros([BLOCK_M, WIDTH], dtype=tl.float32)
    in_base_2 = scale * 1.44269504
    end = (block + 1) * BLOCK_M if CAUSAL else LENGTH
    for start in range(0, end, BLOCK_N):
        columns = start + inner
        k = tl.load(k_ptr + columns[:, None] * WIDTH + width[None, :])
        score = tl.dot(q, tl.trans(k)) * in_base_2
        if CAUSAL:
            score = tl.where(rows[:, None] >= columns[None, :], score, -float("inf"))
        higher = tl.maximum(greatest, tl.max(score, axis=1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(greatest - higher)
        total = total * shrink + tl.sum(share, axis=1)
        v = tl.load(v_ptr + columns[:, None] * WIDTH + width[None, :])
        out = tl.dot(share.to(v.dtype), v, out * shrink[:, None])
        greatest = higher
    tl.store(lse_ptr + head * LENGTH + rows, greatest + tl.log2(total))
    out = out / total[:, None]
    tl.store(out_ptr + rows[:, None] * WIDTH + width[None, :], out.to(out_ptr.dtype.element_ty))


@triton.jit
def backward_rows(out_ptr, do_ptr, delta_ptr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """The sum along each row of the output times its gradient."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    width = tl.arange(0, WIDTH)
    at = rows[:, None] * WIDTH + width[None, :]
    product = tl.load(out_ptr + at).to(tl.float32) * tl.load(do_ptr + at).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(product, axis=1))


@triton.jit
def backward_keys(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    LENGTH, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    head = tl.program_id(1)
    shift = head * LENGTH * WIDTH
    columns = block * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_M)
    width = tl.arange(0, WIDTH)
    at = shift + columns[:, None] * WIDTH + width[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    dk = tl.zeros([BLOCK_N, WIDTH], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, WIDTH], dtype=tl.float32)
    begin = block * BLOCK_N // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(begin, LENGTH, BLOCK_M):
        rows = start + inner
        q = tl.load(q_ptr + shift + rows[:, None] * WIDTH + width[None, :])
        do = tl.load(do_ptr + shift + rows[:, None] * WIDTH + width[None, :])
        lse = tl.load(lse_ptr + head * LENGTH + rows)
        delta = tl.load(delta_ptr + head * LENGTH + rows)
        score = tl.dot(k, tl.trans(q)) * (scale * 1.44269504)
        share = tl.exp2(score - lse[None, :])
        if CAUSAL:
            share = tl.where(rows[None, :] >= columns[:, None], share, 0.0)
        dv = tl.dot(share.to(do.dtype), do, dv)
        dshare = tl.dot(v, tl.trans(do))
        dscore = share * (dshare - delta[None, :])
        dk = tl.dot(dscore.to(q.dtype), q, dk)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty))


@triton.jit
def backward_queries(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    LENGTH, scale,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    head = tl.program_id(1)
    shift = head * LENGTH * WIDTH
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, BLOCK_N)
    width = tl.arange(0, WIDTH)
    at = shift + rows[:, None] * WIDTH + width[None, :]
    q = tl.load(q_ptr + at)
    do = tl.load(do_ptr + at)
    lse = tl.load(lse_ptr + head * LENGTH + rows)
    delta = tl.load(delta_ptr + head * LENGTH + rows)
    dq = tl.zeros([BLOCK_M, WIDTH], dtype=tl.float32)
    end = (block + 1) * BLOCK_M if CAUSAL else LENGTH
    for start in range(0, end, BLOCK_N):
        columns = start + inner
        k = tl.load(k_ptr + shift + columns[:, None] * WIDTH + width[None, :])
        v = tl.load(v_ptr + shift + columns[:, None] * WIDTH + width[None, :])
        score = tl.dot(q, tl.trans(k)) * (scale * 1.44269504)
        share = tl.exp2(score - lse[:, None])
        if CAUSAL:
            share = tl.where(rows[:, None] >= columns[None, :], share, 0.0)
        dshare = tl.dot(do, tl.trans(v))
        dscore = share * (dshare - delta[:, None])
        dq = tl.dot(dscore.to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty))


@triton.jit
def paged(
    q_ptr, k_ptr, v_ptr, length_ptr, page_ptr, out_ptr,
    HEADS, PAGES, TABLE, scale,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """One query for each of GROUP heads that share keys; pages of keys are looked up in a table.

    q is [sequences, heads, WIDTH], keys and values are [key heads, pages, PAGE, WIDTH].
    """
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(length_ptr + sequence)
    group = tl.arange(0, GROUP)
    width = tl.arange(0, WIDTH)
    inner = tl.arange(0, PAGE)
    at = (sequence * HEADS + head) * GROUP * WIDTH + group[:, None] * WIDTH + width[None, :]
    q = tl.load(q_ptr + at)
    greatest = tl.full([GROUP], -float("inf"), dtype=tl.float32)
    total = tl.zeros([GROUP], dtype=tl.float32)
    out = tl.zeros([GROUP, WIDTH], dtype=tl.float32)
    for index in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(page_ptr + sequence * TABLE + index)
        tile = (head * PAGES + page) * PAGE * WIDTH + inner[:, None] * WIDTH + width[None, :]
        k = tl.load(k_ptr + tile)
        score = tl.dot(q, tl.trans(k)) * (scale * 1.44269504)
        score = tl.where((index * PAGE + inner)[None, :] < length, score, -float("inf"))
        higher = tl.maximum(greatest, tl.max(score, axis=1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(greatest - higher)
        total = total * shrink + tl.sum(share, axis=1)
        v = tl.load(v_ptr + tile)
        out = tl.dot(share.to(v.dtype), v, out * shrink[:, None])
        greatest = higher
    tl.store(out_ptr + at, (out / total[:, None]).to(out_ptr.dtype.element_ty))
