"""An intermediate goes to HBM between two ops that could have been one kernel.

What it does
  Finds a value that an elementwise fusion or a Pallas kernel writes to HBM only for an elementwise
  or reducing neighbour to read it straight back, names what kept the two apart and prices the
  round trip.

Why it matters
  Elementwise work is bound by memory traffic. Every value that goes out and comes back costs two
  passes over it; fused, it would have stayed in registers.

Known problems
  The optimised module no longer holds optimisation barriers, so where nothing else explains the
  break the finding says that one is likely. A value that stays in VMEM is not reported, nor one
  that the program returns, nor what a matrix product reads.

Example
  y = gelu_kernel(x * scale + shift)        # x * scale + shift is written and read once more

Use instead
  y = scaled_gelu_kernel(x, scale, shift)   # scale and shift the block inside the kernel
"""

from collections import defaultdict
from collections.abc import Iterator

from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Computation, Instruction
from passes.graph import (
    DATA_MOVEMENT,
    ELEMENTWISE,
    MATMULS,
    consumers,
)
from passes.rule import RuleContext, rule
from passes.unfused_elementwise import lone_opcode
from passes.words import array, is_kernel, role

_REDUCING = frozenset({"reduce"})
_INDEXED = frozenset({"gather", "scatter", "dynamic-slice", "dynamic-update-slice", "sort"})
_POINTWISE = ELEMENTWISE | frozenset({"bitcast", "broadcast", "reshape", "copy", "tuple"})
_FUSIBLE = (
    _POINTWISE | _REDUCING | DATA_MOVEMENT | {"get-tuple-element", "parameter", "constant", "iota"}
)


@rule(id="HLO101", name="fusion-break")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each value that makes a round trip through HBM for nothing."""
    for instruction in ctx.facts.significant:
        if not _may_produce(ctx, instruction):
            continue
        trips: dict[tuple[Instruction, ...], list[Instruction]] = defaultdict(list)
        for value in _values(instruction):
            readers = consumers(value)
            if _round_trip(ctx, instruction, value, readers):
                trips[tuple(readers)].append(value)
        for read_by, values in trips.items():
            yield from _report(ctx, instruction, values, list(read_by))


def _round_trip(
    ctx: RuleContext, instruction: Instruction, value: Instruction, readers: list[Instruction]
) -> bool:
    """Whether a value goes to HBM only because its maker and its readers are kernels of their own.

    Ops that stand alone are `unfused-elementwise`; between two Pallas kernels there is nothing
    that XLA could have fused.
    """
    if value.shape.on_chip or not value.shape.is_array or not readers:
        return False
    if lone_opcode(ctx, instruction) or all(lone_opcode(ctx, reader) for reader in readers):
        return False
    if is_kernel(instruction) and any(map(is_kernel, readers)):
        return False
    if not all(_may_consume(ctx, value, reader) for reader in readers):
        return False
    return len(readers) == 1 or not _depend_on_each_other(readers)


def _report(
    ctx: RuleContext,
    instruction: Instruction,
    values: list[Instruction],
    readers: list[Instruction],
) -> Iterator[Finding]:
    value = values[0]
    moved = sum(v.shape.padded_bytes for v in values) * (1 + len(readers))
    model = ctx.facts.cost
    bandwidth = ctx.facts.chip.hbm_bandwidth if ctx.facts.chip else None
    involved = model.seconds(instruction) + sum(model.seconds(reader) for reader in readers)
    seconds = min(moved / bandwidth, involved) if bandwidth else None
    price = ctx.price(instruction, effect="moves", bytes=moved, seconds=seconds)
    if price.negligible:
        return
    reason, fix = _cause(ctx, instruction, value, readers)
    reading = " and ".join(role(reader) for reader in readers[:2])
    more = f" and {len(readers) - 2} more" if len(readers) > 2 else ""
    yield ctx.finding(
        instruction,
        price,
        message=(
            f"{role(instruction)} writes {_named(values)} to HBM only for {reading}{more} "
            f"to read {'it' if len(values) == 1 else 'them'} back: {reason}"
        ),
        fix=fix,
        related=tuple(ctx.related(reader, "read back here") for reader in readers[:3]),
    )


def _named(values: list[Instruction]) -> str:
    return " and ".join(f"`{array(value.shape)}`" for value in values[:2]) + (
        f" and {len(values) - 2} more" if len(values) > 2 else ""
    )


def _values(instruction: Instruction) -> list[Instruction]:
    """What an instruction makes: itself, or the elements that are taken from its tuple."""
    if instruction.shape.is_tuple:
        return [user for user in instruction.users if user.opcode == "get-tuple-element"]
    return [instruction]


def _may_produce(ctx: RuleContext, instruction: Instruction) -> bool:
    """Whether another kernel could compute this on the way in."""
    if is_kernel(instruction):
        return True
    if instruction.opcode in ELEMENTWISE:
        return True
    computation = instruction.fused_computation
    if computation is None:
        return False
    if not ctx.facts.work.inside(computation) <= _POINTWISE | DATA_MOVEMENT | MATMULS:
        return False
    return _only_epilogue(computation)


def _only_epilogue(computation: Computation) -> bool:
    """Whether at most one product is inside, and the rest follows it."""
    return sum(i.opcode in MATMULS for i in computation.instructions) <= 1


def _may_consume(ctx: RuleContext, value: Instruction, reader: Instruction) -> bool:
    """Whether a reader takes the value element by element, and so could have computed it itself."""
    if is_kernel(reader):
        return True
    if reader.opcode in ELEMENTWISE:
        return reader.shape.element_count == value.shape.element_count
    computation = reader.fused_computation
    if computation is None or not ctx.facts.work.inside(computation) <= _FUSIBLE:
        return False
    parameters = computation.parameters
    return all(
        _read_in_place(parameters[number])
        for number, operand in enumerate(reader.operands[: len(parameters)])
        if _renames(operand, value)
    )


def _renames(operand: Instruction, value: Instruction) -> bool:
    while operand is not value and operand.opcode in ("bitcast", "copy-done", "copy-start"):
        operand = operand.operands[0]
    return operand is value


def _read_in_place(parameter: Instruction) -> bool:
    """Whether a fusion uses a parameter only through elementwise ops, reductions and slices."""
    seen: set[Instruction] = set()
    stack = [parameter]
    while stack:
        for user in stack.pop().users:
            if user in seen:
                continue
            seen.add(user)
            if user.opcode not in _FUSIBLE:
                return False
            stack.append(user)
    return True


def _depend_on_each_other(readers: list[Instruction]) -> bool:
    """Whether one reader needs another's result, so that no single kernel could serve both."""
    targets = set(readers)
    for reader in readers:
        seen: set[Instruction] = set()
        stack = list(reader.users)
        while stack:
            user = stack.pop()
            if user in targets:
                return True
            if user not in seen and len(seen) < _MAX_WALK:
                seen.add(user)
                stack.extend(user.users)
        if len(seen) >= _MAX_WALK:
            return True
    return False


