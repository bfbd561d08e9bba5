"""Kernels that the tests translate, with the host functions that launch them.

Jitted functions need a source file; this one is loaded by path, under the front end and under
Triton's interpreter alike.
"""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(out_ptr, x_ptr, out_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def relu(x):
    return tl.where(x > 0, x, 0.0)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < left) & (columns[None, :] < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "relu":
        total = relu(total)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, total, mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def layer_norm(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, columns, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0)
        x = tl.where(offsets < columns, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        w = tl.load(w_ptr + offsets, mask=mask)
        b = tl.load(b_ptr + offsets, mask=mask)
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
        tl.store(y_ptr + offsets, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def early_returns(x_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    """Three ways out: before anything, after a store, and in the middle of a branch."""
    pid = tl.program_id(0)
    if pid == limit:
        return
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if pid > limit:
        if pid == limit + 2:
            return
        x = x * 2.0
    else:
        x = x + 100.0
        if pid == 1:
            tl.store(out_ptr + offsets, x)
            return
    tl.store(out_ptr + offsets, x - 1.0)


@triton.jit
def block_pointer_copy(x_ptr, out_ptr, rows, columns, stride, BLOCK: tl.constexpr):
    """A transposing copy of whole rows of blocks by block pointers, which Triton 3.9 dropped."""
    source = tl.make_block_ptr(
        base=x_ptr,
        shape=(rows, columns),
        strides=(stride, 1),
        offsets=(tl.program_id(0) * BLOCK, 0),
        block_shape=(BLOCK, BLOCK),
        order=(1, 0),
    )
    target = tl.make_block_ptr(
        base=out_ptr,
        shape=(columns, rows),
        strides=(rows, 1),
        offsets=(0, tl.program_id(0) * BLOCK),
        block_shape=(BLOCK, BLOCK),
        order=(1, 0),
    )
    for _ in range(0, tl.cdiv(columns, BLOCK)):
        block = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tl.trans(block).to(target.dtype.element_ty), boundary_check=(0, 1))
        source = tl.advance(source, (0, BLOCK))
        target = tl.advance(target, (BLOCK, 0))


@triton.jit
def moved(pointer, steps):
    return tl.advance(pointer, (steps,))


@triton.jit
def block_pointer_window(x_ptr, out_ptr, size, start, BLOCK: tl.constexpr):
    """A window over a vector: beyond its ends lies NaN."""
    window = tl.make_block_ptr(x_ptr, (size,), (1,), (0,), (BLOCK,), (0,))
    if start < 0:  # noqa: SIM108  # a branch is what is tested
        window = moved(window, start)
    else:
        window = tl.advance(window, (start,))
    values = tl.load(window, boundary_check=(0,), padding_option="nan")
    tl.store(out_ptr + tl.arange(0, BLOCK), values)


@triton.jit(do_not_specialize=["free"])
def typed(out_ptr, free, wide: tl.int64, small: tl.float32, one, last=7):
    tl.store(out_ptr, free + wide + one + last)
    tl.store(out_ptr + 1, small.to(tl.int64))


@triton.jit
def sort_rows(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def concatenate(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.assume(lanes.shape[0] == BLOCK)
    joined = tl.cat(tl.load(x_ptr + lanes), tl.load(y_ptr + lanes), can_reorder=True)
    tl.store(out_ptr + tl.arange(0, 2 * BLOCK), joined)


@triton.jit
def first_of(pair_ptr, out_ptr):
    tl.store(out_ptr, undefined_name)  # noqa: F821  # refused by Triton's front end


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=2) for block in (64, 128)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit
def tuned_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))
    else:
        mask = offsets < n
        total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, total, mask=mask)


def add(x, y):
    out = x.new_empty(x.shape)
    n = out.numel()
    vector_add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    return out


def add_in_place(x, y):
    vector_add[(triton.cdiv(x.numel(), 128),)](x, y, x, x.numel(), BLOCK=128)
    return x


def tuned(x, y):
    out = x.new_empty(x.shape)
    tuned_add[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
    return out


def multiply(a, b, activation="none"):
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty((m, n))
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    matmul[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        *a.stride(),
        *b.stride(),
        *c.stride(),
        BLOCK_M=32,
        BLOCK_N=32,
        BLOCK_K=16,
        ACTIVATION=activation,
        num_warps=4,
    )
    return c


def warmed_softmax(x):
    """Compiles first and asks what that took, as the official tutorial does."""
    rows, columns = x.shape
    out = x.new_empty(x.shape)
    block = triton.next_power_of_2(columns)
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    kernel = softmax.warmup(
        out, x, out.stride(0), x.stride(0), columns, BLOCK=block, num_warps=8, grid=(1,)
    )
    kernel._init_handles()
    assert kernel.n_regs > 0
    assert properties["multiprocessor_count"] > 0
    kernel[(rows, 1, 1)](out, x, out.stride(0), x.stride(0), columns, block)
    return out


def misspelt(x, y):
    vector_add[(1,)](x, y, x, 64, BLOCK=64, num_wraps=4)


def nothing(x):
    return x


def fails(x):
    raise ValueError("there is no such mode")
