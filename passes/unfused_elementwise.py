"""An elementwise or data-moving op stands alone and moves much for little arithmetic.

What it does
  Finds elementwise ops, converts, slices, pads, concatenates and reverses that run as a kernel of
  their own, bare or as the only op of a fusion, next to other work that produces or consumes the
  value. Transposes and copies are `layout-copy`.

Why it matters
  Such a kernel reads and writes its whole operand for one operation an element. Inside the
  producer or the consumer it would cost next to nothing.

Known problems
  Ops that the compiler itself made, which no line of the program stands for, are left out: nothing
  in the program could bring them elsewhere. Whether the neighbour could really take the op in
  depends on the compiler; where the neighbour is a Pallas kernel it is you who can.

Example
  y = kernel(x, w.astype(jnp.bfloat16))     # a convert of all of w on every call

Use instead
  keep `w` in bf16, or load f32 blocks and convert inside the kernel
"""

from collections.abc import Iterator

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from passes.graph import DATA_MOVEMENT, ELEMENTWISE, consumers, producer
from passes.rule import RuleContext, rule
from passes.words import array, is_kernel, role

ALONE = (ELEMENTWISE | DATA_MOVEMENT) - {"transpose"}
_NO_WORK = frozenset(
    {
        "parameter", "constant", "copy", "fft", "iota", "sort", "tuple", "while", "conditional",
        "call",
    }
)  # fmt: skip
"""Opcodes that take no op in: names, control flow, copies, which are `layout-copy`, and what only
a library runs."""


@rule(id="HLO102", name="unfused-elementwise", options={"min_bytes": 65536})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each op that stands alone beside other work."""
    for instruction in ctx.facts.significant:
        opcode = lone_opcode(ctx, instruction)
        if opcode is None:
            continue
        model = ctx.facts.cost
        moved = model.traffic(instruction).total
        if moved < ctx.number("min_bytes") or _belongs_to_a_collective(ctx, instruction):
            continue
        neighbour = _neighbour(instruction)
        if neighbour is None:
            continue
        beside, relation, between = neighbour
        # As one kernel the two would neither write nor read what is between them.
        saved = min(1.0, 2 * between / moved) * model.seconds(instruction)
        price = ctx.price(instruction, effect="moves", bytes=moved, seconds=saved)
        location = ctx.facts.provenance.location(instruction)
        if price.negligible or (location is not None and location.inferred):
            continue
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"`{opcode}` making `{array(instruction.shape)}` runs as a kernel of its own; "
                f"{role(beside)} {relation} and did not take it in"
            ),
            fix=_fix(opcode, beside),
            related=(ctx.related(beside, relation),),
        )


def lone_opcode(ctx: RuleContext, instruction: Instruction) -> str | None:
    """The opcode of an op that runs alone, bare or as the only one of its fusion.

    What makes its values out of nothing, as a mask of indices does, moves no operand and is none.
    """
    if all(operand.shape.element_count <= 1 for operand in instruction.operands):
        return None
    if instruction.opcode in ALONE:
        return instruction.opcode if instruction.shape.is_array else None
    computation = instruction.fused_computation
    if computation is None:
        return None
    done = ctx.facts.work.inside(computation)
    if len(done) != 1 or not done <= ALONE:
        return None
    (opcode,) = done
    return opcode if sum(i.opcode == opcode for i in computation.instructions) == 1 else None


def _belongs_to_a_collective(ctx: RuleContext, instruction: Instruction) -> bool:
    """Whether the op cuts or joins what a collective sends: nothing could have taken it in."""
    collectives = ctx.facts.collectives
    spans = ctx.facts.asynchrony
    neighbours = [*(producer(o) for o in instruction.operands), *consumers(instruction)]
    for neighbour in neighbours:
        if collectives.get(neighbour) is not None:
            return True
        span = spans.span_of(neighbour)
        if span is not None and collectives.get(span.start) is not None:
            return True
    return False


def _neighbour(instruction: Instruction) -> tuple[Instruction, str, int] | None:
    """The work that reads the value, or made it, and the bytes that go between the two."""
    readers = [c for c in consumers(instruction) if _takes_in(c)]
    if readers:
        return readers[0], "reads it", instruction.shape.padded_bytes
    makers = [(producer(o), o.shape.padded_bytes) for o in instruction.operands]
    makers = [(m, size) for m, size in makers if _takes_in(m)]
    if makers:
        maker, size = max(makers, key=lambda made: made[1])
        return maker, "makes its operand", size
    return None


def _takes_in(neighbour: Instruction) -> bool:
    """Whether a neighbour is work of which an op could be a part; a library's call never is."""
    if neighbour.opcode == "get-tuple-element" and neighbour.operands:
        neighbour = neighbour.operands[0]
    if neighbour.opcode == "custom-call":
        return is_kernel(neighbour)
    return neighbour.opcode not in _NO_WORK


def _fix(opcode: str, beside: Instruction) -> str:
    if is_kernel(beside):
        if opcode == "convert":
            return (
                "hand the kernel the stored type and convert the block inside it, or keep the "
                "array in the type that the kernel wants"
            )
        if opcode in ("pad", "slice", "concatenate"):
            return (
                "let the kernel work on the array as it is: Pallas pads the last block of a grid "
                "by itself, so mask inside the kernel instead of padding and slicing around it"
            )
        return "do the operation on the block inside the kernel, where the data is already loaded"
    if opcode == "convert":
        return "keep the value in one type from producer to consumer"
    if opcode in ("pad", "slice", "concatenate"):
        return (
            "choose sizes that need no padding, write the parts straight into one array, or move "
            "the op next to the elementwise work that uses it"
        )
    return (
        "bring the op next to the work that uses it: an `optimization_barrier`, a sharding "
        "constraint or a reshape between the two keeps XLA from fusing them"
    )
