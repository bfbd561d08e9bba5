"""Descriptors that gather, scatter and add; functions of scalars; assembly; what is refused."""

from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from launch_case import Case

N = 32


@triton.jit
def descriptor_rows(x_ptr, index_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """Rows gathered by one descriptor and scattered, turned upside down, by another."""
    source = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [1, N])
    target = tl.make_tensor_descriptor(out_ptr, [rows, columns], [columns, 1], [1, N])
    index = tl.load(index_ptr + tl.program_id(0) * M + tl.arange(0, M))
    for column in range(0, columns, N):
        block = source.gather(index, column)
        target.scatter(block + 1, rows - 1 - index, column)


@triton.jit
def descriptor_add(x_ptr, out_ptr, columns, M: tl.constexpr, N: tl.constexpr):
    """Every program adds to the same block, whose edge hangs over."""
    target = tl.make_tensor_descriptor(out_ptr, [M, columns], [columns, 1], [M, N])
    rows, lanes = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + tl.program_id(0) * M * N + rows * N + lanes)
    target.atomic_add([0, 0], x)


@triton.jit
def collatz(x):
    steps = 0
    while x > 1:
        x = tl.where(x % 2 == 0, x // 2, 3 * x + 1)
        steps += 1
    return steps


@triton.jit
def by_element(x_ptr, out_ptr, N: tl.constexpr):
    """A function of numbers, with a loop of its own for each element."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.map_elementwise(collatz, tl.load(x_ptr + lanes)))


# What flash-linear-attention writes for `log2(1 + exp2(x))`.
_SOFTPLUS = """{ .reg .pred p;
    setp.gt.f32  p, $1, 15.;
    @p  mov.f32  $0, $1;
    @!p ex2.approx.ftz.f32 $0, $1;
    @!p add.f32            $0, $0, 1.0;
    @!p lg2.approx.ftz.f32 $0, $0;
}"""
# The lowest bit becomes the sign.
_BITS = """{ .reg .b32 low, rest<2>; // two parts
    and.b32 low, $1, 1;
    shl.b32 low, low, 31;
    and.b32 rest0, $1, 0x7FFFFFFF;
    or.b32 $0, rest0, low;
}"""


@triton.jit
def assembly(x_ptr, out_ptr, TEXT: tl.constexpr, N: tl.constexpr):
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    out = tl.inline_asm_elementwise(
        TEXT, "=f,f", [tl.load(x_ptr + lanes)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out_ptr + lanes, out)


@triton.jit
def waits(flag_ptr, out_ptr):
    """Waits for what no program writes."""
    while tl.atomic_cas(flag_ptr, 1, 1) != 1:
        pass
    tl.store(out_ptr, 1)


@triton.jit
def too_far(x_ptr, out_ptr, N: tl.constexpr):
    """Reads beyond its array."""
    lanes = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes + 1))


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _case(kernel, name, arrays, expected=None, **rest):
    return Case(
        name=f"extras: {name}",
        file=Path(__file__),
        kernel=kernel,
        arrays=arrays,
        expected={} if expected is None else {"out_ptr": expected},
        **{"grid": (2,), "constants": {"N": N}, **rest},
    )


def _cases():
    x, index = _normal(1, 16, 44), np.random.default_rng(2).permutation(16).astype(np.int32)
    yield _case(
        "descriptor_rows",
        "rows through descriptors",
        {"x_ptr": x, "index_ptr": index, "out_ptr": _normal(2, 16, 44)},
        x[::-1] + 1,
        scalars={"rows": 16, "columns": 44},
        constants={"M": 8, "N": 16},
    )
    x, out = _normal(3, 3, 8, 32), _normal(4, 8, 28)
    yield _case(
        "descriptor_add",
        "a sum through a descriptor",
        {"x_ptr": x, "out_ptr": out},
        out + x.sum(0)[:, :28],
        scalars={"columns": 28},
        constants={"M": 8, "N": 32},
        grid=(3,),
        absolute=1e-5,
        interpreted=False,
    )
    numbers = np.arange(1, 2 * N + 1, dtype=np.int32)

    def steps(number):
        return 0 if number == 1 else 1 + steps(3 * number + 1 if number % 2 else number // 2)

    yield _case(
        "by_element",
        "a loop for each element",
        {"x_ptr": numbers, "out_ptr": np.zeros(2 * N, np.int32)},
        [steps(int(number)) for number in numbers],
        interpreted=False,
        untranslated="branches or loops for each element",
    )
    x = _normal(5, 2 * N)
    for text, function in (
        ("tanh.approx.f32 $0, $1;", np.tanh),
        ("ex2.approx.ftz.f32 $0, $1;", np.exp2),
    ):
        yield _case(
            "assembly",
            f"assembly `{text}`",
            {"x_ptr": x, "out_ptr": _normal(6, 2 * N)},
            function(x.astype(np.float64)),
            constants={"TEXT": text, "N": N},
            tolerance=1e-6,
            interpreted=False,
        )
    wide = x * 12
    bits = x.view(np.int32)
    for name, text, given, wanted in (
        ("softplus", _SOFTPLUS, wide, np.where(wide > 15, wide, np.logaddexp2(wide, 0))),
        ("tenth", "{ mul.f32 $0, $1, 0.1; }", x, x * np.float64(0.1)),
        ("twice", "{ mov.f32 $0, $1; add.f32 $0, $0, $1; }", x, 2 * x.astype(np.float64)),
        ("bits", _BITS, x, np.where(bits & 1, -np.abs(x), np.abs(x))),
    ):
        yield _case(
            "assembly",
            f"assembly of several instructions: {name}",
            {"x_ptr": given, "out_ptr": _normal(6, 2 * N)},
            wanted,
            constants={"TEXT": text, "N": N},
            tolerance=1e-6,
            absolute=1e-6,
            interpreted=False,
        )
    yield _case(
        "assembly",
        "assembly that jumps",
        {"x_ptr": x, "out_ptr": _normal(6, 2 * N)},
        constants={"TEXT": "{ again: mov.f32 $0, $1; bra again; }", "N": N},
        refused="holds assembly whose meaning is not known: '{ again",
        untranslated="holds assembly whose meaning is not known: '{ again",
    )
    yield _case(
        "waits",
        "waiting for ever",
        {"flag_ptr": np.zeros(1, np.int32), "out_ptr": np.zeros(1, np.int32)},
        constants={},
        grid=(1,),
        refused=r"more than \d+ steps",
    )
    yield _case(
        "too_far",
        "beyond the end",
        {"x_ptr": _normal(8, 2 * N), "out_ptr": _normal(9, 2 * N)},
        refused=r"touches element 64 of a buffer of 64 elements",
    )


CASES = tuple(_cases())
