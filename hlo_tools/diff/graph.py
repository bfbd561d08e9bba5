"""The instructions of a program's executed computations, as a graph of numbered labels.

A label says what an instruction is and not what it is called or where it stands: two compiles of
one program give the same labels, whatever their numbering and order.
"""

import re
from collections import Counter
from collections.abc import Hashable
from functools import cached_property

from hlo_tools.analysis.program import Program
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.hlo.module import Computation, Instruction
from hlo_tools.hlo.shape import format_shape

_ENDS = re.compile(r",\s*(?:metadata|backend_config|frontend_attributes)=")
_REFERENCES = re.compile(
    r"%[\w.\-<>]+"
    r"|\b(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation"
    r"|called_computations|select|scatter|async_execution_comp|control-predecessors)"
    r"=(?:\{[^{}]*\}|[^\s,{}]+)"
    r"|\bchannel_id=\d+|/\*[^*]*+\*/"
)
"""What of an attribute list differs from compile to compile: names, and running numbers."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_OUTERMOST = re.compile(r"^(?:jit|pjit|pmap)\([^()]*\)/")
_EMPTY: Counter[int] = Counter()
MAX_LITERAL = 64
"""Characters of a constant that its label holds."""


class Labels:
    """Numbers for keys, the same number for the same key in both programs."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable) -> int:
        """The number of a key: the count of different ones before it."""
        return self._numbers.setdefault(key, len(self._numbers))


def plain_name(op_name: str | None) -> str:
    """An operation's name without the function that was compiled, which may have been renamed."""
    return _OUTERMOST.sub("", op_name, count=1) if op_name else ""


class Graph:
    """One program's instructions by number, in the order of the computations' first runs.

    Attributes:
      program: the program.
      nodes: the instructions.
      kinds: what each does: its opcode; for a collective in whatever form, the collective's, and
        that with `-done` for the wait.
      names: of the operation in the person's program; empty where the metadata has none.
      places: where that stands, by the instruction's own metadata.
      types: element types and dimensions of the results, as text.
      bodies: numbers of what fusions hold, the same for the same; other opcodes hold nothing.
      operands: numbers of the operands that are in the graph, in order.
      users: numbers of the users.
      exact: labels that tell apart whatever the text tells apart, order and names aside.
      loose: labels without layout, place and the compiler's estimates.
    """

    def __init__(self, program: Program, labels: Labels) -> None:
        self.program = program
        self._labels = labels
        self._texts: dict[int, tuple[str, str]] = {}
        self._bodies: dict[Computation, Counter[int]] = {}
        self._waits = {
            collective.span.done: f"{collective.kind}-done"
            for collective in program.collectives.all
            if collective.span is not None and collective.span.done is not None
        }
        executed = program.execution.executed
        self.nodes: list[Instruction] = [i for c in executed for i in c.instructions]
        self.number = {instruction: n for n, instruction in enumerate(self.nodes)}
        self.kinds: list[str] = []
        self.names: list[str] = []
        self.places: list[SourceLocation | None] = []
        self.types: list[str] = []
        self.bodies: list[int] = []
        self.exact: list[int] = []
        self.loose: list[int] = []
        for instruction in self.nodes:
            self._label(instruction)
        self.operands = [
            [self.number[o] for o in i.operands if o in self.number] for i in self.nodes
        ]

    @cached_property
    def users(self) -> list[list[int]]:
        """Numbers of the users of each node."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for node, operands in enumerate(self.operands):
            for operand in dict.fromkeys(operands):
                found[operand].append(node)
        return found

    def span(self, computation: Computation) -> range:
        """The numbers of a computation's instructions."""
        start = self.number[computation.instructions[0]] if computation.instructions else 0
        return range(start, start + len(computation.instructions))

    def body(self, instruction: Instruction) -> Counter[int]:
        """What a fusion holds: how often each label, layouts aside; empty for other opcodes."""
        computation = instruction.fused_computation
        if computation is None:
            return _EMPTY
        found = self._bodies.get(computation)
        if found is None:
            found = self._bodies[computation] = Counter(map(self._inside, computation.instructions))
        return found

    def refined(self, start: list[int], rounds: int) -> list[list[int]]:
        """The labels of each round, from those given on.

        After `n` rounds they also tell apart what lies up to `n` edges away, operands in order.
        """
        number = self._labels.number
        found = [start]
        for _ in range(rounds):
            labels = found[-1]
            found.append(
                [
                    number(
                        (
                            label,
                            tuple([labels[o] for o in self.operands[node]]),
                            tuple(sorted([labels[u] for u in self.users[node]])),
                        )
                    )
                    for node, label in enumerate(labels)
                ]
            )
        return found

    def _label(self, instruction: Instruction) -> None:
        number = self._labels.number
        collective = self.program.collectives.get(instruction)
        told_by = collective.operation if collective is not None else instruction
        name, place = self.program.provenance.noted(told_by)
        kind = self._waits.get(instruction, instruction.opcode)
        if collective is not None:
            kind = collective.kind
        text = told_by.attribute_text
        ends = _ENDS.search(text)
        attributes = _REFERENCES.sub("", text[: ends.start()] if ends else text).rstrip()
        literal = ""
        if instruction.opcode in ("constant", "parameter", "iota"):
            literal = instruction.argument_text[:MAX_LITERAL]
        dimensions, whole = self._text(instruction)
        body = number(tuple(sorted(self.body(instruction).items())))
        plain = plain_name(name)
        loose = number((kind, dimensions, plain, attributes, literal, body))
        cycles = _CYCLES.search(text)
        where = (place.file, place.line, place.column) if place else None
        self.kinds.append(kind)
        self.names.append(plain)
        self.places.append(place)
        self.types.append(dimensions)
        self.bodies.append(body)
        self.loose.append(loose)
        self.exact.append(number((loose, whole, where, cycles[1] if cycles else "")))

    def _inside(self, instruction: Instruction) -> int:
        name, _ = self.program.provenance.noted(instruction)
        return self._labels.number(
            (instruction.opcode, self._text(instruction)[0], plain_name(name))
        )

    def _text(self, instruction: Instruction) -> tuple[str, str]:
        """The shape without and with its layout; the reader makes one of all written alike."""
        shape = instruction.shape
        found = self._texts.get(id(shape))
        if found is None:
            found = format_shape(shape, with_layout=False), format_shape(shape)
            self._texts[id(shape)] = found
        return found
