"""Pallas's TPU interpret mode, in a process of its own.

It simulates a TPU's memories: what was never written is NaN, what lies outside of an array cannot
be read, copies happen when they are waited for, and two cores run the parallel part of the grid at
once. Its state is one for a whole process and lost when a kernel fails, and a kernel can wait
forever: hence a process of its own.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from translators.graph.numerics import Array
from translators.verify.on_cpu import FOLDING
from translators.verify.processes import Worker
from translators.verify.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A function to call.

    Attributes:
      program: the function.
      arrays: what it is called with.
      scalars: numbers that it takes by name; others keep their defaults.
      seconds: how long it may take; what would take longer is not begun.
    """

    program: Program
    arrays: tuple[Array, ...]
    scalars: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What became of it.

    Attributes:
      arrays: what the function gives; empty if it does not.
      problem: what the function does that no TPU can; a clause.
      unsuited: why the simulation says nothing of this function; a clause.
      watched: whether it was watched for races.
    """

    arrays: tuple[Array, ...] = ()
    problem: str = ""
    unsuited: str = ""
    watched: bool = False


class Simulator:
    """Runs functions in TPU interpret mode; a context manager, which ends the process."""

    def __init__(self) -> None:
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_disable_hlo_passes={FOLDING}".strip()
        self._worker = Worker(
            "translators.verify.simulator_worker", "the simulator's process", {"XLA_FLAGS": flags}
        )

    def __enter__(self) -> "Simulator":
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.close()

    def begin(
        self,
        program: Program,
        arrays: Sequence[Array],
        scalars: Mapping[str, float],
        seconds: float,
    ) -> Future[list[Any]]:
        """Calls a function, while the caller does something else.

        Args:
          program: the function.
          arrays: what it is called with.
          scalars: numbers that it takes by name.
          seconds: how long it may take.

        Returns:
          What will be one `Simulated`, or a `NoReplyError`.
        """
        request = Simulation(
            program=program, arrays=tuple(arrays), scalars=dict(scalars), seconds=seconds
        )
        return self._worker.begin([request], seconds)
