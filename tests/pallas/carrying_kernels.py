"""Kernels whose loops carry more than sums, and can be steps of the grid all the same."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr,
    LENGTH,
    WIDTH: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    head = tl.program_id(1)
    shift = head * LENGTH * WIDTH
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    width = tl.arange(0, WIDTH)
    q = tl.load(q_ptr + shift + rows[:, None] * WIDTH + width[None, :])
    greatest = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    out = tl.zeros([BLOCK_M, WIDTH], dtype=tl.float32)
    end = (block + 1) * BLOCK_M if CAUSAL else LENGTH
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + shift + columns[:, None] * WIDTH + width[None, :])
        score = tl.dot(q, tl.trans(k), input_precision="ieee")
        if CAUSAL:
            score = tl.where(rows[:, None] >= columns[None, :], score, -float("inf"))
        higher = tl.maximum(greatest, tl.max(score, axis=1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(greatest - higher)
        total = total * shrink + tl.sum(share, axis=1)
        v = tl.load(v_ptr + shift + columns[:, None] * WIDTH + width[None, :])
        out = tl.dot(share, v, out * shrink[:, None], input_precision="ieee")
        greatest = higher
    out = out / total[:, None]
    tl.store(out_ptr + shift + rows[:, None] * WIDTH + width[None, :], out)


@triton.jit
def recurrent(
    q_ptr, k_ptr, v_ptr, decay_ptr, out_ptr, state_ptr, LENGTH,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """A state that each chunk of the sequence moves on; the chunk's rows are written on the way."""
    head = tl.program_id(0)
    rows = tl.arange(0, CHUNK)
    width = tl.arange(0, WIDTH)
    square = width[:, None] * WIDTH + width[None, :]
    state = tl.load(state_ptr + head * WIDTH * WIDTH + square)
    rate = 1.0
    for chunk in range(0, LENGTH // CHUNK):
        at = (head * LENGTH + chunk * CHUNK + rows)[:, None] * WIDTH + width[None, :]
        q = tl.load(q_ptr + at)
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        score = tl.where(
            rows[:, None] >= rows[None, :], tl.dot(q, tl.trans(k), input_precision="ieee"), 0.0
        )
        tl.store(
            out_ptr + at,
            tl.dot(q, state, input_precision="ieee") * rate
            + tl.dot(score, v, input_precision="ieee"),
        )
        rate = rate * 0.5 + tl.load(decay_ptr + head)
        state = tl.dot(tl.trans(k), v, state * rate, input_precision="ieee")
    tl.store(state_ptr + head * WIDTH * WIDTH + square, state)


@triton.jit
def of_lengths(
    q_ptr, k_ptr, length_ptr, out_ptr, LONGEST, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):
    """Keys of which data say how many there are, none among it."""
    sequence = tl.program_id(0)
    length = tl.load(length_ptr + sequence)
    group = tl.arange(0, 8)
    width = tl.arange(0, WIDTH)
    at = (sequence * 8 + group[:, None]) * WIDTH + width[None, :]
    q = tl.load(q_ptr + at)
    greatest = tl.full([8], -float("inf"), dtype=tl.float32)
    out = tl.zeros([8, WIDTH], dtype=tl.float32)
    for start in range(0, length, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < length
        k = tl.load(
            k_ptr + (sequence * LONGEST + columns[:, None]) * WIDTH + width[None, :],
            mask=inside[:, None],
            other=0.0,
        )
        score = tl.dot(q, tl.trans(k), input_precision="ieee")
        score = tl.where(inside[None, :], score, -float("inf"))
        higher = tl.maximum(greatest, tl.max(score, axis=1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(greatest - higher)
        out = tl.dot(share, k, out * shrink[:, None], input_precision="ieee")
        greatest = higher
    tl.store(out_ptr + at, out)


@triton.jit
def paged(
    q_ptr, k_ptr, v_ptr, length_ptr, page_ptr, out_ptr,
    HEADS, PAGES, TABLE,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Keys and values in pages, which are looked up in a table."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(length_ptr + sequence)
    group = tl.arange(0, GROUP)
    width = tl.arange(0, WIDTH)
    inner = tl.arange(0, PAGE)
    within = inner[:, None] * WIDTH + width[None, :]
    at = (sequence * HEADS + head) * GROUP * WIDTH + group[:, None] * WIDTH + width[None, :]
    q = tl.load(q_ptr + at)
    greatest = tl.full([GROUP], -float("inf"), dtype=tl.float32)
    total = tl.zeros([GROUP], dtype=tl.float32)
    out = tl.zeros([GROUP, WIDTH], dtype=tl.float32)
    for index in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(page_ptr + sequence * TABLE + index)
        k = tl.load(k_ptr + (head * PAGES + page) * PAGE * WIDTH + within)
        score = tl.dot(q, tl.trans(k), input_precision="ieee")
        score = tl.where((index * PAGE + inner)[None, :] < length, score, -float("inf"))
        higher = tl.maximum(greatest, tl.max(score, axis=1))
        share = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(greatest - higher)
        total = total * shrink + tl.sum(share, axis=1)
        v = tl.load(v_ptr + (page * HEADS + head) * PAGE * WIDTH + within)
        out = tl.dot(share, v, out * shrink[:, None], input_precision="ieee")
        greatest = higher
    tl.store(out_ptr + at, out / total[:, None])


@triton.jit
def turns(x_ptr, count_ptr, out_ptr):
    """A product with itself, as often as data say: no array has as many positions."""
    rows = tl.arange(0, 16)
    square = rows[:, None] * 16 + rows[None, :]
    x = tl.load(x_ptr + square)
    out = x
    for _turn in range(0, tl.load(count_ptr)):
        out = tl.dot(tl.maximum(out, 0.0), x, input_precision="ieee")
    tl.store(out_ptr + square, out)


@triton.jit
def written(q_ptr, length_ptr, out_ptr, LENGTH, WIDTH: tl.constexpr, CHUNK: tl.constexpr):
    """Chunks that are written on the way, as many as data say."""
    head = tl.program_id(0)
    rows = tl.arange(0, CHUNK)
    width = tl.arange(0, WIDTH)
    state = tl.zeros([WIDTH, WIDTH], dtype=tl.float32)
    for chunk in range(0, tl.load(length_ptr + head) // CHUNK):
        at = (head * LENGTH + chunk * CHUNK + rows)[:, None] * WIDTH + width[None, :]
        q = tl.load(q_ptr + at)
        state = tl.dot(tl.trans(q), q, state * 0.5, input_precision="ieee")
        tl.store(out_ptr + at, tl.dot(q, state, input_precision="ieee"))
