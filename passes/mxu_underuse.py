"""A matrix product leaves much of the systolic array idle.

What it does
  For each dot (on TPU mostly printed as `convolution`) it compares the work done with the work
  paid for once K and the operand that is held in the array are rounded up to its side (128, or
  256 on v6e and 7x). It reports the time that exact sizes would save. On GPU it finds calls of
  cuBLAS of one size, independent of one another, each of which starts for longer than it computes.

Why it matters
  The array always multiplies full tiles. A head dimension of 64 on a 256-wide array computes four
  times what it needs; a vocabulary of 32001 pays for another 127 columns.

Known problems
  In a command buffer (a CUDA graph) calls start almost for nothing: those are left out.
  Products that memory bandwidth, or taking the results out of the array, bounds anyway are not
  reported: filling the array would not make them faster.

Example
  q = jnp.zeros((batch, heads, seq, 64))     # K = 64 of 128

Use instead
  q = jnp.zeros((batch, heads // 2, seq, 128))   # or pack two heads into one product
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.analysis.matmul import Matmul, matmul
from hlo_tools.analysis.repetition import longest_chain
from hlo_tools.analysis.roofline import LAUNCH_SECONDS, matrix_unit_use
from hlo_tools.analysis.traffic import custom_call_target
from hlo_tools.findings import Finding
from hlo_tools.hardware import Chip
from hlo_tools.hlo.module import Computation, Instruction
from passes.rule import RuleContext, rule
from passes.words import array

COMMAND_BUFFER = "command_buffer"
"""In the names of computations whose kernels are started together, as a CUDA graph
(`xla/service/gpu/transforms/command_buffer_scheduling.cc`)."""


@rule(id="HLO302", name="mxu-underuse", options={"min_utilization": 0.75, "min_spared_calls": 4})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for the products of one size that one line makes."""
    if ctx.facts.backend == "gpu":
        yield from _small_calls(ctx)
    chip = ctx.facts.chip
    if chip is None or chip.mxu_size is None:
        return
    groups: dict[object, list[_Underused]] = defaultdict(list)
    for instruction in ctx.facts.significant:
        worst = _worst(ctx, instruction, chip.mxu_size)
        if worst is None or worst.use >= ctx.number("min_utilization"):
            continue
        worst.saved = ctx.matrix_bound_saving(instruction, worst.use)
        if not worst.saved:
            continue
        location = ctx.facts.provenance.location(worst.dot)
        place = (location.file, location.line) if location else instruction
        groups[(instruction.computation, worst.size, place)].append(worst)
    for members in groups.values():
        first = max(members, key=lambda member: member.saved)
        price = ctx.price(first.instruction, effect="wastes", seconds=sum(m.saved for m in members))
        if price.negligible:
            continue
        yield ctx.finding(
            first.instruction,
            price,
            message=_message(first, len(members), chip),
            fix=_fix(first.size, chip.mxu_size),
            related=tuple(
                ctx.related(m.instruction, "another of them") for m in members if m is not first
            )[:5],
            place=first.dot,
        )


def _small_calls(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for the library calls of one size in one computation that could be one call."""
    if ctx.facts.chip is None:
        return
    groups: dict[tuple[Computation, Matmul], list[Instruction]] = defaultdict(list)
    for instruction in ctx.facts.execution.instructions():
        size = _small_call(ctx, instruction)
        if size is not None and COMMAND_BUFFER not in instruction.computation.name:
            groups[instruction.computation, size].append(instruction)
    for (computation, size), members in groups.items():
        needed = longest_chain(computation, members)
        spared = len(members) - needed
        first = members[0]
        price = ctx.price(first, effect="wastes", seconds=spared * LAUNCH_SECONDS)
        if spared < ctx.number("min_spared_calls") or price.negligible:
            continue
        yield ctx.finding(
            first,
            price,
            message=(
                f"{len(members)} calls of cuBLAS multiply M={size.m}, N={size.n}, K={size.k} and "
                f"take longer to start than to compute; as batches they are {needed}"
            ),
            fix=(
                "stack the operands and multiply them in one batched product (`jnp.einsum` or "
                "`jax.vmap` over the stack), or let XLA record the calls in a command buffer "
                "(`--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT`)"
            ),
            related=tuple(ctx.related(m, "another of them") for m in members[1:6]),
        )


def _small_call(ctx: RuleContext, instruction: Instruction) -> Matmul | None:
    """The size of a call of cuBLAS that starts for longer than it computes."""
    if instruction.opcode != "custom-call":
        return None
    if not custom_call_target(instruction).startswith("__cublas$"):
        return None
    work = ctx.facts.cost.work(instruction)
    if work is None or len(work.matmuls) != 1:
        return None
    starts_longer = ctx.facts.cost.seconds(instruction) <= 2 * LAUNCH_SECONDS
    return work.matmuls[0] if starts_longer else None


@dataclass(slots=True, kw_only=True)
class _Underused:
    """A product, the instruction that runs it, and the seconds that a full array would save."""

    instruction: Instruction
    dot: Instruction
    size: Matmul
    use: float
    saved: float = 0.0


def _worst(ctx: RuleContext, instruction: Instruction, unit: int) -> _Underused | None:
    """The product of an instruction that fills least of the array."""
    worst: _Underused | None = None
    for dot in ctx.facts.work.matmuls(instruction):
        size = matmul(dot)
        if size is None or not size.m * size.n * size.k:
            continue
        use = matrix_unit_use(size, unit)
        if worst is None or use < worst.use:
            worst = _Underused(instruction=instruction, dot=dot, size=size, use=use)
    return worst


def _message(product: _Underused, count: int, chip: Chip) -> str:
    size = product.size
    times = f" ({size.batch} times)" if size.batch > 1 else ""
    subject = f"{count} products" if count > 1 else "a product"
    return (
        f"{subject} of M={size.m}, N={size.n}, K={size.k}{times} making "
        f"`{array(product.dot.shape)}` {'use' if count > 1 else 'uses'} {product.use:.0%} of the "
        f"{chip.mxu_size}x{chip.mxu_size} systolic array of a {chip.name}"
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
