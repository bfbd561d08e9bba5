"""The ladder: a launch of a kernel proved equal to the function emitted for it, rung by rung."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from translators.graph.errors import EvaluationError, GraphError
from translators.graph.graph import Module
from translators.verify.backward import BACKWARD, BackwardNames, backward_rung
from translators.verify.emitted import Emitted
from translators.verify.errors import TooSlowError, VerificationError
from translators.verify.evaluation import Clock
from translators.verify.gradients import GRADIENTS, gradient_rung
from translators.verify.inputs import Source, Trial, trials
from translators.verify.joined import JOINED, joined_rung
from translators.verify.judging import Judge
from translators.verify.memory import Layout, lay_out
from translators.verify.order import order_dependence, reversed_order
from translators.verify.recorded import recorded_storages
from translators.verify.report import Report, Rung, Status
from translators.verify.rewriting import ieee_dots
from translators.verify.rungs import (
    Ascent,
    emitted_rung,
    interpreter_rung,
    order_rung,
    padding_rung,
    proof_of,
    scalars_rung,
    specials_rung,
)
from translators.verify.subject import Subject
from translators.verify.tpu_rungs import (
    begin_compilation,
    begin_simulation,
    compilation_rungs,
    simulation_rung,
)
from translators.verify.workers import NOBODY, Workers

INPUTS = "evaluator"
# What a kernel's author says holds of every input.
_PROMISES = frozenset({"tt.assert", "llvm.intr.assume"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to verify.

    Attributes:
      seed: of the random numbers.
      inputs: how many inputs to compare on.
      tolerance: how far elements may differ, as a fraction of the array's greatest; `None` for
        the criterion of `comparison.py`.
      seconds: how long one launch may take; rungs left over are skipped.
      specials: whether to try NaN and infinities as inputs.
      chips: the TPU generations that it has to compile for; if none is named, the usual ones are
        tried, as `begin_compilation` says.
      hasty: whether to end with the first rung that fails the translation.
    """

    seed: int = 0
    inputs: int = 3
    tolerance: float | None = None
    seconds: float = 60.0
    specials: bool = True
    chips: tuple[str, ...] = ()
    hasty: bool = False


def climb(subject: Subject, settings: Settings | None = None, workers: Workers = NOBODY) -> Report:
    """Verifies one launch.

    Args:
      subject: what is to be proved.
      settings: how.
      workers: whom to ask.

    Returns:
      A report whose `passed` says whether the translation is proved. A launch that cannot be
      verified gives a report that says why.
    """
    settings = settings or Settings()
    inputs: tuple[str, ...] = ()
    rungs: list[Rung] = []
    try:
        ascent = _prepared(subject, settings)
        inputs = tuple(trial.case.title for trial in ascent.trials)
        for rung in _rungs(ascent, settings, workers):
            rungs.append(rung)
            if settings.hasty and rung.fatal:
                break
    except VerificationError as error:
        rungs.append(Rung(name=INPUTS, status=Status.SKIPPED, reason=error.message))
    except EvaluationError as error:
        rungs.append(_misbehaved(error))
    return Report(
        kernel=subject.launch.kernel,
        grid=subject.launch.grid,
        inputs=inputs,
        proof=proof_of(subject.emitted),
        rungs=tuple(rungs),
    )


def climb_gradient(subject: Subject, settings: Settings | None = None) -> Rung:
    """Compares the gradient of the emitted function with finite differences of the kernel."""
    settings = replace(settings or Settings(), inputs=1)
    try:
        ascent = _prepared(subject, settings)
    except (EvaluationError, VerificationError) as error:
        return Rung(name=GRADIENTS, status=Status.SKIPPED, reason=error.message)
    case = ascent.trials[0].case
    return gradient_rung(subject, ascent.layout, case, ascent.clock, ascent.rng)


