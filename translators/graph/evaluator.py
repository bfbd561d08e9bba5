"""Runs a kernel on NumPy arrays, program by program, as the ops' definitions say.

Nothing of Triton is used: this is a second opinion on what a kernel computes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from translators.graph.errors import EvaluationError, UndefinedError
from translators.graph.graph import Module, Op, Region, Value
from translators.graph.machine import Enter, Machine, Record
from translators.graph.memory import Memory
from translators.graph.numerics import Array, dtype_of, to_float
from translators.graph.ops.catalog import OPS
from translators.graph.ops.definition import OpDefinition, Steps
from translators.graph.ops.descriptors import Descriptor
from translators.graph.types import (
    DescriptorType,
    FloatType,
    IntType,
    PointerType,
    Type,
)

Grid: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayDescriptor:
    """An argument that describes an array, as the host makes it.

    Attributes:
      array: the memory.
      shape: elements along each axis.
      strides: elements from one to the next along each axis.
      padding: `zero` or `nan`, read outside of the shape.
      offset: elements from the start of the memory to the first one described.
    """

    array: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str = "zero"
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPointer:
    """An argument that points into an array, past its first element.

    Attributes:
      array: the memory.
      offset: elements from its start.
    """

    array: Array
    offset: int


Argument: TypeAlias = Array | ArrayPointer | ArrayDescriptor | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a launch left behind.

    Attributes:
      arrays: for each argument that is an array what its memory holds now, in its shape; `None`
        for the others.
      records: what the programs printed and which assertions did not hold.
    """

    arrays: tuple[Array | None, ...]
    records: tuple[Record, ...]


def all_programs(grid: Grid) -> Iterable[Grid]:
    """The programs of a grid in the order of Triton's interpreter: the last axis innermost."""
    return product(*(range(size) for size in grid))  # type: ignore[return-value]


def evaluate(
    module: Module,
    arguments: Sequence[Argument],
    grid: Sequence[int],
    *,
    order: Iterable[Grid] | None = None,
    step_limit: int | None = None,
    memory_of: Callable[[Iterable[Array]], Memory] = Memory,
    disturb: Callable[[Op, Array], Array] | None = None,
) -> Evaluation:
    """Runs the kernel of a verified module.

    Args:
      module: passed by `verifier.verify`.
      arguments: one for each of the kernel's; for a pointer an array, which is copied. An array
        given for two pointers is one piece of memory.
      grid: programs along up to three axes.
      order: the programs in the order in which to run them, one after another.
      step_limit: how many ops a program may run.
      memory_of: makes the memory that holds the arrays, one that takes note of accesses say.
      disturb: gives the value to go on with in the place of an op's result, to see what becomes
        of it.

    Raises:
      EvaluationError: an access out of bounds, an argument of the wrong type, too many steps.
    """
    sizes = _three(grid)
    if sizes is None:
        raise EvaluationError(f"a grid has one to three axes, not {tuple(grid)}")
    kernel = module.kernel
    if len(arguments) != len(kernel.arguments):
        raise EvaluationError(
            f"`{kernel.name}` takes {len(kernel.arguments)} arguments, not {len(arguments)}",
            kernel.location,
        )
    _check_memory(kernel.arguments, arguments)
    memory = memory_of(array for array in map(_memory_of, arguments) if array is not None)
    machine = Machine(memory=memory, grid=sizes, functions=dict(module.functions))
    values = [
        _entering(parameter, argument, memory)
        for parameter, argument in zip(kernel.arguments, arguments, strict=True)
    ]
    with np.errstate(all="ignore"):
        for program in all_programs(sizes) if order is None else order:
            machine.program = program
            _Run(machine, step_limit, disturb).function(kernel.body, values)
    return Evaluation(
        arrays=tuple(
            None if array is None else memory.contents(array).reshape(array.shape)
            for array in map(_memory_of, arguments)
        ),
        records=tuple(machine.records),
    )


def _three(grid: Sequence[int]) -> Grid | None:
    """The grid with all three axes; `None` if it is none."""
    if not 1 <= len(grid) <= 3 or min(grid) < 0:
        return None
    first, second, third = (*grid, 1, 1)[:3]
    return (first, second, third)


def _check_memory(parameters: Sequence[Value], arguments: Sequence[Argument]) -> None:
    """Raises unless every array is contiguous and either the same as another or apart from it."""
    seen: list[tuple[str, Array]] = []
    for parameter, argument in zip(parameters, arguments, strict=True):
        array = _memory_of(argument)
        if array is None:
            continue
        if not array.flags.c_contiguous:
            raise EvaluationError(f"the array for `{parameter.name}` is not contiguous")
        for name, other in seen:
            if other is not array and np.may_share_memory(other, array):
                raise EvaluationError(
                    f"the arrays for `{name}` and `{parameter.name}` are two views of one memory: "
                    "give `ArrayPointer`s into the whole of it"
                )
        seen.append((parameter.name, array))


def _memory_of(argument: Argument) -> Array | None:
    if isinstance(argument, ArrayDescriptor | ArrayPointer):
        return argument.array
    return argument if isinstance(argument, np.ndarray) and argument.ndim else None


