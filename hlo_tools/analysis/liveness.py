"""When each buffer is live, and what is in memory at the fullest moment.

In a scheduled module the text is the schedule: a buffer is live from the instruction that defines
it to the last one that uses it. What the computations called at an instruction need comes on top,
for as long as the call lasts. Values that share a buffer (`hlo_tools.analysis.aliasing`) count once.

The result is a lower bound of what the compiler allocates: its heap has gaps. docs/cost-model.md
compares it with the compiler's own figures.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from hlo_tools.analysis.aliasing import (
    FORWARDING,
    SHARING,
    in_place_results,
    leaf_count,
    leaf_number,
    shareable_operands,
)
from hlo_tools.analysis.execution import Execution
from hlo_tools.hardware import detect_backend
from hlo_tools.hlo.module import MISSING, Computation, Instruction, Module
from hlo_tools.hlo.shape import HBM_SPACE, VMEM_SPACES, Shape

VMEM_SPACE = VMEM_SPACES[0]
TPU_GRANULE = 16384
"""Temporary buffers in a TPU's HBM begin at multiples of this many bytes (buffer assignments of
libtpu 0.0.52, all generations)."""

SCALAR_BYTES = 512
"""A scalar's buffer on TPU; buffers up to this size are not followed into one another."""
_CALLING = frozenset({"while", "call", "conditional", "async-start", "call-start"})
_OUTSIDE = -1
"""The number of a value that lies in no buffer counted here: constants, what is missing."""
_INDEX = re.compile(r"\bindex=(\d{1,9})")
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}")
_CONCATENATES = 'custom_call_target="ConcatBitcast"'


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """A buffer and when it is live.

    Attributes:
      instruction: the one that defines it.
      shape: of the value.
      bytes: its size, tile padding included.
      space: its memory space; every on-chip memory counts as `VMEM_SPACE`.
      first: position in its computation at which it comes to life.
      last: position of its last use; that of the last instruction if it leaves the computation.
      kind: `argument` and `output` of the program, otherwise `temporary`.
    """

    instruction: Instruction
    shape: Shape
    bytes: int
    space: int
    first: int
    last: int
    kind: str


class _Buffer:
    """A buffer that is being followed."""

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
class _Frame:
    """What one computation holds while it runs once, apart from what its caller holds for it.

    Attributes:
      buffers: in the order of their definition.
      nested: positions of calls, and the computations of which one at a time runs there.
      peaks: bytes at the fullest position, by space.
      peak_at: that position, by space.
      passed: for each leaf of the result the parameter leaf that it is, or `None`.
    """

    buffers: list[_Buffer]
    nested: dict[int, tuple[Computation, ...]]
    peaks: dict[int, int]
    peak_at: dict[int, int]
    passed: tuple[int | None, ...]


