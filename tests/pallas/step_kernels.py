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


@triton.jit
def tiles_in_turns(a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Each program multiplies every so many tiles; the number of the tile is counted twice."""
    across = tl.cdiv(N, BN)
    again = tl.program_id(0) - PROGRAMS
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        again += PROGRAMS
        m = tile // across * BM + tl.arange(0, BM)
        n = tile % across * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
            total = tl.dot(a, b, total, input_precision="ieee")
        m = again // across * BM + tl.arange(0, BM)
        mask = (m < M)[:, None] & (n < N)[None, :]
        tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=mask)


@triton.jit
def rows_in_turns(x_ptr, y_ptr, COUNT, COLUMNS: tl.constexpr):
    """Each program takes every so many rows, as many as the grid has programs."""
    offsets = tl.arange(0, COLUMNS)
    for row in range(tl.program_id(0), COUNT, tl.num_programs(0)):
        x = tl.load(x_ptr + row * COLUMNS + offsets)
        tl.store(y_ptr + row * COLUMNS + offsets, x + tl.num_programs(0))


@triton.jit
def rows_by_whom(x_ptr, y_ptr, COUNT, COLUMNS: tl.constexpr):
    """As `rows_in_turns`, with the number of the program in what is written."""
    offsets = tl.arange(0, COLUMNS)
    program = tl.program_id(0)
    for row in range(program, COUNT, tl.num_programs(0)):
        x = tl.load(x_ptr + row * COLUMNS + offsets)
        tl.store(y_ptr + row * COLUMNS + offsets, x + program)


@triton.jit
def sums_in_turns(x_ptr, y_ptr, COUNT, COLUMNS: tl.constexpr):
    """Each row gets the sum of those that its program has had before."""
    offsets = tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float32)
    for row in range(tl.program_id(0), COUNT, tl.num_programs(0)):
        total += tl.load(x_ptr + row * COLUMNS + offsets)
        tl.store(y_ptr + row * COLUMNS + offsets, total)


@triton.jit
def rows_upon_rows(y_ptr, COUNT, COLUMNS: tl.constexpr):
    """Each row is added to the one that its program takes next."""
    offsets = tl.arange(0, COLUMNS)
    step = tl.num_programs(0)
    for row in range(tl.program_id(0), COUNT, step):
        at = y_ptr + row * COLUMNS + offsets
        before = tl.load(at - step * COLUMNS, mask=row >= step, other=0.0)
        tl.store(at, tl.load(at) + before)


@triton.jit
def rows_in_wide_turns(x_ptr, y_ptr, COUNT, COLUMNS: tl.constexpr):
    """As `rows_in_turns`, counted in 64 bits."""
    offsets = tl.arange(0, COLUMNS)
    for row in range(tl.program_id(0).to(tl.int64), COUNT.to(tl.int64), tl.num_programs(0)):
        x = tl.load(x_ptr + row * COLUMNS + offsets)
        tl.store(y_ptr + row * COLUMNS + offsets, x + 1)


@triton.jit
def of_one_column(x_ptr, y_ptr, COUNT, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums along the rows of a block, which may be of a single column."""
    program = tl.program_id(0)
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    at = program * COUNT * COLUMNS + rows[:, None] * COLUMNS + columns[None, :]
    x = tl.load(x_ptr + at, mask=rows[:, None] < COUNT, other=0.0)
    greatest = tl.max(x, axis=0)[None, :]
    total = tl.sum(x - greatest, axis=0)
    tl.store(y_ptr + program * COLUMNS + columns, total)


@triton.jit
def looked_up(x_ptr, at_ptr, y_ptr, WIDTH: tl.constexpr):
    """Rows of a table, as long as the kernel takes them to be, where an array says."""
    program = tl.program_id(0)
    offsets = tl.arange(0, WIDTH)
    at = tl.load(at_ptr + program)
    tl.store(y_ptr + program * WIDTH + offsets, tl.load(x_ptr + at * WIDTH + offsets))


@triton.jit
def put_where(x_ptr, at_ptr, y_ptr, WIDTH: tl.constexpr):
    """Rows go where an array says, or nowhere."""
    program = tl.program_id(0)
    offsets = tl.arange(0, WIDTH)
    at = tl.load(at_ptr + program)
    if at >= 0:
        tl.store(y_ptr + at * WIDTH + offsets, tl.load(x_ptr + program * WIDTH + offsets))
