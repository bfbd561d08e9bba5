"""Atomics: what collides adds up, what is returned is used, locks guard what they guard."""

from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32
PROGRAMS = 4
BINS = 8
BF16 = np.dtype(ml_dtypes.bfloat16)


@triton.jit
def scattered(x_ptr, index_ptr, out_ptr, size, OP: tl.constexpr, N: tl.constexpr):
    """Several lanes of several programs meet in one element."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    mask = lanes < size
    x = tl.load(x_ptr + lanes, mask=mask)
    index = tl.load(index_ptr + lanes, mask=mask)
    if OP == "add":
        tl.atomic_add(out_ptr + index, x, mask=mask)
    elif OP == "max":
        tl.atomic_max(out_ptr + index, x, mask=mask)
    elif OP == "min":
        tl.atomic_min(out_ptr + index, x, mask=mask)
    elif OP == "and":
        tl.atomic_and(out_ptr + index, x, mask=mask)
    elif OP == "or":
        tl.atomic_or(out_ptr + index, x, mask=mask)
    else:
        tl.atomic_xor(out_ptr + index, x, mask=mask)


@triton.jit
def to_one_row(x_ptr, out_ptr, N: tl.constexpr):
    """Every program adds its row to the same one, as the gradient of a bias does."""
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + lanes)
    tl.atomic_add(out_ptr + lanes, x, sem="relaxed")


@triton.jit
def to_one_number(x_ptr, out_ptr, size, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + lanes, mask=lanes < size, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))
    tl.atomic_max(out_ptr + 1, tl.max(tl.where(lanes < size, x, float("-inf")), axis=0))


@triton.jit
def split_k(a_ptr, b_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr, SPLITS: tl.constexpr):
    """Programs along the second axis share the sum of a product."""
    rows, inner = tl.arange(0, N), tl.arange(0, K)
    tile = tl.program_id(0) * N
    k = tl.program_id(1) * K + inner
    a = tl.load(a_ptr + (tile + rows)[:, None] * (K * SPLITS) + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + rows[None, :])
    out = tl.dot(a, b, input_precision="ieee")
    tl.atomic_add(out_ptr + (tile + rows)[:, None] * N + rows[None, :], out)


@triton.jit
def exchange(x_ptr, out_ptr, old_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    old = tl.atomic_xchg(out_ptr + lanes, tl.load(x_ptr + lanes))
    tl.store(old_ptr + lanes, old)


@triton.jit
def compare_and_swap(expected_ptr, x_ptr, out_ptr, old_ptr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    wanted = tl.load(expected_ptr + lanes)
    tl.store(old_ptr + lanes, tl.atomic_cas(out_ptr + lanes, wanted, tl.load(x_ptr + lanes)))


@triton.jit
def compact(x_ptr, count_ptr, out_ptr, limit):
    """Each program that has something takes a ticket for its place."""
    x = tl.load(x_ptr + tl.program_id(0))
    if x > limit:
        place = tl.atomic_add(count_ptr, 1)
        tl.store(out_ptr + place, x)


@triton.jit
def last_one_sums(x_ptr, partial_ptr, count_ptr, out_ptr, N: tl.constexpr, P: tl.constexpr):
    """The program that arrives last adds up what all have left."""
    pid = tl.program_id(0)
    tl.store(partial_ptr + pid, tl.sum(tl.load(x_ptr + pid * N + tl.arange(0, N)), axis=0))
    arrived = tl.atomic_add(count_ptr, 1)
    if arrived == P - 1:
        tl.store(out_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, P)), axis=0))


@triton.jit
def locked(x_ptr, out_ptr, lock_ptr, seen_ptr, GROUPS: tl.constexpr, N: tl.constexpr):
    """Partial sums of groups of rows under a lock, the first one of a group without reading."""
    row = tl.program_id(0)
    group = row % GROUPS
    lanes = tl.arange(0, N)
    partial = tl.load(x_ptr + row * N + lanes)
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    count = tl.load(seen_ptr + group)
    if count == 0:
        tl.atomic_xchg(seen_ptr + group, 1)
    else:
        partial += tl.load(out_ptr + group * N + lanes)
    tl.store(out_ptr + group * N + lanes, partial)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


@triton.jit
def histogram(x_ptr, out_ptr, BINS: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    counts = tl.histogram(tl.load(x_ptr + lanes), BINS)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)


@triton.jit
def handed_over(flag_ptr, x_ptr, out_ptr, N: tl.constexpr):
    """Each program waits for the one before it, and takes up what it left."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + pid * N + lanes)
    if pid > 0:
        tl.atomic_poll(flag_ptr + pid - 1, 1)
        x += tl.load(out_ptr + (pid - 1) * N + lanes)
    tl.store(out_ptr + pid * N + lanes, x)
    tl.atomic_store(flag_ptr + pid, 1)


