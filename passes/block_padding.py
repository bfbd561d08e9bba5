"""A Pallas kernel keeps one value, or a few, in each row of tiles.

What it does
  Finds operands and results of Pallas kernels in device memory whose last dimension is so short
  that nearly all of the 128 lanes are padding, and prices what the kernel and its neighbours move
  of it.

Why it matters
  A kernel takes its arrays in row-major order, so the compiler cannot turn them round as it does
  elsewhere. A statistic a row, stored as `[rows, 1]`, takes as much memory as a row of 128.

Known problems
  What pads inside of a kernel (its blocks and scratch) is not in the text. Longer rows that do not
  fill their tiles are `padding-waste`.

Example
  lse = jax.ShapeDtypeStruct((rows, 1), jnp.float32)
  pl.BlockSpec((512, 1), lambda i: (i, 0))

Use instead
  lse = jax.ShapeDtypeStruct((1, rows), jnp.float32)       # rows along the lanes
  pl.BlockSpec((1, 512), lambda i: (0, i))
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.graph import consumers, producer, tuple_index
from passes.rule import RuleContext, rule
from passes.words import array, is_kernel, nbytes

MAX_LANES = 8
"""Up to this length of the last dimension at least fifteen sixteenths of the lanes are padding."""


@rule(id="HLO303", name="block-padding")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for the short rows of each kernel; what two kernels share is the first one's."""
    chip = ctx.facts.cost.chip
    counted: set[tuple[Instruction, int]] = set()
    for kernel in ctx.facts.significant:
        if not is_kernel(kernel):
            continue
        columns = [c for c in _columns(kernel) if (c.maker, c.index) not in counted]
        counted.update((column.maker, column.index) for column in columns)
        moved = sum(column.waste * column.passes for column in columns)
        price = ctx.price(
            kernel,
            effect="wastes",
            bytes=moved or None,
            seconds=moved / chip.hbm_bandwidth if chip else None,
            hbm_bytes=moved,
        )
        if not moved or price.negligible:
            continue
        worst = max(columns, key=lambda column: column.waste)
        others = f" and {len(columns) - 1} more" if len(columns) > 1 else ""
        yield ctx.finding(
            kernel,
            price,
            message=(
                f"the Pallas kernel `%{kernel.name}` {worst.role} `{array(worst.shape)}`{others}: "
                f"a row of {worst.shape.dimensions[-1]} fills 128 lanes, so that "
                f"{nbytes(worst.shape.logical_bytes)} of data take "
                f"{nbytes(worst.shape.padded_bytes)}"
            ),
            fix=(
                "put the rows along the lanes: declare the array as `[1, rows]` with blocks of "
                "`(1, block)` and transpose the block in the kernel, or keep several such values "
                "side by side in one array"
            ),
            related=tuple(
                ctx.related(column.maker, "made here")
                for column in columns
                if column.maker is not kernel
            )[:3],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A buffer of short rows at a kernel.

    Attributes:
      maker: what makes it, and `index` which element of what that makes.
      shape: its type and layout.
      role: what the kernel does with it.
      passes: how often it is written and read.
    """

    maker: Instruction
    index: int
    shape: Shape
    role: str
    passes: int

    @property
    def waste(self) -> int:
        return self.shape.padded_bytes - self.shape.logical_bytes


def is_column(shape: Shape) -> bool:
    """Whether an array in device memory has rows so short that its lanes are mostly padding."""
    if not shape.is_array or shape.on_chip or shape.layout is None or len(shape.dimensions) < 2:
        return False
    last = len(shape.dimensions) - 1
    short = shape.layout.minor_to_major[:1] == (last,) and shape.dimensions[last] <= MAX_LANES
    return short and shape.padded_bytes >= 128 // MAX_LANES * shape.logical_bytes


def at_a_kernel(instruction: Instruction, index: int) -> bool:
    """Whether a Pallas kernel makes or reads an element of what an instruction makes."""
    if is_kernel(instruction):
        return True
    return any(is_kernel(reader) for reader in _readers(instruction, index))


def _columns(kernel: Instruction) -> Iterator[_Column]:
    for index, leaf in enumerate(kernel.shape.leaves()):
        if is_column(leaf):
            passes = 1 + len(_readers(kernel, index))
            yield _Column(maker=kernel, index=index, shape=leaf, role="writes", passes=passes)
    for operand in dict.fromkeys(producer(o) for o in kernel.operands):
        maker, index = operand, 0
        if operand.opcode == "get-tuple-element" and operand.operands:
            maker, index = operand.operands[0], tuple_index(operand)
        if is_column(operand.shape):
            passes = len(_readers(maker, index)) + (maker.opcode != "parameter")
            yield _Column(
                maker=maker, index=index, shape=operand.shape, role="reads", passes=passes
            )


def _readers(maker: Instruction, index: int) -> list[Instruction]:
    """Who reads one element of what an instruction makes, or the array that it makes."""
    if not maker.shape.is_tuple:
        return consumers(maker)
    return [
        reader
        for user in maker.users
        if user.opcode == "get-tuple-element" and tuple_index(user) == index
        for reader in consumers(user)
    ]
