"""A collective carries more than what reads its result needs.

What it does
  Finds gathers, permutes, broadcasts and all-to-alls of which everything that reads the result
  converts it to a narrower type first, or takes fixed slices only, and those that send what was
  widened just before.

Why it matters
  Links are slower than memory. What is rounded, or cut, before it is sent gives the same result
  for a fraction of the bytes.

Known problems
  Sums over devices are left alone: rounding before a sum changes it. Slices that overlap are
  counted twice.

Example
  weight = jax.lax.all_gather(master, "data", tiled=True)       # f32 on the wire
  y = x @ weight.astype(jnp.bfloat16)

Use instead
  weight = jax.lax.all_gather(master.astype(jnp.bfloat16), "data", tiled=True)
  y = x @ weight
"""

from collections.abc import Iterator

from hlo_tools.analysis.collectives import Collective
from hlo_tools.analysis.uses import MOVES, first_uses
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import producer
from passes.rule import RuleContext, rule
from passes.uncombined_collectives import latency_seconds
from passes.words import array, nbytes, sent_arrays, sent_from

_MOVING = frozenset({"all-gather", "all-to-all", "collective-permute", "collective-broadcast"})
_CUTS = frozenset({"slice", "dynamic-slice"})


@rule(id="HLO406", name="wide-collective")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each collective that could send fewer bytes for the same result."""
    model = ctx.facts.cost
    for collective in ctx.facts.collectives.all:
        exposed = model.exposed_seconds(collective)
        value = _value(collective)
        if collective.kind not in _MOVING or not exposed or value is None:
            continue
        if ctx.price(collective.instruction, effect="sends", seconds=exposed).negligible:
            continue
        narrower = _narrower(collective, value)
        cut = _read(value)
        kept = min(
            narrower[0] / value.shape.element_bits if narrower else 1.0,
            cut[0] / value.shape.element_count if cut else 1.0,
        )
        carried = max(0.0, model.wire_seconds(collective) - latency_seconds(collective))
        price = ctx.price(
            collective.instruction,
            effect="sends",
            bytes=int((collective.wire_bytes or 0) * (1 - kept)),
            seconds=min(exposed, carried * (1 - kept)),
        )
        if kept >= 1 or price.negligible:
            continue
        why, at = narrower[1:] if narrower else (_cut_message(value, cut), cut[1] if cut else value)
        yield ctx.finding(
            collective.instruction,
            price,
            message=(
                f"the {collective.kind} sends {sent_arrays(collective)} "
                f"({nbytes(collective.wire_bytes or 0)} a device), {why}"
            ),
            fix=(
                "convert to the narrower type before the collective, and back after it if need be"
                if narrower
                else "slice first and send only what is read"
            ),
            related=(ctx.related(at, "here"),),
            place=sent_from(collective),
        )


def _value(collective: Collective) -> Instruction | None:
    """What a device gets, if it is one array."""
    value = collective.span.done if collective.span else collective.instruction
    if value is not None and value.opcode.endswith("-start"):
        value = value.users[0] if len(value.users) == 1 else None
    if value is None or not value.shape.is_array or not value.shape.element_count:
        return None
    return value if len(collective.operation.operands) == 1 else None


def _narrower(collective: Collective, value: Instruction) -> tuple[int, str, Instruction] | None:
    """Bits of the narrower type that would do, why, and where it is converted."""
    if not value.shape.is_float:
        return None
    bits = value.shape.element_bits
    made = _converted(producer(collective.instruction.operands[0]))
    if made is not None and made.operands[0].shape.is_float:
        source = made.operands[0].shape
        if 0 < source.element_bits < bits:
            return source.element_bits, f"which was `{array(source)}` just before", made
    uses = first_uses(value, MOVES | _CUTS)
    if not uses:
        return None
    converts = [use.instruction for use in uses]
    if any(c.opcode != "convert" or not c.shape.is_float for c in converts):
        return None
    widest = max(converts, key=lambda convert: convert.shape.element_bits)
    if widest.shape.element_bits >= bits:
        return None
    read = widest.shape.element_type
    return widest.shape.element_bits, f"and all that reads it converts it to {read} first", widest


def _converted(instruction: Instruction) -> Instruction | None:
    """The `convert` that makes a value, inside of a fusion too; `None` if something else does."""
    while instruction.opcode in MOVES or instruction.fused_computation is not None:
        inner = instruction.fused_computation
        if inner is not None:
            instruction = inner.root
        elif instruction.operands:
            instruction = instruction.operands[0]
        else:
            return None
    return instruction if instruction.opcode == "convert" and instruction.operands else None


def _read(value: Instruction) -> tuple[int, Instruction] | None:
    """How many elements the fixed slices hold that are all that is read, and the largest slice."""
    uses = first_uses(value, MOVES)
    if not uses or any(use.instruction.opcode != "slice" for use in uses):
        return None
    largest = max((use.instruction for use in uses), key=lambda cut: cut.shape.element_count)
    return sum(use.instruction.shape.element_count for use in uses), largest


def _cut_message(value: Instruction, cut: tuple[int, Instruction] | None) -> str:
    assert cut is not None
    share = cut[0] / value.shape.element_count
    return f"of which each device reads {share:.2g} of the result (`{array(cut[1].shape)}`)"
