"""The exponential of an unbounded value, divided by its sum, with no maximum subtracted.

What it does
  Finds exponentials of matrix products, scaled, masked or shifted perhaps, that are summed and
  divided by their sum, or of whose sum the logarithm is taken.

Why it matters
  The exponential of 89 is infinite in f32 and bf16, that of 12 in f16; infinity divided by itself
  is not a number. With the maximum of the row subtracted first no exponential is greater than 1,
  and the result is the same.

Known problems
  Only what is seen to be a product that nothing bounds is reported: an argument may be bounded by
  whoever passes it, and so are cosines, gates and logits that are capped. Where you know that a
  product is small, silence the finding on that line and say why.

Example
  weights = jnp.exp(logits) / jnp.exp(logits).sum(-1, keepdims=True)
  z = jnp.log(jnp.exp(logits).sum(-1))

Use instead
  weights = jax.nn.softmax(logits, axis=-1)
  z = jax.nn.logsumexp(logits, axis=-1)
"""

from collections.abc import Iterator

from hlo_tools.analysis.exponentials import is_unbounded, normalisation
from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from passes.rule import RuleContext, rule
from passes.words import array


@rule(id="HLO603", name="unstable-softmax")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each place that takes such exponentials."""
    flow = ctx.facts.dataflow
    reported: set[object] = set()
    for instruction in ctx.facts.execution.instructions():
        for exponential in _exponentials(instruction):
            end = normalisation(flow, exponential)
            if end is None or not is_unbounded(flow, flow.origin(exponential.operands[0])):
                continue
            location = ctx.facts.provenance.location(exponential)
            place = (location.file, location.line) if location else exponential
            if place in reported:
                continue
            reported.add(place)
            yield ctx.finding(
                instruction,
                ctx.price(instruction, effect="wastes"),
                message=_message(exponential, end),
                fix=(
                    "use `jax.nn.softmax`, `jax.nn.log_softmax` or `jax.nn.logsumexp`, or subtract "
                    "`jax.lax.stop_gradient(x.max(axis, keepdims=True))` before the exponential"
                ),
                place=exponential,
                at_least=Severity.WARNING,
            )


def _exponentials(instruction: Instruction) -> Iterator[Instruction]:
    """The exponentials of arrays that an instruction computes."""
    body = instruction.fused_computation
    for inner in body.instructions if body is not None else (instruction,):
        if inner.opcode == "exponential" and inner.operands and inner.shape.dimensions:
            yield inner


def _message(exponential: Instruction, end: Instruction) -> str:
    done = (
        "the logarithm of its sum is taken" if end.opcode == "log" else "it is divided by its sum"
    )
    return (
        f"the exponential of a product, `{array(exponential.shape)}`, is taken with no maximum "
        f"subtracted, and {done}: it overflows where a value passes "
        f"{'11' if exponential.shape.element_type == 'f16' else '88'}"
    )
