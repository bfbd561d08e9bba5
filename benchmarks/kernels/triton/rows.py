"""Kernels whose programs take one row, or a few."""

import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(w_ptr + offsets, mask=mask)
    b = tl.load(b_ptr + offsets, mask=mask)
    y = centred * rstd * w + b
    tl.store(y_ptr + row * columns + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, dw_ptr, db_ptr,
    columns, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program takes ROWS rows; its parts of two of the gradients are added up later."""
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    for index in range(ROWS):
        row = program * ROWS + index
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normed = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        wdy = w * dy
        along = tl.sum(normed * wdy, axis=0) / columns
        mean = tl.sum(wdy, axis=0) / columns
        dx = (wdy - (normed * along + mean)) * rstd
        tl.store(dx_ptr + row * columns + offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * normed
        db += dy
    tl.store(dw_ptr + program * columns + offsets, dw, mask=mask)
    tl.store(db_ptr + program * columns + offsets, db, mask=mask)


@triton.jit
def rms_norm(x_ptr, w_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    y = x * rstd * w
    tl.store(y_ptr + row * columns + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def swiglu(gate_ptr, up_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = row * columns + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + offsets).to(tl.float32)
    up = tl.load(up_ptr + offsets).to(tl.float32)
    out = gate * tl.sigmoid(gate) * up
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty))


@triton.jit
def rope(x_ptr, cos_ptr, sin_ptr, out_ptr, HEADS: tl.constexpr, HALF: tl.constexpr):
    """A program turns all heads of a token; halves of a head are the two parts of each number."""
    token = tl.program_id(0)
    half = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + half)[None, :]
    sin = tl.load(sin_ptr + token * HALF + half)[None, :]
    heads = tl.arange(0, HEADS)[:, None] * (2 * HALF)
    first = token * HEADS * 2 * HALF + heads + half[None, :]
    low = tl.load(x_ptr + first).to(tl.float32)
    high = tl.load(x_ptr + first + HALF).to(tl.float32)
    kind = out_ptr.dtype.element_ty
    tl.store(out_ptr + first, (low * cos - high * sin).to(kind))
    tl.store(out_ptr + first + HALF, (high * cos + low * sin).to(kind))


@triton.jit
def cross_entropy(logits_ptr, label_ptr, loss_ptr, columns, BLOCK: tl.constexpr):
    """A row's loss: its greatest logit and the sum of exponentials are kept as blocks go by."""
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    logits_ptr += row * columns
    chosen = tl.load(logits_ptr + label).to(tl.float32)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + offsets, mask=offsets < columns, other=-float("inf"))
        x = x.to(tl.float32)
        higher = tl.maximum(greatest, tl.max(x, axis=0))
        total = total * tl.exp(greatest - higher) + tl.sum(tl.exp(x - higher), axis=0)
        greatest = higher
    tl.store(loss_ptr + row, greatest + tl.log(total) - chosen)
