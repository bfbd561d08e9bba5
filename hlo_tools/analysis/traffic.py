"""How many bytes an instruction moves, and between which memories.

Bytes are those of the buffers as laid out, tile padding included. What an instruction names but
does not touch is not counted: the rest of a buffer of which a slice is read, the buffer that a
dynamic-update-slice updates in place, values that merely get another name.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hlo_tools.analysis.flops import MOVES_NOTHING
from hlo_tools.hlo.module import MISSING, Computation, Instruction, parameter_number
from hlo_tools.hlo.shape import HBM_SPACE, HOST_SPACE, VMEM_SPACES, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that one execution of an instruction moves.

    Attributes:
      hbm_read: from device memory.
      hbm_written: to device memory.
      vmem_read: from on-chip memory.
      vmem_written: to on-chip memory.
      host: to or from the host's memory, both ways together.
      widest: elements, padding included, of the largest single value that is read or written.
    """

    hbm_read: int = 0
    hbm_written: int = 0
    vmem_read: int = 0
    vmem_written: int = 0
    host: int = 0
    widest: int = 0

    @property
    def hbm(self) -> int:
        """Bytes through device memory, both ways."""
        return self.hbm_read + self.hbm_written

    @property
    def vmem(self) -> int:
        """Bytes through on-chip memory, both ways."""
        return self.vmem_read + self.vmem_written

    @property
    def total(self) -> int:
        """All bytes, wherever they lie."""
        return self.hbm + self.vmem + self.host


NO_TRAFFIC = Traffic()

FREE = frozenset(
    {
        MISSING, "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all",
        "partition-id", "replica-id", "opt-barrier", "optimization-barrier", "domain",
        "add-dependency", "get-dimension-size", "while", "call", "conditional", "async-start",
        "async-update", "async-done", "copy-done", "slice-done", "all-gather-done",
        "all-reduce-done", "collective-permute-done", "send-done", "recv-done",
        "dynamic-slice-done", "dynamic-update-slice-done", "call-start", "call-done",
    }
)  # fmt: skip
"""Opcodes that move nothing themselves: names, control flow (what is called is counted where it
runs) and the ends of asynchronous pairs, which are counted at their start."""

COLLECTIVES = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute",
        "ragged-all-to-all", "reduce-scatter", "all-gather-start", "all-reduce-start",
        "collective-permute-start",
    }
)  # fmt: skip
_SLICES = frozenset({"slice", "dynamic-slice", "gather"})
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_PARTIAL = _SLICES | _IN_PLACE | COLLECTIVES | {"fusion", "custom-call"}
"""Opcodes that, in a fusion, may touch less of its operands and results than all."""
_VIEWS = frozenset({"bitcast", "get-tuple-element"})
_TARGET = re.compile(r'custom_call_target="([^"]*)"')

_Part = int | None
"""Bytes of a buffer that are touched; `None` for all of it."""
_Sizes = tuple[int, int, int, int]
"""Bytes in device memory, on chip and at the host, and the elements of the largest leaf."""


@dataclass(frozen=True, slots=True)
class _BodyUse:
    """What a fusion's computation touches of its parameters and of its result's leaves.

    Only what is touched in part is listed.
    """

    read: dict[int, int]
    written: dict[int, int]


_WHOLE = _BodyUse({}, {})


