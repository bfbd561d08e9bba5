"""Whether the result of a launch depends on the order in which its programs run."""

from dataclasses import dataclass

import numpy as np

from translators.graph.evaluator import Grid, all_programs
from translators.graph.graph import Module
from translators.triton.kernel_graph import kernel_parameters
from translators.verify.comparison import Comparison
from translators.verify.evaluation import Clock, run
from translators.verify.inputs import Trial
from translators.verify.judging import Judge
from translators.verify.memory import Layout, is_float
from translators.verify.stores import atomic_arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDependence:
    """An array that depends on the order of programs.

    Attributes:
      name: the kernel's parameter.
      comparison: how two orders compare, the grid's own being what is expected.
    """

    name: str
    comparison: Comparison


def order_dependence(
    module: Module, layout: Layout, trial: Trial, order: list[Grid], judge: Judge, clock: Clock
) -> OrderDependence | None:
    """The first array that another order of programs leaves different; `None` if none does.

    Floats that are added atomically may differ by rounding; all else must be equal bit by bit.

    Args:
      module: the kernel's graph.
      layout: that of the launch.
      trial: a run in the grid's own order.
      order: all programs in another order.
      judge: says how much of a difference is rounding.
      clock: how long the other run may take.

    Raises:
      EvaluationError: in the other order the kernel does what no kernel may.
      TooSlowError: the other run takes too long.
    """
    other = run(module, layout, trial.case, clock, order=order)
    rounded = _rounded_buffers(module, layout)
    for name, view in layout.views.items():
        comparison = judge.comparison(name, other.arrays[name], trial)
        may_round = view.array.buffer in rounded and is_float(view.dtype)
        if not comparison.agrees or (comparison.ulps and not may_round):
            return OrderDependence(name=name, comparison=comparison)
    return None


def reversed_order(grid: Grid) -> list[Grid]:
    """The last program first."""
    return list(all_programs(grid))[::-1]


def shuffled_order(grid: Grid, rng: np.random.Generator) -> list[Grid]:
    """The programs in a random order."""
    programs = list(all_programs(grid))
    return [programs[index] for index in rng.permutation(len(programs))]


def _rounded_buffers(module: Module, layout: Layout) -> set[int]:
    """The buffers with floats that are added to atomically."""
    atomic = atomic_arguments(module)
    return {
        layout.views[parameter.name].array.buffer
        for index, parameter in enumerate(kernel_parameters(layout.launch))
        if index in atomic and parameter.name in layout.views
    }
