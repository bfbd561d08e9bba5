"""An argument is transposed in memory on every call.

What it does
  Finds copies, transposes and fusions of such that put the dimensions of an argument of the
  program in another order in memory, where nothing reads the argument as it comes.

Why it matters
  The same weights or cache are read, shuffled and written again in every step, although they could
  be stored in the order in which they are used.

Known problems
  An argument that something else reads in its own order is `layout-copy`: storing it otherwise
  would only move the copy. Whether the caller can change the order is not known here.

Example
  return matmul_kernel(x, weight.T)          # weights stored as [outputs, inputs]

Use instead
  weight = jnp.array(checkpoint["weight"].T)  # once, when the parameters are loaded
  return matmul_kernel(x, weight)
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding
from passes.graph import consumers
from passes.relayouts import transposed_argument
from passes.rule import RuleContext, rule
from passes.words import array, layout, nbytes, role


@rule(id="HLO204", name="parameter-transpose")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each argument that is transposed before it is used."""
    for instruction in ctx.facts.significant:
        argument = transposed_argument(instruction, ctx.facts.work)
        if argument is None:
            continue
        price = ctx.price_of(instruction)
        if price.negligible:
            continue
        name = role(argument, ctx.facts.provenance.op_name(argument))
        readers = [reader for reader in consumers(instruction) if reader.opcode != "tuple"]
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"{name} (`{array(argument.shape)}{layout(argument.shape)}`, "
                f"{nbytes(argument.shape.padded_bytes)}) is transposed in memory on every call, to "
                f"`{array(instruction.shape)}{layout(instruction.shape)}` for {role(readers[0])}, "
                "and nothing reads it as it comes"
            ),
            fix=(
                "store it transposed: do it once when the parameters are loaded, or let the "
                "compiler choose the order with `jax.experimental.layout.Format(Layout.AUTO)` as "
                "`in_shardings` and put the array in that format"
            ),
            related=(
                ctx.related(argument, "the argument"),
                *(ctx.related(other, "read here") for other in readers[:2]),
            ),
        )
