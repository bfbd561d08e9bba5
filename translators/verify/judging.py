"""Compares what a run left in every array with what the evaluator leaves there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from translators.graph.errors import EvaluationError
from translators.graph.graph import Module
from translators.graph.location import SourceLocation
from translators.graph.numerics import Array
from translators.triton.kernel_graph import kernel_parameters
from translators.verify.comparison import NOISE_FACTOR, Comparison, Noise, compare
from translators.verify.disturbance import Disturbance
from translators.verify.evaluation import Case, Clock, in_f64, run
from translators.verify.inputs import Trial
from translators.verify.memory import Layout
from translators.verify.report import Rung, Status
from translators.verify.stores import store_locations
from translators.verify.widened import NoReferenceError, widened

_DISTURBED_RUNS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one array of one input compares.

    Attributes:
      array: the kernel's parameter.
      case: the input.
      comparison: how it compares.
    """

    array: str
    case: Case
    comparison: Comparison


class Judge:
    """Knows a launch well enough to say whether another run of it gave the same.

    Args:
      module: the kernel's graph, with the precision of products that is compared.
      layout: that of the launch.
      clock: how long references may take.
      tolerance: as `compare` takes it.
    """

    def __init__(
        self, module: Module, layout: Layout, clock: Clock, tolerance: float | None
    ) -> None:
        self._module = module
        self._layout = layout
        self._clock = clock
        self._tolerance = tolerance
        # The cases are kept, so that no two of them can have the same identity.
        self._in_f64: dict[int, tuple[Case, Mapping[str, Array]]] = {}
        self._noisy: dict[int, tuple[Case, list[Mapping[str, Array]]]] = {}
        self._lines = _lines_by_array(module, layout)
        try:
            self._wide: Module | None = widened(module)
        except NoReferenceError:
            self._wide = None

    def verdicts(
        self,
        found: Mapping[str, Array],
        trial: Trial,
        *,
        noise_factor: float = NOISE_FACTOR,
    ) -> list[Verdict]:
        """One for each array argument.

        Args:
          found: what was found, by name.
          trial: what the evaluator leaves, and of what.
          noise_factor: how many times the evaluator's own error is allowed.
        """
        initial = self._layout.arrays(trial.case.storages)
        written = self._layout.arrays(trial.outcome.written)
        verdicts = []
        for name in trial.outcome.arrays:
            comparison = _unwritten(found[name], initial[name], written[name]) or self.comparison(
                name, found[name], trial, noise_factor
            )
            verdicts.append(Verdict(array=name, case=trial.case, comparison=comparison))
        return verdicts

    def comparison(
        self, name: str, found: Array, trial: Trial, noise_factor: float = NOISE_FACTOR
    ) -> Comparison:
        """How one array compares with what the evaluator leaves of it.

        Raises:
          TooSlowError: there is no time to say how much of a difference is rounding.
        """
        return compare(
            found,
            trial.outcome.arrays[name],
            noise=Noise(
                exact=partial(self._exact, name, trial.case),
                disturbed=partial(self._disturbed, name, trial.case),
            ),
            tolerance=self._tolerance,
            noise_factor=noise_factor,
        )

    def rung(self, name: str, verdicts: Iterable[Verdict], passed: str) -> Rung:
        """The rung for verdicts: the first that disagrees, else the worst.

        Args:
          name: the rung's.
          verdicts: at least one.
          passed: what was compared, for where all agree.
        """
        verdicts = list(verdicts)
        wrong = [each for each in verdicts if not each.comparison.agrees]
        worst = wrong[0] if wrong else max(verdicts, key=lambda each: each.comparison.ulps or 0.0)
        comparison = worst.comparison
        exact = not wrong and comparison.ulps is None
        return Rung(
            name=name,
            status=Status.FAILED if wrong else Status.PASSED,
            reason=(
                f"`{worst.array}`: {comparison.reason}"
                if wrong
                else f"{passed}: {comparison.reason}"
            ),
            ulps=comparison.ulps,
            array="" if exact else worst.array,
            index=comparison.index,
            expected=comparison.expected,
            found=comparison.found,
            case="" if exact else worst.case.title,
            lines=self.lines(worst.array) if wrong else (),
        )

    def lines(self, array: str) -> tuple[SourceLocation, ...]:
        """The kernel's lines that write to an array."""
        return self._lines.get(array, ())

    def _exact(self, name: str, case: Case) -> Array | None:
        """An array after the same launch computed in `f64`; `None` if there is no such launch."""
        if self._wide is None:
            return None
        known = self._in_f64.get(id(case))
        if known is None:
            try:
                arrays = run(self._wide, self._layout, in_f64(case), self._clock).arrays
            except EvaluationError:
                # A float that became an index may lead elsewhere when it is not rounded.
                arrays = {}
            known = self._in_f64[id(case)] = (case, arrays)
        return known[1].get(name)

    def _disturbed(self, name: str, case: Case) -> list[Array]:
        """An array after several runs in which rounding is exaggerated."""
        known = self._noisy.get(id(case))
        if known is None:
            runs = []
            for seed in range(_DISTURBED_RUNS):
                disturb = Disturbance(np.random.default_rng(seed))
                try:
                    outcome = run(self._module, self._layout, case, self._clock, disturb=disturb)
                except EvaluationError:
                    continue  # as above
                runs.append(outcome.arrays)
            known = self._noisy[id(case)] = (case, runs)
        return [arrays[name] for arrays in known[1]]


def _unwritten(found: Array, initial: Array, written: Array) -> Comparison | None:
    """An element that changed although the kernel does not write it; `None` if there is none."""
    same = (found == initial) | ((found != found) & (initial != initial))
    changed = ~(same | written)
    if not changed.any():
        return None
    index = tuple(int(each) for each in np.unravel_index(int(changed.argmax()), changed.shape))
    return Comparison(
        agrees=False,
        reason=f"{int(changed.sum())} elements changed that the kernel does not write",
        ulps=np.inf,
        index=index,
        expected=str(initial[index]),
        found=str(found[index]),
    )


def _lines_by_array(module: Module, layout: Layout) -> dict[str, tuple[SourceLocation, ...]]:
    """The lines that write to each array, or to another one in the same memory."""
    by_buffer: dict[int, dict[SourceLocation, None]] = {}
    for parameter, lines in zip(
        kernel_parameters(layout.launch), store_locations(module), strict=True
    ):
        view = layout.views.get(parameter.name)
        if view is not None:
            by_buffer.setdefault(view.array.buffer, {}).update(dict.fromkeys(lines))
    return {name: tuple(by_buffer[view.array.buffer]) for name, view in layout.views.items()}