class TrafficCounter:
    """Counts traffic; what the computations of fusions touch is found out once and kept.

    Args:
      has_vmem: whether memory space 1 is on-chip memory, as it is on TPUs; on GPUs it is a part
        of device memory that collectives use.
    """

    def __init__(self, *, has_vmem: bool) -> None:
        self._has_vmem = has_vmem
        self._bodies: dict[Computation, _BodyUse] = {}
        # By identity: the reader makes one Shape of all that are written alike.
        self._sizes: dict[int, tuple[Shape, _Sizes]] = {}

    def of(self, instruction: Instruction, called: Computation | None = None) -> Traffic:
        """The traffic of one execution.

        Args:
          instruction: the one to count.
          called: for a fusion, its computation, if known already.
        """
        opcode = instruction.opcode
        if opcode in FREE:
            return NO_TRAFFIC
        if opcode == "fusion":
            if called is None:
                called = next(iter(instruction.called_computations), None)
            use = self._use(called) if called is not None else _WHOLE
            if use.read or use.written:
                return self._partly(instruction, use)
        elif opcode in _SLICES or opcode in _IN_PLACE:
            return self._slicing(instruction)
        elif opcode.endswith("-start"):
            return self._start(instruction)
        elif opcode == "custom-call" and is_free_call(instruction):
            return NO_TRAFFIC
        read = [self._whole(operand.shape) for operand in instruction.operands]
        return _traffic(read, [self._whole(instruction.shape)])

    def most_hbm(self, instruction: Instruction) -> int:
        """Bytes of device memory that it could touch at most: all its operands and results."""
        total = self._whole(instruction.shape)[0]
        for operand in instruction.operands:
            total += self._whole(operand.shape)[0]
        return total

    def _whole(self, shape: Shape) -> _Sizes:
        known = self._sizes.get(id(shape))
        if known is None:
            hbm = vmem = host = widest = 0
            for leaf in shape.leaves():
                one = self._part(leaf, leaf.padded_bytes)
                hbm, vmem, host = hbm + one[0], vmem + one[1], host + one[2]
                widest = max(widest, one[3])
            known = self._sizes[id(shape)] = (shape, (hbm, vmem, host, widest))
        return known[1]

    def _part(self, leaf: Shape, size: int) -> _Sizes:
        """`size` bytes of an array."""
        bits = leaf.stored_bits
        elements = size * 8 // bits if bits else 0
        space = leaf.memory_space
        if space in VMEM_SPACES and self._has_vmem:
            return 0, size, 0, elements
        if space == HBM_SPACE or space in VMEM_SPACES:
            return size, 0, 0, elements
        return 0, 0, size if space == HOST_SPACE else 0, elements if space == HOST_SPACE else 0

    def _slicing(self, instruction: Instruction) -> Traffic:
        operands, shape = instruction.operands, instruction.shape
        if not operands:
            return _traffic((), [self._whole(shape)])
        others = [self._whole(o.shape) for o in operands[1:]]
        source = _first_leaf(operands[0].shape)
        if instruction.opcode in _SLICES:
            return _traffic([self._part(source, shape.padded_bytes), *others], [self._whole(shape)])
        size = _update_bytes(instruction)
        written = self._part(_first_leaf(shape), size)
        if instruction.opcode == "scatter":
            others.append(self._part(source, size))
        return _traffic(others, [written])

    def _start(self, instruction: Instruction) -> Traffic:
        """A `-start`: what it will have moved by its `-done`.

        Its result is a tuple that also names the operands: `copy-start` gives (destination,
        source, context), the others (operands, destination, ...) (`xla/service/shape_inference.cc`
        and `hlo_verifier.cc`).
        """
        opcode, elements = instruction.opcode, instruction.shape.elements
        if opcode == "all-reduce-start" or len(elements) < 2:
            destination = instruction.shape
        else:
            destination = elements[0] if opcode == "copy-start" else elements[1]
        written = self._whole(destination)
        if "slice" in opcode and instruction.operands:
            source = _first_leaf(instruction.operands[0].shape)
            return _traffic([self._part(source, destination.padded_bytes)], [written])
        return _traffic([self._whole(o.shape) for o in instruction.operands], [written])

    def _partly(self, fusion: Instruction, use: _BodyUse) -> Traffic:
        read = []
        for number, operand in enumerate(fusion.operands):
            part = use.read.get(number)
            shape = operand.shape
            if part is None:
                read.append(self._whole(shape))
            else:
                read.append(self._part(_first_leaf(shape), min(part, shape.padded_bytes)))
        if not use.written:
            return _traffic(read, [self._whole(fusion.shape)])
        written = []
        for number, leaf in enumerate(fusion.shape.leaves()):
            part = use.written.get(number)
            written.append(self._whole(leaf) if part is None else self._part(leaf, part))
        return _traffic(read, written)

    def _use(self, computation: Computation) -> _BodyUse:
        stack = [computation]
        while stack:
            current = stack[-1]
            if current in self._bodies:
                stack.pop()
                continue
            partial = [i for i in current.instructions if i.opcode in _PARTIAL]
            nested = {
                i: called[0]
                for i in partial
                if i.opcode == "fusion" and (called := i.called_computations)
            }
            waiting = [c for c in nested.values() if c not in self._bodies and c not in stack]
            if waiting:
                stack.extend(waiting)
                continue
            if partial:
                inner = {i: self._bodies.get(c, _WHOLE) for i, c in nested.items()}
                self._bodies[current] = _BodyReader(current, partial, inner).read()
            else:
                self._bodies[current] = _WHOLE
            stack.pop()
        return self._bodies[computation]


def _traffic(read: Iterable[_Sizes], written: Iterable[_Sizes]) -> Traffic:
    hbm_read = vmem_read = hbm_written = vmem_written = host = widest = 0
    for hbm, vmem, remote, elements in read:
        hbm_read += hbm
        vmem_read += vmem
        host += remote
        widest = elements if elements > widest else widest
    for hbm, vmem, remote, elements in written:
        hbm_written += hbm
        vmem_written += vmem
        host += remote
        widest = elements if elements > widest else widest
    return Traffic(
        hbm_read=hbm_read,
        hbm_written=hbm_written,
        vmem_read=vmem_read,
        vmem_written=vmem_written,
        host=host,
        widest=widest,
    )


def is_free_call(instruction: Instruction) -> bool:
    """Whether a `custom-call` does and moves nothing."""
    return custom_call_target(instruction) in MOVES_NOTHING


def custom_call_target(instruction: Instruction) -> str:
    """The name of the code that a `custom-call` runs; empty where the text has none."""
    match = _TARGET.search(instruction.attribute_text)
    return match[1] if match else ""


