"""One collected launch: translated, to Pallas where that can be, and verified."""

import json
import os
import sys
import time
import traceback
from pathlib import Path

from benchmarks.coverage_parts.attempt import recorded_values
from benchmarks.coverage_parts.pretence import pretended_gpu
from benchmarks.coverage_parts.store import describe, load
from benchmarks.coverage_parts.tpu import use_environment
from hlo_tools.errors import InputError
from translators.access.explain import explain
from translators.graph.errors import GraphError
from translators.translation import translate
from translators.triton.recorder import recording
from translators.verify.ladder import Settings, climb
from translators.verify.report import Status
from translators.verify.subject import subject_of
from translators.verify.workers import all_workers

from .cases import prepare

LONGEST_REASON = 400


def serve(checkouts, emit, settings):
    """Reads the paths of launches, a line each, and answers with outcomes, as `Pool` expects.

    Args:
      checkouts: where packages are.
      emit: `auto`, `pallas` or `jax`.
      settings: how to verify.
    """
    use_environment()
    # What packages print must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(**message):
        answers.write(json.dumps(message) + "\n")

    prepare(checkouts)
    with pretended_gpu(), recording(), all_workers() as workers:
        say(ready=True)
        for line in sys.stdin:
            attempt = Attempt(emit, Settings(**settings), workers, say)
            say(outcome=attempt.run(Path(line.rstrip("\n"))))


class Attempt:
    """Takes one launch through all steps.

    Args:
      emit: `auto` for Pallas where that can be, else `pallas` or `jax`.
      settings: how to verify.
      workers: whom the verification asks.
      say: told before each step its name, and the outcome so far.
    """

    def __init__(self, emit, settings, workers, say):
        self._emit = emit
        self._settings = settings
        self._workers = workers
        self._say = say
        self._outcome = {}

    def run(self, path):
        """What becomes of a stored launch.

        Returns:
          `result` (`verified`, `refused`, `not equal`, `not proved` or `error`) and `seconds`;
          where they apply `reason`, `emitted`, `instead` (why it is JAX and not Pallas), `wrong`
          (whether Pallas computed something else), `rungs`, `notes`, `accesses`, `source`,
          `launch` and `trace`.
        """
        start = time.perf_counter()
        outcome = self._outcome
        try:
            self._step("load")
            collected = load(path)
            outcome["launch"] = describe(collected.launch)
            self._translate_and_verify(collected)
        except InputError as error:
            outcome.update(result="refused", reason=_reason(error))
        except Exception as error:  # to find errors of ours is what this program is for
            outcome.update(result="error", reason=_error(error), trace=traceback.format_exc())
        outcome["seconds"] = round(time.perf_counter() - start, 2)
        return outcome

    def _translate_and_verify(self, collected):
        if self._emit != "jax":
            report = self._in_pallas(collected)
            if report is not None:
                self._judge(report)
                return
        self._step("translate to JAX")
        translation = translate(collected.jitted, collected.launch)
        self._judge(self._verified(collected, translation))

    def _in_pallas(self, collected):
        """The report on a Pallas kernel; `None` where JAX has to take its place."""
        self._step("translate to Pallas")
        try:
            translation = translate(collected.jitted, collected.launch, emit="pallas")
        except GraphError as error:
            if self._emit == "pallas":
                raise
            self._outcome["instead"] = _reason(error)
            return None
        report = self._verified(collected, translation)
        failed = next((rung for rung in report.rungs if rung.fatal), None)
        if failed is None or self._emit == "pallas":
            return report
        where = f" for {failed.generation}" if failed.generation else ""
        reason = " ".join(failed.reason.split())[:LONGEST_REASON]
        self._outcome["instead"] = f"{failed.name}{where}: {reason}"
        self._outcome["wrong"] = bool(failed.array)
        self._outcome["pallas_source"] = translation.function.source
        return None

    def _verified(self, collected, translation):
        function = translation.function
        self._outcome.update(
            emitted="pallas" if function.pallas else "jax",
            accesses=explain(translation.analysis),
            source=function.source,
            notes=[str(note.text) for note in function.notes],
        )
        self._step(f"verify {self._outcome['emitted']}")
        subject = subject_of(translation, collected.jitted, recorded_values(collected))
        return climb(subject, self._settings, self._workers)

    def _judge(self, report):
        outcome = self._outcome
        outcome["rungs"] = [rung.to_json() for rung in report.rungs]
        failed = next((rung for rung in report.rungs if rung.fatal), None)
        if report.passed:
            outcome["result"] = "verified"
        elif failed is not None:
            outcome["result"] = "not equal" if failed.array else "not proved"
            outcome["reason"] = f"{failed.name}: {failed.reason}"[:LONGEST_REASON]
            if failed.array:
                place = ", ".join(map(str, failed.index))
                outcome["reason"] += f", at `{failed.array}[{place}]`: {failed.found} for "
                outcome["reason"] += f"{failed.expected} ({failed.case})"
        else:
            outcome["result"] = "not proved"
            skipped = (rung for rung in report.rungs if rung.status is Status.SKIPPED)
            outcome["reason"] = "; ".join(f"{rung.name}: {rung.reason}" for rung in skipped)

    def _step(self, name):
        self._say(step=name, so_far=self._outcome)


def _reason(error):
    file = Path(error.path).name if error.path else ""
    place = f"{file}:{error.line}: " if file and error.line else ""
    return f"{place}{error.message}"


def _error(error):
    return f"{type(error).__name__}: {error}"[:LONGEST_REASON]
