"""The collectives of a module: who takes part, what is sent, and whether the device waits.

Bytes on the wire are those that each device sends, by the algorithm that moves the least on a
ring or torus (Chan et al., "Collective communication: theory, practice, and experience", 2007;
n devices in a group, sizes per device):

    all-gather           (n-1)/n of the result
    reduce-scatter       (n-1)/n of the operand
    all-reduce           2(n-1)/n of the operand: a reduce-scatter, then an all-gather
    all-to-all           (n-1)/n of the operand
    ragged-all-to-all    (n-1)/n of the operand, as if evenly spread
    collective-permute   the operand, if any pair names two devices
    collective-broadcast the operand

Sizes are those of the buffers, tile padding included, since that is what the links carry.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from hlo_tools.analysis.asynchrony import COLLECTIVES, Asynchrony, AsyncSpan
from hlo_tools.analysis.execution import Execution
from hlo_tools.hlo.attributes import ReplicaGroups, find_attribute, parse_replica_groups
from hlo_tools.hlo.module import MISSING, Computation, Instruction, Module
from hlo_tools.hlo.shape import Shape

_PAIR = re.compile(r"\{\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\}")
_CHANNEL = re.compile(r"\bchannel_id=(\d{1,18})\b")
_GROUPS = re.compile(
    r"\breplica_groups=(mesh\[[^\]]*+\][^{]*+\{[^}]*+\}|\{(?:\{[\d,\s]*+\}|[\s,]++)*+\}"
    r"|\[[\d,]++\]<=\[[\d,]++\](?:T\([\d,]++\))?)(?=\s*(?:,|$))"
)
_HUGE_NUMBER = re.compile(r"\d{10}")
_END_OF_PARTIES = re.compile(r",\s*(?:frontend_attributes|metadata|backend_config)=")
_Role = Literal["collective", "fusion", "start", "other"]
_TAKES_GLOBAL_IDS = frozenset({"all-gather", "all-reduce", "reduce-scatter"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collective:
    """One collective that runs, however often the text prints it.

    Attributes:
      kind: the opcode of what is done, `reduce-scatter` where that is how the TPU runs an
        all-reduce of which each device keeps its slice.
      instruction: what runs in its computation: the collective, its start, or a fusion.
      operation: the instruction that says what is done; `instruction` itself or one inside it.
      groups: who takes part together; `None` for a permute and where that cannot be read.
      pairs: (source, target) device numbers of a collective-permute.
      group_size: devices that take part together, the most where groups differ; for a permute,
        those that some pair names; `None` if unknown.
      channel_id: `None` where the text gives none.
      operand_bytes: of the elements that one device gives.
      result_bytes: of the elements that one device gets.
      operand_padded_bytes: of the buffers that hold the operands.
      result_padded_bytes: of the buffers that hold the result.
      wire_bytes: what each device sends, see the module's docstring; `None` if unknown.
      blocking: nothing else runs meanwhile. In a module that is not scheduled this says only that
        the operation is written in its synchronous form.
      span: from start to done, where it is asynchronous.
    """

    kind: str
    instruction: Instruction
    operation: Instruction
    groups: ReplicaGroups | None
    pairs: tuple[tuple[int, int], ...] = ()
    group_size: int | None
    channel_id: int | None
    operand_bytes: int
    result_bytes: int
    operand_padded_bytes: int
    result_padded_bytes: int
    wire_bytes: int | None
    blocking: bool
    span: AsyncSpan | None = None

    @property
    def computation(self) -> Computation:
        """The computation in which it runs."""
        return self.instruction.computation

    @property
    def axes(self) -> tuple[str, ...]:
        """The mesh axes along which devices take part, as far as the text names them."""
        return self.groups.axes if self.groups is not None else ()

    @property
    def stride(self) -> int | None:
        """The distance between neighbours of a group: 1 where device numbers follow one another.

        `None` where the groups have no such pattern, and for groups of one.
        """
        groups = self.groups.groups if self.groups is not None else ()
        strides = {b - a for group in groups for a, b in pairwise(group)}
        return strides.pop() if len(strides) == 1 else None


@dataclass(slots=True)
class _Parties:
    """What a collective's attributes say of who takes part."""

    channel_id: int | None = None
    groups: ReplicaGroups | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    global_ids: bool = False


