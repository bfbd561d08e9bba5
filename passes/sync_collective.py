"""A collective blocks the core although other work could hide it.

What it does
  Finds collectives in their synchronous form, and asynchronous ones with too little work between
  start and done, where there is work that could run meanwhile: work of the same computation that
  neither needs the result nor feeds it, and in a loop also work of the trip before that the
  collective's operands do not wait for. The exposed time that this work could hide is the cost.

Why it matters
  While a synchronous collective is on the wire, the core does nothing.

Known problems
  The time on the wire is modelled from the group size and the links of the chip. Starting a
  collective a trip ahead keeps its result in memory for longer.

Example
  h, shard = jax.lax.optimization_barrier((h, shard))
  weight = jax.lax.all_gather(shard, "data")     # ordered after h: cannot run beside it

Use instead
  weight = jax.lax.all_gather(shard, "data")     # no order: runs beside the matmul before it
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.analysis.collectives import Collective
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import tuple_index
from passes.rule import RuleContext, rule
from passes.words import nbytes, sent_arrays, sent_from


@rule(id="HLO401", name="sync-collective")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for the exposed collectives of one kind that one line makes."""
    groups: dict[object, list[_Exposed]] = defaultdict(list)
    model = ctx.facts.cost
    for collective in ctx.facts.collectives.all:
        exposed = model.exposed_seconds(collective)
        if not exposed:
            continue
        if ctx.price(collective.instruction, effect="sends", seconds=exposed).negligible:
            continue
        hideable = min(exposed, sum(model.seconds(i) for i in idle_work(ctx, collective)))
        if not hideable:
            continue
        location = ctx.facts.provenance.location(sent_from(collective))
        key = (
            collective.computation,
            collective.kind,
            collective.span is None,
            (location.file, location.line)
            if location
            else ctx.facts.provenance.op_name(sent_from(collective)) or collective,
        )
        groups[key].append(_Exposed(collective=collective, exposed=exposed, hideable=hideable))
    for members in groups.values():
        first = max(members, key=lambda member: member.hideable)
        collective = first.collective
        price = ctx.price(
            collective.instruction,
            effect="sends",
            bytes=sum(m.collective.wire_bytes or 0 for m in members),
            seconds=sum(m.hideable for m in members),
        )
        if price.negligible:
            continue
        yield ctx.finding(
            collective.instruction,
            price,
            message=_message(ctx, members, first),
            fix=_fix(collective),
            related=tuple(
                ctx.related(m.collective.instruction, "exposed as well")
                for m in members
                if m is not first
            )[:5],
            place=sent_from(collective),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exposed:
    """A collective that holds up the core, and how much of that other work could hide."""

    collective: Collective
    exposed: float
    hideable: float


def idle_work(ctx: RuleContext, collective: Collective) -> list[Instruction]:
    """The work that could run while the collective is on the wire, but does not, in text order.

    Within one pass through the computation that is what neither leads to the collective nor
    follows from it. In a loop body it is also whatever its operands do not wait for even through
    the carries of earlier trips: with that, it could be started a trip ahead.
    """
    start = collective.instruction
    done = collective.span.done if collective.span and collective.span.done else start
    beside = set(start.computation.instructions)
    beside -= _leading_to(start, across_trips=False)
    beside -= _following(done)
    loop = ctx.facts.execution.loop_of(start.computation)
    if loop is not None and loop.called("body") is start.computation:
        ahead = set(start.computation.instructions) - _leading_to(start, across_trips=True)
        ahead.discard(done)
        beside |= ahead
    if collective.span:
        beside.difference_update(collective.span.between)
    collectives = ctx.facts.collectives
    return [
        instruction
        for instruction in start.computation.instructions
        if instruction in beside
        and not _is_scalar(instruction)
        and collectives.get(instruction) is None
    ]


def _is_scalar(instruction: Instruction) -> bool:
    """Whether it makes single numbers only, as counters and offsets are: that hides nothing."""
    return instruction.shape.element_count <= 1


def _leading_to(instruction: Instruction, *, across_trips: bool) -> set[Instruction]:
    """The instruction with all that it waits for, if asked in earlier trips of its loop as well."""
    seen = {instruction}
    stack = [instruction]
    root = instruction.computation.root
    while stack:
        current = stack.pop()
        sources = current.operands
        if across_trips and current.opcode == "get-tuple-element":
            carried = current.operands[0].opcode == "parameter" if current.operands else False
            index = tuple_index(current)
            if carried and root.opcode == "tuple" and 0 <= index < len(root.operands):
                sources = (*sources, root.operands[index])
        for other in sources:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def _following(instruction: Instruction) -> set[Instruction]:
    """The instruction with all that waits for it in the same pass."""
    seen = {instruction}
    stack = [instruction]
    while stack:
        for user in stack.pop().users:
            if user not in seen:
                seen.add(user)
                stack.append(user)
    return seen


def _message(ctx: RuleContext, members: list[_Exposed], first: _Exposed) -> str:
    collective = first.collective
    group = f" over {collective.group_size} devices" if collective.group_size else ""
    what = f"{collective.kind} of {sent_arrays(collective)}{group}"
    sent = nbytes(sum(m.collective.wire_bytes or 0 for m in members))
    subject = f"the {what}" if len(members) == 1 else f"{len(members)} collectives ({what})"
    plural = len(members) > 1
    if collective.span is None:
        return (
            f"{subject} {'block' if plural else 'blocks'} the core ({sent} a device on the wire) "
            "although other work does not wait for the result"
        )
    total = sum(ctx.facts.cost.wire_seconds(m.collective) for m in members)
    share = sum(m.exposed for m in members) / total if total else 1.0
    return (
        f"{subject} {'are' if plural else 'is'} asynchronous, but {share:.0%} of the time on the "
        f"wire is exposed: too little runs between start and done ({sent} a device)"
    )


def _fix(collective: Collective) -> str:
    if collective.span is not None:
        return (
            "start it earlier: issue the collective before independent work and use its result "
            "after it (double-buffer across loop trips)"
        )
    return (
        "leave the scheduler room: take away the data dependence or `optimization_barrier` that "
        "orders it after earlier work, gather the next layer's weights while this one computes, "
        "and check that the flags for asynchronous collectives are on "
        "(`xla_tpu_enable_async_collective_fusion` and kin)"
    )
