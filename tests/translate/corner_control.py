"""Programs, loops and branches: who runs what, how often, and what it carries along."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32


@triton.jit
def persistent(x_ptr, out_ptr, tiles, N: tl.constexpr):
    """Each program takes every so many tiles."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        lanes = tile * N + tl.arange(0, N)
        tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * 2 + tile)


@triton.jit
def persistent_sum(x_ptr, out_ptr, tiles, N: tl.constexpr):
    """The same with something carried from tile to tile."""
    total = tl.zeros((N,), tl.float32)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        total += tl.load(x_ptr + tile * N + tl.arange(0, N))
    tl.store(out_ptr + tl.program_id(0) * N + tl.arange(0, N), total)


@triton.jit
def swizzled(
    x_ptr, out_ptr, rows, columns, GROUP: tl.constexpr, LIBRARY: tl.constexpr, N: tl.constexpr
):
    """The order in which the matmul tutorial walks over tiles, last group smaller."""
    pid = tl.program_id(0)
    if LIBRARY:
        row, column = tl.swizzle2d(pid // columns, pid % columns, rows, columns, GROUP)
    else:
        in_group = GROUP * columns
        first = pid // in_group * GROUP
        size = min(rows - first, GROUP)
        row = first + (pid % in_group) % size
        column = (pid % in_group) // size
    tile = row * N * (columns * N) + column * N
    places = tile + tl.arange(0, N)[:, None] * (columns * N) + tl.arange(0, N)[None, :]
    tl.store(out_ptr + places, tl.load(x_ptr + places) + pid)


@triton.jit
def three_axes(out_ptr, N: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    flat = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    value = x * 10000 + y * 100 + z + tl.num_programs(0) * 1000000
    tl.store(out_ptr + flat * N + tl.arange(0, N), value + tl.zeros((N,), tl.int32))


@triton.jit
def flattened(x_ptr, out_ptr, heads, length, N: tl.constexpr):
    """One program id that stands for three."""
    pid = tl.program_id(0)
    block, row = pid % (length // N), pid // (length // N)
    head, batch = row % heads, row // heads
    lanes = block * N + tl.arange(0, N)
    x = tl.load(x_ptr + (batch * length + lanes) * heads + head)
    tl.store(out_ptr + (batch * heads + head) * length + lanes, x)


@triton.jit
def bound_from_memory(x_ptr, size_ptr, out_ptr, stride, N: tl.constexpr):
    """Rows of as many elements as memory says."""
    row = tl.program_id(0)
    size = tl.load(size_ptr + row)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, size, N):
        lanes = start + tl.arange(0, N)
        total += tl.load(x_ptr + row * stride + lanes, mask=lanes < size, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def search(sorted_ptr, x_ptr, out_ptr, size):
    """A binary search in a while loop: where each program's number belongs."""
    x = tl.load(x_ptr + tl.program_id(0))
    low = 0
    high = size
    while low < high:
        middle = (low + high) // 2
        if tl.load(sorted_ptr + middle) < x:
            low = middle + 1
        else:
            high = middle
    tl.store(out_ptr + tl.program_id(0), low)


@triton.jit
def newton(x_ptr, out_ptr, N: tl.constexpr):
    """Goes on until all lanes are good enough."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    root = x
    worst = 1.0
    steps = 0
    while (worst > 1e-3) & (steps < 50):
        root = 0.5 * (root + x / root)
        worst = tl.max(tl.abs(root * root - x), axis=0)
        steps += 1
    tl.store(out_ptr + lanes, root)


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    CAUSAL: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """Online softmax; the bound of the loop depends on the program id where it is causal."""
    block, head = tl.program_id(0), tl.program_id(1)
    rows, columns, depth = block * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    base = head * length * D
    q = tl.load(
        q_ptr + base + rows[:, None] * D + depth[None, :], mask=rows[:, None] < length, other=0.0
    )
    highest = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    end = tl.minimum((block + 1) * M, length) if CAUSAL else length
    for start in range(0, end, N):
        k_rows = start + columns
        inside = k_rows[:, None] < length
        places = base + k_rows[:, None] * D + depth[None, :]
        k = tl.load(k_ptr + places, mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = k_rows[None, :] < length
        if CAUSAL:
            allowed = allowed & (rows[:, None] >= k_rows[None, :])
        scores = tl.where(allowed, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        shrink = tl.exp(highest - new_highest)
        p = tl.exp(scores - new_highest[:, None])
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + places, mask=inside, other=0.0)
        out = tl.dot(p, v, acc=out * shrink[:, None], input_precision="ieee")
        highest = new_highest
    out = out / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * D + depth[None, :], out, mask=rows[:, None] < length)


@triton.jit
def nested(x_ptr, out_ptr, outer, inner, N: tl.constexpr):
    """State passed through an inner loop whose bound is the outer one's counter."""
    state = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    for i in range(0, outer):
        for j in range(i, inner):
            state = state * 0.5 + (i * 10 + j)
        state = -state
    tl.store(out_ptr + tl.program_id(0) * N + tl.arange(0, N), state)


@triton.jit
def counted(out_ptr, first, last, N: tl.constexpr):
    """Loops that do not run, run down, and run by steps that do not divide their length."""
    total = 0
    for i in range(5, first):
        total += 1000 * i
    for i in range(last, 0, -3):
        total += i
    for i in range(1, last, 4):
        total = total * 2 + i
    tl.store(out_ptr + tl.arange(0, N), total + tl.arange(0, N))


@triton.jit
def unrolled(x_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    out = tl.load(x_ptr + lanes)
    for k in tl.static_range(1, K):
        out += tl.load(x_ptr + lanes + k) * k
    tl.store(out_ptr + lanes, out)


@triton.jit
def branches(x_ptr, out_ptr, other_ptr, N: tl.constexpr):
    """Different stores in either branch, and a value that both give."""
    pid = tl.program_id(0)
    lanes = pid * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    if tl.sum(x, axis=0) > 0:
        tl.store(out_ptr + lanes, x * 2)
        scale = 3.0
    else:
        tl.store(other_ptr + lanes, x - 1)
        scale = -1.0
        if pid % 2 == 0:
            tl.store(out_ptr + lanes, x * scale, mask=x > -0.5)
    tl.store(x_ptr + lanes, x * scale)


@triton.jit
def leaves_early(x_ptr, flag_ptr, out_ptr, N: tl.constexpr):
    """Memory says which programs are done half-way."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, x)
    flag = tl.load(flag_ptr + tl.program_id(0))
    if flag == 0:
        return
    x = x * flag
    if flag > 2:
        tl.store(out_ptr + lanes, x - 100)
        return
    tl.store(out_ptr + lanes, x + 100)


@triton.jit
def step_down(x, steps):
    while steps > 0:
        x = x - steps
        steps -= 1
    return x


@triton.jit
def calls(x_ptr, out_ptr, N: tl.constexpr):
    """A function of the kernel's own, with a loop inside."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + lanes, step_down(x, tl.program_id(0)) + step_down(x, tl.program_id(0) + 1))


@triton.jit
def speaks(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.device_print("x", x)
    tl.device_assert(x > -1000.0, "too small")
    tl.static_assert(N == 32)
    tl.assume(N > 0)
    tl.store(out_ptr + tl.max_contiguous(tl.multiple_of(lanes, N), N), x + 1)


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"control: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected if isinstance(expected, dict) else {"out_ptr": expected},
        **{"unordered": True, "constants": {"N": N}, **rest},
    )


def _grids():
    for programs in (3, 4, 11):
        x = _normal(1, 10, N)
        arrays = {"x_ptr": x, "out_ptr": _normal(2, 10, N)}
        expected = x * 2 + np.arange(10, dtype=np.float32)[:, None]
        rest = {"scalars": {"tiles": 10}, "grid": (programs,)}
        yield _case("persistent", f"{programs} programs for 10 tiles", arrays, expected, **rest)
        sums = np.stack([x[first::programs].sum(0) for first in range(programs)])
        arrays = {"x_ptr": x, "out_ptr": _normal(2, programs, N)}
        name = f"{programs} programs that carry over 10 tiles"
        yield _case("persistent_sum", name, arrays, sums, absolute=1e-5, **rest)
    for library in (False, True):
        x, (rows, columns, group, size) = _normal(3, 5 * 8, 3 * 8), (5, 3, 2, 8)
        pids = np.zeros((rows, columns), np.float32)
        for pid in range(rows * columns):
            first = pid // (group * columns) * group
            height = min(rows - first, group)
            within = pid % (group * columns)
            pids[first + within % height, within // height] = pid
        yield _case(
            "swizzled",
            "grouped order of tiles" + ", by swizzle2d" * library,
            {"x_ptr": x, "out_ptr": _normal(4, 5 * 8, 3 * 8)},
            x + np.kron(pids, np.ones((size, size), np.float32)),
            constants={"GROUP": group, "LIBRARY": library, "N": size},
            scalars={"rows": rows, "columns": columns},
            grid=(rows * columns,),
        )
    grid = (2, 3, 4)
    x, y, z = np.indices(grid)
    value = (x * 10000 + y * 100 + z + 2000000).astype(np.int32)
    expected = np.repeat(value.reshape(-1, 1), 8, axis=1)
    arrays = {"out_ptr": np.zeros((24, 8), np.int32)}
    yield _case("three_axes", "three axes", arrays, expected, constants={"N": 8}, grid=grid)
    x = _normal(5, 2, 64, 4)
    yield _case(
        "flattened",
        "one program id for three",
        {"x_ptr": x, "out_ptr": _normal(6, 2, 4, 64)},
        x.transpose(0, 2, 1),
        constants={"N": 16},
        scalars={"heads": 4, "length": 64},
        grid=(2 * 4 * 4,),
    )


def _loops():
    sizes = np.array([0, 1, 31, 32, 33, 100], np.int32)
    x = _normal(1, 6, 100)
    yield _case(
        "bound_from_memory",
        "a bound from memory",
        {"x_ptr": x, "size_ptr": sizes, "out_ptr": _normal(2, 6)},
        [row[:size].sum(dtype=np.float64) for row, size in zip(x, sizes, strict=True)],
        scalars={"stride": 100},
        grid=(6,),
        absolute=1e-5,
    )
    table, x = np.sort(_normal(3, 37)), _normal(4, 12)
    yield _case(
        "search",
        "binary search",
        {"sorted_ptr": table, "x_ptr": x, "out_ptr": np.zeros(12, np.int32)},
        np.searchsorted(table, x),
        scalars={"size": 37},
        constants={},
        grid=(12,),
    )
    x = np.abs(_normal(5, 3, N)) + 0.5
    arrays = {"x_ptr": x, "out_ptr": _normal(6, 3, N)}
    yield _case("newton", "until it is good enough", arrays, np.sqrt(x), grid=(3,), absolute=1e-3)
    for outer, inner in ((3, 5), (0, 5), (6, 4)):
        state = x = _normal(7, 2, N)
        for i in range(outer):
            for j in range(i, inner):
                state = state * np.float32(0.5) + (i * 10 + j)
            state = -state
        yield _case(
            "nested",
            f"nested loops, {outer} and {inner}",
            {"x_ptr": x, "out_ptr": _normal(8, 2, N)},
            state,
            scalars={"outer": outer, "inner": inner},
            grid=(2,),
            absolute=1e-5,
        )
    for first, last in ((3, 10), (7, 13), (5, -2)):
        total = sum(1000 * i for i in range(5, first)) + sum(range(last, 0, -3))
        for i in range(1, last, 4):
            total = total * 2 + i
        arrays = {"out_ptr": np.zeros(N, np.int32)}
        scalars = {"first": first, "last": last}
        name = f"loops up to {first}, and down from {last}"
        yield _case("counted", name, arrays, total + np.arange(N), scalars=scalars)
    x = _normal(9, 2 * N + 4)
    expected = sum((x[k : k + 2 * N] * np.float32(k or 1) for k in range(4)), np.float32(0))
    arrays = {"x_ptr": x, "out_ptr": _normal(1, 2 * N)}
    constants = {"K": 4, "N": N}
    yield _case(
        "unrolled", "unrolled", arrays, expected, constants=constants, grid=(2,), absolute=1e-5
    )


def _attention():
    for causal in (False, True):
        for length in (64, 50):
            q, k, v = (_normal(seed, 2, length, 16) for seed in (1, 2, 3))
            scores = (q @ k.transpose(0, 2, 1)).astype(np.float64) * 0.25
            if causal:
                scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(2, keepdims=True))
            yield _case(
                "attention",
                f"attention over {length}" + ", causal" * causal,
                {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": _normal(4, 2, length, 16)},
                weights / weights.sum(2, keepdims=True) @ v,
                constants={"CAUSAL": causal, "M": 16, "N": 32, "D": 16},
                scalars={"length": length, "scale": 0.25},
                grid=(-(-length // 16), 2),
                absolute=1e-5,
            )


def _branches():
    x, out, other = _normal(1, 6, N), _normal(2, 6, N), _normal(3, 6, N)
    expected = {"out_ptr": out.copy(), "other_ptr": other.copy(), "x_ptr": x.copy()}
    for pid, row in enumerate(x):
        positive = row.sum() > 0
        if positive:
            expected["out_ptr"][pid] = row * 2
        else:
            expected["other_ptr"][pid] = row - 1
            if pid % 2 == 0:
                expected["out_ptr"][pid] = np.where(row > -0.5, -row, out[pid])
        expected["x_ptr"][pid] = row * (3 if positive else -1)
    arrays = {"x_ptr": x, "out_ptr": out, "other_ptr": other}
    yield _case("branches", "stores in either branch", arrays, expected, grid=(6,))
    flags = np.array([0, 1, 2, 3, 0, 4], np.int32)
    scaled = x * flags.astype(np.float32)[:, None]
    wanted = np.where(flags[:, None] > 2, scaled - 100, scaled + 100)
    yield _case(
        "leaves_early",
        "an early return by what memory says",
        {"x_ptr": x, "flag_ptr": flags, "out_ptr": out},
        np.where(flags[:, None] == 0, x, wanted),
        grid=(6,),
    )
    x = np.random.default_rng(4).integers(-99, 99, (4, N)).astype(np.int32)
    steps = np.arange(4)[:, None]
    expected = 2 * x - steps * (steps + 1) // 2 - (steps + 1) * (steps + 2) // 2
    arrays = {"x_ptr": x, "out_ptr": np.zeros((4, N), np.int32)}
    yield _case("calls", "a function with a loop", arrays, expected, grid=(4,))
    x = _normal(5, 2, N)
    arrays = {"x_ptr": x, "out_ptr": _normal(6, 2, N)}
    yield _case("speaks", "prints, assertions and hints", arrays, x + 1, grid=(2,))


CASES = (*_grids(), *_loops(), *_attention(), *_branches())