@dataclass(slots=True)
class _FusedCollectives:
    """The bodies of fusions that hold a collective, and the type of their results."""

    inner: dict[Computation, Instruction] = field(default_factory=dict)
    results: set[tuple[object, ...]] = field(default_factory=set)
    seen: dict[int, bool] = field(default_factory=dict)

    def may_hold(self, shape: Shape) -> bool:
        """Whether a fusion of that shape may be one of them: spares reading all the others."""
        found = self.seen.get(id(shape))
        if found is None:
            found = self.seen[id(shape)] = _result_type(shape) in self.results
        return found


class Collectives:
    """The collectives of the computations that run.

    Attributes:
      all: each of them once, in the order in which they first run.
    """

    def __init__(self, module: Module, execution: Execution, asynchrony: Asynchrony) -> None:
        self._module = module
        self._asynchrony = asynchrony
        self._roles: dict[str, _Role] = {}
        self._fused = _fused_collectives(module, execution)
        self.all: tuple[Collective, ...] = tuple(
            collective
            for computation in execution.executed
            for collective in self._in(computation, execution.wrapper_of(computation))
        )
        self._by_instruction = {c.instruction: c for c in self.all}

    def get(self, instruction: Instruction) -> Collective | None:
        """The collective that an instruction runs or starts, or `None`."""
        return self._by_instruction.get(instruction)

    def _in(self, computation: Computation, wrapper: Instruction | None) -> list[Collective]:
        wrapped = self._asynchrony.span_of(wrapper) if wrapper is not None else None
        roles, span_of = self._roles, self._asynchrony.span_of
        found = []
        for instruction in computation.instructions:
            opcode = instruction.opcode
            role = roles.get(opcode)
            if role is None:
                role = roles[opcode] = _role(opcode)
            if role == "other":
                continue
            if role == "collective":
                if wrapped is None or wrapped.operation is not instruction:
                    found.append(self._collective(opcode, instruction, instruction, None))
                continue
            span = span_of(instruction)
            if span is not None:
                if span.start is instruction and span.kind in COLLECTIVES:
                    found.append(self._collective(span.kind, instruction, span.operation, span))
            elif role == "fusion" and self._fused.may_hold(instruction.shape):
                body = instruction.fused_computation
                inner = self._fused.inner.get(body) if body is not None else None
                if body is not None and inner is not None:
                    kind = _fused_kind(body, inner)
                    found.append(self._collective(kind, instruction, inner, None))
        return found

    def _collective(
        self, kind: str, instruction: Instruction, operation: Instruction, span: AsyncSpan | None
    ) -> Collective:
        parties = _parties(operation)
        size = self._group_size(kind, parties)
        result = _result_shape(kind, instruction, operation)
        operands = operation.operands
        if any(operand.opcode == MISSING for operand in operands):
            given = _given(kind, result.logical_bytes, size)
            given_padded = _given(kind, result.padded_bytes, size)
        else:
            given = sum([operand.shape.logical_bytes for operand in operands])
            given_padded = sum([operand.shape.padded_bytes for operand in operands])
        blocking = span is None or span.blocking
        return Collective(
            kind=kind,
            instruction=instruction,
            operation=operation,
            groups=parties.groups,
            pairs=parties.pairs,
            group_size=size,
            channel_id=parties.channel_id,
            operand_bytes=given,
            result_bytes=result.logical_bytes,
            operand_padded_bytes=given_padded,
            result_padded_bytes=result.padded_bytes,
            wire_bytes=_wire_bytes(kind, given_padded, result.padded_bytes, size, parties.pairs),
            blocking=blocking,
            span=None if blocking else span,
        )

    def _group_size(self, kind: str, parties: _Parties) -> int | None:
        """Devices in a group, by the group modes of `xla/service/collective_ops_utils.h`."""
        if kind == "collective-permute":
            return len({device for pair in parties.pairs for device in pair}) or None
        if parties.groups is None:
            return None
        size = parties.groups.size
        if size is None:
            devices = self._module.partitions * self._module.replicas
            return devices if devices > 1 else None
        if parties.channel_id and kind in _TAKES_GLOBAL_IDS and not parties.global_ids:
            # The groups number replicas, and all partitions of each replica take part.
            return size * self._module.partitions
        return size


