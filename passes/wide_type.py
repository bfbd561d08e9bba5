"""Values of 64 bits in a program whose arguments are all narrower.

What it does
  Finds kernels that make f64 (or c128, s64) arrays out of narrower ones, in a program none of whose
  array arguments has such a type. On TPU, where the compiler takes 64-bit values apart, only those
  that leave the program are seen.

Why it matters
  No TPU has 64-bit arithmetic: each operation becomes dozens. GPUs for machine learning compute f64
  at a thirty-second or sixty-fourth of f32. Everywhere each value takes twice the memory.

Known problems
  A sum that is widened to be exact, and nothing but that, is left out, and so are s64 indices that
  never leave a kernel. What the wide arithmetic costs is not modelled: the kernel's whole time
  decides on the severity, which is a warning at most.

Example
  jax.config.update("jax_enable_x64", True)
  y = x * np.float64(0.3)                 # a NumPy scalar is f64 and makes y f64

Use instead
  y = x * 0.3                             # a Python scalar takes the type of x
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.graph import BOOKKEEPING
from passes.rule import RuleContext, rule
from passes.words import array

_KINDS = {"f64": ("f64", "c128"), "s64": ("s64",)}
_EXACT_SUM = BOOKKEEPING | {"convert", "reduce"}


@rule(id="HLO604", name="wide-type")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each kernel that widens values."""
    entry = ctx.facts.module.entry
    if entry is None:
        return
    given = {leaf.element_type for p in entry.parameters for leaf in p.shape.leaves() if _big(leaf)}
    unmeant = {kind: types for kind, types in _KINDS.items() if given.isdisjoint(types)}
    for instruction in ctx.facts.significant:
        for types in unmeant.values():
            widened = _widened(instruction, types)
            if widened is None:
                continue
            price = ctx.price_of(instruction)
            if price.negligible:
                continue
            yield ctx.finding(
                instruction,
                price,
                message=(
                    f"`{array(widened.shape)}` is computed in {widened.shape.element_type}, and no "
                    f"argument of the program has that type"
                ),
                fix=(
                    "write Python scalars or `np.float32(...)` instead of NumPy's 64-bit ones, "
                    "give `dtype=` where an array is made (`jnp.arange`, `jnp.argmax`), or leave "
                    "`jax_enable_x64` off"
                ),
                place=widened,
                at_most=Severity.WARNING,
            )


def _widened(instruction: Instruction, types: tuple[str, ...]) -> Instruction | None:
    """Where an instruction makes wide values of narrow ones; `None` where it does not."""
    if any(_is_wide(operand.shape, types) for operand in instruction.operands):
        return None
    body = instruction.fused_computation
    inside = body.instructions if body is not None else [instruction]
    wide = [i for i in inside if _is_wide(i.shape, types) and i.opcode not in BOOKKEEPING]
    if not wide or all(i.opcode in _EXACT_SUM for i in wide):
        return None
    if "s64" in types and not _is_wide(instruction.shape, types):
        return None  # indices that never leave the kernel cost next to nothing
    return next((i for i in wide if i.opcode != "convert"), wide[0])


def _is_wide(shape: Shape, types: tuple[str, ...]) -> bool:
    return any(_big(leaf) and leaf.element_type in types for leaf in shape.leaves())


def _big(leaf: Shape) -> bool:
    return leaf.is_array and leaf.element_count > 1