class Liveness:
    """Live ranges of a module's buffers in device memory and in VMEM.

    Args:
      module: the module, scheduled; otherwise the order of its text stands for a schedule.
      execution: what of it runs.
    """

    def __init__(self, module: Module, execution: Execution) -> None:
        self._module = module
        self._execution = execution
        # By identity: the reader makes one Shape of all that are written alike.
        self._leaves: dict[int, tuple[Shape, tuple[tuple[Shape, int], ...]]] = {}
        self._sizes: dict[int, frozenset[int]] = {}
        self._calls: dict[Instruction, tuple[Computation, ...]] = {}
        self._granule = TPU_GRANULE if detect_backend(module) == "tpu" else 1

    def peak_bytes(self, space: int) -> int:
        """Bytes at the fullest moment: arguments, outputs that are not arguments, temporaries."""
        return self.argument_bytes(space) + self.output_bytes(space) + self.temp_peak_bytes(space)

    def argument_bytes(self, space: int = HBM_SPACE) -> int:
        """Bytes of the program's arguments."""
        return self._held("argument", space)

    def output_bytes(self, space: int = HBM_SPACE) -> int:
        """Bytes of those outputs that do not lie in the buffer of an argument."""
        return self._held("output", space)

    def temp_peak_bytes(self, space: int = HBM_SPACE) -> int:
        """Bytes of everything else at the fullest moment."""
        return max(
            (self._frames[c].peaks.get(space, 0) for c in self._roots if c in self._frames),
            default=0,
        )

    def live_at_peak(self, space: int) -> tuple[LiveBuffer, ...]:
        """The buffers of `peak_bytes`, the largest first."""
        found: list[_Buffer] = []
        pending = [max(self._roots, key=lambda c: self._frames[c].peaks.get(space, 0))] if self._roots else []
        while pending:
            frame = self._frames[pending.pop()]
            at = frame.peak_at.get(space, 0)
            found += [
                b
                for b in frame.buffers
                if b.space == space
                and (b.kind != "temporary" or b.first <= at <= b.last)
            ]
            called = [c for c in frame.nested.get(at, ()) if c in self._frames]
            if called:
                pending.append(max(called, key=lambda c: self._frames[c].peaks.get(space, 0)))
        found.sort(key=lambda b: -b.bytes)
        return tuple(map(_public, found))

    @cached_property
    def buffers(self) -> tuple[LiveBuffer, ...]:
        """All buffers in device memory and VMEM, in the order of computations and definitions."""
        return tuple(
            _public(buffer)
            for computation in self._execution.executed
            for buffer in self._frames[computation].buffers
        )

    def _held(self, kind: str, space: int) -> int:
        return sum(
            buffer.bytes
            for root in self._roots
            for buffer in self._frames[root].buffers
            if buffer.kind == kind and buffer.space == space
        )

    @property
    def _roots(self) -> Sequence[Computation]:
        if self._module.entry is not None:
            return (self._module.entry,)
        return [c for c in self._execution.executed if not self._execution.callers(c)]

    @cached_property
    def _frames(self) -> dict[Computation, _Frame]:
        frames: dict[Computation, _Frame] = {}
        for first in self._execution.executed:
            stack = [first]
            while stack:
                current = stack[-1]
                if current in frames:
                    stack.pop()
                    continue
                called = {
                    c
                    for i in current.instructions
                    if i.opcode in _CALLING
                    for c in self.calls(i)
                }
                waiting = [c for c in called if c not in frames and c not in stack]
                if waiting:
                    stack.extend(waiting)
                    continue
                frames[current] = _Tracer(self, current, frames).trace()
                stack.pop()
        return frames

    def leaves(self, shape: Shape) -> tuple[tuple[Shape, int], ...]:
        """The leaves of a shape and the space of each, `_OUTSIDE` for spaces that do not count."""
        known = self._leaves.get(id(shape))
        if known is None:
            known = shape, tuple((leaf, _space(leaf)) for leaf in shape.leaves())
            self._leaves[id(shape)] = known
        return known[1]

    def sizes(self, shape: Shape) -> frozenset[int]:
        """The sizes of its leaves that are worth following into another's buffer."""
        known = self._sizes.get(id(shape))
        if known is None:
            known = frozenset(
                leaf.padded_bytes
                for leaf, space in self.leaves(shape)
                if space != _OUTSIDE and leaf.padded_bytes > SCALAR_BYTES
            )
            self._sizes[id(shape)] = known
        return known

    def calls(self, instruction: Instruction) -> tuple[Computation, ...]:
        """The computations that an instruction runs."""
        known = self._calls.get(instruction)
        if known is None:
            known = self._calls[instruction] = instruction.called_computations
        return known

    def aliased_outputs(self) -> dict[int, int]:
        """Leaves of the entry's result that lie in the buffer of an argument: leaf -> argument."""
        entry = self._module.entry
        value = self._module.attribute("input_output_alias")
        if entry is None or value is None:
            return {}
        shape = entry.root.shape
        found: dict[int, int] = {}
        for output, parameter, _ in _ALIAS.findall(value):
            index = tuple(int(part) for part in output.split(",") if part.strip())
            leaf = leaf_number(shape, index)
            if leaf is not None:
                found[leaf] = int(parameter)
        return found


def _space(leaf: Shape) -> int:
    space = leaf.memory_space
    if space in VMEM_SPACES:
        return VMEM_SPACE
    return HBM_SPACE if space == HBM_SPACE and leaf.padded_bytes else _OUTSIDE


def _public(buffer: _Buffer) -> LiveBuffer:
    return LiveBuffer(
        instruction=buffer.instruction,
        shape=buffer.shape,
        bytes=buffer.bytes,
        space=buffer.space,
        first=buffer.first,
        last=buffer.last,
        kind=buffer.kind,
    )


