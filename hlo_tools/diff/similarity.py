"""Pairs what fingerprints leave over, the most similar first.

Candidates share an operation's name, a type, a place or a neighbour that is paired already; of
long lists of candidates only those that stand about equally far in are looked at, so that the work
grows with the program and not with its square.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator

from hlo_tools.diff.graph import Graph

ROUNDS = 3
LEAST = 5.0
"""The similarity from which on two instructions are taken for one."""
WINDOW = 4
"""How far from its place in a long list of candidates a partner is looked for."""
FULL = 32
"""Lists up to this long are compared all with all."""

_BOOKKEEPING = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "iota",
        "partition-id", "replica-id",
    }
)  # fmt: skip
_SIZES = re.compile(r"\d+(?=[,\]])")
_APART = frozenset({"while", "call", "conditional", "copy", "custom-call", "send", "recv"})


def pair_similar(old: Graph, new: Graph, forward: list[int], backward: list[int]) -> None:
    """Adds pairs to `forward` (old to new) and `backward`, where -1 stands for none."""
    for _ in range(ROUNDS):
        scored = []
        for node, other in sorted(_candidates(old, new, forward, backward)):
            score = _similarity(old, new, node, other, forward)
            if score >= LEAST:
                distance = abs(node * len(new.nodes) - other * len(old.nodes))
                # The last two decide among equals alike for both directions.
                ends = min(node, other), max(node, other)
                scored.append((-score, distance, *ends, node, other))
        scored.sort()
        changed = False
        for *_, node, other in scored:
            if forward[node] < 0 and backward[other] < 0:
                forward[node], backward[other] = other, node
                changed = True
        if not changed:
            return


def _candidates(
    old: Graph, new: Graph, forward: list[int], backward: list[int]
) -> set[tuple[int, int]]:
    ours, theirs = _buckets(old, forward), _buckets(new, backward)
    found: set[tuple[int, int]] = set()
    for key, nodes in ours.items():
        found.update(_near(nodes, theirs.get(key, [])))
    for node, other in enumerate(forward):
        if other < 0:
            continue
        found.update(
            (a, b)
            for a, b in zip(old.operands[node], new.operands[other], strict=False)
            if forward[a] < 0 and backward[b] < 0
        )
        mine = [u for u in old.users[node] if forward[u] < 0]
        if mine:
            found.update(_near(mine, [u for u in new.users[other] if backward[u] < 0]))
    return found


def _buckets(graph: Graph, taken: list[int]) -> dict[Hashable, list[int]]:
    """What is free, in order, by each of the things that make a candidate."""
    buckets: dict[Hashable, list[int]] = defaultdict(list)
    for node, other in enumerate(taken):
        if other >= 0:
            continue
        kind, name, place = graph.kinds[node], graph.names[node], graph.places[node]
        buckets["kind and type", kind, graph.types[node]].append(node)
        if name:
            buckets["name", name].append(node)
        if place is not None:
            buckets["place", kind, place.file, place.line].append(node)
    return buckets


def _near(ours: list[int], theirs: list[int]) -> Iterator[tuple[int, int]]:
    """The pairs of two lists that stand about equally far in; all of them where both are short."""
    mine, other = len(ours), len(theirs)
    if not mine or not other:
        return
    everything = mine <= FULL and other <= FULL
    longest = max(mine, other)
    for i, node in enumerate(ours):
        low, high = 0, other
        if not everything:
            # |i/mine - j/other| at most WINDOW/min(mine, other), in whole numbers.
            reach = WINDOW * longest
            low = max(0, -((reach - i * other) // mine))
            high = min(other, (i * other + reach) // mine + 1)
        for j in range(low, high):
            yield node, theirs[j]


def _similarity(old: Graph, new: Graph, a: int, b: int, forward: list[int]) -> float:
    kinds = old.kinds[a], new.kinds[b]
    names = old.names[a], new.names[b]
    same_name = bool(names[0]) and names[0] == names[1]
    if not _may_stand_for(*kinds, same_name=same_name):
        return 0.0
    score = 2.0 if kinds[0] == kinds[1] else 0.0
    if same_name:
        score += 3.0
    elif not any(names):
        score += 1.0
    elif all(names):
        score -= 2.0
    if old.types[a] == new.types[b]:
        score += 2.0
    elif _outline(old.types[a]) == _outline(new.types[b]):
        score += 1.0
    places = old.places[a], new.places[b]
    if places[0] is not None and places[1] is not None:
        same_line = (places[0].file, places[0].line) == (places[1].file, places[1].line)
        score += 1.0 if same_line else 0.0
    score += 2.0 * _shared(old.operands[a], new.operands[b], forward)
    score += 2.0 * _shared(old.users[a], new.users[b], forward)
    score += 2.0 * _overlap(old, new, a, b)
    return score + (1.0 if _in_loop(old, a) == _in_loop(new, b) else 0.0)


def _may_stand_for(ours: str, theirs: str, *, same_name: bool) -> bool:
    """Whether one may be the other; a kernel is a fusion's only by the operation's name."""
    families = {_family(ours), _family(theirs)}
    return len(families) == 1 or (same_name and families == {"work", "custom-call"})


def _family(kind: str) -> str:
    """What may stand for what: any work for any other, all else for its like only."""
    if kind in _BOOKKEEPING or kind in _APART or kind.endswith(("-start", "-done", "-update")):
        return kind
    return "work"


def _outline(text: str) -> str:
    """A type with its sizes left out: `f32[,]`."""
    return _SIZES.sub("", text)


def _shared(ours: list[int], theirs: list[int], forward: list[int]) -> float:
    """The share of neighbours that are paired with each other."""
    if not ours or not theirs:
        return 0.0
    mine, other = set(ours), set(theirs)
    common = sum(1 for node in mine if forward[node] in other)
    return common / max(len(mine), len(other))


def _overlap(old: Graph, new: Graph, a: int, b: int) -> float:
    """The share of two fusions' insides that is the same."""
    if old.bodies[a] == new.bodies[b]:
        return 1.0 if old.body(old.nodes[a]) else 0.0
    mine, other = old.body(old.nodes[a]), new.body(new.nodes[b])
    if not mine or not other:
        return 0.0
    common = sum(min(count, other[label]) for label, count in mine.items() if label in other)
    return common / (mine.total() + other.total() - common)


def _in_loop(graph: Graph, node: int) -> bool:
    return graph.program.execution.loop_of(graph.nodes[node].computation) is not None
