"""A matrix product computes in f32 by several bf16 passes, and the step is made of it.

What it does
  Finds dots at precision `highest` (six passes) and `high` (three), and prices what one pass
  would save, never below the time that their memory traffic takes.

Why it matters
  The systolic array multiplies bf16. At `highest` every f32 product is computed six times over
  split operands.

Known problems
  Some products need it (a Cholesky factor, a router's logits); then silence the finding on that
  line and say why.

Example
  jnp.dot(x, w, precision=jax.lax.Precision.HIGHEST)

Use instead
  jnp.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
"""

from collections.abc import Iterator

from hlo_tools.analysis.matmul import matmul
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.rule import RuleContext, rule
from passes.words import array

_NAMES = {6: "highest", 3: "high"}


@rule(id="HLO601", name="high-precision-dot")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each instruction that multiplies in several passes."""
    if ctx.facts.backend != "tpu":
        return
    for instruction in ctx.facts.significant:
        worst: tuple[int, Instruction] | None = None
        for dot in ctx.facts.work.matmuls(instruction):
            size = matmul(dot)
            if size is not None and size.passes > 1 and (worst is None or size.passes > worst[0]):
                worst = (size.passes, dot)
        if worst is None:
            continue
        passes, dot = worst
        saved = ctx.matrix_bound_saving(instruction, 1 / passes)
        price = ctx.price(instruction, effect="wastes", seconds=saved)
        if price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"the product making `{array(dot.shape)}` runs at precision `{_NAMES[passes]}`: "
                f"{passes} bf16 passes of the systolic array for each f32 product"
            ),
            fix=(
                "use bf16 operands with `preferred_element_type=jnp.float32`, or drop "
                "`precision=` (and `jax_default_matmul_precision`) where the result is not that "
                "sensitive; `bf16_3x` (`high`) halves the cost of `highest`"
            ),
            place=dot,
        )
