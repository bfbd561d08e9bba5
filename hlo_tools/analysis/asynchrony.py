"""Operations that run beside others: from where they start to where they are waited for.

The forms are `x-start`/`x-done` pairs, `send` and `recv`, the generic `async-start` around a
computation of its own, and the TPU's collectives inside fusions: there a fusion whose root is a
custom call "AsyncCollectiveStart" begins, further fusions hand the operation's flags on while
they do other work, and a fusion with "AsyncCollectiveDone" waits.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from hlo_tools.analysis.execution import Execution
from hlo_tools.hlo.module import Computation, Instruction, Module, parameter_number
from hlo_tools.hlo.shape import Shape

COLLECTIVES = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute",
        "ragged-all-to-all", "reduce-scatter",
    }
)  # fmt: skip
"""The opcodes in which several devices take part."""

FLAG_SPACES = frozenset({2, 4})
"""Memory spaces of the flags on which TPU cores wait for each other and for DMAs."""

MAX_HOPS = 64
"""How many instructions the way from a wait back to its start may lead through."""

_BLOCKING = re.compile(r'is_sync\\?"\s*:\s*true')
_Role = Literal["start", "wait", "fusion", "element", "other"]
_START, _DONE, _UPDATE = "-start", "-done", "-update"
_TRANSPARENT = frozenset({"bitcast", "copy", "optimization-barrier"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AsyncSpan:
    """One asynchronous operation.

    Attributes:
      kind: the opcode of what runs: `all-gather`, `copy`, `slice`, `send`, `custom-call`, ...
      start: the instruction that begins it.
      done: the instruction that waits for it; `None` where the text shows none, or where that is
        in another computation.
      operation: the instruction that says what is done: the one inside, otherwise `start`.
      carriers: the instructions in between that hand it on, in order: `async-update`, and the
        fusions through which a TPU collective passes while they do other work.
      blocking: the compiler has marked it to be waited for at once (`is_sync`, on GPU).
      carried: `done` waits for the start of the previous trip of their loop.
      start_position: the place of `start` in its computation.
      done_position: likewise, of `done`.
    """

    kind: str
    start: Instruction
    done: Instruction | None
    operation: Instruction
    carriers: tuple[Instruction, ...] = ()
    blocking: bool = False
    carried: bool = False
    start_position: int
    done_position: int | None

    @property
    def between(self) -> tuple[Instruction, ...]:
        """What is scheduled between start and done, the carriers included; empty without `done`.

        The order is that of the text, which is the schedule where `Module.is_scheduled`.
        """
        if self.done_position is None:
            return ()
        scheduled = self.start.computation.instructions
        if self.carried:
            return (*scheduled[self.start_position + 1 :], *scheduled[: self.done_position])
        return tuple(scheduled[self.start_position + 1 : self.done_position])


@dataclass(slots=True, kw_only=True, eq=False)
class _Open:
    """A span whose end has not been met yet."""

    kind: str
    start: Instruction
    position: int
    operation: Instruction
    blocking: bool = False
    carriers: list[tuple[int, Instruction]] = field(default_factory=list)
    done: Instruction | None = None
    done_position: int | None = None
    carried: bool = False

    def close(self) -> AsyncSpan:
        return AsyncSpan(
            kind=self.kind,
            start=self.start,
            done=self.done,
            operation=self.operation,
            carriers=tuple(instruction for _, instruction in self.carriers),
            blocking=self.blocking,
            carried=self.carried,
            start_position=self.position,
            done_position=self.done_position,
        )


class Asynchrony:
    """The asynchronous operations of the computations that run.

    Attributes:
      spans: those that run beside other work, in the order of their starts; not those that the
        compiler has marked as blocking.
    """

    def __init__(self, module: Module, execution: Execution) -> None:
        self._module = module
        self._execution = execution
        self._holds_flags: dict[int, int] = {}
        self._roles: dict[str, _Role] = {"fusion": "fusion", "get-tuple-element": "element"}
        self._of: dict[Instruction, AsyncSpan] = {}
        self._records: list[_Open] = []
        opened: dict[Instruction, _Open] = {}
        waits: list[tuple[int, Instruction]] = []
        for computation in execution.executed:
            self._scan(computation, opened, waits)
        epilogues = self._pair(opened, waits)
        spans = []
        for record in self._records:
            span = record.close()
            for instruction in (span.start, *span.carriers, span.done):
                if instruction is not None:
                    self._of[instruction] = span
            if not span.blocking:
                spans.append(span)
        for wait, start in epilogues:
            self._of[wait] = self._of[start]
        self.spans: tuple[AsyncSpan, ...] = tuple(spans)

    def span_of(self, instruction: Instruction) -> AsyncSpan | None:
        """The operation that an instruction starts, hands on or waits for, blocking ones included.

        Where a fusion does that for several, the last one.
        """
        return self._of.get(instruction)

    def _scan(
        self,
        computation: Computation,
        opened: dict[Instruction, _Open],
        waits: list[tuple[int, Instruction]],
    ) -> None:
        chains = _Chains(self)
        current = chains.current
        roles = self._roles
        for position, instruction in enumerate(computation.instructions):
            opcode = instruction.opcode
            role = roles.get(opcode)
            if role is None:
                role = roles[opcode] = _role(opcode)
            if role == "other":
                continue
            if role == "start":
                record = opened[instruction] = self._start(position, instruction)
                self._records.append(record)
            elif role == "wait":
                waits.append((position, instruction))
            elif role == "element":
                if current and instruction.operands and instruction.operands[0] in current:
                    chains.project(instruction)
            elif instruction.shape.is_tuple or not current.keys().isdisjoint(instruction.operands):
                self._records.extend(chains.meet(position, instruction))
        chains.finish()

    def _start(self, position: int, instruction: Instruction) -> _Open:
        opcode = instruction.opcode
        operation = instruction
        if opcode == "async-start":
            operation = _wrapped(instruction)
            kind = operation.opcode if operation is not instruction else "async"
        else:
            kind = opcode.removesuffix(_START)
        blocking = kind in COLLECTIVES and bool(_BLOCKING.search(instruction.attribute_text))
        return _Open(
            kind=kind, start=instruction, position=position, operation=operation, blocking=blocking
        )

    def _pair(
        self, opened: dict[Instruction, _Open], waits: list[tuple[int, Instruction]]
    ) -> list[tuple[Instruction, Instruction]]:
        """Gives each wait to its start; returns the waits after a loop for a start inside it."""
        epilogues = []
        for position, wait in waits:
            start, carried = self._start_of(wait, opened)
            if start is None:
                continue
            record = opened[start]
            if wait.opcode.endswith(_UPDATE):
                record.carriers.append((position, wait))
            elif wait.computation is start.computation and record.done is None:
                record.done, record.done_position, record.carried = wait, position, carried
            else:
                epilogues.append((wait, start))
        return epilogues

    def _start_of(
        self, wait: Instruction, opened: dict[Instruction, _Open]
    ) -> tuple[Instruction | None, bool]:
        """The start that `wait` belongs to, and whether it is that of the previous trip."""
        carried = False
        elements: list[int] = []
        node: Instruction | None = wait.operands[0] if wait.operands else None
        for _ in range(MAX_HOPS):
            if node is None:
                break
            opcode = node.opcode
            if node in opened and not elements:
                return node, carried
            if opcode == "get-tuple-element":
                index = node.attribute("index") or ""
                if not (index.isascii() and index.isdigit() and len(index) < 10):
                    break
                elements.append(int(index))
                node = node.operands[0] if node.operands else None
            elif opcode == "tuple" and elements:
                element = elements.pop()
                node = node.operands[element] if element < len(node.operands) else None
            elif opcode == "while":
                body = node.called("body")
                node = body.root if body is not None else None
            elif opcode == "parameter":
                loop = self._execution.loop_of(node.computation)
                if loop is None or loop.called("body") is not node.computation:
                    break
                carried = True
                node = node.computation.root
            elif (opcode in _TRANSPARENT or opcode.endswith(_UPDATE)) and node.operands:
                node = node.operands[0]
            else:
                break
        return None, False

    def flags(self, shape: Shape) -> int:
        """How many arrays of a shape are flags."""
        count = self._holds_flags.get(id(shape))
        if count is None:
            count = sum(leaf.memory_space in FLAG_SPACES for leaf in shape.leaves())
            self._holds_flags[id(shape)] = count
        return count


class _Chains:
    """The TPU's collectives inside fusions, in one computation, met in the order of the text.

    Attributes:
      current: the flags that are held by an instruction met so far, and whose they are.
    """

    def __init__(self, owner: Asynchrony) -> None:
        self.current: dict[Instruction, _Open | dict[int, _Open]] = {}
        self._owner = owner
        self._records: list[_Open] = []
        self._fused: dict[Instruction, Computation | None] = {}

    def meet(self, position: int, fusion: Instruction) -> list[_Open]:
        """Takes note of a fusion; returns the operations that begin in it."""
        incoming = [self.current.get(operand) for operand in fusion.operands]
        passing = list(dict.fromkeys(chain for chain in incoming if isinstance(chain, _Open)))
        for chain in passing:
            chain.carriers.append((position, fusion))
        held = self._owner.flags(fusion.shape) if fusion.shape.is_tuple else 0
        if not held:
            return []
        if len(passing) == 1 and held <= sum(chain is not None for chain in incoming):
            self.current[fusion] = passing[0]
            return []
        body = self._body(fusion)
        if body is None:
            return []
        started: list[_Open] = []
        starters: dict[Instruction, _Open] = {}
        outgoing: dict[int, _Open] = {}
        roots = body.root.operands if body.root.opcode == "tuple" else (body.root,)
        for element, value in enumerate(roots):
            if value.opcode == "parameter":
                number = parameter_number(value)
                handed_on = incoming[number] if 0 <= number < len(incoming) else None
                if isinstance(handed_on, _Open):
                    outgoing[element] = handed_on
                continue
            source = value.operands[0] if value.opcode == "get-tuple-element" else value
            if source not in starters:
                record = self._begin(position, fusion, source)
                if record is None:
                    continue
                starters[source] = record
                started.append(record)
            outgoing[element] = starters[source]
        if body.root.opcode != "tuple" and started:
            self.current[fusion] = started[0]
        elif outgoing:
            self.current[fusion] = outgoing
        return started

    def project(self, element: Instruction) -> None:
        """Takes note of a `get-tuple-element` of a fusion that holds flags."""
        chain: _Open | dict[int, _Open] | None = self.current[element.operands[0]]
        if not self._owner.flags(element.shape):
            return
        if isinstance(chain, dict):
            index = element.attribute("index") or ""
            chain = chain.get(int(index)) if index.isascii() and index.isdigit() else None
        if chain is not None:
            self.current[element] = chain

    def finish(self) -> None:
        """Ends each operation at the last fusion that it reaches, if that one waits for it."""
        for record in self._records:
            if record.carriers:
                position, last = record.carriers[-1]
                body = self._body(last)
                if body is not None and _calls_target(body, "AsyncCollectiveDone"):
                    record.carriers.pop()
                    record.done, record.done_position = last, position

    def _begin(self, position: int, fusion: Instruction, source: Instruction) -> _Open | None:
        if not _has_target(source, "AsyncCollectiveStart"):
            return None
        inner = source.operands[0] if source.operands else source
        operation = inner if inner.opcode in COLLECTIVES else source
        record = _Open(kind=operation.opcode, start=fusion, position=position, operation=operation)
        self._records.append(record)
        return record

    def _body(self, fusion: Instruction) -> Computation | None:
        if fusion not in self._fused:
            self._fused[fusion] = fusion.fused_computation
        return self._fused[fusion]


def _role(opcode: str) -> _Role:
    if opcode.endswith(_START) or opcode in ("send", "recv"):
        return "start"
    return "wait" if opcode.endswith((_DONE, _UPDATE)) else "other"


def _has_target(instruction: Instruction, target: str) -> bool:
    return (
        instruction.opcode == "custom-call"
        and f'custom_call_target="{target}"' in instruction.attribute_text
    )


def _calls_target(body: Computation, target: str) -> bool:
    return _has_target(body.root, target) or any(_has_target(i, target) for i in body.instructions)


def _wrapped(start: Instruction) -> Instruction:
    """What an `async-start` runs, through the calls that only lead to it; itself if unknown."""
    inner = start
    for _ in range(MAX_HOPS):
        if inner.opcode not in ("async-start", "call"):
            return inner
        called = inner.called_computations
        if not called:
            return inner
        inner = called[0].root
        if inner.opcode == "async-done" and inner.operands:
            inner = inner.operands[0]
    return inner
