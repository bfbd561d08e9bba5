"""Runs pointer arithmetic as the ops define it and holds the analysis against what comes out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from translators.access.analysis import Access, Analysis, analyze
from translators.access.classify import AccessClass
from translators.access.delinearize import Position, same_addresses
from translators.access.expression import (
    Affine,
    Digit,
    Iteration,
    Lane,
    Leaf,
    ProgramId,
    evaluate,
)
from translators.access.launch import Specialization
from translators.access.masks import Mask
from translators.access.program_axes import ProgramAxes
from translators.access.programs import program_axes
from translators.access.states import Assumptions, Condition, Integer, Pointer
from translators.graph.graph import Module, Op, Region, Value, walk
from translators.graph.machine import Machine
from translators.graph.memory import Memory
from translators.graph.numerics import dtype_of
from translators.graph.ops.catalog import OPS
from translators.graph.ops.descriptors import Descriptor
from translators.graph.types import (
    DescriptorType,
    FloatType,
    IntType,
    PointerType,
    bit_width,
    element_of,
    shape_of,
)

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
    observe: Callable[["Run", Value], None] = lambda run, value: None

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
        if isinstance(argument.type, DescriptorType):
            buffer = self.launch.buffers[number]
            return Descriptor(
                base=(number + 1) * SPACING,
                shape=buffer.shape,
                strides=buffer.strides,
                element=argument.type.block.element,
                padding=buffer.padding,
            )
        if number in self.launch.scalars:
            return np.array(self.launch.scalars[number], dtype_of(argument.type))
        return np.array(self.data[number], dtype_of(argument.type))

    def _region(self, region: Region) -> list[Any]:
        for op in region.ops:
            operands = [self.values[each] for each in op.operands]
            match op.name:
                case "scf.yield" | "scf.condition":
                    return operands
                case "tt.return":
                    raise _ReturnedError
                case "scf.for":
                    results = self._for(op, operands)
                case "scf.while":
                    results = self._while(op, operands)
                case "scf.if":
                    taken = 0 if operands[0] else 1
                    results = [] if taken == len(op.regions) else self._region(op.regions[taken])
                case "tt.load" | "tt.store":
                    results = self._access(op, operands)
                case _ if op.name.startswith("tt.descriptor_"):
                    results = self._described(op, operands)
                case "tt.reduce" | "tt.scan":
                    results = self._fold(op, operands)
                case _:
                    results = OPS[op.name].meaning(op, operands, self.machine)
            self.values.update(zip(op.results, results, strict=True))
            for each in op.results:
                self.observe(self, each)
        raise AssertionError("a region ends in its terminator")

    def _for(self, op: Op, operands: list[Any]) -> list[Any]:
        lower, upper, step = (int(each) for each in operands[:3])
        carried = operands[3:]
        number = self.loops[op]
        for count, counter in enumerate(range(lower, upper, step)):
            self.iterations[number] = count
            start = np.array(counter, operands[0].dtype)
            carried = self._entered(op.regions[0], [start, *carried])
        self.iterations.pop(number, None)
        return carried

    def _while(self, op: Op, carried: list[Any]) -> list[Any]:
        before, after = op.regions
        while True:
            condition, *carried = self._entered(before, carried)
            if not condition:
                return carried
            carried = self._entered(after, carried)

    def _entered(self, region: Region, given: list[Any]) -> list[Any]:
        self.values.update(zip(region.arguments, given, strict=True))
        for each in region.arguments:
            self.observe(self, each)
        return self._region(region)

    def _fold(self, op: Op, operands: list[Any]) -> list[Any]:
        steps = OPS[op.name].meaning(op, operands, self.machine)
        given: Any = None
        while True:
            try:
                entered = steps.send(given)
            except StopIteration as stop:
                return stop.value
            values = dict(zip(entered.region.arguments, entered.arguments, strict=True))
            *ops, end = entered.region.ops
            for each in ops:
                inside = [values[operand] for operand in each.operands]
                found = OPS[each.name].meaning(each, inside, self.machine)
                values.update(zip(each.results, found, strict=True))
            given = [values[each] for each in end.operands]

    def _access(self, op: Op, operands: list[Any]) -> list[Any]:
        place = MASKS[op.name]
        mask = operands[place] if len(operands) > place else None
        return self._happened(op, operands[0], mask)

    def _described(self, op: Op, operands: list[Any]) -> list[Any]:
        descriptor = operands[0]
        if op.name in ("tt.descriptor_gather", "tt.descriptor_scatter"):
            block = op.operands[0].type.block.shape
            columns = int(operands[2]) + np.arange(block[1])
            indices = np.meshgrid(operands[1].astype(np.int64), columns, indexing="ij")
        else:
            starts = operands[1:] if op.name == "tt.descriptor_load" else operands[2:]
            block = np.indices(op.operands[0].type.block.shape)
            indices = [int(start) + each for start, each in zip(starts, block, strict=True)]
        addresses, inside = descriptor.locate(tuple(indices))
        return self._happened(op, addresses, inside)

    def _happened(self, op: Op, addresses: Any, mask: Any) -> list[Any]:
        """Takes down an access, and gives what it loads if it does."""
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
        if not op.results:
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
        return [found.reshape(shape_of(op.result.type))]


def locate(address: int, pointer: Value) -> tuple[int, int]:
    """The argument and the offset in elements that an address means."""
    type_ = pointer.type
    element = type_.block.element if isinstance(type_, DescriptorType) else element_of(type_)
    if isinstance(element, PointerType):
        element = element.pointee
    slot = (address + SPACING // 2) // SPACING
    size = max(8, bit_width(element)) // 8
    return slot - 1, (address - slot * SPACING) // size


def assert_agrees(
    module: Module, launch: Specialization, data: Mapping[int, Any] | None = None
) -> Analysis:
    """Every address, index, tile and mask of the analysis is that of the run.

    That is held in terms of program ids and, once more, in terms of the programs' axes.
    """
    analysis = analyze(module, launch)
    axes = program_axes(analysis)
    digits = digits_of(axes)
    both = (analysis, analyze(module, launch, axes))

    def observe(run: Run, value: Value) -> None:
        for each in both:
            _assert_state(each, run, value, digits[run.machine.program])

    events = Run(module, launch, data or {}, observe=observe).all_programs()
    for each in both:
        _assert_events(each, events, digits)
    return analysis


def digits_of(axes: ProgramAxes) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The coordinates of each program; the table names every program once."""
    table = axes.table
    found = {tuple(map(int, table[place])): place for place in np.ndindex(table.shape[:-1])}
    assert len(found) == table.size // 3
    return found


