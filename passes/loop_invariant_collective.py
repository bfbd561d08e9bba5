"""A loop gathers or reduces the same value on every trip.

What it does
  Finds collectives in loop bodies whose operands are computed only from values that the loop
  carries unchanged.

Why it matters
  Every trip after the first sends the same bytes for the same result.

Known problems
  Doing it once keeps the gathered value in memory for the whole loop; where memory is what the
  loop saves, gathering anew is the price.

Example
  def layer(h, bias):
      weight = jax.lax.all_gather(shard, "data")     # `shard` is the same on every trip
      return jax.nn.relu(h @ weight + bias), None

Use instead
  weight = jax.lax.all_gather(shard, "data")          # once, before the scan
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Computation, Instruction
from passes.graph import producer, tuple_index
from passes.rule import RuleContext, rule
from passes.words import nbytes, sent_arrays, sent_from

_EFFECTS = frozenset(
    {"rng", "rng-bit-generator", "rng-get-and-update-state", "infeed", "recv", "recv-done", "while"}
)
"""Opcodes whose result may differ from trip to trip though their operands do not."""


@rule(id="HLO403", name="loop-invariant-collective")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each collective that gives the same result on every trip."""
    execution = ctx.facts.execution
    invariants: dict[Computation, set[Instruction]] = {}
    for collective in ctx.facts.collectives.all:
        computation = collective.instruction.computation
        loop = execution.loop_of(computation)
        if loop is None or loop.called("body") is not computation:
            continue
        exposed = ctx.facts.cost.exposed_seconds(collective)
        if not exposed:
            continue
        trips = execution.trip_count(loop)
        spared = 1 - 1 / trips if trips else 1.0
        sent = collective.wire_bytes or 0
        price = ctx.price(
            collective.instruction,
            effect="sends",
            bytes=int(sent * spared),
            seconds=exposed * spared,
        )
        if price.negligible:
            continue
        if computation not in invariants:
            invariants[computation] = invariant_values(computation)
        operands = collective.instruction.operands
        if not operands or not invariants[computation].issuperset(operands):
            continue
        often = f"each of its {trips} trips" if trips else "every trip"
        yield ctx.finding(
            collective.instruction,
            price,
            message=(
                f"the loop `%{loop.name}` repeats the same {collective.kind} of "
                f"{sent_arrays(collective)} on {often}: nothing in the loop changes "
                f"its operand ({nbytes(sent)} a device and trip)"
            ),
            fix=(
                "do it once before the loop and pass the result in, if there is memory for it; "
                "otherwise gather larger pieces less often"
            ),
            related=(ctx.related(loop, "the loop"),),
            place=sent_from(collective),
        )


def invariant_values(body: Computation) -> set[Instruction]:
    """The values of a loop body that are the same on every trip.

    A carry is, if the body returns it as it came; so is whatever is computed from such carries
    and constants alone, without side effects.
    """
    root = body.root
    found: set[Instruction] = set()
    for instruction in body.instructions:
        if instruction.opcode == "get-tuple-element":
            source = instruction.operands[0] if instruction.operands else None
            if source is not None and source.opcode == "parameter":
                if _returned_unchanged(root, tuple_index(instruction)):
                    found.add(instruction)
                continue
        if instruction.opcode in _EFFECTS or instruction.opcode == "parameter":
            continue
        if all(operand in found for operand in instruction.operands):
            found.add(instruction)
    return found


def _returned_unchanged(root: Instruction, index: int) -> bool:
    if root.opcode != "tuple" or not 0 <= index < len(root.operands):
        return False
    returned = producer(root.operands[index])
    return (
        returned.opcode == "get-tuple-element"
        and returned.operands[0].opcode == "parameter"
        and tuple_index(returned) == index
    )
