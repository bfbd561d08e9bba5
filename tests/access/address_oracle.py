"""Runs pointer arithmetic as the ops define it and holds the analysis against what comes out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from translators.access.analysis import Access, Analysis, analyze
from translators.access.classify import AccessClass
from translators.access.delinearize import Position, same_addresses
from translators.access.expression import (
    Affine,
    Iteration,
    Lane,
    Leaf,
    ProgramId,
    evaluate,
)
from translators.access.launch import Specialization
from translators.access.masks import Mask
from translators.access.states import Pointer
from translators.graph.graph import Module, Op, Region, Value, walk
from translators.graph.machine import Machine
from translators.graph.memory import Memory
from translators.graph.numerics import dtype_of
from translators.graph.ops.catalog import OPS
from translators.graph.types import FloatType, IntType, PointerType, bit_width, element_of

SPACING = 1 << 44
MASKS = {"tt.load": 1, "tt.store": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An access in one program and iteration."""

    op: Op
    program: tuple[int, int, int]
    iterations: Mapping[int, int]
    values: Mapping[Value, Any]
    addresses: Any
    mask: Any


class _ReturnedError(Exception):
    """A program has left the kernel."""


@dataclass
class Run:
    """One launch: `data` holds what the arrays that are indices contain, by argument."""

    module: Module
    launch: Specialization
    data: Mapping[int, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def all_programs(self) -> list[Event]:
        self.loops = {
            op: number
            for number, op in enumerate(
                each
                for each in walk(self.module.kernel.body)
                if each.name in ("scf.for", "scf.while")
            )
        }
        for program in product(*(range(size) for size in self.launch.grid)):
            self.machine = Machine(
                memory=Memory(()), grid=self.launch.grid, functions={}, program=program
            )
            self.values = {
                each: self._argument(number, each)
                for number, each in enumerate(self.module.kernel.arguments)
            }
            self.iterations: dict[int, int] = {}
            try:
                self._region(self.module.kernel.body)
            except _ReturnedError:
                continue
        return self.events

    def _argument(self, number: int, argument: Value) -> Any:
        if isinstance(argument.type, PointerType):
            return np.array((number + 1) * SPACING, np.int64)
        if number in self.launch.scalars:
            return np.array(self.launch.scalars[number], dtype_of(argument.type))
        return np.array(self.data[number], dtype_of(argument.type))

    def _region(self, region: Region) -> list[Any]:
        for op in region.ops:
            operands = [self.values[each] for each in op.operands]
            match op.name:
                case "scf.yield":
                    return operands
                case "tt.return":
                    raise _ReturnedError
                case "scf.for":
                    results = self._for(op, operands)
                case "scf.if":
                    taken = 0 if operands[0] else 1
                    results = [] if taken == len(op.regions) else self._region(op.regions[taken])
                case "tt.load" | "tt.store":
                    results = self._access(op, operands)
                case _:
                    results = OPS[op.name].meaning(op, operands, self.machine)
            self.values.update(zip(op.results, results, strict=True))
        raise AssertionError("a region ends in its terminator")

    def _for(self, op: Op, operands: list[Any]) -> list[Any]:
        lower, upper, step = (int(each) for each in operands[:3])
        carried = operands[3:]
        number = self.loops[op]
        arguments = op.regions[0].arguments
        for count, counter in enumerate(range(lower, upper, step)):
            self.iterations[number] = count
            self.values[arguments[0]] = np.array(counter, operands[0].dtype)
            self.values.update(zip(arguments[1:], carried, strict=True))
            carried = self._region(op.regions[0])
        self.iterations.pop(number, None)
        return carried

    def _access(self, op: Op, operands: list[Any]) -> list[Any]:
        place = MASKS[op.name]
        mask = operands[place] if len(operands) > place else None
        addresses = operands[0]
        self.events.append(
            Event(
                op=op,
                program=self.machine.program,
                iterations=dict(self.iterations),
                values=dict(self.values),
                addresses=addresses,
                mask=mask,
            )
        )
        if op.name == "tt.store":
            return []
        element = element_of(op.result.type)
        dtype = dtype_of(element) if isinstance(element, IntType | FloatType) else np.int64
        found = np.zeros(addresses.shape, dtype)
        for place_ in np.ndindex(addresses.shape):
            if mask is not None and not mask[place_]:
                continue
            argument, offset = locate(int(addresses[place_]), op.operands[0])
            if argument in self.data:
                found[place_] = self.data[argument].reshape(-1)[offset]
        return [found]


def locate(address: int, pointer: Value) -> tuple[int, int]:
    """The argument and the offset in elements that an address means."""
    element = element_of(pointer.type)
    assert isinstance(element, PointerType)
    slot = (address + SPACING // 2) // SPACING
    size = max(8, bit_width(element.pointee)) // 8
    return slot - 1, (address - slot * SPACING) // size


def assert_agrees(
    module: Module, launch: Specialization, data: Mapping[int, Any] | None = None
) -> Analysis:
    """Every address, index, tile and mask of the analysis is that of the run."""
    analysis = analyze(module, launch)
    by_op = {each.op: each for each in analysis.accesses}
    for access in analysis.accesses:
        if isinstance(access.position, Position):
            assert isinstance(access.pointer, Pointer)
            assert same_addresses(access.position, access.pointer.offset)
    for event in Run(module, launch, data or {}).all_programs():
        access = by_op[event.op]
        for place in np.ndindex(event.addresses.shape):
            _assert_lane(access, event, place)
    return analysis


def _assert_lane(access: Access, event: Event, place: tuple[int, ...]) -> None:
    def leaf(each: Leaf) -> int:
        match each:
            case ProgramId(axis=axis):
                return event.program[axis]
            case Lane(axis=axis):
                return place[axis]
            case Iteration(loop=loop):
                return event.iterations[loop]
        if each.value not in event.values:
            return 0
        own = tuple(0 if axis is None else place[axis] for axis in each.lanes)
        number = int(event.values[each.value][own])
        if isinstance(element_of(each.value.type), PointerType):
            return locate(number, each.value)[1]
        return number

    def number(expression: Affine) -> int:
        return evaluate(expression, leaf)

    if any(
        not each.interval.low <= number(each.expression) <= each.interval.high
        for each in access.assumptions
    ):
        return
    assert not access.guard.never
    assert holds(access.guard, (), number), "a guard does not hold where the access runs"
    if not isinstance(access.pointer, Pointer):
        return
    argument, offset = locate(int(event.addresses[place]), event.op.operands[0])
    assert argument == access.pointer.argument
    assert number(access.pointer.offset) == offset
    indices = []
    if isinstance(access.position, Position):
        indices = [number(each.index) for each in access.position.dimensions]
    taken = event.mask is None or bool(event.mask[place])
    if access.mask is not None:
        assert holds(access.mask, indices, number) == taken
    if not isinstance(access.position, Position):
        return
    for index, dimension, tile in zip(
        indices, access.position.dimensions, access.tiles, strict=True
    ):
        if taken and dimension.proved:
            assert 0 <= index < dimension.size
        if tile.kind is AccessClass.GATHERED:
            continue
        count = 0
        for part in tile.parts:
            count = count * part.extent + place[part.axis] // part.unit % part.extent
        assert 0 <= count < tile.length
        assert index == number(tile.start) + tile.step * count
        if tile.kind is AccessClass.BLOCK:
            assert number(tile.start) % tile.length == 0


def holds(mask: Mask, indices: list[int] | tuple[int, ...], number: Any) -> bool:
    return all(_parts(mask, indices, number))


def _parts(mask: Mask, indices: list[int] | tuple[int, ...], number: Any) -> Iterator[bool]:
    yield not mask.never
    for bound in mask.bounds:
        limit = number(bound.limit)
        yield (
            indices[bound.dimension] < limit if bound.upper else (indices[bound.dimension] >= limit)
        )
    for comparison in mask.predicates:
        yield number(comparison.expression) >= 0
    for leftover in mask.leftovers:
        symbol = Affine(terms=((leftover.symbol, 1),))
        yield bool(number(symbol)) == leftover.expected
