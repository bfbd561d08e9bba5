"""Random bits of threefry cost more than what is done with them.

What it does
  Finds kernels that compute threefry, the counter-based generator that JAX uses by default, by its
  rounds of add, rotate and exclusive-or, and compares them by the roofline with the hardware's own
  generator: one kernel that writes the bits to memory and one that reads them back.

Why it matters
  A threefry word takes about a hundred vector operations. Of a dropout mask over activations that
  is nearly all the arithmetic there is, in the forward pass and again where it is recomputed.

Known problems
  Where memory is slow beside the vector units, as on v5e, the bits are often no cheaper to read
  than to compute: then the rule is silent. Bits of `rbg` and `unsafe_rbg` differ between compilers,
  chips and shardings; do not take them where runs must repeat bit for bit, or where streams must be
  independent under `vmap`.

Example
  key = jax.random.key(0)                           # threefry
  keep = jax.random.bernoulli(key, 0.9, x.shape)

Use instead
  key = jax.random.key(0, impl="rbg")               # or jax_default_prng_impl="rbg"
"""

from collections.abc import Iterator
from dataclasses import replace

from hlo_tools.analysis.generator import WORD_BYTES, Threefry, threefry
from hlo_tools.analysis.roofline import roofline_seconds
from hlo_tools.analysis.traffic import Traffic
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.rule import MODEL_MARGIN, RuleContext, rule
from passes.words import array


@rule(id="HLO505", name="expensive-rng")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each kernel that computes threefry."""
    for instruction in ctx.facts.significant:
        body = instruction.fused_computation
        bits = threefry(body.instructions) if body is not None else None
        if bits is None:
            continue
        saved = _saved(ctx, instruction, bits)
        price = ctx.price(instruction, effect="wastes", seconds=saved)
        if not saved or price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"random bits for `{array(bits.last.shape)}` are computed by threefry, "
                f"{bits.operations} vector operations for each word"
            ),
            fix=(
                'make the key with `jax.random.key(seed, impl="rbg")`, or set '
                '`jax.config.update("jax_default_prng_impl", "rbg")`: the generator of the '
                "hardware; or draw fewer bits, one mask for several places"
            ),
            place=bits.last,
        )


def _saved(ctx: RuleContext, instruction: Instruction, bits: Threefry) -> float | None:
    """Seconds that the kernel would save if the bits came from memory, where they were drawn."""
    model = ctx.facts.cost
    work, chip = model.work(instruction), model.chip
    if chip is None or work is None:
        return None
    size = WORD_BYTES * bits.elements
    traffic = model.traffic(instruction)
    left = replace(
        work, vector_elements=max(0, work.vector_elements - bits.operations * bits.elements)
    )
    drawn = Traffic(hbm_written=size, widest=bits.elements)
    # Bits and values pass the vector unit one beside the other.
    used = replace(traffic, hbm_read=traffic.hbm_read + size, widest=traffic.widest + bits.elements)
    instead = roofline_seconds(chip, None, drawn) + roofline_seconds(chip, left, used)
    seconds = model.seconds(instruction)
    return max(0.0, seconds - instead) if seconds > MODEL_MARGIN * instead else 0.0
