"""Runs of the evaluator on a laid out launch."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from translators.graph.evaluator import Grid, all_programs, evaluate
from translators.graph.graph import Module, Op
from translators.graph.machine import Record
from translators.graph.numerics import Array
from translators.triton.kernel_graph import kernel_parameters
from translators.triton.launches import ScalarArgument
from translators.verify.errors import TooSlowError
from translators.verify.memory import Layout, Storages, is_float
from translators.verify.watching import WatchedMemory

# Ops that one program may run: some ten seconds' worth.
_STEP_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a launch is run on.

    Attributes:
      title: how the contents came about, for reports.
      storages: contents of the memory, by buffer.
      scalars: values of float scalars other than the launch's, by name.
    """

    title: str
    storages: Storages
    scalars: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run left behind.

    Attributes:
      storages: contents of the memory, by buffer.
      arrays: the array arguments, row-major, by name.
      read: which elements of each storage were read.
      written: which elements of each storage were written.
      records: what the kernel printed, and assertions that did not hold.
    """

    storages: Storages
    arrays: Mapping[str, Array]
    read: Mapping[int, Array]
    written: Mapping[int, Array]
    records: tuple[Record, ...]


class Clock:
    """The time that a verification may take.

    Args:
      seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def watch(self, programs: Iterable[Grid]) -> Iterator[Grid]:
        """The programs one by one, for as long as there is time.

        Raises:
          TooSlowError: the time is over before the last program was run.
        """
        for program in programs:
            if self.left == 0:
                raise TooSlowError(f"not all programs could be run within {self.seconds:g} s")
            yield program


def run(
    module: Module,
    layout: Layout,
    case: Case,
    clock: Clock,
    *,
    order: Sequence[Grid] | None = None,
    disturb: Callable[[Op, Array], Array] | None = None,
) -> Outcome:
    """Evaluates the kernel on copies of the storages.

    Args:
      module: the kernel's verified graph.
      layout: where its arguments lie.
      case: what is in memory.
      clock: how long it may take.
      order: the programs in another order than the grid's own.
      disturb: changes the results of ops, as `evaluate` takes it.

    Raises:
      EvaluationError: the kernel does what no kernel may, such as leaving its arrays.
      TooSlowError: it takes too long.
    """
    memories: list[WatchedMemory] = []

    def memory_of(arrays: Iterable[Array]) -> WatchedMemory:
        memories.append(WatchedMemory(arrays))
        return memories[0]

    grid = layout.launch.grid
    arguments = layout.arguments(case.storages, case.scalars)
    evaluation = evaluate(
        module,
        arguments,
        grid,
        order=clock.watch(all_programs(grid) if order is None else order),
        step_limit=_STEP_LIMIT,
        memory_of=memory_of,
        disturb=disturb,
    )
    (memory,) = memories
    after = dict(case.storages)
    for parameter, array in zip(kernel_parameters(layout.launch), evaluation.arrays, strict=True):
        if array is not None and not isinstance(parameter, ScalarArgument):
            after[layout.views[parameter.name].array.buffer] = array
    return Outcome(
        storages=after,
        arrays=layout.arrays(after),
        read={buffer: memory.read(array) for buffer, array in case.storages.items()},
        written={buffer: memory.written(array) for buffer, array in case.storages.items()},
        records=evaluation.records,
    )


def in_f64(case: Case) -> Case:
    """The same case for a kernel whose floats are all `f64`."""
    wide = {
        buffer: array.astype(np.float64) if is_float(array.dtype) else array
        for buffer, array in case.storages.items()
    }
    return Case(title=case.title, storages=wide, scalars=case.scalars)
