"""The partitioner moves a value between devices to change how it is sharded.

What it does
  Finds all-to-alls, and permutes of whole shards, that no collective in the program stands for:
  the partitioner made them because producer and consumer have different shardings.

Why it matters
  All of the value goes over the links, for no arithmetic, between two ops that could have agreed.

Known problems
  Where the dump does not say what an instruction was made for, nothing is reported. A gather of
  which each device keeps a slice (an "involuntary full rematerialization") is
  `all-reduce-then-slice`. Sending tokens to experts is an all-to-all that no sharding avoids.

Example
  h = with_sharding_constraint(x @ w, P(None, "model"))   # split over features
  h = with_sharding_constraint(h, P("model", None))       # then over the batch: an all-to-all

Use instead
  h = with_sharding_constraint(x @ w, P("model", None))   # the sharding of the next op at once
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from hlo_tools.analysis.collectives import Collective
from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.graph import consumers, producer
from passes.rule import RuleContext, rule
from passes.words import array, nbytes, role, sent_arrays

_EXPLICIT = frozenset(
    {"all_to_all", "ragged_all_to_all", "ppermute", "pshuffle", "shard_map", "jit(shmap_body)"}
)
"""Names of operations with which a program itself asks for the communication, the last one that
of older JAX."""

_IN_PLACE = (
    {"sharding_constraint", "reshape", "transpose", "broadcast_in_dim", "copy", "device_put"}
    | {"add", "add_any", "sub", "mul", "div", "max", "min", "select_n", "convert_element_type"}
)  # fmt: skip
"""Names of operations that need no neighbour's elements: a permute for them moves whole shards."""

_PARAMETERS = re.compile(r"\[[^\]]*\]")
"""What older JAX prints behind an operation: `all_to_all[axis_name=('x',) split_axis=2]`."""

_MAX_STEPS = 20
"""How far a value is followed through ops that only rearrange it."""


@rule(id="HLO407", name="resharding")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for the exchanges of one kind that one line makes to change a sharding."""
    groups: dict[object, list[Collective]] = defaultdict(list)
    for collective in ctx.facts.collectives.all:
        if collective.kind not in ("all-to-all", "collective-permute"):
            continue
        exposed = ctx.facts.cost.exposed_seconds(collective)
        price = ctx.price(collective.instruction, effect="sends", seconds=exposed)
        if not exposed or price.negligible or not _is_resharding(ctx, collective):
            continue
        location = ctx.facts.provenance.location(collective.operation)
        place = (location.file, location.line) if location else _operation(ctx, collective)
        groups[(collective.computation, collective.kind, place)].append(collective)
    for members in groups.values():
        first = max(members, key=lambda member: member.wire_bytes or 0)
        price = ctx.price(
            first.instruction,
            effect="sends",
            bytes=sum(member.wire_bytes or 0 for member in members),
            seconds=sum(ctx.facts.cost.exposed_seconds(member) for member in members),
        )
        if price.negligible:
            continue
        asked = _operation(ctx, first) == "sharding_constraint"
        made, read = _ends(first)
        yield ctx.finding(
            first.instruction,
            price,
            message=_message(ctx, members, first, made, read),
            fix=(
                "give producer and consumer the same sharding: "
                + ("move the constraint" if asked else "put a `with_sharding_constraint`")
                + " to where the value is made, or choose the mesh axes of the arguments so that "
                "both sides agree"
            ),
            related=(
                ctx.related(made, "made here"),
                *(ctx.related(reader, "read here") for reader in read[:2]),
                *(ctx.related(m.instruction, "another") for m in members if m is not first),
            )[:6],
            # What the program asks for may be what it needs.
            at_most=Severity.WARNING if asked else Severity.ERROR,
        )


def _operation(ctx: RuleContext, collective: Collective) -> str | None:
    """The name of the operation in the program that a collective was made for, if it tells."""
    name, _ = ctx.facts.provenance.noted(collective.operation)
    return _PARAMETERS.sub("", name).rpartition("/")[2] if name else None


def _is_resharding(ctx: RuleContext, collective: Collective) -> bool:
    """Whether the partitioner made it, and not to bring a neighbour's elements."""
    name, _ = ctx.facts.provenance.noted(collective.operation)
    if not name or not _EXPLICIT.isdisjoint(_PARAMETERS.sub("", name).split("/")):
        return False
    if collective.kind == "all-to-all":
        return True
    return _operation(ctx, collective) in _IN_PLACE and _moves_whole_shards(collective)


def _moves_whole_shards(collective: Collective) -> bool:
    """Whether every device gives its part to another and gets one: no shift into a border."""
    pairs = collective.pairs
    sources, targets = {s for s, _ in pairs}, {t for _, t in pairs}
    return len(pairs) == len(sources) and sources == targets and any(s != t for s, t in pairs)


def _ends(collective: Collective) -> tuple[Instruction, list[Instruction]]:
    """What makes the value that is sent, and what reads it once it has arrived."""
    done = collective.span.done if collective.span else None
    made = producer(collective.instruction.operands[0])
    for _ in range(_MAX_STEPS):
        if made.opcode not in ("copy", "transpose", "reshape") or not made.operands:
            break
        made = producer(made.operands[0])
    read = consumers(done or collective.instruction)
    if len(read) == 1 and read[0].opcode.endswith("-done"):
        read = consumers(read[0])
    return made, read


def _message(
    ctx: RuleContext,
    members: list[Collective],
    first: Collective,
    made: Instruction,
    read: list[Instruction],
) -> str:
    sent = nbytes(sum(member.wire_bytes or 0 for member in members))
    largest = sent_arrays(first)
    what = f"{len(members)} arrays, {largest} the largest," if len(members) > 1 else largest
    reader = role(read[0]) if read else "the program's result"
    return (
        f"the partitioner sends {what} ({sent} a device) {_change(first)}, "
        f"between {role(made, ctx.facts.provenance.op_name(made))} and {reader}"
    )


def _change(collective: Collective) -> str:
    """From which sharding to which, as far as the shapes on both sides tell."""
    if collective.kind == "collective-permute":
        pairs = ", ".join(f"{s} to {t}" for s, t in collective.pairs[:3] if s != t)
        return f"because both sides order the devices differently ({pairs}, ...)"
    size = collective.group_size
    before, after = _shapes(collective)
    if before and after and size and len(before.dimensions) == len(after.dimensions):
        sizes = list(zip(before.dimensions, after.dimensions, strict=True))
        merged = [d for d, (old, new) in enumerate(sizes) if new == old * size]
        split = [d for d, (old, new) in enumerate(sizes) if old == new * size]
        if len(merged) == 1 and len(split) == 1:
            return (
                f"to change its sharding over {size} devices from dimension {merged[0]} to "
                f"dimension {split[0]} (`{array(before)}` to `{array(after)}` on each)"
            )
    return f"over {size} devices to change its sharding" if size else "to change its sharding"


def _shapes(collective: Collective) -> tuple[Shape | None, Shape | None]:
    """The value on one device before and after, without the dimensions made for the exchange."""
    done = collective.span.done if collective.span else None
    made, result = collective.instruction.operands[0], done or collective.instruction
    for _ in range(_MAX_STEPS):
        if made.opcode not in ("bitcast", "copy", "reshape", "transpose") or not made.operands:
            break
        made = made.operands[0]
    for _ in range(_MAX_STEPS):
        users = result.users
        if len(users) != 1 or users[0].opcode not in ("bitcast", "copy", "reshape", "transpose"):
            break
        result = users[0]
    arrays = made.shape.is_array and result.shape.is_array
    return (made.shape, result.shape) if arrays else (None, None)
