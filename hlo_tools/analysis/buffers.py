"""The buffers of one computation: which values lie in them, and from when to when.

In a scheduled module the text is the schedule: a buffer is live from the instruction that defines
it to the last one that uses it. Values that share a buffer (`hlo_tools.analysis.aliasing`) are
followed as one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from hlo_tools.analysis.aliasing import (
    FORWARDING,
    SHARING,
    in_place_results,
    leaf_count,
    shareable_operands,
)
from hlo_tools.analysis.leaves import OUTSIDE, VMEM_SPACE, ModuleFacts
from hlo_tools.hlo.module import MISSING, Computation, Instruction, parameter_number
from hlo_tools.hlo.shape import HBM_SPACE, Shape

CALLING = frozenset({"while", "call", "conditional", "async-start", "call-start"})
_INDEX = re.compile(r"\bindex=(\d{1,9})")
_CONCATENATES = 'custom_call_target="ConcatBitcast"'


class Buffer:
    """A buffer that is being followed; see `liveness.LiveBuffer` for its attributes."""

    __slots__ = ("bytes", "first", "instruction", "kind", "last", "members", "shape", "space")

    def __init__(self, instruction: Instruction, shape: Shape, space: int, first: int) -> None:
        self.instruction = instruction
        self.shape = shape
        self.bytes = shape.padded_bytes
        self.space = space
        self.first = first
        self.last = first
        self.kind = "temporary"
        self.members: tuple[int, ...] = ()


@dataclass(slots=True)
class Frame:
    """What one computation holds while it runs once, apart from what its caller holds for it.

    Attributes:
      buffers: in the order of their definition.
      nested: positions of calls, and the computations of which one at a time runs there.
      peaks: bytes at the fullest position, by space.
      peak_at: that position, by space.
      passed: for each leaf of the result the parameter leaf that it is, or `None`.
    """

    buffers: list[Buffer]
    nested: dict[int, tuple[Computation, ...]]
    peaks: dict[int, int]
    peak_at: dict[int, int]
    passed: tuple[int | None, ...]


NOWHERE = (OUTSIDE,)
_ROLES = {
    "get-tuple-element": "element", "tuple": "name", "bitcast": "name", "parameter": "name",
    "constant": "name", MISSING: "name", "send": "start", "recv": "start",
    **dict.fromkeys(FORWARDING - {"bitcast"}, "special"),
    "call": "special", "conditional": "special",
}  # fmt: skip


def _role(opcode: str) -> str:
    """How the buffers of an opcode's result are found."""
    if opcode.endswith("-done"):
        return "done"
    return "start" if opcode.endswith(("-start", "-update")) else "plain"


