"""A product waits for a whole gather, or a scatter for a whole product.

What it does
  Finds all-gathers of which nothing but products is computed, and reduce-scatters of a product,
  whose time on the wire is exposed and has no other work beside it that could hide it. The cost is
  the part of that time that the product itself could hide.

Why it matters
  The core waits for all parts, then the links wait for all of the product. If each part is
  multiplied while the next one travels, only the first part is waited for.

Known problems
  Where other work could hide the collective the finding is `sync-collective`; so it is in a loop,
  if the collective could be started a trip ahead and the product of the trip before could hide it.
  Parts that are too small use less of the systolic array; that is not priced. Adding up partial
  sums round a ring is.

Example
  sequence = jax.lax.all_gather(x, "model", axis=0, tiled=True)
  y = sequence @ weight

Use instead
  part = x
  for step in range(size):                     # unrolled, or scanned two steps a trip
      following = jax.lax.ppermute(part, "model", ring)
      parts.append(part @ weight)              # runs while the next part is on the wire
      part = following
"""

from collections.abc import Iterator

from hlo_tools.analysis.collectives import Collective
from hlo_tools.analysis.roofline import transfer_seconds
from hlo_tools.analysis.traffic import Traffic
from hlo_tools.analysis.uses import MOVES, first_uses
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import MATMULS, producer
from passes.rule import RuleContext, rule
from passes.sync_collective import idle_work
from passes.words import nbytes, role, sent_arrays, sent_from


@rule(id="HLO409", name="unoverlapped-matmul-gather", options={"min_bytes": 1 << 20})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each gather or scatter that its product could hide."""
    model = ctx.facts.cost
    execution = ctx.facts.execution
    for collective in ctx.facts.collectives.all:
        computation, size = collective.computation, collective.group_size
        # Of a computation whose caller was cut off nobody knows whether it is a loop.
        if not computation.is_entry and not execution.callers(computation):
            continue
        exposed = model.exposed_seconds(collective)
        if not exposed or not size or (collective.wire_bytes or 0) < ctx.number("min_bytes"):
            continue
        if ctx.price(collective.instruction, effect="sends", seconds=exposed).negligible:
            continue
        products = _products(ctx, collective)
        if not products:
            continue
        others = idle_work(ctx, collective)
        alone = exposed - sum(model.seconds(other) for other in others)
        own = sum(model.seconds(product) for product in products if product not in others)
        hideable = min(alone, own) * (size - 1) / size - _adding_seconds(ctx, collective, size)
        if hideable <= 0:
            continue
        price = ctx.price(
            collective.instruction,
            effect="sends",
            bytes=collective.wire_bytes,
            seconds=hideable,
        )
        if price.negligible:
            continue
        yield ctx.finding(
            collective.instruction,
            price,
            message=_message(collective, products[0]),
            fix=_fix(collective),
            related=tuple(ctx.related(p, "the product beside it") for p in products[:3]),
            place=_place(ctx, collective),
        )


def _adding_seconds(ctx: RuleContext, collective: Collective, size: int) -> float:
    """What a ring of sums costs beyond a scatter: partial sums are read, added to, and written."""
    chip = ctx.facts.cost.chip
    if chip is None or collective.kind != "reduce-scatter":
        return 0.0
    sums = collective.operand_padded_bytes // size * (size - 1)
    return transfer_seconds(chip, Traffic(hbm_read=2 * sums, hbm_written=sums))


def _products(ctx: RuleContext, collective: Collective) -> list[Instruction]:
    """What multiplies all that is gathered, or makes all that is scattered; else nothing."""
    if collective.kind == "all-gather":
        done = collective.span.done if collective.span else None
        value = done or collective.instruction
        uses = first_uses(value, MOVES | {"convert"}) if value.shape.is_array else None
        if not uses or any(use.instruction.opcode not in MATMULS for use in uses):
            return []
        return list(dict.fromkeys(use.runs for use in uses))
    if collective.kind == "reduce-scatter" and len(collective.instruction.operands) == 1:
        made = producer(collective.instruction.operands[0])
        if any(ctx.facts.work.matmuls(made)):
            return [made]
    return []


def _place(ctx: RuleContext, collective: Collective) -> Instruction:
    """The collective, or where nothing tells its line what runs it: that of its product."""
    place = sent_from(collective)
    return place if ctx.facts.provenance.location(place) else collective.instruction


def _message(collective: Collective, product: Instruction) -> str:
    group = f"{collective.group_size} devices"
    sent = f"{nbytes(collective.wire_bytes or 0)} a device on the wire"
    what = f"the {collective.kind} of {sent_arrays(collective)} over {group} ({sent})"
    if collective.kind == "all-gather":
        return f"{what} is waited for as a whole before {role(product)} uses any of it"
    return f"{what} starts when {role(product)} has made all of its operand, and hides none of it"


def _fix(collective: Collective) -> str:
    window = "leave it to the partitioner (shardings instead of `shard_map`), which can window it"
    if collective.kind == "all-gather":
        return (
            "multiply each part while the next one travels: a ring of `jax.lax.ppermute` with the "
            f"product of one part a step, or {window}"
        )
    return (
        "pass partial sums round a ring: multiply the rows of one device a step and add them to "
        f"what `jax.lax.ppermute` brings meanwhile, or {window}"
    )
