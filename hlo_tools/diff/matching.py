"""Which instruction of one compile is which of another, whatever their names, numbers and order.

Fingerprints come first: labels refined over rounds by those of operands and users, the finest
first, pair what is the same on both sides, computation by computation from the entry down, then
across computations. What is left is paired greedily by similarity. Every step treats both sides
alike, so that the matching of B with A is that of A with B turned round.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable

from hlo_tools.analysis.program import Program
from hlo_tools.diff.graph import Graph, Labels
from hlo_tools.diff.similarity import pair_similar
from hlo_tools.hlo.module import Computation, Instruction

ROUNDS = (3, 1, 0)
"""How often labels are refined, the finest first."""

_CALL_ROLES = ("body", "condition")
_CALLING = frozenset({"while", "call", "conditional", "async-start", "call-start"})


class Matching:
    """The pairs of two programs.

    Args:
      old: one program.
      new: the other.

    Attributes:
      old: the graph of the one.
      new: the graph of the other.
    """

    def __init__(self, old: Program, new: Program) -> None:
        labels = Labels()
        self.old, self.new = Graph(old, labels), Graph(new, labels)
        self._forward: list[int] = [-1] * len(self.old.nodes)
        self._backward: list[int] = [-1] * len(self.new.nodes)
        self._computations: dict[Computation, Computation] = {}
        self._taken: set[Computation] = set()
        self._match()

    def partner(self, instruction: Instruction) -> Instruction | None:
        """What an instruction of the old program is in the new one, or `None`."""
        node = self.old.number.get(instruction)
        other = self._forward[node] if node is not None else -1
        return self.new.nodes[other] if other >= 0 else None

    def partner_of_new(self, instruction: Instruction) -> Instruction | None:
        """What an instruction of the new program is in the old one, or `None`."""
        node = self.new.number.get(instruction)
        other = self._backward[node] if node is not None else -1
        return self.old.nodes[other] if other >= 0 else None

    @property
    def pairs(self) -> list[tuple[Instruction, Instruction]]:
        """All pairs, in the order of the old program."""
        return [
            (self.old.nodes[node], self.new.nodes[other])
            for node, other in enumerate(self._forward)
            if other >= 0
        ]

    def _match(self) -> None:
        roots = [graph.program.module.roots()[:1] for graph in (self.old, self.new)]
        for ours, theirs in zip(*roots, strict=False):
            self._correspond(ours, theirs)
        stages: list[tuple[list[int], list[int]]] = []
        for old, new in (
            (self.old.exact, self.new.exact),
            (self.old.loose, self.new.loose),
        ):
            refined = self.old.refined(old, ROUNDS[0]), self.new.refined(new, ROUNDS[0])
            for rounds in ROUNDS:
                stages.append((refined[0][rounds], refined[1][rounds]))
                self._descend(*stages[-1])
                if self._is_complete:
                    return
        everything = range(len(self.old.nodes)), range(len(self.new.nodes))
        for labels in stages:
            self._pair_alike(*everything, *labels)
        pair_similar(self.old, self.new, self._forward, self._backward)

    @property
    def _is_complete(self) -> bool:
        return -1 not in self._forward or -1 not in self._backward

    def _descend(self, old: list[int], new: list[int]) -> None:
        """Pairs within computations that correspond, callers before what they call."""
        pending = deque(self._computations.items())
        while pending:
            ours, theirs = pending.popleft()
            span = self.old.span(ours)
            self._pair_alike(span, self.new.span(theirs), old, new)
            for node in span:
                other = self._forward[node]
                if other >= 0 and self.old.nodes[node].opcode in _CALLING:
                    called = _callees(self.old.nodes[node], self.new.nodes[other])
                    pending.extend(pair for pair in called if self._correspond(*pair))

    def _correspond(self, ours: Computation, theirs: Computation) -> bool:
        """Notes that two computations correspond; whether that is news, and they run."""
        if ours in self._computations or theirs in self._taken:
            return False
        if not (self._runs(self.old, ours) and self._runs(self.new, theirs)):
            return False
        self._computations[ours] = theirs
        self._taken.add(theirs)
        return True

    @staticmethod
    def _runs(graph: Graph, computation: Computation) -> bool:
        return graph.program.execution.runs(computation)

    def _pair_alike(
        self, ours: Iterable[int], theirs: Iterable[int], old: list[int], new: list[int]
    ) -> None:
        """Pairs what is left with the same label, where both sides have as many of it."""
        here, there = _free(ours, self._forward, old), _free(theirs, self._backward, new)
        for label, nodes in here.items():
            others = there.get(label, ())
            if len(nodes) == len(others):
                for node, other in zip(nodes, others, strict=True):
                    self._forward[node], self._backward[other] = other, node


def _free(nodes: Iterable[int], taken: list[int], labels: list[int]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for node in nodes:
        if taken[node] < 0:
            groups[labels[node]].append(node)
    return groups


def _callees(ours: Instruction, theirs: Instruction) -> list[tuple[Computation, Computation]]:
    if ours.opcode == "while" and theirs.opcode == "while":
        called = [(ours.called(role), theirs.called(role)) for role in _CALL_ROLES]
        return [(a, b) for a, b in called if a is not None and b is not None]
    return list(zip(ours.called_computations, theirs.called_computations, strict=False))