def _entering(parameter: Value, argument: Argument, memory: Memory) -> Any:
    """What the kernel is entered with for an argument."""
    type_ = parameter.type
    array = _memory_of(argument)
    if isinstance(type_, DescriptorType) and isinstance(argument, ArrayDescriptor):
        return Descriptor(
            base=memory.address_of(argument.array) + argument.offset * argument.array.itemsize,
            shape=argument.shape,
            strides=argument.strides,
            element=type_.block.element,
            padding=argument.padding,
        )
    if (
        isinstance(type_, PointerType)
        and array is not None
        and type(argument) is not ArrayDescriptor
    ):
        _check_array(parameter, type_, array)
        offset = argument.offset if isinstance(argument, ArrayPointer) else 0
        return np.array(memory.address_of(array) + offset * array.itemsize, np.int64)
    scalar = np.asarray(argument) if array is None else None
    if scalar is not None and isinstance(type_, IntType) and scalar.dtype.kind in "biu":
        number = int(scalar)
        # An unsigned argument fills all bits.
        if type_.smallest <= number < 1 << type_.width:
            return np.array(type_.wrap(number), dtype_of(type_))
    if scalar is not None and isinstance(type_, FloatType) and scalar.dtype.kind in "biufV":
        return to_float(scalar.astype(np.float64), type_)
    raise _wrong(parameter, type_, argument)


def _check_array(parameter: Value, type_: PointerType, array: Array) -> None:
    pointee = type_.pointee
    if isinstance(pointee, FloatType):
        fits = array.dtype == dtype_of(pointee)
    elif isinstance(pointee, IntType) and pointee.width == 1:
        fits = array.dtype in (np.dtype(np.bool_), np.dtype(np.int8), np.dtype(np.uint8))
    else:
        fits = array.dtype.kind in "iu" and array.dtype.itemsize == dtype_of(pointee).itemsize
    if not fits:
        raise _wrong(parameter, type_, array)


def _wrong(parameter: Value, type_: Type, argument: Argument) -> EvaluationError:
    given = type(argument).__name__
    if isinstance(argument, np.ndarray):
        given = f"array of {argument.dtype}"
    elif isinstance(argument, int | float):
        given = f"{argument!r}"
    return EvaluationError(f"the argument `{parameter.name}` is `{type_}`; it was given {given}")


@dataclass(slots=True)
class _Frame:
    """A region that runs.

    Attributes:
      region: what runs.
      function: whether it is the body of a function.
      position: which op comes next.
      steps: the structured op at that position, while it runs regions of its own.
    """

    region: Region
    function: bool
    position: int = 0
    steps: Steps | None = None


class _Run:
    """One program."""

    def __init__(
        self,
        machine: Machine,
        step_limit: int | None,
        disturb: Callable[[Op, Array], Array] | None,
    ) -> None:
        self._machine = machine
        self._limit = step_limit
        self._disturb = disturb
        self._steps = 0
        # No function is entered twice at a time, so that one table serves all of them.
        self._values: dict[Value, Any] = {}
        self._frames: list[_Frame] = []

    def function(self, body: Region, arguments: Sequence[Any]) -> Sequence[Any]:
        """Runs a function to its end; gives what it returns."""
        self._enter(Enter(body, arguments, True))
        while True:
            frame = self._frames[-1]
            op = frame.region.ops[frame.position]
            self._count(op)
            definition = OPS[op.name]
            operands = [self._values[each] for each in op.operands]
            if not definition.terminator:
                self._start(frame, op, definition, operands)
                continue
            self._leave(op)
            if not self._frames:
                return operands
            self._resume(operands)

    def _count(self, op: Op) -> None:
        self._steps += 1
        if self._limit is not None and self._steps > self._limit:
            raise self._error(op, f"is reached after more than {self._limit} steps")

    def _error(self, op: Op, clause: str) -> EvaluationError:
        program = ", ".join(map(str, self._machine.program))
        return EvaluationError(f"`{op.name}` {clause}, in program ({program})", op.location)

    def _enter(self, entered: Enter) -> None:
        arguments = entered.region.arguments
        for argument, value in zip(arguments, entered.arguments, strict=True):
            self._values[argument] = value if isinstance(value, Descriptor) else np.asarray(value)
        self._frames.append(_Frame(entered.region, entered.function))

    def _leave(self, op: Op) -> None:
        """Ends the region that `op` ends; the whole function if it returns."""
        frame = self._frames.pop()
        while op.name == "tt.return" and not frame.function:
            frame = self._frames.pop()

    def _start(
        self, frame: _Frame, op: Op, definition: OpDefinition, operands: Sequence[Any]
    ) -> None:
        try:
            outcome = definition.meaning(op, operands, self._machine)
        except UndefinedError as error:
            raise self._error(op, str(error)) from error
        if isinstance(outcome, Sequence):
            self._give(frame, op, outcome)
        else:
            frame.steps = outcome
            self._advance(frame, op, None)

    def _resume(self, values: Sequence[Any]) -> None:
        frame = self._frames[-1]
        self._advance(frame, frame.region.ops[frame.position], values)

    def _advance(self, frame: _Frame, op: Op, values: Sequence[Any] | None) -> None:
        """Lets a structured op run until it asks for a region or is done."""
        assert frame.steps is not None
        try:
            # The first `send` of a generator takes `None`.
            entered = frame.steps.send(values)  # type: ignore[arg-type]
        except StopIteration as done:
            frame.steps = None
            self._give(frame, op, done.value)
        except UndefinedError as error:
            raise self._error(op, str(error)) from error
        else:
            self._enter(entered)

    def _give(self, frame: _Frame, op: Op, results: Sequence[Any]) -> None:
        for result, value in zip(op.results, results, strict=True):
            if isinstance(value, Descriptor):
                self._values[result] = value
                continue
            held = np.asarray(value)
            self._values[result] = held if self._disturb is None else self._disturb(op, held)
        frame.position += 1
