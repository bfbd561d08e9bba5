"""The step talks to the host: copies to host memory, callbacks, infeed, outfeed.

What it does
  Finds copies into or out of host memory (`S(5)`), host callbacks, infeed, outfeed, and sends and
  receives whose other end is the host, priced by what they move and how often.

Why it matters
  The link to the host is some fifty times slower than HBM, and a callback stops the device until
  Python has answered. In a loop that happens on every trip.

Known problems
  Offloading activations on purpose, overlapped with compute, is reported with the time that is not
  hidden; where all of it is hidden, it is a note at most.

Example
  jax.debug.print("loss {}", loss)          # in the scanned layer

Use instead
  return the values from the step and print them outside
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import HOST_SPACE, Shape
from passes.rule import RuleContext, rule
from passes.words import array, nbytes

CALLBACK = "a host callback"
_FREE = frozenset(
    {
        "parameter", "tuple", "get-tuple-element", "bitcast", "while", "call", "conditional",
        "copy-done", "async-done", "async-update", "slice-done", "opt-barrier", "send-done",
    }
)  # fmt: skip
"""Opcodes that move nothing themselves, whatever memory their operands lie in."""

_TALKING = frozenset({"infeed", "outfeed", "send", "recv", "custom-call"})
"""Opcodes that may reach the host without a buffer in its memory."""


@rule(id="HLO501", name="host-transfer")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each place where data crosses to or from the host."""
    if ctx.facts.backend == "cpu":
        return
    execution = ctx.facts.execution
    on_host = _OnHost()
    for instruction in execution.instructions():
        opcode = instruction.opcode
        if opcode in _FREE or (opcode not in _TALKING and not on_host.touches(instruction)):
            continue
        kind = _kind(instruction)
        if kind is None:
            continue
        moved = _bytes(instruction)
        price = ctx.price(
            instruction, effect="moves", bytes=moved, seconds=_exposed(ctx, instruction, moved)
        )
        if price.negligible and kind != CALLBACK:
            continue
        loop = execution.loop_of(instruction.computation)
        where = f" on every trip of the loop `%{loop.name}`" if loop is not None else ""
        size = f"{nbytes(moved)} (`{array(instruction.shape)}`)" if moved else "nothing but control"
        yield ctx.finding(
            instruction,
            price,
            message=f"{kind} moves {size}{where}",
            fix=_fix(kind),
            at_least=Severity.WARNING if kind == CALLBACK else Severity.NOTE,
        )


class _OnHost:
    """Which shapes lie in host memory, each looked at once: modules share a few among many."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def touches(self, instruction: Instruction) -> bool:
        """Whether an instruction reads or writes host memory."""
        holds = self._holds
        return holds(instruction.shape) or any(holds(o.shape) for o in instruction.operands)

    def _holds(self, shape: Shape) -> bool:
        found = self._known.get(id(shape))
        if found is None:
            found = any(leaf.memory_space == HOST_SPACE for leaf in shape.leaves())
            self._known[id(shape)] = found
        return found


def _kind(instruction: Instruction) -> str | None:
    """What crosses to or from the host here, in words; `None` if nothing does."""
    opcode = instruction.opcode
    if opcode in ("infeed", "outfeed"):
        return f"an {opcode}"
    if opcode in ("send", "recv"):
        # A callback is a send and a receive; the send is counted, the answer only if it is large.
        if instruction.attribute("is_host_transfer") != "true":
            return None
        if opcode == "send":
            return CALLBACK
        return "data from the host" if _bytes(instruction) > _ANSWER_BYTES else None
    if opcode == "custom-call":
        target = (instruction.attribute("custom_call_target") or "").lower()
        return CALLBACK if "callback" in target else None
    result_on_host = any(s.memory_space == HOST_SPACE for s in instruction.shape.leaves())
    operand_on_host = any(
        leaf.memory_space == HOST_SPACE for o in instruction.operands for leaf in o.shape.leaves()
    )
    if operand_on_host and not result_on_host:
        return "a copy from host memory"
    if result_on_host and not operand_on_host:
        return "a copy to host memory"
    if opcode in ("copy-start", "async-start", "slice-start") and result_on_host:
        # The tuple of a start holds source and destination: whichever is not on the host tells.
        destination = next(iter(_destination(instruction)), None)
        to_host = destination is not None and destination == HOST_SPACE
        return "a copy to host memory" if to_host else "a copy from host memory"
    return None


_ANSWER_BYTES = 4096
"""What a callback may send back before it counts as a transfer of its own: one small tile."""


def _destination(instruction: Instruction) -> Iterator[int]:
    """The memory space that a start writes: the first leaf of a `copy-start`, else the second."""
    spaces = [leaf.memory_space for leaf in instruction.shape.leaves()]
    yield from spaces[0 if instruction.opcode == "copy-start" else 1 :][:1]


def _bytes(instruction: Instruction) -> int:
    """Bytes that cross: the largest array that the instruction reads or writes."""
    leaves = [leaf for leaf in instruction.shape.leaves() if leaf.is_array]
    leaves += [leaf for o in instruction.operands for leaf in o.shape.leaves() if leaf.is_array]
    on_host = [leaf for leaf in leaves if leaf.memory_space == HOST_SPACE]
    if instruction.opcode in ("fusion", "dynamic-slice", "dynamic-update-slice"):
        others = [leaf for leaf in leaves if leaf.memory_space != HOST_SPACE and leaf.dimensions]
        return max((leaf.padded_bytes for leaf in others or on_host), default=0)
    return max((leaf.padded_bytes for leaf in on_host or leaves), default=0)


def _exposed(ctx: RuleContext, instruction: Instruction, moved: int) -> float | None:
    """Seconds of the transfer that no work hides; `None` where the link's speed is not known."""
    chip = ctx.facts.chip
    if chip is None or not chip.host_bandwidth:
        return None
    seconds = moved / chip.host_bandwidth
    span = ctx.facts.asynchrony.span_of(instruction)
    if span is None:
        return seconds
    hidden = sum(ctx.facts.cost.seconds(other) for other in span.between)
    return max(0.0, seconds - hidden)


def _fix(kind: str) -> str:
    if kind == CALLBACK:
        return (
            "return the values from the step and print, log or check them outside; keep "
            "`jax.debug.print`, `pure_callback` and `io_callback` out of compiled steps and above "
            "all out of scanned layers"
        )
    if kind.startswith("a copy"):
        return (
            "keep the array in HBM (drop `pinned_host` from its sharding, or offload less), or "
            "start the transfer early enough that other work hides it"
        )
    return "feed the step through its arguments and results, prefetched by the host"
