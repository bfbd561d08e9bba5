"""Changes that are one decision of the compiler: kernels that share what they compute.

Where a fusion is split, the matching pairs it with one of its parts and leaves the others over.
What joins them again is the operations of the person's program that they hold.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

from hlo_tools.diff.graph import plain_name
from hlo_tools.diff.kernels import Kernel, Pair
from hlo_tools.hlo.shape import format_shape

MOST_SHARED = 4
"""An operation in more kernels than this, such as a mask that many recompute, joins none."""

_NO_WORK = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "iota", "broadcast",
        "reshape", "copy", "after-all", "partition-id", "replica-id",
    }
)  # fmt: skip


def grouped(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs in groups, both in the order in which they came."""
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        if not _can_join(pair):
            continue
        for operation in dict.fromkeys(o for kernel in pair.kernels for o in operations(kernel)):
            holders[operation].append(number)
    leader = list(range(len(pairs)))
    for a, b in _replaced(pairs):
        _join(leader, a, b)
    for numbers in holders.values():
        if len(numbers) <= MOST_SHARED:
            for number in numbers[1:]:
                _join(leader, numbers[0], number)
    groups: dict[int, list[Pair]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        groups[_find(leader, number)].append(pair)
    return list(groups.values())


def operations(kernel: Kernel) -> list[tuple[str, str]]:
    """The operations that a kernel runs, by opcode and by their name in the person's program."""
    body = kernel.instruction.fused_computation
    inside = body.instructions if body is not None else [kernel.instruction]
    found = []
    for instruction in inside:
        if instruction.opcode not in _NO_WORK:
            name, _ = kernel.program.provenance.noted(instruction)
            if name:
                found.append((instruction.opcode, plain_name(name)))
    return found


def _replaced(pairs: Sequence[Pair]) -> Iterator[tuple[int, int]]:
    """Collectives without a partner that stand for each other, by their numbers.

    Those are of one kind, type and group, as when one moves into a loop; or they take the same
    value, as when an all-reduce takes the place of a reduce-scatter.
    """
    for likeness in (_same_transfer, _same_operand):
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        alone = [n for n, pair in enumerate(pairs) if pair.old is None or pair.new is None]
        for number in alone:
            pair = pairs[number]
            if pair.old is not None and (key := likeness(pair.old)) is not None:
                waiting[key].append(number)
        for number in alone:
            pair = pairs[number]
            key = likeness(pair.new) if pair.new is not None else None
            if key is not None and waiting[key]:
                yield waiting[key].pop(0), number


def _same_transfer(kernel: Kernel) -> Hashable:
    collective = kernel.collective
    if collective is None:
        return None
    shape = format_shape(collective.operation.shape, with_layout=False)
    return collective.kind, shape, collective.group_size


def _same_operand(kernel: Kernel) -> Hashable:
    collective = kernel.collective
    if collective is None:
        return None
    shapes = [format_shape(o.shape, with_layout=False) for o in collective.operation.operands]
    return tuple(shapes), collective.group_size


def _can_join(pair: Pair) -> bool:
    """Whether it may be a part of a fusion: what has a partner that holds the same is not."""
    if any(kernel.collective is not None for kernel in pair.kernels):
        return False
    if any(kernel.opcode.endswith("-start") for kernel in pair.kernels):
        return False
    if pair.old is None or pair.new is None or pair.old.times != pair.new.times:
        return True
    return sorted(operations(pair.old)) != sorted(operations(pair.new))


def _find(leader: list[int], number: int) -> int:
    while leader[number] != number:
        leader[number] = leader[leader[number]]
        number = leader[number]
    return number


def _join(leader: list[int], a: int, b: int) -> None:
    a, b = _find(leader, a), _find(leader, b)
    leader[max(a, b)] = min(a, b)
