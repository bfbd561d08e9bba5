"""A launch translated to JAX, verified, and compiled for a TPU."""

import jax

from translators.translation import translate
from translators.verify.ladder import Settings, climb
from translators.verify.memory import lay_out
from translators.verify.report import Status, render
from translators.verify.rungs import ORDER
from translators.verify.subject import subject_of

from .attempt import Attempt, failure, first_line, recorded_values
from .outcome import JaxOutcome
from .tpu import compile_for_tpu


class JaxAttempt(Attempt):
    """Takes launches through the steps of the JAX columns.

    Args:
      announce: called before each step with its name and the outcome so far.
      tpu: whether to compile for a TPU.
      verify_seconds: how long a proof may take.
      inputs: on how many inputs to compare.
      debug: whether to print what was emitted and the whole proof.
    """

    outcome = JaxOutcome

    def __init__(self, announce, *, tpu=True, verify_seconds=40.0, inputs=2, debug=False):
        super().__init__(announce, debug=debug)
        self._tpu = tpu
        self._settings = Settings(seconds=verify_seconds, inputs=inputs)

    def _steps(self, collected, outcome):
        with self._timed(outcome, "translate"):
            translation = translate(collected.jitted, collected.launch)
        _note_accesses(translation.analysis, outcome)
        outcome.notes = [str(note) for note in translation.function.notes]
        if self._debug:
            print(translation.function.source)
        with self._timed(outcome, "verify"):
            subject = subject_of(translation, collected.jitted, recorded_values(collected))
            report = climb(subject, self._settings)
        if self._debug:
            print(render(report))
        _judge(report, outcome)
        if self._tpu and outcome.result in ("verified", "unjudged"):
            self._compile(translation, outcome)

    def _compile(self, translation, outcome):
        layout = lay_out(translation.launch)
        views = [layout.views[name] for name in translation.function.parameters]
        shapes = [jax.ShapeDtypeStruct(view.array.shape, view.dtype) for view in views]
        with self._timed(outcome, "compile"):
            try:
                with jax.enable_x64(translation.function.wide):
                    compile_for_tpu(translation.load(), shapes)
            except (jax.errors.JaxRuntimeError, NotImplementedError, ValueError) as error:
                outcome.tpu, outcome.tpu_reason = "no", first_line(error)
            else:
                outcome.tpu = "yes"


def _note_accesses(analysis, outcome):
    kinds = [access.kind for access in analysis.accesses if not access.never]
    outcome.access = max(kinds).label if kinds else "no access"
    for kind in sorted(kinds):
        outcome.accesses[kind.label] = outcome.accesses.get(kind.label, 0) + 1


def _judge(report, outcome):
    """Puts down what a proof comes to."""
    outcome.rungs = [
        f"{rung.name}: {rung.reason}" for rung in report.rungs if rung.status is Status.SKIPPED
    ]
    if report.passed:
        outcome.result = "verified"
        return
    failed = [rung for rung in report.rungs if rung.status is Status.FAILED]
    rung = failed[0] if failed else next(each for each in report.rungs if each.name != ORDER)
    outcome.reason, outcome.place = failure(rung)
    if not failed or rung.name in (ORDER, "evaluator"):
        outcome.result = "unjudged"
    elif "the emitted function fails" in rung.reason:
        outcome.result = "error"
    else:
        outcome.result = "not equal"
