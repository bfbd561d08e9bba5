"""Kernels with what verification has to notice."""

import triton
import triton.language as tl


@triton.jit
def running_total(x_ptr, total_ptr):
    """Every program adds on top of what the one before it left, without an atomic."""
    pid = tl.program_id(0)
    before = tl.load(total_ptr + pid)
    tl.store(total_ptr + pid + 1, before + tl.load(x_ptr + pid))


@triton.jit
def scattered(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.load(index_ptr + lanes), tl.load(x_ptr + lanes))


@triton.jit
def gathered(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + tl.load(index_ptr + lanes)))


@triton.jit
def summed(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + lanes)))


@triton.jit
def copied_rows(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * x_stride + lanes, mask=lanes < columns)
    tl.store(out_ptr + row * out_stride + lanes, x, mask=lanes < columns)


@triton.jit
def relu_max(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.maximum(tl.load(x_ptr + lanes), 0.0))


@triton.jit
def scaled(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * scale)


@triton.jit
def halved(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes).to(tl.float32)
    tl.store(out_ptr + lanes, (x / 2.0).to(out_ptr.dtype.element_ty))


@triton.jit
def doubled_integers(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * 2)


@triton.jit
def tf32_product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    rows = tl.arange(0, N)[:, None]
    columns = tl.arange(0, N)[None, :]
    product = tl.dot(tl.load(a_ptr + rows * N + columns), tl.load(b_ptr + rows * N + columns))
    tl.store(c_ptr + rows * N + columns, product)


@triton.jit
def overrun(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes + 1))


@triton.jit
def squeezed(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pair = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, pair.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True) + 1.0)


@triton.jit
def smooth(x_ptr, w_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x, w = tl.load(x_ptr + lanes), tl.load(w_ptr + lanes)
    tl.store(out_ptr + lanes, tl.exp(x) * w)


@triton.jit
def kinked(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.floor(tl.load(x_ptr + lanes) * 1.0e6))


@triton.jit
def smooth_backward(dout_ptr, x_ptr, w_ptr, dx_ptr, dw_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    dout, x = tl.load(dout_ptr + lanes), tl.exp(tl.load(x_ptr + lanes))
    tl.store(dx_ptr + lanes, dout * x * tl.load(w_ptr + lanes))
    tl.store(dw_ptr + lanes, dout * x)


@triton.jit
def talkative(x_ptr, out_ptr, wide: tl.int64, KIND: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    print("lanes", lanes)
    tl.device_print("program", tl.program_id(0))
    tl.store(out_ptr + lanes, (tl.load(x_ptr + lanes).to(KIND) + wide * wide).to(tl.int64))


@triton.jit
def doubled(x):
    return x * 2


@triton.jit
def applied(x_ptr, out_ptr, function: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, function(tl.load(x_ptr + lanes)))


@triton.jit
def paired(pair, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(pair[0] + lanes) - tl.load(pair[1] + lanes))


@triton.jit
def described(source, target, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target.store([row, 0], source.load([row, 0]) * 2)


@triton.jit
def endless(x_ptr, out_ptr):
    total = tl.load(x_ptr)
    while total > -100.0:
        total = tl.abs(total)
    tl.store(out_ptr, total)


@triton.jit
def bf16_inside(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes).to(tl.bfloat16).to(tl.float32))


@triton.jit
def either(x, y):
    return x or y


@triton.jit
def spoken_logic(x_ptr, out_ptr, n, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    """`and`, `or` and `not` of tensors, and of what is known at once."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n and lanes != 3
    x = tl.load(x_ptr + lanes, mask=mask, other=1)
    wanted = False or (not (x > 2) and x != 0)
    found = either(wanted, x < -2).to(tl.int32) + tl.reduce(wanted, 0, either).to(tl.int32)
    if n > 0 and TWICE:
        found *= 2
    tl.store(out_ptr + lanes, found, mask=mask)


@triton.jit
def counted_widely(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.int64)
    for step in range(0, n):
        total += step.to(tl.int64) * tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, total)


class Wrapped:
    """What some packages put around their kernels."""

    def __init__(self, fn):
        assert isinstance(fn, triton.runtime.JITFunction), "only compiled kernels"
        self.inner = fn


@Wrapped
@triton.jit
def wrapped_copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes))


def nested():
    @triton.jit
    def inner(x_ptr, out_ptr):
        tl.store(out_ptr, tl.load(x_ptr))

    return inner


def copy_rows(x, out):
    copied_rows[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=8)


def copy_eight_columns(x, out):
    assert x.shape[1] == 8, "only rows of 8"
    copy_rows(x, out)


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (16, 8)], key=["columns"])
@triton.jit
def tuned_copy(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < columns)
    tl.store(out_ptr + lanes, x, mask=lanes < columns)


def tune_copy(x, out):
    n = x.numel()
    tuned_copy[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)


@triton.jit
def gated(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """A product with a truth value, which leaves NaN of NaN."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, x * (lanes % 2 == 0).to(tl.float32))


@triton.jit
def logarithm(x_ptr, out_ptr, BIAS: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.log(tl.load(x_ptr + lanes) - BIAS))


@triton.jit
def mean_of_some(x_ptr, length_ptr, out_ptr, BLOCK: tl.constexpr):
    """The mean of the first numbers of a row, as many as an array says: NaN of none."""
    row = tl.program_id(0)
    length = tl.load(length_ptr + row)
    total = 0.0
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * 64 + offsets, mask=offsets < length, other=0.0), 0)
    tl.store(out_ptr + row, total / tl.maximum(length, 0).to(tl.float32))
