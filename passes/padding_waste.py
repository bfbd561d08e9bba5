"""Tile padding that buffers pay for.

What it does
  Compares each buffer's bytes with those of its elements, from the layout and tiles that the
  compiler chose, and prices the padding that is written and read.

Why it matters
  TPU memory is laid out in tiles of 8 by 128 (more rows for narrow types). A trailing dimension of
  1 takes 128 lanes, one of 65 takes 128: the rest is moved, stored and computed on for nothing.

Known problems
  The compiler reorders dimensions to avoid padding where it may; a Pallas kernel's operands and
  results, and arguments and results of the program, leave it no choice. Rows of a few values at a
  Pallas kernel are `block-padding`.

Example
  logits = jnp.zeros((batch, heads, 257, 257))            # 264 by 384 for 257 by 257

Use instead
  logits = jnp.zeros((batch, heads, 256, 256))            # without the class token
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Computation, Instruction
from hlo_tools.hlo.shape import Shape
from passes.block_padding import at_a_kernel, is_column
from passes.graph import RENAMING, consumers, element_maker, producer
from passes.rule import Price, RuleContext, rule
from passes.words import array, layout, nbytes

_OTHERS_BUFFER = RENAMING | {
    "get-tuple-element", "tuple", "while", "conditional", "call", "copy-done", "slice-done",
    "async-done", "async-update", "constant", "after-all", "copy-start",
}  # fmt: skip
"""Opcodes whose result is a buffer that another instruction made, or a copy that it paid for."""

SMALLEST_BUFFER = 4096
"""Bytes of one tile of 8 by 128 32-bit elements: no dimension could make a buffer smaller."""


@rule(id="HLO301", name="padding-waste", options={"min_waste": 0.25})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for the buffers of one type and layout in a computation; the first is blamed."""
    groups: dict[tuple[str, str, Computation], list[_Padded]] = defaultdict(list)
    least = ctx.number("min_waste")
    for instruction in _buffers(ctx):
        for index, leaf in enumerate(instruction.shape.leaves()):
            if is_column(leaf) and at_a_kernel(instruction, index):
                continue
            if _wasteful(leaf, least):
                key = (array(leaf), layout(leaf), instruction.computation)
                groups[key].append(_Padded(instruction=instruction, index=index, shape=leaf))
    for buffers in groups.values():
        price = _price(ctx, buffers)
        if price.negligible:
            continue
        first = buffers[0]
        yield ctx.finding(
            first.instruction,
            price,
            message=_message(buffers),
            fix=_fix(first.shape),
            place=first.maker,
            related=tuple(ctx.related(other.instruction, "padded alike") for other in buffers[1:4]),
        )


def _buffers(ctx: RuleContext) -> Iterator[Instruction]:
    """What makes the buffers that significant instructions write or read, in order of execution."""
    wanted: set[Instruction] = set()
    for instruction in ctx.facts.significant:
        wanted.add(instruction)
        for operand in instruction.operands:
            maker = producer(operand)
            wanted.add(maker.operands[0] if maker.opcode == "get-tuple-element" else maker)
    computations = {instruction.computation for instruction in wanted}
    for computation in ctx.facts.execution.executed:
        if computation not in computations:
            continue
        for instruction in computation.instructions:
            if instruction not in wanted or instruction.opcode in _OTHERS_BUFFER:
                continue
            if instruction.opcode != "parameter" or computation.is_entry:
                yield instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Padded:
    """A buffer with padding, and the instruction that makes it."""

    instruction: Instruction
    index: int
    shape: Shape

    @property
    def maker(self) -> Instruction:
        """The instruction whose place in the source is that of the buffer, inside fusions too."""
        if not self.instruction.shape.is_tuple:
            return self.instruction
        return element_maker(self.instruction, self.index)

    @property
    def waste(self) -> int:
        return self.shape.padded_bytes - self.shape.logical_bytes


