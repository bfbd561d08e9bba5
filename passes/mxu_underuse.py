"""A matrix product leaves much of the systolic array idle.

What it does
  For each dot (on TPU mostly printed as `convolution`) it compares the work done with the work
  paid for once K and N are rounded up to the array's side (128, or 256 on v6e and 7x) and M to
  the 8 rows of a register. It reports the time that exact sizes would save.

Why it matters
  The array always multiplies full tiles. A head dimension of 64 on a 256-wide array computes four
  times what it needs; a vocabulary of 32001 pays for another 127 columns.

Known problems
  Products that the memory bandwidth bounds anyway are not reported: filling the array would not
  make them faster. Time is modelled; the compiler can sometimes swap operands to fill better.

Example
  q = jnp.zeros((batch, heads, seq, 64))     # K = 64 of 128

Use instead
  q = jnp.zeros((batch, heads // 2, seq, 128))   # or pack two heads into one product
"""

from collections.abc import Iterator

from hlo_tools.analysis.flops import Matmul, matmul
from hlo_tools.findings import Finding
from hlo_tools.hardware import SUBLANES, Chip
from hlo_tools.hlo.module import Instruction
from passes.rule import RuleContext, rule
from passes.words import array


@rule(id="HLO302", name="mxu-underuse", options={"min_utilization": 0.75})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each instruction whose products fill too little of the array."""
    chip = ctx.facts.chip
    if chip is None or chip.mxu_size is None:
        return
    for instruction in ctx.facts.significant:
        worst: tuple[float, Instruction, Matmul] | None = None
        for dot in ctx.facts.work.matmuls(instruction):
            size = matmul(dot)
            if size is None:
                continue
            used = utilization(size, chip.mxu_size)
            if worst is None or used < worst[0]:
                worst = (used, dot, size)
        if worst is None or worst[0] >= ctx.number("min_utilization"):
            continue
        used, dot, size = worst
        saved = _saving(ctx, instruction, used)
        if saved <= 0:
            continue
        price = ctx.price(instruction, effect="wastes", seconds=saved)
        if price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=_message(dot, size, used, chip),
            fix=_fix(size, chip.mxu_size),
            place=dot,
        )


def utilization(size: Matmul, side: int) -> float:
    """The share, 0 to 1, of the array's work that the product needs."""
    paid = 1.0
    for have, granule in ((size.m, SUBLANES), (size.n, side), (size.k, side)):
        paid *= have / (-(-have // granule) * granule)
    return paid


def _saving(ctx: RuleContext, instruction: Instruction, used: float) -> float:
    """Seconds that a full array would save: nothing below what the memory traffic takes anyway."""
    model = ctx.facts.cost
    seconds = model.seconds(instruction)
    return seconds - max(seconds * used, ctx.memory_seconds(instruction))


def _message(dot: Instruction, size: Matmul, used: float, chip: Chip) -> str:
    times = f" ({size.batch} times)" if size.batch > 1 else ""
    return (
        f"a product of M={size.m}, N={size.n}, K={size.k}{times} making `{array(dot.shape)}` uses "
        f"{used:.0%} of the {chip.mxu_size}x{chip.mxu_size} systolic array of a {chip.name}"
    )


def _fix(size: Matmul, side: int) -> str:
    small = [f"{name}={value}" for name, value in (("N", size.n), ("K", size.k)) if value % side]
    over = [
        (name, value, value // side * side)
        for name, value in (("N", size.n), ("K", size.k))
        if value > side and 0 < value % side <= side // 4
    ]
    if over:
        name, value, down = over[0]
        return (
            f"{name}={value} is just over {down}: use {down}, or pad the parameter once to the "
            f"next multiple of {side} and use the room"
        )
    if size.batch > 1:
        return (
            f"bring {' and '.join(small) or 'M'} up to {side} by folding part of the "
            f"{size.batch} batched products into one (several heads or experts side by side)"
        )
    return f"choose {' and '.join(small) or 'M'} as a multiple of {side}"
