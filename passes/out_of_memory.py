"""A step that needs more device memory than the chip has.

What it does
  Where the compiler refuses a program because it does not fit into device memory, reports by how
  much, in the compiler's figures, and what is live at the fullest moment. The compiler is heard
  when `hlo-lint --aot` or the pytest plugin runs it; a dump by itself does not tell.

Why it matters
  There is no executable. Which buffers of which lines of the source are in memory at that moment
  decides what to do about it, and the compiler's message names none.

Known problems
  What is live is modelled, and need not add up to the compiler's total: its heap has gaps, and some
  results lie where their operands did. What other programs, or arrays that the step does not
  take, hold on the device is not in it.

Example
  loss = jax.grad(lambda p: model(p, batch).sum())       # every activation is kept

Use instead
  layer = jax.checkpoint(layer)                          # kept are the inputs of layers
"""

from collections.abc import Iterator

from hlo_tools.analysis.liveness import LiveBuffer
from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import HBM_SPACE
from passes.collected import collected_value
from passes.rule import RuleContext, rule
from passes.words import array, nbytes

_SHOWN = 8
"""Buffers beside the largest that a finding lists."""

_KINDS = {"argument": "arguments", "output": "results", "temporary": "temporaries"}


@rule(id="HLO701", name="out-of-memory")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding, about the largest buffer at the fullest moment."""
    facts = ctx.facts
    refusal = facts.refusal
    if refusal is None:
        return
    live = [b for b in facts.liveness.live_at_peak(HBM_SPACE) if b.bytes]
    if not live:
        return
    held = {kind: sum(b.bytes for b in live if b.kind == kind) for kind in _KINDS}
    fullest = max(held, key=lambda kind: held[kind])
    blamed = next(b for b in live if b.kind == fullest)
    excess = refusal.needed_bytes - refusal.available_bytes
    price = ctx.price(blamed.instruction, effect="holds", bytes=excess)
    others = [b for b in live if b is not blamed]
    yield ctx.finding(
        blamed.instruction,
        price,
        message=_message(ctx, refusal, held, blamed),
        fix=_fix(held, refusal),
        related=tuple(ctx.related(_place(b), _described(ctx, b)) for b in others[:_SHOWN]),
        place=_place(blamed),
        at_least=Severity.ERROR,
    )


def _place(buffer: LiveBuffer) -> Instruction:
    """The instruction whose line is behind a buffer: of one that a loop fills, what it puts in."""
    return collected_value(buffer.instruction) or buffer.instruction


def _message(
    ctx: RuleContext, refusal: MemoryRefusal, held: dict[str, int], blamed: LiveBuffer
) -> str:
    parts = [f"{nbytes(size)} of {_KINDS[kind]}" for kind, size in held.items() if size]
    return (
        f"the step needs {nbytes(refusal.needed_bytes)} of device memory where "
        f"{nbytes(refusal.available_bytes)} are available; live at its fullest moment are "
        f"{', '.join(parts)}, the largest of these {_described(ctx, blamed)}"
    )


def _described(ctx: RuleContext, buffer: LiveBuffer) -> str:
    size = f"`{array(buffer.shape)}`, {nbytes(buffer.bytes)}"
    name = _argument(ctx, buffer.instruction) if buffer.kind == "argument" else ""
    return f"the {buffer.kind}{name} {size}"


def _argument(ctx: RuleContext, parameter: Instruction) -> str:
    return f" `{ctx.facts.provenance.op_name(parameter) or parameter.name}`"


def _fix(held: dict[str, int], refusal: MemoryRefusal) -> str:
    if held["argument"] + held["output"] > refusal.available_bytes:
        return (
            "the arguments and results alone do not fit: shard them over more chips, store them "
            "in a narrower type, donate what the step replaces (`jax.jit(step, donate_argnames=…)`)"
        )
    return (
        "keep less for the backward pass (`jax.checkpoint` around a layer, inside of the scan), "
        "take smaller micro-batches, or shard the largest buffers over more chips"
    )
