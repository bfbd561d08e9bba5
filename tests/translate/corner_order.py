"""Programs that meet in memory without atomics: they run one after another, in their order."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 16


@triton.jit
def last_one_stays(x_ptr, out_ptr, N: tl.constexpr):
    """Every program writes the same place; some only part of it."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + pid * N + lanes)
    tl.store(out_ptr + lanes, x, mask=lanes < N - pid)


@triton.jit
def overlapping(x_ptr, out_ptr, N: tl.constexpr):
    """Neighbouring programs' tiles overlap by half."""
    lanes = tl.program_id(0) * (N // 2) + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) + tl.program_id(0))


@triton.jit
def handed_on(x_ptr, out_ptr, N: tl.constexpr):
    """Each program takes up what the one before it left."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    before = tl.load(out_ptr + (pid - 1) * N + lanes, mask=lanes < N * pid, other=0.0)
    tl.store(out_ptr + pid * N + lanes, before * 0.5 + tl.load(x_ptr + pid * N + lanes))


@triton.jit
def read_and_written(x_ptr, out_ptr, N: tl.constexpr):
    """A sum without atomics, as of programs that are known to run in turn."""
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + lanes)
    tl.store(out_ptr + lanes, tl.load(out_ptr + lanes) * 2 + x)


@triton.jit
def shifted_in_place(x_ptr, size, N: tl.constexpr):
    """Reads beside what it writes, so that programs meet at the edges of their tiles."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    left = tl.load(x_ptr + lanes - 1, mask=(lanes > 0) & (lanes < size), other=0.0)
    tl.store(x_ptr + lanes, left + 1, mask=lanes < size)


@triton.jit
def moved(x_ptr, out_ptr, size, N: tl.constexpr):
    """The same with two arrays, which may lie in one memory."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes, mask=lanes < size)
    tl.store(out_ptr + lanes, x * 2, mask=lanes < size)


@triton.jit
def turned_in_place(x_ptr, N: tl.constexpr):
    """A square of tiles, each written with what its mirror image holds by then."""
    rows = tl.program_id(0) * N + tl.arange(0, N)[:, None]
    columns = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    size = N * tl.num_programs(0)
    x = tl.load(x_ptr + columns * size + rows)
    tl.store(x_ptr + rows * size + columns, x + 1)


@triton.jit
def by_index(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    """Rows written where memory says, some of them more than once."""
    index = tl.load(index_ptr + tl.program_id(0))
    lanes = tl.arange(0, N)
    tl.store(out_ptr + index * N + lanes, tl.load(x_ptr + tl.program_id(0) * N + lanes))


@triton.jit
def written_then_read(x_ptr, out_ptr, sum_ptr, N: tl.constexpr):
    """A tile written, and a sum over all tiles written so far."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    tl.store(out_ptr + pid * N + lanes, tl.load(x_ptr + pid * N + lanes) * 3)
    total = tl.zeros((N,), tl.float32)
    for tile in range(0, pid + 1):
        total += tl.load(out_ptr + tile * N + lanes)
    tl.store(sum_ptr + pid * N + lanes, total)


@triton.jit
def stepwise(x_ptr, steps, N: tl.constexpr):
    """A loop that reads what the iteration before it wrote."""
    row = x_ptr + tl.program_id(0) * (steps + 1) * N
    lanes = tl.arange(0, N)
    for step in range(0, steps):
        x = tl.load(row + step * N + lanes)
        tl.store(row + (step + 1) * N + lanes, x * 0.5 + step)


@triton.jit
def overwritten(x_ptr, out_ptr, steps, N: tl.constexpr):
    """A loop whose iterations all write one place."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    for step in range(0, steps):
        x = tl.load(x_ptr + step * 2 * N + lanes)
        tl.store(out_ptr + lanes, x, mask=x > 0)


@triton.jit
def interleaved(x_ptr, out_ptr, N: tl.constexpr):
    """Every program writes one place, the first one twice: its second value does not last."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + pid * N + lanes))
    if pid == 0:
        tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * 100)


