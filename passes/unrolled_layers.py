"""The same layer is compiled many times over where a scan would compile it once.

What it does
  Finds matrix products that one line of the program makes at least eight times (option
  `min_repeats`), always of the same size and each on what came of the one before, when such
  products are at least half of the program's.

Why it matters
  Each layer is optimised, scheduled and stored for itself: the time to compile and the size of the
  program grow with the number of layers, and so does every dump. Twelve residual blocks compiled
  for v5e give seven times the text of the same blocks in a scan.

Known problems
  The step is not faster for a scan, and no time is given: where the next layer's weights are
  fetched while one computes, the unrolled program of the planted pairs is faster by a tenth to a
  sixth. Where the step matters more than the time to compile, silence the finding or scan with
  `unroll=`. Bodies of loops are left out: `unroll=` in a scan looks the same.

Example
  for w in weights:
      x = layer(x, w)

Use instead
  stacked = jax.tree.map(lambda *w: jnp.stack(w), *weights)      # once, where they are made
  x, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), x, stacked)
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from hlo_tools.analysis.repetition import longest_chain
from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from passes.rule import RuleContext, rule
from passes.words import array

_DIGITS = re.compile(r"\d+")

_Product = tuple[Instruction, Instruction]
"""The instruction of the computation, and the dot inside it."""


@rule(id="HLO506", name="unrolled-layers", options={"min_repeats": 8})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the first product of the longest repetition."""
    entry = ctx.facts.module.entry
    if entry is None:
        return
    groups: dict[object, list[_Product]] = defaultdict(list)
    products = 0
    for instruction in entry.instructions:
        for dot in ctx.facts.work.matmuls(instruction):
            products += 1
            key = _key(ctx, dot)
            if key is not None:
                groups[key].append((instruction, dot))
    best: tuple[int, _Product] | None = None
    repeated = 0
    for members in groups.values():
        if len(members) < ctx.number("min_repeats"):
            continue
        length = longest_chain(entry, (instruction for instruction, _ in members))
        if length < ctx.number("min_repeats"):
            continue
        repeated += len(members)
        if best is None or length > best[0]:
            best = (length, members[0])
    if best is None or 2 * repeated < products:
        return
    length, (instruction, dot) = best
    yield ctx.finding(
        instruction,
        ctx.price(instruction, effect="wastes"),
        message=(
            f"this line makes the same product, `{array(dot.shape)}`, {length} times, each on what "
            "came of the one before: the layers are unrolled in the program"
        ),
        fix=(
            "stack the parameters of the layers along a new first dimension and run them with "
            "`jax.lax.scan` (`nn.scan` in Flax, `nnx.scan` in NNX), with `unroll=` where two "
            "layers at a time are faster"
        ),
        place=dot,
        at_least=Severity.WARNING,
        at_most=Severity.WARNING,
    )


def _key(ctx: RuleContext, dot: Instruction) -> object:
    """What products of the same line and size agree in; `None` where no line is known."""
    stack = ctx.facts.provenance.stack(dot)
    if not stack or stack[0].inferred:
        return None
    name = _DIGITS.sub("", ctx.facts.provenance.op_name(dot) or "")
    shapes = tuple((o.shape.element_type, o.shape.dimensions) for o in dot.operands)
    return tuple((frame.file, frame.line) for frame in stack), name, shapes
