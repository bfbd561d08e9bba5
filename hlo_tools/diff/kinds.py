"""What the compiler did differently, and the sentence that says so.

Every kind has an opposite: what one comparison calls lost, the comparison the other way round
calls gained.
"""

from collections.abc import Callable, Sequence
from math import isclose

from hlo_tools.diff.groups import operations
from hlo_tools.diff.kernels import Kernel, Pair
from hlo_tools.diff.words import array, largest, layout, noun, often, order, sent
from hlo_tools.hlo.shape import Shape
from hlo_tools.report.units import format_bytes, format_seconds, format_share

OPPOSITES = (
    ("host-transfer-added", "host-transfer-removed"),
    ("collective-added", "collective-removed"),
    ("collective-blocking", "collective-overlapped"),
    ("collective-more-often", "collective-less-often"),
    ("collective-grown", "collective-shrunk"),
    ("collective-exposed", "collective-hidden"),
    ("collective-replaced", "collective-replaced"),
    ("repeated-more", "repeated-less"),
    ("loop-unrolled", "loop-rolled"),
    ("layout-copy-added", "layout-copy-removed"),
    ("copy-added", "copy-removed"),
    ("prefetch-added", "prefetch-removed"),
    ("prefetch-exposed", "prefetch-hidden"),
    ("precision-raised", "precision-lowered"),
    ("fusion-lost", "fusion-gained"),
    ("padding-grown", "padding-shrunk"),
    ("size-grown", "size-shrunk"),
    ("layout-changed", "layout-changed"),
    ("moved-off-chip", "moved-on-chip"),
    ("work-added", "work-removed"),
    ("work-changed", "work-changed"),
    ("estimate-raised", "estimate-lowered"),
)
"""The kinds, each with that of the same change the other way round."""

EXPOSURE_MARGIN = 0.25
"""Exposed seconds that differ by less than this share are no other overlap."""

PADDING_SHARE = 0.5
"""From this share of the added bytes on, padding is named as what they are."""

_COPIES = frozenset({"copy", "transpose", "bitcast-convert"})
_MOVES = frozenset({"copy", "transpose", "bitcast", "parameter", "reshape", "get-tuple-element"})

_EITHER = frozenset({"send", "recv"})
"""Opcodes that talk to the host or to another device."""

_HOST_CALLS = _EITHER | {"infeed", "outfeed"}
_TO_HOST = "is_host_transfer"
_NAMES = frozenset({"bitcast", "get-tuple-element"})

Told = tuple[str, str]
"""A kind and its sentence."""
_Rule = Callable[[Sequence[Kernel], Sequence[Kernel]], Told | None]


def describe(group: Sequence[Pair]) -> Told:
    """The kind of a group of changes, and a sentence about it."""
    old = sorted((p.old for p in group if p.old is not None), key=_weight)
    new = sorted((p.new for p in group if p.new is not None), key=_weight)
    for rule in _RULES:
        told = rule(old, new)
        if told is not None:
            return told
    before, after = (sum(k.seconds for k in side) for side in (old, new))
    if before == after:
        moved, was = (format_bytes(sum(k.hbm_bytes for k in side)) for side in (new, old))
        return "work-changed", f"the {noun(new[0])} moves {moved} a step, it was {was}"
    if new[0].opcode.endswith("-start"):
        return (
            "prefetch-exposed" if after > before else "prefetch-hidden",
            f"other work leaves {format_seconds(after)} a step of the {noun(new[0])} exposed, it "
            f"was {format_seconds(before)}",
        )
    return (
        "estimate-raised" if after > before else "estimate-lowered",
        f"the same {noun(new[0])} is estimated at {format_seconds(after)} a step, "
        f"it was {format_seconds(before)}",
    )


def _weight(kernel: Kernel) -> tuple[float, int, int]:
    return -kernel.seconds, -kernel.hbm_bytes, kernel.instruction.line