def _assert_events(
    analysis: Analysis, events: list[Event], digits: Mapping[tuple[int, ...], tuple[int, ...]]
) -> None:
    by_op = {each.op: each for each in analysis.accesses}
    for access in analysis.accesses:
        if isinstance(access.position, Position):
            assert isinstance(access.pointer, Pointer)
            assert access.buffer is not None
            empty = 0 in access.buffer.shape
            assert empty or same_addresses(access.position, access.pointer.offset)
    for event in events:
        access = by_op[event.op]
        for place in np.ndindex(event.addresses.shape):
            _assert_lane(access, event, place, digits[event.program])


def _assert_state(analysis: Analysis, run: Run, value: Value, digits: tuple[int, ...]) -> None:
    """What is known of a value is what it is, in some of its lanes."""
    state = analysis.states.get(value)
    if isinstance(value.type, DescriptorType):
        return
    result = np.asarray(run.values[value])
    for place in {(0,) * result.ndim, *(tuple(each - 1 for each in result.shape),)}:
        number = reader(run.machine.program, digits, run.iterations, run.values, place)
        match state:
            case Integer(expression=expression) if _rests(state.assumptions, number):
                assert number(expression) == result[place]
                assert expression.interval.low <= result[place] <= expression.interval.high
            case Pointer(offset=offset) if _rests(state.assumptions, number):
                argument, found = locate(int(result[place]), value)
                assert (argument, found) == (state.argument, number(offset))
            case Condition() if _rests(state.assumptions, number):
                mask = Mask(
                    predicates=state.comparisons, leftovers=state.leftovers, never=state.never
                )
                assert holds(mask, (), number) == bool(result[place])


def _rests(assumptions: Assumptions, number: Callable[[Affine], int]) -> bool:
    return all(
        each.interval.low <= number(each.expression) <= each.interval.high for each in assumptions
    )


def reader(
    program: tuple[int, int, int],
    digits: tuple[int, ...],
    iterations: Mapping[int, int],
    values: Mapping[Value, Any],
    place: tuple[int, ...],
) -> Callable[[Affine], int]:
    """What expressions are in a lane of a program."""

    def leaf(each: Leaf) -> int:
        match each:
            case Digit(axis=axis):
                return digits[axis]
            case ProgramId(axis=axis):
                return program[axis]
            case Lane(axis=axis):
                return place[axis]
            case Iteration(loop=loop):
                return iterations[loop]
        if each.value not in values:
            return 0
        own = tuple(0 if axis is None else place[axis] for axis in each.lanes)
        number = int(values[each.value][own])
        if isinstance(element_of(each.value.type), PointerType):
            return locate(number, each.value)[1]
        return number

    return lambda expression: evaluate(expression, leaf)


def _assert_lane(
    access: Access, event: Event, place: tuple[int, ...], digits: tuple[int, ...]
) -> None:
    number = reader(event.program, digits, event.iterations, event.values, place)
    if not _rests(access.assumptions, number):
        return
    assert not access.guard.never
    assert holds(access.guard, (), number), "a guard does not hold where the access runs"
    if not isinstance(access.pointer, Pointer):
        return
    taken = event.mask is None or bool(event.mask[place])
    argument, offset = locate(int(event.addresses[place]), event.op.operands[0])
    assert argument == access.pointer.argument
    assert number(access.pointer.offset) == offset or not taken
    indices = []
    if isinstance(access.position, Position):
        indices = [number(each.index) for each in access.position.dimensions]
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
        digits = [place[part.axis] // part.unit % part.extent for part in tile.parts]
        moved = sum(step * digit for step, digit in zip(tile.steps, digits, strict=True))
        assert index == number(tile.start) + moved
        if tile.even:
            assert moved % tile.step == 0
            assert 0 <= moved // tile.step < tile.length
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
