"""Kernels of which functions for all sizes are made."""

import triton
import triton.language as tl


@triton.jit
def gathered(x_ptr, index_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Elements that data name."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < count
    index = tl.load(index_ptr + places, mask=mask, other=0)
    tl.store(out_ptr + places, tl.load(x_ptr + index, mask=mask), mask=mask)


@triton.jit
def gathered_rows(x_ptr, index_ptr, out_ptr, width, BLOCK: tl.constexpr):
    """Rows that data name, a program each."""
    row = tl.load(index_ptr + tl.program_id(0))
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    values = tl.load(x_ptr + row * width + columns, mask=mask)
    tl.store(out_ptr + tl.program_id(0) * width + columns, values, mask=mask)


@triton.jit
def doubled_flat(x_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    """An array of several dimensions taken as one."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < numel
    tl.store(out_ptr + places, 2 * tl.load(x_ptr + places, mask=mask), mask=mask)


@triton.jit
def transposed(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """Tiles, with the grid laid out along one axis."""
    across = tl.cdiv(columns, BLOCK)
    row = tl.program_id(0) // across * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=mask)
    there = out_ptr + column[:, None] * rows + row[None, :]
    tl.store(there, tl.trans(tile), mask=tl.trans(mask))


@triton.jit
def heads_scaled(x_ptr, scale_ptr, out_ptr, heads, WIDTH: tl.constexpr):
    """A program for each position and head; the width of a head is a constant."""
    position = tl.program_id(0) // heads
    head = tl.program_id(0) % heads
    places = (position * heads + head) * WIDTH + tl.arange(0, WIDTH)
    tl.store(out_ptr + places, tl.load(x_ptr + places) * tl.load(scale_ptr + head))


@triton.jit
def whole_blocks(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """No mask: the array must divide into blocks."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(x_ptr + places) + 1)


@triton.jit
def striding(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """As many programs as there are processors, each with blocks of its own."""
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        places = start + tl.arange(0, BLOCK)
        mask = places < count
        tl.store(out_ptr + places, tl.load(x_ptr + places, mask=mask) - 1, mask=mask)


@triton.jit
def picked_column(x_ptr, out_ptr, which, columns):
    """One column; which one, sizes do not say."""
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.load(x_ptr + row * columns + which))


@triton.jit
def convolved(x_ptr, out_ptr, count, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """A table of constants as long as an argument says."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in tl.static_range(TAPS):
        inside = places + tap < count
        total += (tap + 1) * tl.load(x_ptr + places + tap, mask=inside, other=0.0)
    tl.store(out_ptr + places, total, mask=places < count)