def _host(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    before, after = (sum(k.times * _host_bytes(k) for k in side) for side in (old, new))
    if before == after:
        return None
    kind = "host-transfer-added" if after > before else "host-transfer-removed"
    return kind, (
        f"{format_bytes(after) if after else 'nothing'} goes to or from the host in a step, it was "
        f"{format_bytes(before) if before else 'nothing'}"
    )


def _host_bytes(kernel: Kernel) -> int:
    """Bytes to or from the host of one execution: of copies, and of what is sent or received."""
    instruction = kernel.instruction
    if instruction.opcode in _HOST_CALLS:
        if instruction.opcode in _EITHER and instruction.attribute(_TO_HOST) != "true":
            return 0
        shapes = (i.shape for i in (instruction, *instruction.operands))
        return max((shape.logical_bytes for shape in shapes), default=0)
    return kernel.program.cost.traffic(instruction).host


def _collective(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    before = next((k for k in old if k.collective is not None), None)
    after = next((k for k in new if k.collective is not None), None)
    if before is None or after is None:
        side, word = (after, "added") if after is not None else (before, "removed")
        if side is None or side.collective is None:
            return None
        state = "blocks the core" if side.collective.blocking else "runs beside other work"
        there = f"the {sent(side.collective)}, which {state}"
        return f"collective-{word}", f"{there}, {'is new' if word == 'added' else 'is gone'}"
    a, b = before.collective, after.collective
    assert a is not None and b is not None
    if a.kind != b.kind:
        return "collective-replaced", f"the {sent(b)} was a {a.kind}"
    if a.blocking != b.blocking:
        if b.blocking:
            return (
                "collective-blocking",
                f"the {sent(b)} blocks the core, it ran beside other work",
            )
        return (
            "collective-overlapped",
            f"the {sent(b)} runs beside other work, it blocked the core",
        )
    each, was_each = after.seconds / (after.times or 1), before.seconds / (before.times or 1)
    if a.wire_bytes == b.wire_bytes and not isclose(each, was_each, rel_tol=EXPOSURE_MARGIN):
        return (
            f"collective-{'exposed' if each > was_each else 'hidden'}",
            f"other work leaves {format_seconds(each)} of the {sent(b)} exposed, it was "
            f"{format_seconds(was_each)}",
        )
    if before.times != after.times:
        kind = "collective-more-often" if after.times > before.times else "collective-less-often"
        return kind, f"the {sent(b)} runs {often(after.times)} a step, it was {before.times:,}"
    if a.wire_bytes == b.wire_bytes:
        return None
    grown = (b.wire_bytes or 0) > (a.wire_bytes or 0)
    was = format_bytes(a.wire_bytes) if a.wire_bytes is not None else "unknown"
    return f"collective-{'grown' if grown else 'shrunk'}", f"the {sent(b)}, it was {was}"


def _repeated(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    """The same operations, run more or less often, in one loop or unrolled."""
    if not old or not new or len({tuple(sorted(operations(k))) for k in (*old, *new)}) > 1:
        return None
    before, after = (sum(k.times for k in side) for side in (old, new))
    if before == after:
        if len(old) == len(new):
            return None
        kind = "loop-unrolled" if len(new) > len(old) else "loop-rolled"
        places = f"{len(new)} places" if len(new) > 1 else "one place"
        runs = f"the {noun(new[0])} runs {often(after)} a step in {places}"
        return kind, f"{runs}, it was in {len(old) if len(old) > 1 else 'one'}"
    kind = "repeated-more" if after > before else "repeated-less"
    return kind, f"the {noun(new[0])} runs {often(after)} a step, it was {before:,}"


def _copy(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    """Copies by the compiler, on one side only."""
    if bool(old) == bool(new):
        return None
    side, added = (new, True) if new else (old, False)
    word, fate = ("added", "is new") if added else ("removed", "is gone")
    instruction = side[0].instruction
    if instruction.opcode.endswith("-start"):
        what = f"the `{instruction.opcode}` of {array(instruction.shape)} between memories {fate}"
        return f"prefetch-{word}", what
    if not all(_only_moves(kernel) for kernel in side):
        return None
    source = max((o.shape for o in instruction.operands), key=lambda s: s.padded_bytes)
    a, b = largest(source), largest(instruction.shape)
    if a.dimensions == b.dimensions and order(a) == order(b):
        return f"copy-{word}", f"the copy `%{instruction.name}` of {array(b)} {fate}"
    return (
        f"layout-copy-{word}",
        f"the copy `%{instruction.name}` of {array(b)} from layout `{layout(a)}` to "
        f"`{layout(b)}` {fate}",
    )


def _only_moves(kernel: Kernel) -> bool:
    body = kernel.instruction.fused_computation
    inside = {i.opcode for i in body.instructions} if body is not None else {kernel.opcode}
    return bool(inside & _COPIES) and inside <= _MOVES and bool(kernel.instruction.operands)


def _precision(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    before, after = _passes(old), _passes(new)
    if not before or not after or before == after:
        return None
    kind = "precision-raised" if after > before else "precision-lowered"
    passes = f"{after} {'pass' if after == 1 else 'passes'} of the matrix unit"
    return kind, f"the {noun(new[0])} takes {passes}, it was {before}"


def _passes(side: Sequence[Kernel]) -> int:
    products = [m for k in side if (work := k.work) is not None for m in work.matmuls]
    return max((m.passes for m in products), default=0)


def _fusion(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    if not old or not new or len(old) == len(new):
        return None
    lost = len(new) > len(old)
    fewer = "one kernel" if min(len(old), len(new)) == 1 else f"{min(len(old), len(new))} kernels"
    more = f"{max(len(old), len(new))} kernels"
    side = new if lost else old
    names = ", ".join(f"`%{k.instruction.name}`" for k in side[:4])
    if len(side) > 4:
        names += ", …"
    between = _between(side)
    if between is not None:
        names += f", with {array(between)} written and read between them"
    if lost:
        return "fusion-lost", f"what was {fewer} is now {more}: {names}"
    return "fusion-gained", f"what was {more} ({names}) is now {fewer}"


def _between(side: Sequence[Kernel]) -> Shape | None:
    """The largest value that one kernel hands to another."""
    makers = {k.instruction for k in side}
    found = []
    for kernel in side:
        for operand in kernel.instruction.operands:
            source = operand
            while source.opcode in _NAMES and source.operands and source not in makers:
                source = source.operands[0]
            if source in makers and source is not kernel.instruction:
                found.append(largest(operand.shape))
    return max(found, key=lambda shape: shape.padded_bytes, default=None)


def _padding(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    if not old or not new:
        return None
    before, after = (sum(k.times * k.padding for k in side) for side in (old, new))
    moved = sum(k.hbm_bytes for k in new) - sum(k.hbm_bytes for k in old)
    grown = after - before
    if grown * moved <= 0 or abs(grown) < PADDING_SHARE * abs(moved):
        return None
    kind, verb, side = ("padding-grown", "is", new) if grown > 0 else ("padding-shrunk", "was", old)
    shape = max((s for k in side for s in _shapes(k)), key=_waste)
    share = format_share(_waste(shape) / shape.padded_bytes)
    return kind, (
        f"{array(shape)} in layout `{layout(shape)}` {verb} {share} padding; the "
        f"{noun(new[0])} touches {format_bytes(after)} of padding a step, it was "
        f"{format_bytes(before) if before else 'none'}"
    )


def _shapes(kernel: Kernel) -> list[Shape]:
    instruction = kernel.instruction
    return [leaf for i in (instruction, *instruction.operands) for leaf in i.shape.leaves()]


def _waste(shape: Shape) -> int:
    return shape.padded_bytes - shape.logical_bytes


def _size(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    if not old or not new:
        return None
    a, b = largest(old[0].instruction.shape), largest(new[0].instruction.shape)
    if (a.element_type, a.dimensions) == (b.element_type, b.dimensions):
        return None
    kind = "size-grown" if b.logical_bytes > a.logical_bytes else "size-shrunk"
    if b.logical_bytes == a.logical_bytes:
        kind = "work-changed"
    return kind, f"the result of the {noun(new[0])} is {array(b)}, it was {array(a)}"


def _relaid(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    if len(old) != 1 or len(new) != 1:
        return None
    a, b = largest(old[0].instruction.shape), largest(new[0].instruction.shape)
    if a.layout == b.layout or a.layout is None or b.layout is None:
        return None
    if order(a) != order(b):
        was, now = layout(a), layout(b)
        return "layout-changed", f"{array(b)} is laid out `{now}`, it was `{was}`"
    place = {False: "HBM", True: "on-chip memory"}
    if a.on_chip != b.on_chip:
        now, was = place[b.on_chip], place[a.on_chip]
        kind = "moved-on-chip" if b.on_chip else "moved-off-chip"
        return kind, f"{array(b)} lies in {now}, it was in {was}"
    return None


def _work(old: Sequence[Kernel], new: Sequence[Kernel]) -> Told | None:
    if not old:
        return "work-added", f"the {noun(new[0])} of {array(new[0].instruction.shape)} is new"
    if not new:
        return "work-removed", f"the {noun(old[0])} of {array(old[0].instruction.shape)} is gone"
    if sorted(k.opcode for k in old) != sorted(k.opcode for k in new):
        return "work-changed", f"the {noun(new[0])} was a {noun(old[0])}"
    return None


_RULES: tuple[_Rule, ...] = (
    _host, _collective, _copy, _precision, _repeated, _fusion, _padding, _size, _relaid, _work,
)  # fmt: skip
"""The first one that knows a group names it."""
