"""A buffer is copied only to change its layout.

What it does
  Finds `copy` and `transpose` instructions, and fusions that do nothing else, whose operand and
  result hold the same elements in another order or tiling. A copy that only changes the memory
  space (a prefetch into VMEM) is none. An argument that is only read transposed is
  `parameter-transpose`.

Why it matters
  The whole buffer is read and written again, and the vector units shuffle it, for no arithmetic.
  The copy exists because two neighbours want the same value in different layouts.

Known problems
  Where the compiler gives no cycle estimate, the time is that of the memory traffic; a relayout
  inside VMEM can take longer.

Example
  k = cache.transpose(0, 2, 1, 3)          # [batch, time, head, dim] -> [batch, head, time, dim]
  out = jnp.einsum("bhqd,bhkd->bhqk", q, k)

Use instead
  out = jnp.einsum("bhqd,bkhd->bhqk", q, cache)   # let the dot contract in the stored order
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.graph import consumers, producer
from passes.relayouts import RELAYOUTS, relayout_source, transposed_argument
from passes.rule import RuleContext, rule
from passes.words import array, layout, role


@rule(id="HLO201", name="layout-copy")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each instruction that only changes a layout."""
    cost_model = ctx.facts.cost
    for instruction in ctx.facts.significant:
        if instruction.opcode not in RELAYOUTS and instruction.opcode != "fusion":
            continue
        source = relayout_source(instruction, ctx.facts.work)
        if source is None or transposed_argument(instruction, ctx.facts.work) is not None:
            continue
        traffic = cost_model.traffic(instruction)
        price = ctx.price(
            instruction,
            effect="moves",
            bytes=traffic.total,
            seconds=cost_model.seconds(instruction),
        )
        if price.negligible:
            continue
        origin = producer(instruction.operands[0])
        readers = consumers(instruction)
        yield ctx.finding(
            instruction,
            price,
            message=_message(ctx, instruction, source, origin, readers),
            fix=_fix(ctx, origin, readers),
            related=tuple(
                ctx.related(other, text)
                for other, text in [(origin, "made here"), *((r, "read here") for r in readers[:3])]
            ),
        )


def _message(
    ctx: RuleContext,
    instruction: Instruction,
    source: Shape,
    origin: Instruction,
    readers: list[Instruction],
) -> str:
    made = role(origin, ctx.facts.provenance.op_name(origin))
    wanted = " and ".join(role(reader) for reader in readers[:2]) or "the program's result"
    more = f" and {len(readers) - 2} more" if len(readers) > 2 else ""
    if source.dimensions == instruction.shape.dimensions:
        change = f"from layout `{layout(source)}` to `{layout(instruction.shape)}`"
    else:
        change = f"into `{array(instruction.shape)}{layout(instruction.shape)}`"
    return (
        f"`{array(source)}` is copied {change} between {made}, which leaves it in the one order, "
        f"and {wanted}{more}, which takes the other"
    )


def _fix(ctx: RuleContext, origin: Instruction, readers: list[Instruction]) -> str:
    if origin.opcode == "parameter" and origin.computation.is_entry:
        return (
            "store the argument in the order in which it is used (transpose it once, outside the "
            "step), or let the compiler choose with `jax.experimental.layout.Format(Layout.AUTO)`"
        )
    if any(reader.opcode == "custom-call" for reader in readers):
        return (
            "a Pallas kernel takes its operands in row-major order: have the producer write that "
            "order, or permute the kernel's block spec and index map instead of the array"
        )
    if any(reader.opcode == "tuple" and reader.is_root for reader in readers):
        return (
            "return the value in the order in which it is computed, or ask for that layout of the "
            "result with `out_shardings=Format(Layout.AUTO)`"
        )
    return (
        "write the producer and the consumer over the same order of dimensions, for example by "
        "naming the stored order in `jnp.einsum` instead of a `transpose` or `swapaxes` before it"
    )