def _role(opcode: str) -> _Role:
    if opcode in COLLECTIVES:
        return "collective"
    if opcode == "fusion":
        return "fusion"
    return "start" if opcode.endswith("-start") else "other"


def _parties(operation: Instruction) -> _Parties:
    """Reads the few attributes that are needed; those of one module alone are thousands."""
    text = operation.attribute_text
    end = _END_OF_PARTIES.search(text)
    text = text[: end.start()] if end else text
    channel, groups = _CHANNEL.search(text), _GROUPS.search(text)
    pairs = find_attribute(text, "source_target_pairs")
    groups_text = groups[1] if groups else find_attribute(text, "replica_groups")
    if groups_text and _HUGE_NUMBER.search(groups_text):
        groups_text = None
    return _Parties(
        channel_id=int(channel[1]) if channel else None,
        groups=parse_replica_groups(groups_text) if groups_text else None,
        pairs=tuple((int(a), int(b)) for a, b in _PAIR.findall(pairs)) if pairs else (),
        global_ids="use_global_device_ids=true" in text,
    )


def _result_shape(kind: str, instruction: Instruction, operation: Instruction) -> Shape:
    """What a device gets: the shape of a start also lists operands and flags."""
    if instruction.opcode == "fusion" and kind != operation.opcode:
        return instruction.shape
    shape = operation.shape
    if operation.opcode == "all-reduce-start" or not operation.opcode.endswith("-start"):
        return shape
    return shape.elements[1] if len(shape.elements) > 1 else shape


def _given(kind: str, result_bytes: int, size: int | None) -> int:
    """Bytes of the operands by those of the result, where the operands are not in the text."""
    if size is None:
        return result_bytes
    if kind == "all-gather":
        return result_bytes // size
    return result_bytes * size if kind == "reduce-scatter" else result_bytes


def _wire_bytes(
    kind: str,
    operand_bytes: int,
    result_bytes: int,
    size: int | None,
    pairs: tuple[tuple[int, int], ...],
) -> int | None:
    if kind == "collective-permute":
        return operand_bytes if any(source != target for source, target in pairs) else 0
    if size is None:
        return None
    others = size - 1
    if kind == "all-gather":
        return result_bytes * others // size
    if kind == "all-reduce":
        return 2 * operand_bytes * others // size
    if kind == "collective-broadcast":
        return operand_bytes if others else 0
    return operand_bytes * others // size


def _fused_collectives(module: Module, execution: Execution) -> _FusedCollectives:
    fused = _FusedCollectives()
    types: dict[int, Shape] = {}
    for computation in module.computations:
        if execution.runs(computation):
            continue
        for instruction in computation.instructions:
            if instruction.opcode in COLLECTIVES:
                fused.inner[computation] = instruction
                types.setdefault(id(computation.root.shape), computation.root.shape)
                break
    fused.results.update(map(_result_type, types.values()))
    return fused


def _result_type(shape: Shape) -> tuple[object, ...]:
    return tuple((leaf.element_type, leaf.dimensions) for leaf in shape.leaves())


def _fused_kind(body: Computation, inner: Instruction) -> str:
    """A fusion that keeps less than its all-reduce yields is the TPU's reduce-scatter."""
    kept = body.root.shape.element_count
    if inner.opcode == "all-reduce" and kept < inner.shape.element_count:
        return "reduce-scatter"
    return inner.opcode