@triton.jit
def read_atomically(x_ptr, out_ptr, size, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.atomic_load(x_ptr + lanes, mask=lanes < size)
    tl.atomic_store(out_ptr + lanes, x * 2 + 1, mask=lanes < size + 3)


@triton.jit
def given_up(flag_ptr, out_ptr, N: tl.constexpr):
    """What never comes is waited for no longer than for some time."""
    lanes = tl.arange(0, N)
    there = tl.atomic_poll(flag_ptr + lanes, lanes % 3, timeout_ns=10)
    tl.store(out_ptr + lanes, there.to(tl.int32) + 5)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"atomics: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected=expected,
        **{"unordered": True, "grid": (PROGRAMS,), "constants": {"N": N}, **rest},
    )


def _scattered():
    size = PROGRAMS * N - 5
    rng = np.random.default_rng(1)
    index = rng.integers(0, BINS, PROGRAMS * N).astype(np.int32)
    functions = {
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    types = {
        **dict.fromkeys(("add", "max", "min"), ("int32", "uint32", "int64", "float32")),
        **dict.fromkeys(("and", "or", "xor"), ("int32",)),
    }
    types["add"] = (*types["add"], "float16", "bfloat16", "float64")
    for op, names in types.items():
        for name in names:
            dtype = BF16 if name == "bfloat16" else np.dtype(name)
            whole = dtype.kind in "iu"
            if whole:
                info = np.iinfo(dtype)
                x, out = (rng.integers(info.min, info.max, n, dtype) for n in (len(index), BINS))
            else:
                x, out = (rng.standard_normal(n).astype(dtype) for n in (len(index), BINS))
            expected = out.copy() if whole or op != "add" else out.astype(np.float64)
            with np.errstate(all="ignore"):
                functions[op].at(expected, index[:size], x[:size].astype(expected.dtype))
            narrow = dtype.itemsize == 2
            exact = whole or op != "add"
            yield _case(
                "scattered",
                f"{op} of {name}",
                {"x_ptr": x, "index_ptr": index, "out_ptr": out},
                {"out_ptr": expected},
                constants={"OP": op, "N": N},
                scalars={"size": size},
                absolute=0.0 if exact else 1.0 if narrow else 1e-4,
                interpreted=name != "bfloat16",
            )


def _shared():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((PROGRAMS, N)).astype(np.float32)
    out = rng.standard_normal(N).astype(np.float32)
    arrays = {"x_ptr": x, "out_ptr": out}
    yield _case("to_one_row", "rows to one row", arrays, {"out_ptr": out + x.sum(0)}, absolute=1e-4)
    size = PROGRAMS * N - 5
    flat, out = x.reshape(-1)[:size], np.array([0.5, -0.25], np.float32)
    yield _case(
        "to_one_number",
        "all to one number, and their maximum",
        {"x_ptr": x, "out_ptr": out},
        {"out_ptr": [0.5 + flat.sum(), max(-0.25, flat.max())]},
        scalars={"size": size},
        absolute=1e-4,
    )
    a, b = rng.standard_normal((32, 64)), rng.standard_normal((64, 16))
    out = rng.standard_normal((32, 16))
    names = ("a_ptr", "b_ptr", "out_ptr")
    arrays = {name: each.astype(np.float32) for name, each in zip(names, (a, b, out), strict=True)}
    yield _case(
        "split_k",
        "split along K",
        arrays,
        {"out_ptr": out + a @ b},
        constants={"K": 16, "N": 16, "SPLITS": 4},
        grid=(2, 4),
        absolute=1e-4,
    )
    values = rng.integers(0, 16, PROGRAMS * N).astype(np.int32)
    arrays = {"x_ptr": values, "out_ptr": np.arange(16, dtype=np.int32)}
    counts = np.arange(16) + np.bincount(values, minlength=16)
    constants = {"BINS": 16, "N": N}
    yield _case("histogram", "histogram", arrays, {"out_ptr": counts}, constants=constants)


def _returned():
    rng = np.random.default_rng(3)
    for dtype in (np.int32, np.float32):
        x, out = (rng.integers(-9, 9, PROGRAMS * N).astype(dtype) for _ in range(2))
        arrays = {"x_ptr": x, "out_ptr": out, "old_ptr": np.zeros_like(x)}
        name = f"exchange {np.dtype(dtype).name}"
        expected, interpreted = {"out_ptr": x, "old_ptr": out}, dtype == np.int32
        yield _case("exchange", name, arrays, expected, interpreted=interpreted)
        wanted = np.where(rng.random(len(out)) < 0.5, out, out + 1).astype(dtype)
        yield _case(
            "compare_and_swap",
            f"compare and swap {np.dtype(dtype).name}",
            {**arrays, "expected_ptr": wanted},
            {"out_ptr": np.where(wanted == out, x, out), "old_ptr": out},
        )
    x = rng.standard_normal(20).astype(np.float32)
    chosen, out = x[x > 0.25], np.full(20, -1, np.float32)
    yield _case(
        "compact",
        "tickets for places",
        {"x_ptr": x, "count_ptr": np.zeros(1, np.int32), "out_ptr": out},
        {"count_ptr": [len(chosen)], "out_ptr": [*chosen, *out[len(chosen) :]]},
        constants={},
        scalars={"limit": 0.25},
        grid=(20,),
        unordered=False,
    )
    x = rng.standard_normal((PROGRAMS, N)).astype(np.float32)
    yield _case(
        "last_one_sums",
        "the last one sums",
        {
            "x_ptr": x,
            "partial_ptr": np.zeros(PROGRAMS, np.float32),
            "count_ptr": np.zeros(1, np.int32),
            "out_ptr": np.zeros(1, np.float32),
        },
        {"partial_ptr": x.sum(1), "count_ptr": [PROGRAMS], "out_ptr": [x.sum()]},
        constants={"N": N, "P": PROGRAMS},
        absolute=1e-4,
    )
    x = rng.standard_normal((10, N)).astype(np.float32)
    yield _case(
        "locked",
        "sums under a lock",
        {
            "x_ptr": x,
            "out_ptr": np.full((3, N), 7, np.float32),
            "lock_ptr": np.zeros(3, np.int32),
            "seen_ptr": np.zeros(3, np.int32),
        },
        {"out_ptr": np.stack([x[group::3].sum(0) for group in range(3)]), "seen_ptr": [1, 1, 1]},
        constants={"GROUPS": 3, "N": N},
        grid=(10,),
        absolute=1e-4,
    )


def _waited():
    rng = np.random.default_rng(11)
    x = rng.integers(-50, 50, (PROGRAMS, N)).astype(np.int32)
    arrays = {"x_ptr": x, "out_ptr": np.zeros_like(x)}
    yield _case(
        "handed_over",
        "what another program is waited for",
        {"flag_ptr": np.zeros(PROGRAMS, np.int32), **arrays},
        {"out_ptr": x.cumsum(0), "flag_ptr": np.ones(PROGRAMS, np.int32)},
        unordered=False,
        interpreted=False,  # this interpreter has none
    )
    size = PROGRAMS * N - 5
    expected = np.where(np.arange(PROGRAMS * N) < size, x.reshape(-1) * 2 + 1, 1)
    expected = np.where(np.arange(PROGRAMS * N) < size + 3, expected, 0)
    yield _case(
        "read_atomically",
        "read and written in one piece",
        arrays,
        {"out_ptr": expected.reshape(PROGRAMS, N)},
        scalars={"size": size},
        interpreted=False,
    )
    flags = rng.integers(0, 3, N).astype(np.int32)
    yield _case(
        "given_up",
        "waited for in vain",
        {"flag_ptr": flags, "out_ptr": np.zeros(N, np.int32)},
        {"out_ptr": (flags == np.arange(N) % 3) + 5},
        grid=(1,),
        interpreted=False,
    )


CASES = (*_scattered(), *_shared(), *_returned(), *_waited())
