"""Which devices hold the same value, as far as the text of a partitioned module proves it.

A value is the same on the devices of a group if it was gathered or summed over the group, or
computed from such values and constants alone. Arguments differ from device to device unless their
`sharding` says that they are replicated: TPU text has none. What is random, is received, or comes
out of a custom call counts as different everywhere.
"""

from functools import lru_cache

from hlo_tools.analysis.collectives import Collective, Collectives
from hlo_tools.analysis.execution import Execution
from hlo_tools.hlo.module import Computation, Instruction, Module

MAX_DEVICES = 4096
"""Above this many devices nothing is proved: classes are listed device by device."""

MAX_PASSES = 64
"""How often the module is gone through before what loops carry is given up."""

_DIFFERENT = frozenset(
    {
        "partition-id", "replica-id", "rng", "rng-bit-generator", "rng-get-and-update-state",
        "infeed", "recv", "recv-done", "custom-call", "conditional", "call", "async-start",
        "async-update", "async-done", "reduce-scatter", "all-to-all", "ragged-all-to-all",
        "collective-permute", "collective-permute-start", "collective-permute-done", "(missing)",
    }
)  # fmt: skip
"""Opcodes whose result may differ from device to device whatever their operands are."""

_SHARED = frozenset({"all-gather", "all-reduce", "collective-broadcast"})
"""Collectives that leave the same on every device of a group."""

_Classes = tuple[int, ...]
"""For each device the first of those that hold the same value."""


class Replication:
    """The values of a module that several devices hold alike.

    Args:
      module: one that was partitioned, not replicated; of others nothing is known.
      execution: what of it runs.
      collectives: its collectives.
    """

    def __init__(self, module: Module, execution: Execution, collectives: Collectives) -> None:
        count = module.partitions
        self._known = 1 < count <= MAX_DEVICES and module.replicas == 1
        self._count = count if self._known else 1
        self._same: _Classes = (0,) * self._count
        self._all_differ: _Classes = tuple(range(self._count))
        self._execution = execution
        self._ends = {c.span.done: c for c in collectives.all if c.span and c.span.done}
        self._collectives = collectives
        self._carried: dict[Computation, list[_Classes]] = {}
        self._pure: dict[Computation, bool] = {}
        self._values: dict[Instruction, tuple[_Classes, ...]] = {}
        if self._known:
            self._settle()

    def copies(self, instruction: Instruction) -> int:
        """How many devices hold, and so compute, the same value, 1 where nothing is proved.

        The fewest, where groups differ.
        """
        classes = self._of(instruction)
        sizes = [classes.count(first) for first in set(classes)]
        return min(sizes, default=1)

    def _of(self, instruction: Instruction) -> _Classes:
        elements = self._values.get(instruction)
        if not elements:
            return self._all_differ
        found = elements[0]
        for other in elements[1:]:
            found = _meet(found, other)
        return found

    def _settle(self) -> None:
        """Assumes that all carries agree, and takes back what does not hold until all does."""
        for _ in range(MAX_PASSES):
            changed = False
            for computation in self._execution.executed:
                for instruction in computation.instructions:
                    self._values[instruction] = self._evaluate(instruction)
                    if instruction.opcode == "while":
                        changed |= self._enter(instruction)
            if not changed:
                return
        self._values.clear()

    def _enter(self, loop: Instruction) -> bool:
        """Hands a loop's carries to its computations; whether that changed what they assume."""
        carried = list(self._values[loop])
        changed = False
        for called in loop.called_computations:
            if self._carried.get(called) != carried:
                self._carried[called] = carried
                changed = True
        return changed

    def _evaluate(self, instruction: Instruction) -> tuple[_Classes, ...]:
        size = max(1, len(instruction.shape.elements)) if instruction.shape.is_tuple else 1
        opcode = instruction.opcode
        if opcode == "tuple":
            return tuple(self._of(operand) for operand in instruction.operands)
        if opcode == "get-tuple-element":
            return (self._element(instruction),)
        if opcode == "parameter":
            return self._parameter(instruction, size)
        if opcode == "while":
            return self._loop(instruction, size)
        collective = self._ends.get(instruction) or self._collectives.get(instruction)
        if collective is not None:
            return (self._shared(collective),) * size
        if opcode in _DIFFERENT or not self._is_pure(instruction):
            return (self._all_differ,) * size
        found = self._same
        for operand in instruction.operands:
            found = _meet(found, self._of(operand))
        return (found,) * size

    def _element(self, instruction: Instruction) -> _Classes:
        value = instruction.attribute("index")
        elements = self._values.get(instruction.operands[0], ()) if instruction.operands else ()
        index = int(value) if value and value.isascii() and value.isdigit() else len(elements)
        return elements[index] if index < len(elements) else self._all_differ

    def _parameter(self, instruction: Instruction, size: int) -> tuple[_Classes, ...]:
        computation = instruction.computation
        if not computation.is_entry:
            carried = self._carried.get(computation, [self._all_differ] * size)
            return tuple(carried) if len(carried) == size else (self._all_differ,) * size
        replicated = instruction.attribute("sharding") == "{replicated}"
        return (self._same if replicated and size == 1 else self._all_differ,) * size

    def _loop(self, loop: Instruction, size: int) -> tuple[_Classes, ...]:
        """What a loop carries: the initial values and what each trip leaves of them."""
        body, condition = loop.called("body"), loop.called("condition")
        initial = self._values.get(loop.operands[0], ()) if loop.operands else ()
        if body is None or condition is None or len(initial) != size:
            return (self._all_differ,) * size
        # Before its first pass a trip is taken to change nothing.
        left = self._values.get(body.root, initial)
        goes_on = self._values.get(condition.root, (self._same,))[0]
        if len(left) != size:
            return (self._all_differ,) * size
        before = self._values.get(loop, initial)
        return tuple(
            _meet(_meet(old, goes_on), _meet(first, new))
            for old, first, new in zip(before, initial, left, strict=True)
        )

    def _shared(self, collective: Collective) -> _Classes:
        if collective.kind not in _SHARED:
            return self._all_differ
        if all(self._of(operand) == self._same for operand in collective.instruction.operands):
            return self._same
        groups = collective.groups.groups if collective.groups is not None else None
        if groups is None or collective.group_size is None:
            return self._all_differ
        if collective.group_size == self._count:
            return self._same
        classes = list(self._all_differ)
        for group in groups:
            if len(group) != collective.group_size or max(group) >= self._count:
                return self._all_differ
            for device in group:
                classes[device] = min(group)
        return tuple(classes)

    def _is_pure(self, instruction: Instruction) -> bool:
        """Whether a fusion's result depends on nothing but its operands, nested ones included."""
        computation = instruction.fused_computation
        if computation is None:
            return instruction.opcode != "fusion"
        known = self._pure.get(computation)
        if known is None:
            stack, seen = [computation], {computation}
            known = True
            while stack and known:
                for inner in stack.pop().instructions:
                    if inner.opcode in _DIFFERENT or inner.opcode in _SHARED:
                        known = False
                    nested = inner.fused_computation
                    if nested is not None and nested not in seen:
                        seen.add(nested)
                        stack.append(nested)
            self._pure[computation] = known
        return known


@lru_cache(maxsize=1024)
def _meet(a: _Classes, b: _Classes) -> _Classes:
    """The devices that agree in both of two values."""
    if a == b:
        return a
    firsts: dict[tuple[int, int], int] = {}
    return tuple(firsts.setdefault(pair, n) for n, pair in enumerate(zip(a, b, strict=True)))