@triton.jit
def cleared_later(x_ptr, out_ptr, N: tl.constexpr):
    """What is added up is set back by a program in the middle."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    if pid == 2:
        tl.store(out_ptr + lanes, lanes * 0.0)
    tl.atomic_add(out_ptr + lanes, tl.load(x_ptr + pid * N + lanes))


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"order: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected if isinstance(expected, dict) else {"out_ptr": expected},
        **{"grid": (4,), "constants": {"N": N}, "absolute": 1e-5, **rest},
    )


def _shared():
    x, out = _normal(1, 4, N), _normal(2, N)
    expected = out.copy()
    for pid in range(4):
        expected[: N - pid] = x[pid, : N - pid]
    arrays = {"x_ptr": x, "out_ptr": out}
    yield _case("last_one_stays", "the last one stays", arrays, expected)
    arrays = {"x_ptr": x, "out_ptr": out}
    yield _case("interleaved", "written twice by the first", arrays, x[3])
    yield _case("cleared_later", "cleared later", arrays, x[2] + x[3])
    total = out.copy()
    for row in x:
        total = total * 2 + row
    yield _case("read_and_written", "a sum in turns", arrays, total)
    y, left = _normal(3, 5 * N // 2), _normal(4, 5 * N // 2)
    expected = left.copy()
    for pid in range(4):
        expected[pid * N // 2 : pid * N // 2 + N] = y[pid * N // 2 : pid * N // 2 + N] + pid
    arrays = {"x_ptr": y, "out_ptr": left}
    yield _case("overlapping", "tiles that overlap", arrays, expected)
    expected = np.zeros((4, N), np.float32)
    for pid in range(4):
        expected[pid] = (expected[pid - 1] if pid else 0) * np.float32(0.5) + x[pid]
    arrays = {"x_ptr": x, "out_ptr": _normal(5, 4, N)}
    yield _case("handed_on", "handed on", arrays, expected)
    index = np.array([2, 0, 2, 2], np.int32)
    table = _normal(6, 3, N)
    expected = table.copy()
    for pid in range(4):
        expected[index[pid]] = x[pid]
    arrays = {"x_ptr": x, "index_ptr": index, "out_ptr": table}
    yield _case("by_index", "rows more than once", arrays, expected)
    arrays = {"x_ptr": x, "out_ptr": _normal(7, 4, N), "sum_ptr": _normal(8, 4, N)}
    expected = {"out_ptr": x * 3, "sum_ptr": (x * 3).cumsum(0)}
    yield _case("written_then_read", "what was written so far", arrays, expected)


def _in_place():
    x = _normal(1, 4 * N - 3)
    expected = x.copy()
    for start in range(0, len(x), N):
        before = expected[start - 1] if start else np.float32(0)
        expected[start : start + N] = (
            np.concatenate([[before], expected[start : start + N - 1]])[: len(x) - start] + 1
        )
    scalars = {"size": len(x)}
    yield _case(
        "shifted_in_place", "shifted in place", {"x_ptr": x}, {"x_ptr": expected}, scalars=scalars
    )
    for distance, name in ((5, "to the right"), (N, "by a tile"), (4 * N, "apart")):
        memory = _normal(2, 8 * N)
        source, target = memory[: 4 * N], memory[distance : distance + 4 * N]
        after = memory.copy()
        for start in range(0, 4 * N, N):
            after[distance + start : distance + start + N] = after[start : start + N] * 2
        yield _case(
            "moved",
            f"moved {name} within one memory",
            {"x_ptr": source, "out_ptr": target},
            {"x_ptr": after[: 4 * N], "out_ptr": after[distance : distance + 4 * N]},
            scalars={"size": 4 * N},
            untranslated="another view" if distance < 4 * N else "",
        )
    x = _normal(3, 2 * N, 2 * N)
    expected = x.copy()
    for i in range(0, 2 * N, N):
        for j in range(0, 2 * N, N):
            expected[i : i + N, j : j + N] = expected[j : j + N, i : i + N].T + 1
    arrays = {"x_ptr": x}
    yield _case("turned_in_place", "turned in place", arrays, {"x_ptr": expected}, grid=(2, 2))
    x = _normal(4, 2, 6, N)
    expected = x.copy()
    for step in range(5):
        expected[:, step + 1] = expected[:, step] * np.float32(0.5) + step
    arrays, scalars = {"x_ptr": x}, {"steps": 5}
    yield _case("stepwise", "step by step", arrays, {"x_ptr": expected}, scalars=scalars, grid=(2,))
    x, out = _normal(5, 5, 2 * N), _normal(6, 2 * N)
    expected = out.copy()
    for row in x:
        expected = np.where(row > 0, row, expected)
    arrays = {"x_ptr": x, "out_ptr": out}
    yield _case(
        "overwritten", "one place in every iteration", arrays, expected, scalars=scalars, grid=(2,)
    )


CASES = (*_shared(), *_in_place())
