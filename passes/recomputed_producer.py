"""A costly value is computed again for each of its uses.

What it does
  Finds values that the compiler fused into several consumers, each of which computes them anew,
  and instructions that it cloned because memory did not suffice (`.remat`). Reported is what the
  arithmetic costs beyond that of writing the value once and reading it.

Why it matters
  Recomputing saves a round trip to memory. Where the value takes many operations an element, the
  trip would have been cheaper.

Known problems
  The time that a fusion would take without the value is modelled. What `jax.checkpoint` asks for is
  not reported.

Example
  h = jnp.tanh(jnp.exp(x) * jnp.sin(x))
  return h @ query, h @ key, h @ value             # three fusions, each with all of `h`

Use instead
  h = jax.lax.optimization_barrier(jnp.tanh(jnp.exp(x) * jnp.sin(x)))
  return h @ query, h @ key, h @ value             # or one product by the joined weights
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import reduce
from operator import add

from hlo_tools.analysis.flops import Work
from hlo_tools.analysis.recomputation import Recomputed, recomputed
from hlo_tools.analysis.roofline import resource_seconds, roofline_seconds
from hlo_tools.analysis.traffic import NO_TRAFFIC, Traffic
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Computation, Instruction
from passes.rule import RuleContext, rule
from passes.words import array, nbytes, role

_REMAT = re.compile(r"\.remat\d*(?:\.|$)")
"""How XLA names what it clones to save memory (`hlo_rematerialization.cc`)."""


@rule(id="HLO103", name="recomputed-producer")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each value that several fusions compute, and for each clone."""
    fusions: dict[Computation, list[Instruction]] = defaultdict(list)
    for instruction in ctx.facts.significant:
        if _REMAT.search(instruction.name):
            yield from _clone(ctx, instruction)
        elif instruction.fused_computation is not None:
            fusions[instruction.computation].append(instruction)
    if ctx.facts.cost.chip is None:
        return
    for members in fusions.values():
        best: dict[Instruction, tuple[float, Recomputed]] = {}
        for value in recomputed(members):
            saved = _saved_seconds(ctx, value)
            # A fusion's time is claimed once, by the value that costs most of it.
            if all(best.get(fusion, (0.0,))[0] < saved for fusion in value.fusions):
                best.update(dict.fromkeys(value.fusions, (saved, value)))
        for saved, value in dict.fromkeys(best.values()):
            if all(best[fusion][1] is value for fusion in value.fusions):
                yield from _finding(ctx, value, saved)


def _finding(ctx: RuleContext, value: Recomputed, saved: float) -> Iterator[Finding]:
    first = value.copies[0]
    price = ctx.price(value.fusions[0], effect="wastes", seconds=saved)
    if price.negligible:
        return
    yield ctx.finding(
        value.fusions[0],
        price,
        message=(
            f"{len(value.fusions)} fusions compute the same `{array(first.shape)}`, each for "
            f"itself, in {len(value.within)} operations; writing it once and reading it "
            f"({nbytes(first.shape.logical_bytes)}) would take less time"
        ),
        fix=(
            "keep the value as one: `jax.lax.optimization_barrier` around it, or join its uses "
            "(one product by the concatenated weights)"
        ),
        related=tuple(ctx.related(fusion, "computes it too") for fusion in value.fusions[1:4]),
        place=first,
    )


def _clone(ctx: RuleContext, instruction: Instruction) -> Iterator[Finding]:
    price = ctx.price_of(instruction)
    if price.negligible:
        return
    yield ctx.finding(
        instruction,
        price,
        message=(
            f"{role(instruction)} is computed again: the compiler did not keep its result "
            f"(`{array(instruction.shape)}`), because the program would not have fitted into "
            "memory"
        ),
        fix=(
            "free memory, so that it need not: donate what is replaced, keep activations in bf16, "
            "take a smaller batch, or choose with `jax.checkpoint` what is recomputed"
        ),
    )


def _saved_seconds(ctx: RuleContext, value: Recomputed) -> float:
    """Seconds that are spared if a kernel of its own writes the value and all fusions read it."""
    chip = ctx.facts.cost.chip
    assert chip is not None
    size = value.copies[0].shape.logical_bytes
    works = [ctx.facts.cost.work(instruction) for instruction in value.within]
    work = reduce(add, [found for found in works if found is not None], Work())
    made = roofline_seconds(chip, work, Traffic(hbm_read=size, hbm_written=size))
    return sum(_without(ctx, f, work, Traffic(hbm_read=size)) for f in value.fusions) - made


def _without(ctx: RuleContext, fusion: Instruction, work: Work, moved: Traffic) -> float:
    """Seconds that a fusion is faster without some work, if it moves so many bytes more."""
    model, chip = ctx.facts.cost, ctx.facts.cost.chip
    assert chip is not None
    now = resource_seconds(chip, model.work(fusion), model.traffic(fusion))
    spared = resource_seconds(chip, work, NO_TRAFFIC)
    more = resource_seconds(chip, None, moved)
    then = {name: seconds - spared[name] + more[name] for name, seconds in now.items()}
    slowest = max(now.values())
    return model.seconds(fusion) * (1 - max(then.values()) / slowest) if slowest else 0.0
