"""Every device computes the same costly result because all its inputs are the same everywhere.

What it does
  Finds dots, fusions and other work in partitioned modules whose operands the devices of a group
  provably hold alike: gathered or summed over the group, or computed from such values. The cost is
  the time that is saved if each device computes its share, less that of gathering the shares.

Why it matters
  The devices of the group take as long as one of them alone would.

Known problems
  Text of TPU programs does not say which arguments are replicated: what is computed from arguments
  alone is not judged.

Example
  total = jax.lax.psum(gradient, "data")
  step = newton_schulz(total)                      # by every device, all of it

Use instead
  own = jax.lax.psum_scatter(gradient, "data", scatter_dimension=0, tiled=True)
  step = jax.lax.all_gather(newton_schulz_rows(own), "data", tiled=True)
"""

from collections.abc import Iterator

from hlo_tools.analysis.roofline import ring_seconds
from hlo_tools.findings import Finding
from passes.graph import RENAMING
from passes.rule import RuleContext, rule
from passes.words import array, role

_NO_WORK = RENAMING | {"parameter", "tuple", "get-tuple-element", "while", "constant", "copy"}


@rule(id="HLO408", name="replicated-compute")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each costly instruction that several devices run on the same values."""
    model, chip = ctx.facts.cost, ctx.facts.cost.chip
    if ctx.facts.module.partitions < 2 or chip is None or not chip.ici_link_bandwidth:
        return
    for instruction in ctx.facts.significant:
        if instruction.opcode in _NO_WORK or ctx.facts.collectives.get(instruction) is not None:
            continue
        seconds = model.seconds(instruction)
        if ctx.price(instruction, effect="wastes", seconds=seconds).negligible:
            continue
        copies = ctx.facts.replication.copies(instruction)
        if copies < 2:
            continue
        result = instruction.shape.padded_bytes
        spared = seconds - seconds / copies
        gathered = ring_seconds(chip, result * (copies - 1) // copies, copies)
        price = ctx.price(instruction, effect="wastes", seconds=max(0.0, spared - gathered))
        if price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"{role(instruction)}, making `{array(instruction.shape)}`, computes the same on "
                f"{copies} devices: all its operands are the same on each of them"
            ),
            fix=(
                "let each device compute its share: keep the operand sharded "
                "(`jax.lax.psum_scatter` instead of `psum`, `with_sharding_constraint` over the "
                "axis that is idle here) and gather the result, if it is needed whole"
            ),
            related=tuple(ctx.related(o, "the same everywhere") for o in instruction.operands[:2]),
        )
