"""Forward and backward kernels, and host functions that launch both."""

import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def softmax_backward(out_ptr, dout_ptr, dx_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    out = tl.load(out_ptr + row * stride + offsets, mask=mask, other=0.0)
    dout = tl.load(dout_ptr + row * stride + offsets, mask=mask, other=0.0)
    dx = out * (dout - tl.sum(out * dout, axis=0))
    tl.store(dx_ptr + row * stride + offsets, dx, mask=mask)


@triton.jit
def softmax_backward_of_half(out_ptr, dout_ptr, dx_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    out = tl.load(out_ptr + row * stride + offsets, mask=mask, other=0.0)
    dout = tl.load(dout_ptr + row * stride + offsets, mask=mask, other=0.0)
    dx = out * dout
    tl.store(dx_ptr + row * stride + offsets, dx, mask=mask)


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + row * columns + offsets, centred * rstd * w + b, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward(
    x_ptr,
    w_ptr,
    dy_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    columns,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * columns + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    weighted = w * dy
    along = tl.sum(normal * weighted, axis=0) / columns
    level = tl.sum(weighted, axis=0) / columns
    tl.store(
        dx_ptr + row * columns + offsets, (weighted - normal * along - level) * rstd, mask=mask
    )
    tl.atomic_add(dw_ptr + offsets, dy * normal, mask=mask)
    tl.atomic_add(db_ptr + offsets, dy, mask=mask)


@triton.jit
def layer_norm_backward_of_x(
    x_ptr, w_ptr, dy_ptr, mean_ptr, rstd_ptr, dx_ptr, columns, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * columns + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    weighted = w * dy
    along = tl.sum(normal * weighted, axis=0) / columns
    level = tl.sum(weighted, axis=0) / columns
    tl.store(
        dx_ptr + row * columns + offsets, (weighted - normal * along - level) * rstd, mask=mask
    )


def run_softmax(x, dout):
    rows, columns = x.shape
    out, dx = x.new_empty(x.shape), x.new_empty(x.shape)
    block = triton.next_power_of_2(columns)
    softmax[(rows,)](x, out, columns, columns, BLOCK=block)
    softmax_backward[(rows,)](out, dout, dx, columns, columns, BLOCK=block)


def run_half_of_softmax(x, dout):
    rows, columns = x.shape
    out, dx = x.new_empty(x.shape), x.new_empty(x.shape)
    block = triton.next_power_of_2(columns)
    softmax[(rows,)](x, out, columns, columns, BLOCK=block)
    softmax_backward_of_half[(rows,)](out, dout, dx, columns, columns, BLOCK=block)


def run_layer_norm(x, w, b, dy):
    rows, columns = x.shape
    y, mean, rstd = x.new_empty(x.shape), x.new_empty((rows,)), x.new_empty((rows,))
    dx, dw, db = x.new_empty(x.shape), x.new_empty((columns,)), x.new_empty((columns,))
    block = triton.next_power_of_2(columns)
    layer_norm[(rows,)](x, w, b, y, mean, rstd, columns, 1e-5, BLOCK=block)
    layer_norm_backward[(rows,)](x, w, dy, mean, rstd, dx, dw, db, columns, BLOCK=block)


def run_part_of_layer_norm(x, w, b, dy):
    rows, columns = x.shape
    y, mean, rstd = x.new_empty(x.shape), x.new_empty((rows,)), x.new_empty((rows,))
    dx = x.new_empty(x.shape)
    block = triton.next_power_of_2(columns)
    layer_norm[(rows,)](x, w, b, y, mean, rstd, columns, 1e-5, BLOCK=block)
    layer_norm_backward_of_x[(rows,)](x, w, dy, mean, rstd, dx, columns, BLOCK=block)