class Tracer:
    """Follows the values of one computation through their buffers."""

    def __init__(
        self, facts: ModuleFacts, computation: Computation, frames: dict[Computation, Frame]
    ) -> None:
        self._facts = facts
        self._computation = computation
        self._frames = frames
        self._buffers: list[Buffer] = []
        self._values: dict[Instruction, tuple[int, ...]] = {}
        self._parameters: dict[int, int] = {}
        self._given: list[Instruction] = []
        self._operand_leaves: dict[Instruction, int] = {}
        self._nested: dict[int, tuple[Computation, ...]] = {}
        self._may_share: list[tuple[int, Instruction]] = []

    def trace(self) -> Frame:
        """Goes through the computation once."""
        values, leaves_of = self._values, self._facts.leaves
        use, roles = self._use, _ROLES
        for position, instruction in enumerate(self._computation.instructions):
            opcode, operands = instruction.opcode, instruction.operands
            role = roles.get(opcode) or _role(opcode)
            if role == "element":
                values[instruction] = self._element(instruction)
                continue
            if role == "name":
                values[instruction] = self._name(position, instruction)
                continue
            for operand in operands:
                used = values.get(operand, NOWHERE)
                if used is not NOWHERE:
                    use(used, position)
            if role == "plain":
                leaves = leaves_of(instruction.shape)
                if len(leaves) == 1 and leaves[0][1] == OUTSIDE:
                    values[instruction] = NOWHERE
                else:
                    values[instruction] = self._define(position, instruction)
            else:
                values[instruction] = self._special(role, position, instruction)
        return self._frame()

    def _name(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """The buffers of what uses no buffer: constants, parameters, and other names of values."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "tuple":
            return self._tuple(instruction)
        if opcode == "bitcast":
            return self._values.get(operands[0], NOWHERE) if operands else NOWHERE
        if opcode == "parameter":
            return self._parameter(position, instruction)
        return NOWHERE * len(self._facts.leaves(instruction.shape))

    def _special(self, role: str, position: int, instruction: Instruction) -> tuple[int, ...]:
        """The buffers of what calls or runs beside other work."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in CALLING:
            self._nested[position] = self._facts.calls(instruction)
        if opcode in FORWARDING:
            return self._values.get(operands[0], NOWHERE) if operands else NOWHERE
        if role == "done":
            return self._done(position, instruction)
        if role == "start":
            return self._start(position, instruction)
        if opcode == "call":
            return self._call(position, instruction)
        return self._define(position, instruction)

    def _use(self, leaves: Iterable[int], position: int) -> None:
        buffers = self._buffers
        for number in leaves:
            if number >= 0:
                buffers[number].last = position
                for member in buffers[number].members:
                    buffers[member].last = position

    def _new(self, position: int, instruction: Instruction, leaf: Shape, space: int) -> int:
        if space == OUTSIDE:
            return OUTSIDE
        self._buffers.append(Buffer(instruction, leaf, space, position))
        return len(self._buffers) - 1

    def _fresh(self, position: int, instruction: Instruction, shape: Shape) -> tuple[int, ...]:
        return tuple(
            self._new(position, instruction, leaf, space)
            for leaf, space in self._facts.leaves(shape)
        )

    def _parameter(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        numbers = self._fresh(position, instruction, instruction.shape)
        self._given.append(instruction)
        for number in numbers:
            if number >= 0:
                self._buffers[number].kind = "argument"
                self._parameters[number] = 0  # numbered when all are known
        return numbers

    def _number_parameters(self) -> None:
        """Numbers the leaves of all parameters in the order of the parameters' numbers."""
        if len(self._given) == 1:
            ordered = self._given
        else:
            ordered = sorted(self._given, key=parameter_number)
        leaf = 0
        for parameter in ordered:
            for number in self._values[parameter]:
                if number >= 0:
                    self._parameters[number] = leaf
                leaf += 1

    def _tuple(self, instruction: Instruction) -> tuple[int, ...]:
        # Not more leaves than the shape says: tuples of tuples could name a value without end.
        count = len(self._facts.leaves(instruction.shape))
        gathered: list[int] = []
        for operand in instruction.operands:
            gathered += self._values.get(operand, ())
            if len(gathered) >= count:
                break
        return tuple(gathered[:count])

    def _element(self, instruction: Instruction) -> tuple[int, ...]:
        if not instruction.operands:
            return ()
        own = self._facts.leaves(instruction.shape)
        if len(own) == 1 and own[0][1] == OUTSIDE:
            return NOWHERE
        source = instruction.operands[0]
        match = _INDEX.search(instruction.attribute_text)
        elements = source.shape.elements
        index = int(match[1]) if match else len(elements)
        if index >= len(elements):
            return ()
        leaves = self._values.get(source, ())
        if len(leaves) == len(elements):
            return leaves[index : index + 1]
        start = sum(leaf_count(element) for element in elements[:index])
        return leaves[start : start + leaf_count(elements[index])]

    def _start(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """A `-start`: its tuple names its operands and what it will have written.

        `copy-start` gives (destination, source, context), the others (operands, results, ...);
        `all-reduce-start` gives its results alone. An `-update` hands all that on.
        """
        leaves = self._facts.leaves(instruction.shape)
        every = [b for o in instruction.operands for b in self._values.get(o, ())]
        given = tuple(every[: len(leaves)])
        opcode = instruction.opcode
        if opcode.endswith("-update") and instruction.operands:
            start = instruction.operands[0]
            if len(self._values.get(start, ())) == len(leaves):
                self._operand_leaves[instruction] = self._operand_leaves.get(start, 0)
                return self._values[start]
            # Some starts leave it to the update to name operands and results.
            given = tuple(
                [b for o in instruction.operands[1:] for b in self._values.get(o, ())][
                    : len(leaves)
                ]
            )
        if opcode in ("all-reduce-start", "recv") or not instruction.shape.is_tuple:
            return self._fresh(position, instruction, instruction.shape)
        if opcode == "copy-start":
            written = self._new(position, instruction, *leaves[0]) if leaves else OUTSIDE
            return (written, *given, *(OUTSIDE,) * (len(leaves) - 2))[: len(leaves)]
        self._operand_leaves[instruction] = len(given)
        rest = leaves[len(given) :]
        return (*given, *(self._new(position, instruction, *leaf) for leaf in rest))

    def _done(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """A `-done`: the buffers that its start has written."""
        start = instruction.operands[0] if instruction.operands else None
        leaves = self._values.get(start, ()) if start is not None else ()
        count = len(self._facts.leaves(instruction.shape))
        skipped = self._operand_leaves.get(start, 0) if start is not None else 0
        found = leaves[skipped : skipped + count]
        return (
            found if len(found) == count else self._fresh(position, instruction, instruction.shape)
        )

    def _call(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """A call's result: what the callee hands through, otherwise held here for it."""
        called = self._nested.get(position, ())
        frame = self._frames.get(called[0]) if called else None
        fresh = self._facts.leaves(instruction.shape)
        given = [b for o in instruction.operands for b in self._values.get(o, ())]
        passed = frame.passed if frame is not None and len(frame.passed) == len(fresh) else ()
        result = []
        for number, (leaf, space) in enumerate(fresh):
            through = passed[number] if passed else None
            if through is not None and through < len(given):
                result.append(given[through])
            else:
                result.append(self._new(position, instruction, leaf, space))
        return tuple(result)

    def _define(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        facts, operands = self._facts, instruction.operands
        fresh = facts.leaves(instruction.shape)
        sizes = facts.sizes(instruction.shape)
        may_share = False
        for operand in operands if sizes else ():
            if not sizes.isdisjoint(facts.sizes(operand.shape)):
                may_share = True
                break
        if not may_share and len(fresh) == 1:
            return (self._new(position, instruction, *fresh[0]),)
        places = {}
        if may_share:
            wanted = {n for n, (leaf, _) in enumerate(fresh) if leaf.padded_bytes in sizes}
            places = in_place_results(instruction, wanted)
        result = []
        for number, (leaf, space) in enumerate(fresh):
            place = places.get(number)
            held = self._values.get(operands[place[0]], ()) if place is not None else ()
            if place is not None and place[1] < len(held) and held[place[1]] >= 0:
                result.append(held[place[1]])
            else:
                result.append(self._new(position, instruction, leaf, space))
        if instruction.opcode == "custom-call" and len(operands) > 1:
            self._concatenate(instruction, result)
        if may_share and instruction.opcode in SHARING:
            self._may_share.append((position, instruction))
        return tuple(result)

    def _concatenate(self, instruction: Instruction, result: list[int]) -> None:
        """The TPU's `ConcatBitcast` names neighbouring buffers as one; it holds none itself."""
        if len(result) != 1 or result[0] < 0 or _CONCATENATES not in instruction.attribute_text:
            return
        whole = self._buffers[result[0]]
        whole.bytes = 0
        parts = [b for o in instruction.operands for b in self._values.get(o, ()) if b >= 0]
        flat = [m for part in parts for m in (part, *self._buffers[part].members)]
        whole.members = tuple(dict.fromkeys(flat))

    def _share(self, results: tuple[int, ...]) -> None:
        """Lets results take the buffers of operands that die where they are defined."""
        if not self._may_share:
            return
        slots = self._slots(results)
        buffers, parameters = self._buffers, self._parameters
        for position, instruction in self._may_share:
            made = [n for n in self._values[instruction] if n >= 0 and n not in parameters]
            sizes = {buffers[n].bytes for n in made if buffers[n].first == position}
            if not sizes:
                continue
            dying: dict[int, list[int]] = {}
            for number, operand in enumerate(instruction.operands):
                for n in self._values.get(operand, ()):
                    if n < 0 or n in parameters or n in slots:
                        continue
                    if buffers[n].last == position and buffers[n].bytes in sizes:
                        dying.setdefault(number, []).append(n)
            if dying:
                allowed = shareable_operands(instruction)
                free = [n for o in allowed for n in dying.get(o, ())]
                self._merge([n for n in made if buffers[n].first == position], free, slots)

    def _slots(self, results: tuple[int, ...]) -> dict[int, int | None]:
        """The buffers of the computation's result, each with the parameter in whose place it goes.

        That of a loop's body is the state it was given, that of the program a donated argument.
        """
        of_leaf = {leaf: number for number, leaf in self._parameters.items()}
        places = {leaf: leaf for leaf in range(len(results))}
        if self._is_root:
            places = self._facts.aliased_outputs
        elif len(of_leaf) > len(results):
            places = {}
        return {n: of_leaf.get(places.get(k, -1)) for k, n in enumerate(results) if n >= 0}

    def _merge(self, made: list[int], dying: list[int], slots: dict[int, int | None]) -> None:
        for number in made:
            new = self._buffers[number]
            for old_number in dying:
                old = self._buffers[old_number]
                same = old.bytes == new.bytes and old.space == new.space
                if same and old_number not in made and self._is_free(slots.get(number), old):
                    new.first = min(new.first, old.first)
                    old.bytes = 0
                    dying.remove(old_number)
                    break

    def _is_free(self, parameter: int | None, buffer: Buffer) -> bool:
        """Whether `buffer` can lie in the place of a parameter: that must be dead by then."""
        if parameter is None:
            return True
        last = self._buffers[parameter].last
        if last != buffer.first:
            return last < buffer.first
        maker = buffer.instruction
        allowed = shareable_operands(maker) if maker.opcode in SHARING else ()
        return any(parameter in self._values.get(maker.operands[o], ()) for o in allowed)

    def _frame(self) -> Frame:
        instructions = self._computation.instructions
        end = len(instructions) - 1
        results = self._values.get(self._computation.root, ())
        self._use(results, end)
        held_by_caller = not self._is_root
        self._number_parameters()
        self._share(results)
        outputs = self._settle_results(results, end)
        held = [
            b
            for number, b in enumerate(self._buffers)
            if b.bytes
            and not (held_by_caller and (number in self._parameters or number in outputs))
        ]
        frame = Frame(
            buffers=held,
            nested=self._nested,
            peaks={},
            peak_at={},
            passed=tuple(self._parameters.get(number) for number in results),
        )
        for space in (HBM_SPACE, VMEM_SPACE):
            self._find_peak(frame, space, len(instructions))
        return frame

    @property
    def _is_root(self) -> bool:
        return self._facts.is_root(self._computation)

    def _settle_results(self, results: tuple[int, ...], end: int) -> set[int]:
        """Marks the program's outputs; returns the buffers of this computation's result."""
        outputs = {number for number in results if number >= 0}
        if not self._is_root:
            return outputs
        aliased = self._facts.aliased_outputs
        for leaf, number in enumerate(results):
            if number < 0 or number in self._parameters:
                continue
            buffer = self._buffers[number]
            if leaf in aliased:
                buffer.bytes = 0  # lies in the argument's buffer
            else:
                buffer.kind = "output"
        return outputs

    def _find_peak(self, frame: Frame, space: int, length: int) -> None:
        live = live_bytes(frame, space, length, frames=self._frames, granule=self._facts.granule)
        if live:
            peak = max(live)
            frame.peaks[space] = peak
            frame.peak_at[space] = live.index(peak)


def live_bytes(
    frame: Frame, space: int, length: int, *, frames: Mapping[Computation, Frame], granule: int
) -> list[int]:
    """Bytes of temporaries at each position of a computation, and in what is called there.

    Args:
      frame: what the computation holds.
      space: the memory space.
      length: the number of its instructions.
      frames: those of what it calls.
      granule: bytes of which a buffer in device memory takes a multiple.

    Returns:
      One figure a position, and a last one of 0; nothing where there is none in that space.
    """
    changes = [0] * (length + 1)
    some = False
    granule = granule if space == HBM_SPACE else 1
    for buffer in frame.buffers:
        if buffer.space == space and buffer.kind == "temporary":
            size = -(-buffer.bytes // granule) * granule
            changes[buffer.first] += size
            changes[buffer.last + 1] -= size
            some = True
    live = list(accumulate(changes)) if some else changes
    for position, called in frame.nested.items():
        inside = [frames[c].peaks.get(space, 0) for c in called if c in frames]
        if inside:
            live[position] += max(inside)
            some = True
    return live if some else []
