"""Many terms are summed up in bf16, f16 or fp8.

What it does
  Finds carries of loops to which every trip adds a term, and all-reduces and reduce-scatters that
  sum, in a type so narrow that of a term of average size at most two bits are left when the last is
  added (option `kept_bits`): 64 terms in bf16, 512 in f16, 4 in e4m3.

Why it matters
  A sum of n like terms is n times a term, and a significand of p bits keeps p - log2(n) bits of the
  next one. From 256 terms on a bf16 sum stands still: gradients of later micro-batches are lost.

Known problems
  Reductions inside a kernel are left out: the TPU compiler accumulates them in f32, whatever type
  it prints, and others sum in trees. A carry that also depends on itself otherwise, a residual
  stream or a recurrence, is no sum.

Example
  total, _ = jax.lax.scan(lambda t, b: (t + grad(b), None), jnp.zeros(n, jnp.bfloat16), batches)

Use instead
  total, _ = jax.lax.scan(lambda t, b: (t + grad(b), None), jnp.zeros(n, jnp.float32), batches)
"""

from collections.abc import Iterator

from hlo_tools.analysis.accumulation import SIGNIFICAND_BITS, narrow_loop_sums
from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from passes.rule import RuleContext, rule
from passes.words import sent_arrays, sent_from

_SUMMING = frozenset({"all-reduce", "reduce-scatter"})


@rule(id="HLO602", name="low-precision-accumulation", options={"kept_bits": 2})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each sum of a loop, and one for each of a collective."""
    yield from _loops(ctx)
    yield from _collectives(ctx)


def _is_long(ctx: RuleContext, terms: int, element_type: str) -> bool:
    bits = SIGNIFICAND_BITS.get(element_type)
    return bits is not None and terms >= 2 ** (bits - ctx.number("kept_bits"))


def _loops(ctx: RuleContext) -> Iterator[Finding]:
    execution = ctx.facts.execution
    for loop in execution.instructions():
        if loop.opcode != "while":
            continue
        trips = execution.trip_count(loop)
        if trips is None or trips < 2:
            continue
        for found in narrow_loop_sums(ctx.facts.dataflow, loop):
            if not _is_long(ctx, trips, found.element_type):
                continue
            yield ctx.finding(
                found.maker,
                ctx.price(found.maker, effect="wastes"),
                message=(
                    f"the loop `%{loop.name}` adds {trips} terms up in "
                    f"`{found.element_type}[{','.join(map(str, found.add.shape.dimensions))}]`, "
                    f"whose significand has {SIGNIFICAND_BITS[found.element_type]} bits"
                ),
                fix=(
                    "carry the sum in f32, `jnp.zeros(shape, jnp.float32)` as the initial value, "
                    "and convert it once after the loop; where it is the gradient of a parameter "
                    "that all trips share, keep that parameter in f32 and convert it inside"
                ),
                related=(ctx.related(loop, "the loop"),),
                place=found.add,
                at_least=Severity.WARNING,
            )


def _collectives(ctx: RuleContext) -> Iterator[Finding]:
    for collective in ctx.facts.collectives.all:
        terms, operation = collective.group_size, collective.operation
        if collective.kind not in _SUMMING or terms is None or not _sums(operation):
            continue
        sent = sent_from(collective)
        kind = sent.shape.element_type if sent.shape.is_array else ""
        if not _is_long(ctx, terms, kind):
            continue
        yield ctx.finding(
            collective.instruction,
            ctx.price(collective.instruction, effect="wastes"),
            message=(
                f"the {collective.kind} of {sent_arrays(collective)} adds the terms of {terms} "
                f"devices up in {kind}, whose significand has {SIGNIFICAND_BITS[kind]} bits"
            ),
            fix=(
                "convert to f32 before `psum` or the sharding that makes the sum, or sum within "
                "smaller groups first and between them in f32"
            ),
            place=sent if sent is not operation else None,
            at_least=Severity.WARNING,
        )


def _sums(operation: Instruction) -> bool:
    called = operation.called_computations
    return bool(called) and called[0].root.opcode == "add"