def _wasteful(shape: Shape, least: float) -> bool:
    waste = shape.padded_bytes - shape.logical_bytes
    if shape.padded_bytes <= SMALLEST_BUFFER:
        return False
    return waste > 0 and shape.logical_bytes > 0 and waste >= least * shape.padded_bytes


def _price(ctx: RuleContext, buffers: list[_Padded]) -> Price:
    """The padding that device memory moves, and the time spent on padding in VMEM.

    In VMEM an instruction spends its time on its largest operand or result: where that is a padded
    buffer, the padding's share of the time is charged. Matrix products are bound by other things.
    """
    moved, seconds = 0, 0.0
    chip = ctx.facts.cost.chip
    model = ctx.facts.cost
    for buffer in buffers:
        made_by, readers = buffer.instruction, consumers(buffer.instruction)
        if buffer.shape.on_chip:
            seconds += sum(
                model.seconds(i) * buffer.waste / buffer.shape.padded_bytes
                for i in (made_by, *readers)
                if _spends_its_time_on(ctx, i, buffer.shape)
            )
            continue
        passes = len(readers) + (made_by.opcode != "parameter")
        moved += buffer.waste * passes
        if chip:
            seconds += buffer.waste * passes / chip.hbm_bandwidth
    return ctx.price(
        buffers[0].instruction,
        effect="wastes",
        bytes=moved or None,
        seconds=seconds if chip else None,
        hbm_bytes=moved,
    )


def _spends_its_time_on(ctx: RuleContext, instruction: Instruction, shape: Shape) -> bool:
    if instruction.opcode in _OTHERS_BUFFER or any(ctx.facts.work.matmuls(instruction)):
        return False
    others = (leaf for o in (instruction, *instruction.operands) for leaf in o.shape.leaves())
    return all(leaf.padded_bytes <= shape.padded_bytes for leaf in others)


def _message(buffers: list[_Padded]) -> str:
    shape = buffers[0].shape
    grown = shape.padding_by_dimension()
    parts = " and ".join(
        f"dimension {dim} from {shape.dimensions[dim]} to {size}"
        for dim, size in sorted(grown.items())
    )
    many = f"{len(buffers)} buffers of type " if len(buffers) > 1 else ""
    waste = buffers[0].waste / shape.padded_bytes
    return (
        f"{many}`{array(shape)}` in layout `{layout(shape)}` "
        f"{'take' if many else 'takes'} {nbytes(shape.padded_bytes)} for "
        f"{nbytes(shape.logical_bytes)} of data{' each' if many else ''}: "
        f"{waste:.0%} is padding ({parts or 'tiling'})"
    )


def _fix(shape: Shape) -> str:
    grown = shape.padding_by_dimension()
    worst = max(grown, key=lambda dim: grown[dim] / shape.dimensions[dim], default=None)
    if worst is None:
        return "choose dimensions that are multiples of the tile"
    size, full = shape.dimensions[worst], grown[worst]
    along_lanes = shape.layout is not None and shape.layout.minor_to_major[0] == worst
    if size == 1 and along_lanes:
        return (
            "keep one value a row along the lanes: drop the trailing dimension of 1 "
            "(`keepdims=False`), or store it as `[1, n]` instead of `[n, 1]`"
        )
    down = _largest_multiple_below(size, shape, worst)
    if down and (size - down) / size <= 0.1:
        return f"{size} is just over {down}: use {down}, or fill up to {full}, which costs the same"
    place, granule = ("lanes", "128") if along_lanes else ("sublanes", "the tile's rows")
    return (
        f"dimension {worst} of size {size} lies along the {place}, where up to {full} would cost "
        f"the same: fold another dimension into it, or order the computation so that a dimension "
        f"of a multiple of {granule} lies there"
    )


def _largest_multiple_below(size: int, shape: Shape, dimension: int) -> int:
    """The largest smaller size that fills the tile in that dimension; 0 where there is none."""
    assert shape.layout is not None
    tile = shape.layout.tiles[0]
    position = shape.layout.minor_to_major.index(dimension)
    granule = tile[-1 - position]
    return size // granule * granule
