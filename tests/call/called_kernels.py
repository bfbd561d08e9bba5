"""Kernels that show one way each of being called from JAX."""

import triton
import triton.language as tl

OFFSET: tl.constexpr = tl.constexpr(3)


@triton.jit
def add_after(x_ptr, y_ptr, n, out_ptr, BLOCK: tl.constexpr = 64):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


@triton.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


@triton.jit
def increment_after_size(n, x_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


@triton.jit
def add_to(x_ptr, y_ptr, n, out_ptr, BLOCK: tl.constexpr):
    """Adds `y` to what `out` holds, which may be `x`."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(out_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


@triton.jit
def first_half(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets), mask=offsets < n // 2)


@triton.jit
def scale(x_ptr, factor, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * factor)


@triton.jit
def scale_by_memory(x_ptr, factor_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * tl.load(factor_ptr))


@triton.jit
def increment_pair(pair, n, BLOCK: tl.constexpr):
    first, second = pair[0], pair[1]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(first + offsets, tl.load(first + offsets, mask=mask) + 1, mask=mask)
    tl.store(second + offsets, tl.load(second + offsets, mask=mask) + 2, mask=mask)


@triton.jit
def copy_twice(x_ptr, first_ptr, second_ptr):
    x = tl.load(x_ptr)
    tl.store(first_ptr, x)
    tl.store(second_ptr, x + 1)


@triton.jit
def apply(x_ptr, out_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, FUNCTION(tl.load(x_ptr + offsets)))


@triton.jit
def square(x):
    return x * x


@triton.jit
def negate(x):
    return -x


@triton.jit
def divide(x_ptr, out_ptr, DIVISOR: tl.constexpr):
    tl.store(out_ptr, tl.load(x_ptr) / DIVISOR)


@triton.jit
def add_global(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) + OFFSET)


@triton.jit
def assembly(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("shf.l.wrap.b32 $0, $1, $1, 7;", "=r,r", [x], tl.int32, True, 1)
    tl.store(out_ptr + offsets, y)


@triton.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


def _prune(configs, named_args, **kwargs):
    return [config for config in configs if config.kwargs["BLOCK"] <= named_args["n"]]


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=2) for block in (512, 64, 32)],
    key=["n"],
    prune_configs_by={"early_config_prune": _prune},
)
@triton.jit
def tuned_increment(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, pre_hook=lambda arguments: None)],
    key=["n"],
)
@triton.jit
def hooked(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets), mask=offsets < n)
