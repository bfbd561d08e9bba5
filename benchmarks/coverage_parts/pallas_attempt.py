"""A launch translated to a Pallas kernel, run in both interpreters, compiled for TPUs."""

import linecache

from hlo_tools.errors import InputError
from translators.translation import translate
from translators.verify.ladder import Settings, climb
from translators.verify.report import Status, render
from translators.verify.rungs import ORDER
from translators.verify.subject import subject_of
from translators.verify.tpu_rungs import COMPILER, SIMULATOR

from .attempt import Attempt, failure, recorded_values, refusal
from .outcome import PallasOutcome

_ANSWERS = {Status.PASSED: "yes", Status.FAILED: "no", Status.SKIPPED: "skipped"}
# What a rung says of the kernel or of the evaluator, not of what was emitted.
_OF_THE_KERNEL = (ORDER, "evaluator")


class PallasAttempt(Attempt):
    """Takes launches through the steps of the Pallas columns.

    Args:
      announce: called before each step with its name and the outcome so far.
      workers: the TPU interpreter, and the compiler where it is to compile.
      chips: the generations to compile for.
      verify_seconds: how long a proof may take.
      inputs: on how many inputs to compare.
      debug: whether to print what was emitted and the whole proof.
    """

    outcome = PallasOutcome

    def __init__(self, announce, *, workers, chips, verify_seconds=40.0, inputs=2, debug=False):
        super().__init__(announce, debug=debug)
        self._workers = workers
        self._settings = Settings(seconds=verify_seconds, inputs=inputs, chips=chips)

    def _steps(self, collected, outcome):
        with self._timed(outcome, "translate"):
            translation = _translated(collected, outcome)
        if translation is None:
            return
        outcome.emitted = True
        outcome.notes = [str(note) for note in translation.function.notes]
        if self._debug:
            print(translation.function.source)
        with self._timed(outcome, "verify"):
            subject = subject_of(translation, collected.jitted, recorded_values(collected))
            report = climb(subject, self._settings, self._workers)
        if self._debug:
            print(render(report))
        judge(report, outcome)


def _translated(collected, outcome):
    """The translation; `None` where only JAX can hold the kernel.

    Raises:
      InputError: JAX cannot either.
    """
    try:
        return translate(collected.jitted, collected.launch, emit="pallas")
    except InputError as error:
        translate(collected.jitted, collected.launch)
        result, outcome.reason, outcome.place = refusal(error)
        outcome.result = "fallback" if result == "refused" else result
        outcome.line = linecache.getline(error.path or "", error.line or 0).strip()
        return None


def judge(report, outcome):
    """Puts down what a proof comes to, step by step and in all."""
    comparisons = [rung for rung in report.rungs if rung.name not in (SIMULATOR, COMPILER)]
    own = [rung for rung in comparisons if rung.name not in _OF_THE_KERNEL]
    wrong = [rung for rung in own if rung.status is Status.FAILED]
    proof = next((rung for rung in own if rung.name == report.proof), comparisons[0])
    outcome.interpreted = _answer(outcome, "interpreter", wrong[0] if wrong else proof)
    for rung in report.rungs:
        if rung.name == SIMULATOR:
            outcome.tpu_interpreted = _answer(outcome, "TPU interpreter", rung)
        elif rung.name == COMPILER:
            outcome.compiled[rung.generation] = _answer(outcome, rung.generation, rung)
    failed = [rung for rung in report.rungs if rung.status is Status.FAILED]
    decisive = next((rung for rung in failed if rung.array and rung in own), None)
    decisive = decisive or next(iter(failed), None)
    if decisive is None:
        answers = [outcome.interpreted, outcome.tpu_interpreted, *outcome.compiled.values()]
        if all(answer == "yes" for answer in answers):
            outcome.result = "verified"
        else:
            outcome.result, outcome.reason = "unjudged", next(iter(outcome.reasons.values()))
        return
    outcome.reason, outcome.place = failure(decisive)
    if decisive.name == COMPILER:
        outcome.result = "does not compile"
        outcome.reason = f"{decisive.generation}: {decisive.reason}"
    elif decisive.name in _OF_THE_KERNEL:
        outcome.result = "unjudged"
    else:
        outcome.result = "not equal" if decisive.array else "error"


def _answer(outcome, step, rung):
    """What a rung says of a step; why it is not a `yes` is put down too."""
    if rung.status is not Status.PASSED:
        outcome.reasons[step] = failure(rung)[0]
    return _ANSWERS[rung.status]