class _Tracer:
    """Follows the values of one computation through their buffers."""

    def __init__(
        self, owner: Liveness, computation: Computation, frames: dict[Computation, _Frame]
    ) -> None:
        self._owner = owner
        self._computation = computation
        self._frames = frames
        self._buffers: list[_Buffer] = []
        self._values: dict[Instruction, tuple[int, ...]] = {}
        self._parameters: dict[int, int] = {}
        self._operand_leaves: dict[Instruction, int] = {}
        self._nested: dict[int, tuple[Computation, ...]] = {}
        self._may_share: list[tuple[int, Instruction]] = []

    def trace(self) -> _Frame:
        """Goes through the computation once."""
        values = self._values
        for position, instruction in enumerate(self._computation.instructions):
            values[instruction] = self._value(position, instruction)
        return self._frame()

    def _value(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """The buffers of an instruction's leaves; marks those of its operands as used."""
        opcode, operands = instruction.opcode, instruction.operands
        values = self._values
        if opcode == "get-tuple-element":
            return self._element(instruction)
        if opcode == "tuple":
            return tuple(b for o in operands for b in values.get(o, ()))
        if opcode == "bitcast":
            return values.get(operands[0], ()) if operands else ()
        if opcode == "parameter":
            return self._parameter(position, instruction)
        if opcode in ("constant", MISSING):
            return (_OUTSIDE,) * len(self._owner.leaves(instruction.shape))
        for operand in operands:
            self._use(values.get(operand, ()), position)
        if opcode in _CALLING:
            self._nested[position] = self._owner.calls(instruction)
        if opcode in FORWARDING:
            return values.get(operands[0], ()) if operands else ()
        if opcode.endswith("-done"):
            return self._done(position, instruction)
        if opcode.endswith(("-start", "-update")) or opcode in ("send", "recv"):
            return self._start(position, instruction)
        if opcode == "call":
            return self._call(position, instruction)
        return self._define(position, instruction)

    def _use(self, leaves: Iterable[int], position: int) -> None:
        buffers = self._buffers
        for number in leaves:
            if number >= 0:
                buffer = buffers[number]
                buffer.last = position
                if buffer.members:
                    self._use(buffer.members, position)

    def _new(self, position: int, instruction: Instruction, leaf: Shape, space: int) -> int:
        if space == _OUTSIDE:
            return _OUTSIDE
        self._buffers.append(_Buffer(instruction, leaf, space, position))
        return len(self._buffers) - 1

    def _fresh(self, position: int, instruction: Instruction, shape: Shape) -> tuple[int, ...]:
        return tuple(
            self._new(position, instruction, leaf, space)
            for leaf, space in self._owner.leaves(shape)
        )

    def _parameter(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        numbers = self._fresh(position, instruction, instruction.shape)
        for number in numbers:
            if number >= 0:
                self._buffers[number].kind = "argument"
                self._parameters[number] = len(self._parameters)
        return numbers

    def _element(self, instruction: Instruction) -> tuple[int, ...]:
        if not instruction.operands:
            return ()
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
        `all-reduce-start` gives its results alone.
        """
        given = tuple(b for o in instruction.operands for b in self._values.get(o, ()))
        leaves = self._owner.leaves(instruction.shape)
        opcode = instruction.opcode
        if opcode.endswith("-update"):
            return given
        if opcode in ("all-reduce-start", "recv") or not instruction.shape.is_tuple:
            return self._fresh(position, instruction, instruction.shape)
        if opcode == "copy-start":
            written = self._new(position, instruction, *leaves[0]) if leaves else _OUTSIDE
            return (written, *given, *(_OUTSIDE,) * (len(leaves) - 2))[: len(leaves)]
        self._operand_leaves[instruction] = len(given)
        rest = leaves[len(given) :]
        return (*given, *(self._new(position, instruction, *leaf) for leaf in rest))

    def _done(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """A `-done`: the buffers that its start has written."""
        start = instruction.operands[0] if instruction.operands else None
        while start is not None and start.opcode.endswith("-update") and start.operands:
            start = start.operands[0]
        leaves = self._values.get(start, ()) if start is not None else ()
        count = len(self._owner.leaves(instruction.shape))
        skipped = self._operand_leaves.get(start, 0) if start is not None else 0
        found = leaves[skipped : skipped + count]
        return found if len(found) == count else self._fresh(position, instruction, instruction.shape)

    def _call(self, position: int, instruction: Instruction) -> tuple[int, ...]:
        """A call's result: what the callee hands through, otherwise held here for it."""
        called = self._nested.get(position, ())
        frame = self._frames.get(called[0]) if called else None
        fresh = self._owner.leaves(instruction.shape)
        given = [b for o in instruction.operands for b in self._values.get(o, ()) if b >= 0]
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
        owner, operands = self._owner, instruction.operands
        fresh = owner.leaves(instruction.shape)
        sizes = owner.sizes(instruction.shape)
        may_share = False
        if sizes:
            may_share = any(not sizes.isdisjoint(owner.sizes(o.shape)) for o in operands)
        if not may_share and len(fresh) == 1:
            return (self._new(position, instruction, *fresh[0]),)
        places = in_place_results(instruction) if may_share else {}
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
        whole.members = tuple(
            b for o in instruction.operands for b in self._values.get(o, ()) if b >= 0
        )

    def _share(self, results: tuple[int, ...]) -> None:
        """Lets results take the buffers of operands that die where they are defined."""
        outside = set(self._parameters) | ({*results} if not self._is_root else set())
        buffers = self._buffers
        for position, instruction in self._may_share:
            made = [n for n in self._values[instruction] if n >= 0 and n not in outside]
            sizes = {buffers[n].bytes for n in made if buffers[n].first == position}
            if not sizes:
                continue
            dying: dict[int, list[int]] = {}
            for number, operand in enumerate(instruction.operands):
                for n in self._values.get(operand, ()):
                    if n < 0 or n in outside:
                        continue
                    if buffers[n].last == position and buffers[n].bytes in sizes:
                        dying.setdefault(number, []).append(n)
            if dying:
                allowed = shareable_operands(instruction)
                self._merge(made, [n for o in allowed for n in dying.get(o, ())], position)

    def _merge(self, made: list[int], dying: list[int], position: int) -> None:
        for number in made:
            new = self._buffers[number]
            if new.first != position:
                continue
            for old_number in dying:
                old = self._buffers[old_number]
                if old_number not in made and old.bytes == new.bytes and old.space == new.space:
                    new.first = min(new.first, old.first)
                    old.bytes = 0
                    dying.remove(old_number)
                    break

    def _frame(self) -> _Frame:
        instructions = self._computation.instructions
        end = len(instructions) - 1
        results = self._values.get(self._computation.root, ())
        self._use(results, end)
        owner_is_caller = not self._is_root
        self._share(results)
        outputs = self._settle_results(results, end)
        held = [
            b
            for number, b in enumerate(self._buffers)
            if b.bytes and not (owner_is_caller and (number in self._parameters or number in outputs))
        ]
        frame = _Frame(
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
        return not self._owner._execution.callers(self._computation)

    def _settle_results(self, results: tuple[int, ...], end: int) -> set[int]:
        """Marks the program's outputs; returns the buffers of this computation's result."""
        outputs = {number for number in results if number >= 0}
        if not self._is_root:
            return outputs
        aliased = self._owner.aliased_outputs()
        for leaf, number in enumerate(results):
            if number < 0 or number in self._parameters:
                continue
            buffer = self._buffers[number]
            if leaf in aliased:
                buffer.bytes = 0  # lies in the argument's buffer
            else:
                buffer.kind = "output"
        return outputs

    def _find_peak(self, frame: _Frame, space: int, length: int) -> None:
        changes = [0] * (length + 1)
        some = False
        granule = self._owner._granule if space == HBM_SPACE else 1
        for buffer in frame.buffers:
            if buffer.space == space and buffer.kind == "temporary":
                size = -(-buffer.bytes // granule) * granule
                changes[buffer.first] += size
                changes[buffer.last + 1] -= size
                some = True
        live = list(accumulate(changes)) if some else changes
        for position, called in frame.nested.items():
            inside = [self._frames[c].peaks.get(space, 0) for c in called if c in self._frames]
            if inside:
                live[position] += max(inside)
                some = True
        if some:
            peak = max(live)
            frame.peaks[space] = peak
            frame.peak_at[space] = live.index(peak)
