"""Values that several fusions of a computation each compute for themselves."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_tools.hlo.attributes import iterate_attributes
from hlo_tools.hlo.module import Instruction

MAX_INSTRUCTIONS = 200_000
"""Above this many instructions in all fusions nothing is compared."""

_UNRELATED = frozenset(
    {"metadata", "backend_config", "frontend_attributes", "sharding", "calls", "to_apply"}
)
"""Attributes that say nothing of the result, and those whose computations are looked into."""
MAX_DEPTH = 64
"""Deeper nested fusions are not looked into."""

_FREE = frozenset({"constant", "iota", "broadcast", "reshape", "tuple"})
_IMPURE = frozenset({"rng", "rng-bit-generator", "custom-call", "infeed", "recv"})

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """A value that several fusions compute, and none of them reads.

    Attributes:
      copies: what computes it, inside of each fusion.
      fusions: those fusions, in the order of the text.
      within: what each copy is computed from, copies of the same and itself included.
    """

    copies: tuple[Instruction, ...]
    fusions: tuple[Instruction, ...]
    within: tuple[Instruction, ...]


def recomputed(fusions: Sequence[Instruction]) -> tuple[Recomputed, ...]:
    """The largest values that at least two fusions of one computation make of the same operands.

    Of values that are computed from one another only the last is given: what only that one uses
    belongs to it.
    """
    numbering = _Numbering()
    for fusion in fusions:
        numbering.add(fusion)
        if numbering.seen > MAX_INSTRUCTIONS:
            return ()
    made, sources = numbering.made, numbering.sources
    shared = {number for number, copies in made.items() if len(copies) > 1}
    inner = {source for number in shared for source in sources[number] & shared}
    return tuple(_value(number, made, sources) for number in sorted(shared - inner))


def _value(
    number: int, made: dict[int, dict[Instruction, Instruction]], sources: dict[int, set[int]]
) -> Recomputed:
    fusions = tuple(made[number])
    first = fusions[0]
    seen = {number}
    stack = [number]
    while stack:
        for source in sources.get(stack.pop(), ()):
            if source not in seen and first in made.get(source, ()):
                seen.add(source)
                stack.append(source)
    return Recomputed(
        copies=tuple(made[number].values()),
        fusions=fusions,
        within=tuple(made[n][first] for n in sorted(seen)),
    )


class _Numbering:
    """Equal numbers for equal expressions, over all fusions that are added.

    Attributes:
      made: for each number what computes it, by fusion.
      sources: for each number those of its operands.
      seen: how many instructions were looked at.
    """

    def __init__(self) -> None:
        self.made: dict[int, dict[Instruction, Instruction]] = defaultdict(dict)
        self.sources: dict[int, set[int]] = {}
        self.seen = 0
        self._numbers: dict[_Key, int] = {}

    def add(self, fusion: Instruction) -> None:
        """Numbers what a fusion computes, nested fusions included."""
        operands = [self._number(("outside", operand)) for operand in fusion.operands]
        values: dict[Instruction, int | None] = {}
        # A fusion, what of it is left to do, and the numbers of its operands.
        stack: list[tuple[Instruction, Iterator[Instruction], list[int | None]]] = []
        self._enter(fusion, list(operands), stack)
        while stack and self.seen <= MAX_INSTRUCTIONS:
            caller, instructions, arguments = stack[-1]
            instruction = next(instructions, None)
            if instruction is None:
                stack.pop()
                inside = caller.fused_computation
                values[caller] = values.get(inside.root) if inside is not None else None
                continue
            self.seen += 1
            given = [values.get(operand) for operand in instruction.operands]
            if instruction.fused_computation is not None:
                self._enter(instruction, given, stack)
            elif instruction.opcode == "parameter":
                place = instruction.computation.parameters.index(instruction)
                values[instruction] = arguments[place] if place < len(arguments) else None
            elif instruction.opcode == "bitcast" and given:
                values[instruction] = given[0]
            else:
                values[instruction] = self._expression(instruction, given, fusion)

    def _enter(
        self,
        fusion: Instruction,
        operands: list[int | None],
        stack: list[tuple[Instruction, Iterator[Instruction], list[int | None]]],
    ) -> None:
        computation = fusion.fused_computation
        # Fusions that call one another in a circle are no program.
        if computation is not None and len(stack) < MAX_DEPTH:
            stack.append((fusion, iter(computation.instructions), operands))

    def _expression(
        self, instruction: Instruction, operands: list[int | None], fusion: Instruction
    ) -> int | None:
        known = [operand for operand in operands if operand is not None]
        if instruction.opcode in _IMPURE or len(known) < len(operands):
            return None
        number = self._number(
            (
                instruction.opcode,
                instruction.shape.element_type,
                instruction.shape.dimensions,
                _attributes(instruction),
                *known,
            )
        )
        if instruction.opcode not in _FREE:
            self.made[number].setdefault(fusion, instruction)
            self.sources[number] = set(known)
        return number

    def _number(self, key: _Key) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _attributes(instruction: Instruction) -> tuple[object, ...]:
    """What the attributes say of the result; of called computations, what is done there."""
    if instruction.opcode == "constant":
        return (instruction.argument_text.strip(),)
    called = [i.opcode for c in instruction.called_computations for i in c.instructions]
    attributes = iterate_attributes(instruction.attribute_text)
    return (*called, *((key, value) for key, value in attributes if key not in _UNRELATED))
