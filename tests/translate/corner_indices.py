"""Indices that lie in memory, descriptors and block pointers."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Block, Case

N = 32


@triton.jit
def gather_rows(table_ptr, index_ptr, out_ptr, count, width, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    index = tl.load(index_ptr + rows, mask=rows < count, other=0)
    columns = tl.arange(0, N)
    inside = (rows < count)[:, None] & (columns < width)[None, :]
    x = tl.load(table_ptr + index[:, None] * width + columns[None, :], mask=inside)
    tl.store(out_ptr + rows[:, None] * width + columns[None, :], x, mask=inside)


@triton.jit
def scatter_rows(x_ptr, index_ptr, out_ptr, width, N: tl.constexpr):
    """One row a program, to where memory says; a negative index goes nowhere."""
    row = tl.program_id(0)
    index = tl.load(index_ptr + row)
    columns = tl.arange(0, N)
    x = tl.load(x_ptr + row * width + columns, mask=columns < width)
    tl.store(out_ptr + index * width + columns, x, mask=(columns < width) & (index >= 0))


@triton.jit
def gather_elements(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + tl.load(index_ptr + lanes)))


@triton.jit
def segments(x_ptr, starts_ptr, out_ptr, N: tl.constexpr):
    """Rows of different lengths behind one another: each is reversed in sign and summed up."""
    row = tl.program_id(0)
    start, end = tl.load(starts_ptr + row), tl.load(starts_ptr + row + 1)
    total = 0.0
    for place in range(start, end, N):
        lanes = place + tl.arange(0, N)
        x = tl.load(x_ptr + lanes, mask=lanes < end, other=0.0)
        total += tl.sum(x, axis=0)
        tl.store(out_ptr + lanes, total - x, mask=lanes < end)


@triton.jit
def paged(pages_ptr, table_ptr, out_ptr, count, PAGE: tl.constexpr):
    """Pages found through a table."""
    row = tl.program_id(0)
    for place in range(0, count):
        page = tl.load(table_ptr + row * count + place)
        x = tl.load(pages_ptr + page * PAGE + tl.arange(0, PAGE))
        tl.store(out_ptr + (row * count + place) * PAGE + tl.arange(0, PAGE), x + place)


@triton.jit
def paged_tiles(
    pages_ptr, table_ptr, first_ptr, out_ptr, count, PAGE: tl.constexpr, W: tl.constexpr
):
    """Each lane looks its page up, and all lanes of a tile find the same one."""
    row = tl.program_id(0)
    columns = tl.arange(0, W)
    for place in range(tl.maximum(tl.load(first_ptr + row), 0), count):
        lanes = place * PAGE + tl.arange(0, PAGE)
        page = tl.load(table_ptr + row * count + lanes // PAGE)
        inner = (lanes % PAGE)[:, None] * W + columns[None, :]
        x = tl.load(pages_ptr + page[:, None] * (PAGE * W) + inner)
        tl.store(out_ptr + (row * count + place) * (PAGE * W) + inner, x + place)


@triton.jit
def made_descriptor(
    x_ptr, out_ptr, rows, columns, PADDING: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    source = tl.make_tensor_descriptor(
        x_ptr,
        shape=[rows, columns],
        strides=[columns, 1],
        block_shape=[M, N],
        padding_option=PADDING,
    )
    target = tl.make_tensor_descriptor(
        out_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N]
    )
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    block = source.load([row - 2, column])
    target.store([row, column], block + 1)


@triton.jit
def given_descriptor(source, target, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    target.store([column, row], tl.trans(source.load([row, column])))


@triton.jit
def block_pointers(x_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(
        x_ptr, (rows, columns), (columns, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0)
    )
    total = tl.zeros((M,), tl.float32)
    for _ in range(0, tl.cdiv(columns, N)):
        block = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        total += tl.sum(block, axis=1)
        source = tl.advance(source, (0, N))
    target = tl.make_block_ptr(out_ptr, (rows,), (1,), (tl.program_id(0) * M,), (M,), (0,))
    tl.store(target, total, boundary_check=(0,))


@triton.jit
def pointers_from_memory(table_ptr, out_ptr, N: tl.constexpr):
    """The grouped-gemm tutorial: addresses that lie in memory."""
    x_ptr = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + tl.arange(0, N)))


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"indices: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected if isinstance(expected, dict) else {"out_ptr": expected},
        **{"unordered": True, "constants": {"N": N}, **rest},
    )


def _indexed():
    rng = np.random.default_rng(6)
    table = _normal(1, 9, 20)
    for dtype in (np.int32, np.int64):
        index = rng.integers(0, 9, 13).astype(dtype)
        yield _case(
            "gather_rows",
            f"rows gathered by {np.dtype(dtype).name}",
            {"table_ptr": table, "index_ptr": index, "out_ptr": _normal(2, 13, 20)},
            table[index],
            scalars={"count": 13, "width": 20},
            constants={"M": 8, "N": 32},
            grid=(2,),
        )
    index, x, out = rng.permutation(9).astype(np.int64), _normal(3, 9, 20), _normal(4, 9, 20)
    index[[2, 5]] = -1
    expected = out.copy()
    expected[index[index >= 0]] = x[index >= 0]
    yield _case(
        "scatter_rows",
        "rows scattered, some nowhere",
        {"x_ptr": x, "index_ptr": index, "out_ptr": out},
        expected,
        scalars={"width": 20},
        grid=(9,),
        interpreted=False,  # it takes no mask that is part tensor, part number
    )
    x, index = _normal(5, 77), rng.integers(0, 77, 3 * N).astype(np.int32)
    arrays = {"x_ptr": x, "index_ptr": index, "out_ptr": _normal(6, 3 * N)}
    yield _case("gather_elements", "elements gathered", arrays, x[index], grid=(3,))
    starts = np.array([0, 0, 40, 45, 109, 141], np.int32)
    x, out = _normal(7, 150), _normal(8, 150)
    expected = out.astype(np.float64)
    for start, end in pairwise(starts):
        total = 0.0
        for place in range(start, end, N):
            total += x[place : min(place + N, end)].sum(dtype=np.float64)
            expected[place : min(place + N, end)] = total - x[place : min(place + N, end)]
    arrays = {"x_ptr": x, "starts_ptr": starts, "out_ptr": out}
    yield _case(
        "segments",
        "segments that start where memory says",
        arrays,
        expected,
        grid=(5,),
        absolute=1e-4,
    )
    pages, pointers = _normal(9, 12, 16), rng.integers(0, 12, (3, 4)).astype(np.int32)
    yield _case(
        "paged",
        "pages found in a table",
        {"pages_ptr": pages, "table_ptr": pointers, "out_ptr": _normal(1, 3, 4, 16)},
        pages[pointers] + np.arange(4, dtype=np.float32)[:, None],
        scalars={"count": 4},
        constants={"PAGE": 16},
        grid=(3,),
    )
    pages, out, first = (
        _normal(2, 12, 16, 4),
        _normal(3, 3, 4, 16, 4),
        np.array([0, 2, 4], np.int32),
    )
    expected = pages[pointers] + np.arange(4, dtype=np.float32)[:, None, None]
    expected = np.where((np.arange(4) >= first[:, None])[:, :, None, None], expected, out)
    yield _case(
        "paged_tiles",
        "the page of each lane, the same for all",
        {"pages_ptr": pages, "table_ptr": pointers, "first_ptr": first, "out_ptr": out},
        expected,
        scalars={"count": 4},
        constants={"PAGE": 16, "W": 4},
        grid=(3,),
    )


def _descriptors():
    rows, columns = 20, 44
    x = _normal(1, rows, columns)
    for padding, fill in (("zero", 0.0), ("nan", np.nan)):
        expected = np.full((rows, columns), np.float32(fill) + 1)
        expected[2:] = x[:-2] + 1
        yield _case(
            "made_descriptor",
            f"a descriptor made in the kernel, padded by {padding}",
            {"x_ptr": x, "out_ptr": _normal(2, rows, columns)},
            expected,
            scalars={"rows": rows, "columns": columns},
            constants={"PADDING": padding, "M": 16, "N": 16},
            grid=(2, 3),
        )
    yield _case(
        "given_descriptor",
        "descriptors made by the host",
        {"source": x, "target": _normal(2, columns, rows)},
        {"target": x.T},
        descriptors={"source": Block(shape=(16, 16)), "target": Block(shape=(16, 16))},
        constants={"M": 16, "N": 16},
        grid=(2, 3),
    )
    yield _case(
        "block_pointers",
        "block pointers moved along rows",
        {"x_ptr": x, "out_ptr": _normal(3, rows)},
        x.sum(1, np.float64),
        scalars={"rows": rows, "columns": columns},
        constants={"M": 16, "N": 16},
        grid=(2,),
        absolute=1e-5,
        interpreted=False,  # this Triton has none
    )
    yield _case(
        "pointers_from_memory",
        "addresses that lie in memory",
        {"table_ptr": np.zeros(2, np.int64), "out_ptr": _normal(4, N)},
        {},
        refused="where no buffer is",
        untranslated="pointer|address",
    )


CASES = (*_indexed(), *_descriptors())
