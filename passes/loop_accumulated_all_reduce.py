"""A loop reduces over the devices on every trip what is only added up for after the loop.

What it does
  Finds all-reduces and reduce-scatters in loop bodies whose result, perhaps scaled by a constant,
  is only added to a value that the loop carries and otherwise does not read.

Why it matters
  The sum over the devices and the sum over the trips can change places: each device adds up its
  own part, and the total is reduced once.

Known problems
  A total that is scattered after the loop is whole while the loop runs, which takes memory. Sums
  of floats in another order differ in their last digits.

Example
  def micro_batch(total, batch):
      return total + jax.lax.pmean(gradient(batch), "data"), None

Use instead
  def micro_batch(total, batch):
      return total + gradient(batch), None
  total, _ = jax.lax.scan(micro_batch, zeros, batches)
  total = jax.lax.pmean(total, "data")
"""

from collections.abc import Iterator

from hlo_tools.analysis.collectives import Collective
from hlo_tools.analysis.uses import MOVES, Use, first_uses
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Computation, Instruction
from passes.graph import tuple_index
from passes.rule import RuleContext, rule
from passes.words import nbytes, sent_arrays, sent_from

_SUMS = frozenset({"all-reduce", "reduce-scatter"})
_THROUGH = MOVES - {"transpose"}
_MAX_SCALINGS = 16
"""Through how many multiplications a sum is followed."""


@rule(id="HLO404", name="loop-accumulated-all-reduce")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each reduction that a loop only adds up."""
    execution = ctx.facts.execution
    for collective in ctx.facts.collectives.all:
        computation = collective.computation
        loop = execution.loop_of(computation)
        if collective.kind not in _SUMS or loop is None:
            continue
        trips = execution.trip_count(loop)
        exposed = ctx.facts.cost.exposed_seconds(collective)
        if loop.called("body") is not computation or trips is None or trips < 2 or not exposed:
            continue
        sent = collective.wire_bytes or 0
        price = ctx.price(
            collective.instruction,
            effect="sends",
            bytes=int(sent * (1 - 1 / trips)),
            seconds=exposed * (1 - 1 / trips),
        )
        if price.negligible or not _adds(collective.operation):
            continue
        addition = _only_accumulated(collective, computation)
        if addition is None:
            continue
        yield ctx.finding(
            collective.instruction,
            price,
            message=(
                f"the {collective.kind} of {sent_arrays(collective)} runs on each of the {trips} "
                f"trips of the loop `%{loop.name}` ({nbytes(sent)} a device and trip), and its "
                "result is only added to a total that nothing reads before the loop ends"
            ),
            fix=_fix(collective),
            related=(
                ctx.related(loop, "the loop"),
                ctx.related(addition, "added to the total here"),
            ),
            place=sent_from(collective),
        )


def _adds(operation: Instruction) -> bool:
    """Whether a collective sums: maxima and the like do not change places with an addition."""
    called = operation.called_computations
    return len(called) == 1 and called[0].root.opcode == "add"


def _only_accumulated(collective: Collective, body: Computation) -> Instruction | None:
    """The addition to a carry that is all that becomes of a collective's result, or `None`."""
    done = collective.span.done if collective.span else None
    value = done or collective.instruction
    if not value.shape.is_array:
        return None
    uses = _uses_scaled(value)
    if uses is None or len(uses) != 1 or uses[0].instruction.opcode != "add":
        return None
    addition = uses[0].instruction
    carried = first_uses(addition, _THROUGH, uses[0].around)
    root = body.root
    if carried is None or root.opcode != "tuple" or {use.instruction for use in carried} != {root}:
        return None
    places = [i for i, o in enumerate(root.operands) if any(o is use.operand for use in carried)]
    if len(places) != 1:
        return None
    # The carry is read by that addition and by nothing else.
    carries = [
        i
        for parameter in body.parameters
        for i in parameter.users
        if i.opcode == "get-tuple-element" and tuple_index(i) == places[0]
    ]
    readers: set[Instruction] = set()
    for carry in carries:
        read = first_uses(carry, _THROUGH | {"select", "convert"})
        if read is None:
            return None
        readers.update(use.instruction for use in read)
    return addition if readers == {addition} else None


def _uses_scaled(value: Instruction) -> list[Use] | None:
    """What first computes with a value otherwise than by scaling it with a constant."""
    found: list[Use] = []
    stack: list[tuple[Instruction, tuple[Instruction, ...]]] = [(value, ())]
    for _ in range(_MAX_SCALINGS):
        if not stack:
            return found
        instruction, around = stack.pop()
        uses = first_uses(instruction, _THROUGH, around)
        if uses is None:
            return None
        for use in uses:
            if _scales(use.instruction, use.operand):
                stack.append((use.instruction, use.around))
            else:
                found.append(use)
    return None


def _scales(instruction: Instruction, value: Instruction) -> bool:
    if instruction.opcode not in ("multiply", "divide") or len(instruction.operands) != 2:
        return False
    first, second = instruction.operands
    factor = second if first is value else first
    if factor is first and instruction.opcode == "divide":
        return False
    while factor.opcode in ("broadcast", "convert", "bitcast") and factor.operands:
        factor = factor.operands[0]
    return factor.opcode == "constant"


def _fix(collective: Collective) -> str:
    if collective.kind == "all-reduce":
        return (
            "add up each device's own part in the loop and reduce the total after it "
            "(`jax.lax.psum` or `pmean` of the result of the scan)"
        )
    return (
        "if there is memory for the whole total, add up each device's own part in the loop and "
        "call `jax.lax.psum_scatter` once after it"
    )
