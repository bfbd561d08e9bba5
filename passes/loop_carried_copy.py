"""A loop copies a carried buffer on every trip.

What it does
  Finds copies inside loop bodies that change neither layout nor memory space, and whose operand or
  result is a value that the loop carries, priced by the number of trips.

Why it matters
  The copy exists because the new value of a carry cannot take the place of the old one: the old is
  still read after the new is written, or two carries swap places. It moves the whole buffer every
  trip and does nothing else.

Known problems
  Where the dump does not tell how often the loop runs, one trip is priced.

Example
  jax.lax.scan(lambda c, _: ((c[1], step(c[1], c[0])), None), (a, b), length=32)   # a, b rotate

Use instead
  two steps a trip, each writing over the value that is no longer needed; or `unroll=2`
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import consumers, producer, same_layout, tuple_index
from passes.rule import RuleContext, rule
from passes.words import array, nbytes


@rule(id="HLO202", name="loop-carried-copy")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each copy of a carry."""
    execution = ctx.facts.execution
    for instruction in ctx.facts.significant:
        if not plain_copy(ctx, instruction):
            continue
        computation = instruction.computation
        loop = execution.loop_of(computation)
        if loop is None or loop.called("body") is not computation:
            continue
        carry = _carry(instruction)
        price = ctx.price_of(instruction)
        if carry is None or price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=_message(ctx, instruction, loop, carry),
            fix=(
                "let each new carry be computed from the old one in place: do two steps a trip "
                "(`unroll=2` in `jax.lax.scan`) so that the second writes where the first "
                "read, do not swap or shift carries, and do not read a carry after the step "
                "that replaces it"
            ),
            related=(ctx.related(loop, "carried by this loop"),),
            place=_place(ctx, instruction, loop),
        )


def plain_copy(ctx: RuleContext, instruction: Instruction) -> bool:
    """Whether an instruction copies an array to another place of the same memory, unchanged."""
    if len(instruction.operands) != 1 or not instruction.shape.is_array:
        return False
    if ctx.facts.work.opcodes(instruction) != frozenset({"copy"}):
        return False
    source, target = instruction.operands[0].shape, instruction.shape
    return source.memory_space == target.memory_space and same_layout(source, target)


def _carry(instruction: Instruction) -> str | None:
    """How the copy touches the carry: where it comes from, and where it goes."""
    origin = producer(instruction.operands[0])
    comes = (
        origin.opcode == "get-tuple-element" and origin.operands[0].opcode == "parameter"
    ) or origin.opcode == "parameter"
    goes = any(reader.opcode == "tuple" and reader.is_root for reader in consumers(instruction))
    if comes and goes:
        source = tuple_index(origin) if origin.opcode == "get-tuple-element" else 0
        return f"carry {source} becomes another carry"
    if comes:
        return "the carry is set aside because its old value is still read when it is overwritten"
    if goes:
        return "the new value cannot be computed in the place of the old one"
    return None


def _message(ctx: RuleContext, instruction: Instruction, loop: Instruction, carry: str) -> str:
    trips = ctx.facts.execution.trip_count(loop)
    often = f"{trips} times" if trips is not None else "on every trip (their number is unknown)"
    size = nbytes(instruction.shape.padded_bytes)
    return (
        f"`{array(instruction.shape)}` ({size}), carried by the loop `%{loop.name}`, is copied "
        f"{often}: {carry}"
    )


def _place(ctx: RuleContext, instruction: Instruction, loop: Instruction) -> Instruction:
    """The copy where it says which line it serves, otherwise the loop."""
    return instruction if ctx.facts.provenance.location(instruction) is not None else loop
