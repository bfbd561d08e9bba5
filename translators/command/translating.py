"""Launches -> what is emitted for them, and whether it computes the same."""

import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlo_tools.errors import InputError
from translators.access.analysis import Analysis, analyze
from translators.command.emitting import Part, emit_part, join, load_part
from translators.command.launching import Task
from translators.command.outcome import KernelOutcome, Problem, Status
from translators.general_translation import generalized
from translators.graph.errors import GraphError
from translators.translation import load, specialization, translate, translate_module
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import ConstantArgument, Launch, LaunchError
from translators.triton.recorder import RecordedLaunch
from translators.verify.backward import BACKWARD
from translators.verify.emitted import Emitted, for_launch, takes
from translators.verify.gradients import GRADIENTS
from translators.verify.interpreter import Interpreter
from translators.verify.ladder import Settings, climb, climb_backward, climb_gradient
from translators.verify.relaunch import configurations_rung, explicit_rungs, sizes_rung
from translators.verify.report import Report, Rung
from translators.verify.report import Status as RungStatus
from translators.verify.subject import Subject, subject_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is to be done with each launch.

    Attributes:
      emit: `graph`, `jax` or `stablehlo`.
      explain: whether to keep the analysis of accesses.
      verify: how to verify; `None` not to.
      gradients: whether to verify gradients too.
      backward: the kernel that is the backward one of the other; `None` if there is none.
      step: told what is being done, and with which kernel.
    """

    emit: str
    explain: bool
    verify: Settings | None
    gradients: bool
    backward: str | None
    step: Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """A launch with what is emitted for it, or why there is nothing."""

    task: Task
    analysis: Analysis | None = None
    part: Part | None = None
    problem: Problem | None = None


def translate_all(tasks: Sequence[Task], wishes: Wishes) -> tuple[tuple[KernelOutcome, ...], str]:
    """What becomes of each launch, and the text emitted for all that have one.

    Raises:
      LaunchError: the backward kernel is not launched, or several others are.
    """
    if wishes.backward is not None:
        _check_backward(tasks, wishes.backward)
    taken: set[str] = set()
    tried = [_tried(task, wishes, taken) for task in tasks]
    parts = [each.part for each in tried if each.part is not None]
    text = join(wishes.emit, parts) if parts else ""
    if wishes.verify is None:
        return tuple(_outcome(each) for each in tried), text
    with Interpreter() as interpreter:
        verifier = _Verifier(wishes, wishes.verify, interpreter, text, tried)
        return tuple(_outcome(each, verifier.report(each)) for each in tried), text


def problem_of(error: InputError) -> Problem:
    """The error with the line of source that it is about."""
    text = ""
    if error.path is not None and error.line is not None:
        text = linecache.getline(error.path, error.line).rstrip()
    if not text and isinstance(error, GraphError) and error.location is not None:
        text = error.location.text
    return Problem(
        message=error.message,
        path=error.path,
        line=error.line,
        column=error.column,
        refusal=isinstance(error, GraphError),
        text=text,
    )


def _tried(task: Task, wishes: Wishes, taken: set[str]) -> _Tried:
    launch = task.launch
    wishes.step("translating", launch.kernel.function)
    analysis = None
    try:
        module = task.graph if task.graph is not None else kernel_graph(task.kernel, launch)
        if wishes.explain:
            analysis = analyze(module, specialization(module, launch))
        translation = translate_module(module, launch)
        if wishes.emit == "jax":
            translation = generalized(translation)
        part = emit_part(wishes.emit, translation, taken)
    except InputError as error:
        if error.path is None:
            error.path, error.line = launch.kernel.file, error.line or launch.kernel.line
        problem = replace(problem_of(error), refusal=True)
        return _Tried(task=task, analysis=analysis, problem=problem)
    return _Tried(task=task, analysis=analysis, part=part)


def _check_backward(tasks: Sequence[Task], backward: str) -> None:
    kernels = list(dict.fromkeys(task.launch.kernel.function for task in tasks))
    if backward not in kernels:
        raise LaunchError(f"the backward kernel `{backward}` is not launched")
    forward = [name for name in kernels if name != backward]
    if len(forward) != 1:
        names = ", ".join(f"`{name}`" for name in forward) or "none"
        raise LaunchError(
            f"one kernel besides `{backward}` has to be launched, as the forward one, not {names}; "
            "`--kernel` names it"
        )


class _Verifier:
    """Verifies what was emitted, as it stands in the text of all launches."""

    def __init__(
        self,
        wishes: Wishes,
        settings: Settings,
        interpreter: Interpreter,
        text: str,
        tried: Sequence[_Tried],
    ) -> None:
        self._wishes = wishes
        self._settings = settings
        self._interpreter = interpreter
        self._text = text
        self._forward = [
            each for each in tried if each.task.launch.kernel.function != wishes.backward
        ]

    def report(self, tried: _Tried) -> Report | None:
        """What the verification of a launch finds; `None` where nothing was emitted."""
        part, task = tried.part, tried.task
        if part is None:
            return None
        name = task.launch.kernel.function
        self._wishes.step("verifying", name)
        call = load_part(self._wishes.emit, self._text, part)
        report = climb(_subject(task, part, call), self._settings, self._interpreter)
        if not report.passed:
            return report
        rungs = [*report.rungs, *self._variations(task, part, call)]
        if self._wishes.gradients:
            self._wishes.step("verifying gradients of", name)
            rungs.append(self._gradient(task, part))
        return replace(report, rungs=tuple(rungs))

    def _variations(self, task: Task, part: Part, call: Callable[..., Any]) -> Iterator[Rung]:
        """Other launches by the same host code: by the function itself where it takes them."""
        if task.kernel is None or task.module is None or not task.call:
            yield from explicit_rungs()
            return
        for rung in (sizes_rung, configurations_rung):
            self._wishes.step("verifying other launches of", task.launch.kernel.function)
            yield rung(
                task.module,
                task.call,
                lambda recorded: _recorded_subject(recorded, task, part, call),
                kernel=task.launch.kernel,
                settings=self._settings,
                interpreter=self._interpreter,
            )

    def _gradient(self, task: Task, part: Part) -> Rung:
        # JAX differentiates its own functions only, whatever else they were emitted as.
        subject = _subject(task, part, load(part.function))
        if task.launch.kernel.function != self._wishes.backward:
            return climb_gradient(subject, self._settings)
        forward = self._forward[0]
        if forward.part is None:
            return Rung(
                name=BACKWARD, status=RungStatus.SKIPPED, reason="the forward kernel is refused"
            )
        forward_subject = _subject(forward.task, forward.part, load(forward.part.function))
        return climb_backward(forward_subject, subject, settings=self._settings)


def _subject(task: Task, part: Part, call: Callable[..., Any]) -> Subject:
    return Subject(
        launch=task.launch,
        module=part.translation.module,
        emitted=Emitted(signature=part.function, call=call),
        kernel=task.kernel,
        values=task.values,
    )


def _recorded_subject(
    recorded: RecordedLaunch, task: Task, part: Part, call: Callable[..., Any]
) -> Subject:
    translation = translate(recorded.kernel, recorded.launch)
    subject = subject_of(translation, recorded.kernel, recorded.values)
    if _constants(recorded.launch) != _constants(task.launch):
        return subject
    emitted = for_launch(Emitted(signature=part.function, call=call), recorded.launch)
    return replace(subject, emitted=emitted) if takes(emitted, recorded.launch) else subject


def _constants(launch: Launch) -> list[ConstantArgument]:
    return [each for each in launch.singles if isinstance(each, ConstantArgument)]


def _outcome(tried: _Tried, report: Report | None = None) -> KernelOutcome:
    task, part = tried.task, tried.part
    if part is None:
        status = Status.REFUSED
    elif report is None:
        status = Status.TRANSLATED
    elif report.passed and not _left_out(report, (GRADIENTS, BACKWARD)):
        status = Status.VERIFIED
    elif any(rung.status is RungStatus.FAILED for rung in report.rungs):
        status = Status.NOT_EQUAL
    else:
        status = Status.NOT_PROVED
    return KernelOutcome(
        launch=task.launch,
        call=task.call,
        times=task.times,
        status=status,
        function=None if part is None else part.function,
        analysis=tried.analysis,
        report=report,
        problem=tried.problem,
        text="" if part is None else part.text,
    )


def _left_out(report: Report, names: tuple[str, ...]) -> bool:
    """Whether a rung of that name, which was asked for, was skipped."""
    return any(rung.name in names and rung.status is RungStatus.SKIPPED for rung in report.rungs)
