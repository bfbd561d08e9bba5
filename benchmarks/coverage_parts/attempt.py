"""One collected launch: translated, verified, compiled for a TPU; and what came of it.

Runs in a process that may be ended at any moment, so each step is announced before it begins.
"""

import time
import traceback
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import jax

from hlo_tools.errors import InputError
from translators.translation import translate
from translators.verify.ladder import Settings, climb
from translators.verify.memory import lay_out
from translators.verify.report import Status, render
from translators.verify.rungs import ORDER, PROOF
from translators.verify.subject import subject_of

from .store import describe, load
from .tpu import compile_for_tpu


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of one launch.

    Attributes:
      result: `verified`, `refused`, `not equal`, `unjudged`, `error` or `timeout`.
      reason: why it is not verified.
      place: the kernel's file and line of the reason.
      access: the worst class of an access.
      accesses: how many accesses are of each class.
      notes: what the emitter says of the function, such as what runs serially.
      rungs: the steps of the proof that were not made, with the reason.
      tpu: `yes`, `no`, or empty where it was not tried.
      tpu_reason: why it does not compile.
      launch: the launch in one line.
      seconds: by step.
      trace: the traceback of an error of ours.
    """

    result: str = ""
    reason: str = ""
    place: str = ""
    access: str = ""
    accesses: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    rungs: list = field(default_factory=list)
    tpu: str = ""
    tpu_reason: str = ""
    launch: str = ""
    seconds: dict = field(default_factory=dict)
    trace: str = ""

    def as_dict(self):
        return asdict(self)


class Attempt:
    """Takes launches through the steps.

    Args:
      announce: called before each step with its name and the outcome so far.
      tpu: whether to compile for a TPU.
      verify_seconds: how long a proof may take.
      inputs: on how many inputs to compare.
      debug: whether to print what was emitted and the whole proof.
    """

    def __init__(self, announce, *, tpu=True, verify_seconds=40.0, inputs=2, debug=False):
        self._announce = announce
        self._tpu = tpu
        self._settings = Settings(seconds=verify_seconds, inputs=inputs)
        self._debug = debug

    def run(self, path):
        """The outcome of a stored launch; an error of ours is one, not raised."""
        outcome = Outcome()
        try:
            self._steps(path, outcome)
        except InputError as error:
            outcome.result, outcome.reason = "refused", error.message
            if error.path and error.line:
                outcome.place = f"{error.path}:{error.line}"
            else:
                outcome.result = "error"
                outcome.reason = f"refused without a place: {error.message}"
        except Exception as error:  # to find errors of ours is what this program is for
            outcome.result = "error"
            outcome.reason = f"{type(error).__name__}: {_first_line(error)}"
            outcome.trace = traceback.format_exc()
            outcome.place = _raised_at(error)
        return outcome

    def _steps(self, path, outcome):
        with self._timed(outcome, "load"):
            collected = load(Path(path))
        launch = collected.launch
        outcome.launch = describe(launch)
        with self._timed(outcome, "translate"):
            translation = translate(collected.jitted, launch)
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
                outcome.tpu, outcome.tpu_reason = "no", _first_line(error)
            else:
                outcome.tpu = "yes"

    @contextmanager
    def _timed(self, outcome, step):
        self._announce(step, outcome)
        start = time.perf_counter()
        try:
            yield
        finally:
            outcome.seconds[step] = round(time.perf_counter() - start, 2)


@dataclass(frozen=True, slots=True)
class _Address:
    """An array by its address, as the proof asks host code's arrays for it."""

    address: int

    def data_ptr(self):
        return self.address


def recorded_values(collected):
    """What host code passed for each array parameter, in the memory that was kept of it."""
    values = {}
    for array in collected.launch.arrays:
        memory = collected.memory[array.buffer]
        itemsize = lay_out(collected.launch).views[array.name].dtype.itemsize
        start = memory.__array_interface__["data"][0]
        passed = _Address(start + array.offset * itemsize)
        parameter, _, member = array.name.partition(".")
        if member:
            values.setdefault(parameter, {})[int(member)] = passed
        else:
            values[parameter] = passed
    return values


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
    outcome.reason = f"{rung.name}: {rung.reason}"
    if rung.array:
        where = ", ".join(map(str, rung.index))
        outcome.reason += f", at `{rung.array}[{where}]`: {rung.found} for {rung.expected}"
    if rung.case and rung.name != PROOF:
        outcome.reason += f" ({rung.case})"
    if rung.lines and rung.lines[0]:
        outcome.place = f"{rung.lines[0].file}:{rung.lines[0].line}"
    if not failed or rung.name in (ORDER, "evaluator"):
        outcome.result = "unjudged"
    elif "the emitted function fails" in rung.reason:
        outcome.result = "error"
    else:
        outcome.result = "not equal"


def _raised_at(error):
    """The innermost line of ours on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/translators/" in frame.filename] or frames
    return f"{ours[-1].filename.partition('/translators/')[2]}:{ours[-1].lineno}"


def _first_line(error):
    return str(error).strip().partition("\n")[0][:300]
