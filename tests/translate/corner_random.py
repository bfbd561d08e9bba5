"""Philox: bit for bit what the published algorithm gives."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32


@triton.jit
def draw(out_ptr, seed, first, KIND: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    offsets = first + lanes
    if KIND == "randint":
        out = tl.randint(seed, offsets)
    elif KIND == "seven rounds":
        out = tl.randint(seed, offsets, n_rounds=7)
    elif KIND == "fourth of four":
        _, _, _, out = tl.randint4x(seed, offsets)
    elif KIND == "rand":
        out = tl.rand(seed, offsets)
    else:
        out = tl.randn(seed, offsets)
    tl.store(out_ptr + lanes, out)


@triton.jit
def dropout(x_ptr, out_ptr, size, p, seed, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    mask = lanes < size
    x = tl.load(x_ptr + lanes, mask=mask)
    keep = tl.rand(seed, lanes) > p
    tl.store(out_ptr + lanes, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def philox(seed, counters, rounds=10):
    """Philox4x32 of 64-bit counters in exact arithmetic: four integers each."""
    found = []
    for counter in counters:
        c = [counter & 0xFFFFFFFF, counter >> 32 & 0xFFFFFFFF, 0, 0]
        k = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
        for _ in range(rounds):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [
                *(b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF),
                *(a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF),
            ]
            k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
        found.append(c)
    return np.array(found, np.uint32)


def _uniform(bits):
    signed = bits.view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def _case(kernel, name, arrays, expected, **rest):
    return Case(
        name=f"random: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected={"out_ptr": expected},
        grid=(2,),
        **rest,
    )


def _cases():
    lanes = range(2 * N)
    for seed in (0, 1234, -7, 1 << 40 | 99):
        first = 1000
        bits = philox(seed, [first + lane for lane in lanes])
        kinds = {"randint": bits[:, 0], "fourth of four": bits[:, 3], "rand": _uniform(bits[:, 0])}
        kinds["seven rounds"] = philox(seed, [first + lane for lane in lanes], 7)[:, 0]
        if seed not in (0, 1234):
            kinds = {"randint": kinds["randint"]}
        for kind, expected in kinds.items():
            dtype = np.float32 if kind == "rand" else np.uint32
            yield _case(
                "draw",
                f"{kind} from the seed {seed}",
                {"out_ptr": np.ones(2 * N, dtype)},
                expected,
                scalars={"seed": seed, "first": first},
                constants={"KIND": kind, "N": N},
            )
    first = (5 << 32) - 17
    yield _case(
        "draw",
        "counters of 64 bits",
        {"out_ptr": np.ones(2 * N, np.uint32)},
        philox(3, [first + lane for lane in lanes])[:, 0],
        scalars={"seed": 3, "first": first},
        constants={"KIND": "randint", "N": N},
    )
    bits = philox(42, [7 + lane for lane in lanes])
    u, v = _uniform(bits[:, 0]).astype(np.float64), _uniform(bits[:, 1]).astype(np.float64)
    normal = np.sqrt(-2 * np.log(np.maximum(u, 1e-7))) * np.cos(2 * np.pi * v)
    yield _case(
        "draw",
        "randn",
        {"out_ptr": np.ones(2 * N, np.float32)},
        normal,
        scalars={"seed": 42, "first": 7},
        constants={"KIND": "randn", "N": N},
        absolute=1e-5,
    )
    x = np.random.default_rng(1).standard_normal(55).astype(np.float32)
    keep = _uniform(philox(123, lanes)[:, 0]) > np.float32(0.3)
    yield _case(
        "dropout",
        "dropout",
        {"x_ptr": x, "out_ptr": np.ones(55, np.float32)},
        np.where(keep[:55], x / 0.7, 0),
        scalars={"size": 55, "p": 0.3, "seed": 123},
        constants={"N": N},
        tolerance=1e-6,
    )


CASES = tuple(_cases())