def climb_backward(
    forward: Subject,
    backward: Subject,
    names: BackwardNames | None = None,
    settings: Settings | None = None,
) -> Rung:
    """Compares a backward kernel with `jax.vjp` of its forward kernel's translation.

    Args:
      forward: the forward kernel's launch.
      backward: the backward kernel's.
      names: what the backward kernel's parameters are; guessed from their names if not given.
      settings: how.
    """
    settings = replace(settings or Settings(), inputs=1)
    try:
        ascent = _prepared(forward, settings)
    except (EvaluationError, VerificationError) as error:
        return Rung(name=BACKWARD, status=Status.SKIPPED, reason=error.message)
    return backward_rung(forward, backward, ascent.trials[0].case, ascent.rng, names)


def climb_joined(
    forward: Subject,
    joined: Emitted,
    names: BackwardNames,
    settings: Settings | None = None,
) -> Rung:
    """Compares the gradient of a function that is made of two kernels with `jax.vjp`.

    Args:
      forward: the forward kernel's launch, with a function that JAX differentiates.
      joined: the function that is made of both kernels.
      names: what the backward kernel's parameters are.
      settings: how.
    """
    settings = replace(settings or Settings(), inputs=1)
    try:
        ascent = _prepared(forward, settings)
    except (EvaluationError, VerificationError) as error:
        return Rung(name=JOINED, status=Status.SKIPPED, reason=error.message)
    return joined_rung(forward, joined, ascent.trials[0].case, ascent.rng, names)


def _prepared(subject: Subject, settings: Settings) -> Ascent:
    """The launch, evaluated on its inputs.

    Raises:
      VerificationError: there is nothing to compare, or no time.
      EvaluationError: the kernel does what no kernel may on the first input.
    """
    clock = Clock(settings.seconds)
    layout = lay_out(subject.launch)
    module = ieee_dots(subject.module)
    judge = Judge(module, layout, clock, settings.tolerance)
    rng = np.random.default_rng(settings.seed)
    return Ascent(
        module=module,
        layout=layout,
        kernel=subject.kernel,
        emitted=subject.emitted,
        trials=_tried(subject, module, layout, judge, clock, settings.inputs, rng),
        judge=judge,
        clock=clock,
        rng=rng,
    )


def _rungs(ascent: Ascent, settings: Settings, workers: Workers) -> Iterator[Rung]:
    pallas = ascent.emitted.signature.pallas
    compiling = None
    if workers.compiler is not None:
        compiling = begin_compilation(
            ascent.emitted, ascent.layout, ascent.clock, workers.compiler, settings.chips
        )
    simulating = begin_simulation(ascent, workers.simulator) if pallas else None
    proof = emitted_rung(ascent)
    yield proof
    if simulating is not None:
        yield simulation_rung(ascent, simulating)
    if compiling is not None:
        yield from compilation_rungs(compiling)
    yield interpreter_rung(ascent, workers.interpreter)
    yield order_rung(ascent)
    if proof.status is Status.FAILED:
        return  # what is wrong on plain inputs need not be tried on others
    yield padding_rung(ascent)
    if settings.specials:
        yield specials_rung(ascent)
    yield scalars_rung(ascent)


def _tried(
    subject: Subject,
    module: Module,
    layout: Layout,
    judge: Judge,
    clock: Clock,
    inputs: int,
    rng: np.random.Generator,
) -> tuple[Trial, ...]:
    """Inputs with what the evaluator leaves of them, as many as there is time for.

    Raises:
      VerificationError: there is no time for any.
      EvaluationError: the kernel does what no kernel may on the first one.
    """
    backwards = reversed_order(subject.launch.grid)

    def any_order(trial: Trial) -> bool:
        if any(record.op.name in _PROMISES for record in trial.outcome.records):
            return False
        return order_dependence(module, layout, trial, backwards, judge, clock) is None

    recorded = None if subject.values is None else recorded_storages(layout, subject.values)
    source = Source(module=module, layout=layout, recorded=recorded, any_order=any_order, rng=rng)
    found: list[Trial] = []
    try:
        for trial in trials(source, clock, inputs):
            found.append(trial)
    except (EvaluationError, TooSlowError):
        if not found:
            raise
    return tuple(found)


def _misbehaved(error: GraphError) -> Rung:
    return Rung(
        name=INPUTS,
        status=Status.FAILED,
        reason=error.message,
        lines=() if error.location is None else (error.location,),
    )