def _first_leaf(shape: Shape) -> Shape:
    return next(iter(shape.leaves()), shape) if shape.is_tuple else shape


def _update_bytes(instruction: Instruction) -> int:
    """Bytes that a dynamic-update-slice or scatter writes into its first operand."""
    operands = instruction.operands
    if instruction.opcode == "dynamic-update-slice":
        return operands[1].shape.padded_bytes if len(operands) > 1 else 0
    count = (len(operands) - 1) // 2
    return sum(o.shape.padded_bytes for o in operands[count + 1 :])


class _BodyReader:
    """Finds out what a fused computation touches, given what the fusions inside it touch.

    Args:
      computation: the body.
      partial: its instructions that may touch something in part.
      inner: what nested fusions touch of their operands.
    """

    def __init__(
        self,
        computation: Computation,
        partial: list[Instruction],
        inner: dict[Instruction, _BodyUse],
    ) -> None:
        self._computation = computation
        self._partial = partial
        self._inner = inner
        root = computation.root
        self._leaves = list(_root_leaves(root))
        self._results = {_origin(leaf) for leaf in self._leaves}
        self._carried: set[Instruction] = set()
        ends = next((i for i in partial if _async_end(i) == "Done"), None)
        self._ends = ends
        if root.opcode == "tuple":
            self._carried |= self._results
        if ends is not None:
            self._carried.update(ends.operands)

    def read(self) -> _BodyUse:
        """What it touches only in part."""
        written: dict[int, int] = {}
        for number, leaf in enumerate(self._leaves):
            part = self._stored(_origin(leaf))
            if part is not None:
                written[number] = part
        if _async_end(self._computation.root) == "Start":
            written[0] = 0  # the operand's own buffer, handed on
        return _BodyUse(self._read_in_part(), written)

    def _read_in_part(self) -> dict[int, int]:
        candidates: set[Instruction] = set()
        for i in self._partial:
            every = i.operands if i.opcode in ("fusion", "custom-call") else i.operands[:1]
            for operand in every:
                source = _origin(operand)
                if source.opcode == "parameter":
                    candidates.add(source)
        candidates.update(r for r in self._carried if r.opcode == "parameter")
        if not candidates:
            return {}
        views = {parameter: parameter for parameter in candidates}
        touched: dict[Instruction, _Part] = dict.fromkeys(candidates, 0)
        for i in self._computation.instructions:
            operands = i.operands
            if not operands or views.keys().isdisjoint(operands):
                continue
            if i.opcode in _VIEWS:
                views[i] = views[operands[0]]
                continue
            for position, operand in enumerate(operands):
                parameter = views.get(operand)
                if parameter is None:
                    continue
                part, so_far = self._touched(i, position), touched[parameter]
                touched[parameter] = None if part is None or so_far is None else so_far + part
        return {parameter_number(p): part for p, part in touched.items() if part is not None}

    def _touched(self, user: Instruction, position: int) -> _Part:
        """Bytes that `user` reads of its operand at `position`."""
        opcode = user.opcode
        if opcode == "tuple" or (opcode in COLLECTIVES and user in self._carried):
            return 0
        if opcode == "fusion":
            return self._inner.get(user, _WHOLE).read.get(position)
        if opcode == "custom-call":
            return 0 if user is self._ends else None
        if position == 0:
            if opcode in _SLICES:
                return user.shape.padded_bytes
            if opcode in _IN_PLACE and user in self._results:
                return _update_bytes(user) if opcode == "scatter" else 0
        return None

    def _stored(self, result: Instruction) -> _Part:
        """Bytes that are written of a result's buffer: less than all if it is updated in place.

        A collective whose value is an element of the result is in flight through this fusion: it
        was counted where it was started.
        """
        opcode = result.opcode
        if opcode == "parameter":
            return 0
        if opcode in _IN_PLACE and result.operands:
            in_place = _origin(result.operands[0]).opcode == "parameter"
            return _update_bytes(result) if in_place else None
        if opcode == "fusion":
            return self._inner.get(result, _WHOLE).written.get(0)
        if opcode in COLLECTIVES and result in self._carried:
            return 0
        return 0 if result is self._ends else None


def _origin(node: Instruction) -> Instruction:
    """What a value is another name of."""
    while node.opcode in _VIEWS and node.operands:
        node = node.operands[0]
    return node


def _async_end(instruction: Instruction) -> str:
    """`Start` or `Done` for the custom calls that mark a TPU collective's ends in fusions."""
    if instruction.opcode != "custom-call":
        return ""
    target = custom_call_target(instruction)
    return target.removeprefix("AsyncCollective") if target.startswith("AsyncCollective") else ""


def _root_leaves(root: Instruction) -> Iterator[Instruction]:
    """The instructions that define the leaves of a fusion's result, as many as its shape has."""
    count = sum(1 for _ in root.shape.leaves())
    stack = [root]
    while stack and count > 0:
        node = stack.pop()
        if node.opcode == "tuple":
            stack.extend(reversed(node.operands[:count]))
        else:
            count -= 1
            yield node
