"""Every device gets the whole result of a collective and keeps its own slice of it.

What it does
  Finds all-reduces, and all-gathers, of which all that is read is a slice whose place depends on
  the partition id.

Why it matters
  A reduce-scatter sends half of what an all-reduce sends, and the result takes a fraction of the
  memory. A gather of which each device keeps a slice was an all-to-all, or nothing at all.

Known problems
  A slice whose place comes from an argument instead of the partition id is not recognised.

Example
  grad = jax.lax.psum(grad, "data")
  own = jax.lax.dynamic_slice_in_dim(grad, jax.lax.axis_index("data") * rows, rows)

Use instead
  own = jax.lax.psum_scatter(grad, "data", scatter_dimension=0, tiled=True)
"""

from collections.abc import Iterator

from hlo_tools.analysis.collectives import Collective
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import consumers
from passes.rule import Price, RuleContext, rule
from passes.words import array, nbytes

_IDS = frozenset({"partition-id", "replica-id"})
_MAX_WALK = 200
"""How far the place of a slice is followed back to a partition id."""


@rule(id="HLO402", name="all-reduce-then-slice")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each collective of which devices keep only their own slice."""
    for collective in ctx.facts.collectives.all:
        if collective.kind not in ("all-reduce", "all-gather"):
            continue
        result = collective.span.done if collective.span and collective.span.done else None
        value = result or collective.instruction
        if not value.shape.is_array or not value.shape.dimensions:
            continue
        if _price(ctx, collective, kept=0.0).negligible:
            continue
        slices = _kept(value)
        if slices is None:
            continue
        largest = max(slices, key=lambda part: part.shape.element_count)
        kept = largest.shape.element_count / value.shape.element_count
        price = _price(ctx, collective, kept=kept)
        if price.negligible:
            continue
        yield ctx.finding(
            collective.instruction,
            price,
            message=(
                f"the {collective.kind} of `{array(value.shape)}` "
                f"({nbytes(value.shape.padded_bytes)}) gives every device all of it, and each "
                f"keeps only its own slice (`{array(largest.shape)}`)"
            ),
            fix=_fix(collective),
            related=tuple(ctx.related(s, "the slice that is kept") for s in slices[:3]),
            place=collective.operation,
        )


def _price(ctx: RuleContext, collective: Collective, *, kept: float) -> Price:
    """What the cheaper collective would save, hidden time not counted.

    A reduce-scatter is the first half of an all-reduce. Of a gather, an all-to-all brings each
    device only the share `kept` of what it takes now.
    """
    saved = 0.5 if collective.kind == "all-reduce" else 1 - kept
    exposed = ctx.facts.cost.exposed_seconds(collective)
    return ctx.price(
        collective.instruction,
        effect="sends",
        bytes=int((collective.wire_bytes or 0) * saved),
        seconds=exposed * saved,
    )


def _kept(value: Instruction) -> list[Instruction] | None:
    """The slices at this device's place that are all that is read of a value.

    `None` as soon as anything reads it otherwise.
    """
    slices: list[Instruction] = []
    for reader in consumers(value):
        for number in _places(reader, value):
            found = _slices(reader, number)
            if not found:
                return None
            slices.extend(found)
    return slices or None


def _places(reader: Instruction, value: Instruction) -> list[int]:
    """The operand numbers under which a reader reads the value, renamings looked through."""
    found = []
    for number, operand in enumerate(reader.operands):
        while operand is not value and operand.opcode in ("bitcast", "copy-start", "copy-done"):
            operand = operand.operands[0]
        if operand is value:
            found.append(number)
    return found


def _slices(reader: Instruction, number: int) -> list[Instruction]:
    """The slices of an operand at this device's place, if a reader takes nothing else of it."""
    if reader.opcode == "dynamic-slice" and number == 0:
        return [reader] if _by_partition(reader.operands[1:], {}) else []
    computation = reader.fused_computation
    if computation is None or number >= len(computation.parameters):
        return []
    outside = dict(zip(computation.parameters, reader.operands, strict=False))
    found: list[Instruction] = []
    stack = list(computation.parameters[number].users)
    while stack:
        user = stack.pop()
        if user.opcode in ("bitcast", "reshape", "copy"):
            stack.extend(user.users)
        elif user.opcode == "dynamic-slice" and _by_partition(user.operands[1:], outside):
            found.append(user)
        else:
            return []
    return found


def _by_partition(places: tuple[Instruction, ...], outside: dict[Instruction, Instruction]) -> bool:
    """Whether the start of a slice is computed from the partition or replica id."""
    stack = list(places)
    seen = set(stack)
    while stack and len(seen) < _MAX_WALK:
        instruction = stack.pop()
        if instruction.opcode in _IDS:
            return True
        computation = instruction.fused_computation
        if computation is not None and any(i.opcode in _IDS for i in computation.instructions):
            return True
        sources = list(instruction.operands)
        if instruction in outside:
            sources.append(outside[instruction])
        for source in sources:
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return False


def _fix(collective: Collective) -> str:
    if collective.kind == "all-reduce":
        return (
            "use `jax.lax.psum_scatter` instead of `psum` and a slice, or give the result a "
            "sharding (`with_sharding_constraint`) over the axis that is summed, so that the "
            "partitioner makes a reduce-scatter"
        )
    return (
        "keep the value sharded: give producer and consumer the same sharding, or use "
        "`jax.lax.all_to_all` where the sharded dimension changes"
    )
