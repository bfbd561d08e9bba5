"""A value is stored in a wide type although all that reads it converts it to a narrow one.

What it does
  Finds floating-point values in device memory that every reader rounds to a narrower type before
  it computes with them, looked for behind slices, in fusions and round a loop.

Why it matters
  The round trip to memory moves twice the bytes for the same numbers.

Known problems
  Only what each reader does first is looked at: a reader that rounds later is not found. On TPU
  the time is often that of the vector unit, for which the width does not matter: then traffic and
  memory are what is saved.

Example
  def layer(h, w):                               # h is carried in f32 ...
      h = jax.nn.relu(h.astype(jnp.bfloat16) @ w)
      return h.astype(jnp.float32), None         # ... and only ever read as bf16

Use instead
  def layer(h, w):
      return jax.nn.relu(h @ w), None            # and `.astype(jnp.float32)` after the loop
"""

from collections.abc import Iterator

from hlo_tools.analysis.roofline import resource_seconds
from hlo_tools.analysis.traffic import Traffic
from hlo_tools.analysis.uses import MOVES, Use, first_uses
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import RENAMING, element_maker, tuple_index
from passes.rule import RuleContext, rule
from passes.words import array, nbytes, role

_NOT_MADE_HERE = (
    RENAMING
    | MOVES
    | {"parameter", "constant", "get-tuple-element", "tuple", "while", "call", "conditional"}
)
_THROUGH = MOVES | {"slice", "dynamic-slice"}


@rule(id="HLO205", name="convert-pingpong")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each value that is stored wider than anything reads it."""
    for instruction in ctx.facts.significant:
        if instruction.opcode in _NOT_MADE_HERE or ctx.facts.collectives.get(instruction):
            continue
        for value, index in _values(instruction):
            if not value.shape.is_float or value.shape.on_chip or not value.shape.dimensions:
                continue
            uses = _uses(ctx, value)
            if not uses or any(use.instruction.opcode != "convert" for use in uses):
                continue
            reads = [use.instruction.shape for use in uses]
            bits = max(shape.element_bits if shape.is_float else 64 for shape in reads)
            if bits >= value.shape.element_bits:
                continue
            yield from _finding(ctx, instruction, value, index, uses, bits)


def _values(instruction: Instruction) -> list[tuple[Instruction, int | None]]:
    """The arrays that an instruction makes, each with its place in a tuple of several."""
    if instruction.shape.is_array:
        return [(instruction, None)]
    return [
        (user, tuple_index(user))
        for user in instruction.users
        if user.opcode == "get-tuple-element" and user.shape.is_array
    ]


def _uses(ctx: RuleContext, value: Instruction) -> list[Use] | None:
    """What first computes with a value; of what a loop carries, what does so on the next trip."""
    uses = first_uses(value, _THROUGH)
    if uses is None:
        return None
    body = value.computation
    loop = ctx.facts.execution.loop_of(body)
    found: list[Use] = []
    for use in uses:
        carried = use.instruction is body.root and use.instruction.opcode == "tuple"
        if not carried or loop is None or loop.called("body") is not body:
            found.append(use)
            continue
        places = {n for n, o in enumerate(body.root.operands) if o is use.operand}
        for parameter in body.parameters:
            for read in parameter.users:
                if read.opcode != "get-tuple-element":
                    return None
                if tuple_index(read) in places:
                    again = first_uses(read, _THROUGH)
                    if again is None:
                        return None
                    found.extend(again)
    return found


def _finding(
    ctx: RuleContext,
    instruction: Instruction,
    value: Instruction,
    index: int | None,
    uses: list[Use],
    bits: int,
) -> Iterator[Finding]:
    spared = value.shape.padded_bytes * (value.shape.element_bits - bits)
    spared //= value.shape.element_bits
    readers = list(dict.fromkeys(use.runs for use in uses))
    price = ctx.price(
        instruction,
        effect="moves",
        bytes=spared * (1 + len(readers)),
        seconds=sum(_faster(ctx, i, spared) for i in (instruction, *readers)),
        hbm_bytes=spared * (1 + len(readers)),
    )
    if price.negligible:
        return
    narrow = uses[0].instruction.shape.element_type
    yield ctx.finding(
        instruction,
        price,
        message=(
            f"{role(instruction)} stores `{array(value.shape)}` "
            f"({nbytes(value.shape.padded_bytes)}), and all that reads it converts it to {narrow} "
            f"first ({len(readers)} reader{'s' if len(readers) > 1 else ''})"
        ),
        fix=(
            f"convert to {narrow} where the value is made, so that it is stored (and carried) so; "
            "the readers get the same numbers"
        ),
        related=tuple(ctx.related(reader, "converts it first") for reader in readers[:3]),
        place=value if index is None else element_maker(instruction, index),
    )


def _faster(ctx: RuleContext, instruction: Instruction, spared: int) -> float:
    """Seconds by which an instruction is faster if it moves fewer bytes of device memory.

    None where it computes for longer than that, or where its elements, however narrow, take as
    long through the vector unit.
    """
    model, chip = ctx.facts.cost, ctx.facts.cost.chip
    if chip is None:
        return 0.0
    traffic = model.traffic(instruction)
    now = resource_seconds(chip, model.work(instruction), traffic)
    fewer = resource_seconds(chip, None, Traffic(hbm_read=spared))["memory"]
    slowest = max(now.values())
    then = {**now, "memory": now["memory"] - fewer}
    least = max(*then.values(), resource_seconds(chip, None, traffic)["stream"])
    return model.seconds(instruction) * max(0.0, 1 - least / slowest) if slowest else 0.0
