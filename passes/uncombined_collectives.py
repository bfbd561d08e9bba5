"""Many small collectives of one kind where one would do.

What it does
  Finds collectives of the same kind, groups and element type in one computation, none of which
  needs another's result, each so small that its latency is what it costs.

Why it matters
  A small collective takes the time of its hops, however few bytes it carries. A dozen scalars
  reduced one by one cost a dozen times what one vector of twelve costs.

Known problems
  The latency of a hop is a rounded public figure; treat the time as an order of magnitude.

Example
  norms = [jax.lax.psum(jnp.sum(g * g), "data") for g in grads]     # ordered by a barrier

Use instead
  norms = jax.lax.psum(jnp.stack([jnp.sum(g * g) for g in grads]), "data")
"""

from collections import defaultdict
from collections.abc import Iterator

from hlo_tools.analysis.collectives import Collective
from hlo_tools.analysis.roofline import HOP_SECONDS
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Computation, Instruction
from passes.rule import RuleContext, rule
from passes.words import array, nbytes

_COMBINABLE = frozenset({"all-reduce", "all-gather", "reduce-scatter"})


@rule(
    id="HLO405",
    name="uncombined-collectives",
    options={"min_count": 4, "max_bytes": 1 << 20},
)
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each set of collectives that one could replace."""
    model = ctx.facts.cost
    groups: dict[object, list[Collective]] = defaultdict(list)
    for collective in ctx.facts.collectives.all:
        if collective.kind not in _COMBINABLE:
            continue
        sent = collective.wire_bytes
        if sent is None or sent > ctx.number("max_bytes"):
            continue
        if model.wire_seconds(collective) > 2 * latency_seconds(collective):
            continue
        groups[_key(collective)].append(collective)
    for collectives in groups.values():
        independent = _independent(collectives)
        if len(independent) < ctx.number("min_count"):
            continue
        first = independent[0]
        spared = len(independent) - 1
        price = ctx.price(
            first.instruction,
            effect="sends",
            bytes=sum(c.wire_bytes or 0 for c in independent),
            seconds=latency_seconds(first) * spared if ctx.facts.chip else None,
        )
        if price.negligible:
            continue
        yield ctx.finding(
            first.instruction,
            price,
            message=(
                f"{len(independent)} separate {first.kind}s of about "
                f"{nbytes(first.operand_bytes)} (`{array(first.operation.shape)}`) over the same "
                "devices pay for latency one after the other; none needs another's result"
            ),
            fix=(
                "stack or concatenate the values and communicate once (`jax.lax.psum` of a tuple "
                "or of `jnp.stack`), and take away barriers or orders that keep XLA's combiner "
                "from doing so"
            ),
            related=tuple(ctx.related(c.instruction, "another of them") for c in independent[1:4]),
            place=first.operation,
        )


def latency_seconds(collective: Collective) -> float:
    """Seconds of a collective however few bytes it carries: half a ring's hops, one way round."""
    return max(1, (collective.group_size or 2) // 2) * HOP_SECONDS


def _key(collective: Collective) -> tuple[object, ...]:
    leaves = [leaf for leaf in collective.operation.shape.leaves() if leaf.is_array]
    element_type = leaves[0].element_type if leaves else ""
    return (collective.kind, collective.computation, collective.groups, element_type)


def _independent(collectives: list[Collective]) -> list[Collective]:
    """The collectives of a list that are not computed from the result of another of them."""
    if len(collectives) < 2:
        return collectives
    computation = collectives[0].instruction.computation
    members = {c.instruction for c in collectives}
    follows = _followers(computation, members)
    return [c for c in collectives if c.instruction not in follows]


def _followers(computation: Computation, members: set[Instruction]) -> set[Instruction]:
    """What is computed, directly or not, from the result of a member; members included."""
    found: set[Instruction] = set()
    for instruction in computation.instructions:
        if any(operand in members or operand in found for operand in instruction.operands):
            found.add(instruction)
    return found
