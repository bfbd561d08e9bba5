"""A large constant is baked into the program.

What it does
  Finds constants whose bytes matter: at least 1 MiB (option `min_bytes`) and a share of the peak
  memory as other findings have of the step.

Why it matters
  The constant is part of the executable. It is compiled, folded and cached with it, loaded on every
  device whether or not the device needs all of it, held for as long as the program is, beside any
  other program that has a copy of its own, and a new value means a new compilation.

Known problems
  The memory alone is priced. What a large constant costs in time to compile, to store and to load
  the program is not in a dump.

Example
  TABLE = np.load("table.npy")
  step = jax.jit(lambda x: x @ TABLE)             # 64 MB in the executable

Use instead
  step = jax.jit(lambda x, table: x @ table)      # an argument, sharded and donated like any other
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding
from passes.rule import RuleContext, rule
from passes.words import array, nbytes


@rule(id="HLO504", name="large-constant", options={"min_bytes": 1 << 20})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each constant that is large enough."""
    for instruction in ctx.facts.execution.instructions():
        if instruction.opcode != "constant":
            continue
        held = sum(leaf.padded_bytes for leaf in instruction.shape.leaves())
        if held < ctx.number("min_bytes"):
            continue
        price = ctx.price(instruction, effect="holds", bytes=held)
        if price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"a constant of {nbytes(held)} (`{array(instruction.shape)}`) is baked into the "
                "program"
            ),
            fix=(
                "pass the array to the jitted function as an argument instead of closing over it, "
                "or compute it inside from what is small (`jnp.arange`, `jax.random`)"
            ),
        )