_MAX_WALK = 2_000
"""How far dependence between readers is followed; past it, they are taken to depend."""


def _cause(
    ctx: RuleContext, instruction: Instruction, value: Instruction, readers: list[Instruction]
) -> tuple[str, str]:
    kernel = next((i for i in (instruction, *readers) if is_kernel(i)), None)
    if kernel is not None:
        if kernel is instruction:
            fix = "do this elementwise work inside the kernel, before it stores its block"
        else:
            fix = "do this elementwise work inside the kernel, after it loads its block"
        return f"XLA cannot fuse into the Pallas kernel `%{kernel.name}`", fix
    if len(readers) > 1:
        return (
            f"{len(readers)} fusions read it and none recomputes it",
            "compute the value where each use needs it (cheap arithmetic is cheaper than memory), "
            "or bring the uses together so that one fusion serves them all",
        )
    ops = _boundary(value, readers[0])
    if ops:
        names = " and ".join(f"`{op}`" for op in ops)
        return (
            f"a {names} stands between them",
            f"move the {names} before or after both of them, or replace it by indexing that a "
            "fusion can follow (`jnp.where` over an iota instead of pad or concatenate)",
        )
    return (
        "nothing in the data flow keeps them apart, as after an `optimization_barrier`",
        "remove the `optimization_barrier` (or the `jax.checkpoint` boundary or sharding "
        "constraint that stands for one) between the two lines",
    )


def _boundary(value: Instruction, reader: Instruction) -> list[str]:
    """The ops that rearrange elements where the value is made or first read."""
    maker = value.operands[0] if value.opcode == "get-tuple-element" else value
    found: set[str] = set()
    for fusion in (maker, reader):
        computation = fusion.fused_computation
        if computation is not None:
            opcodes = {i.opcode for i in computation.instructions}
            found |= opcodes & (DATA_MOVEMENT | _INDEXED)
    return sorted(found)
