"""Launches -> what is emitted for them, and whether it computes the same."""

import linecache
from collections.abc import Sequence

import numpy as np

from translators.command.assembling import File, assembled
from translators.command.launching import Task
from translators.command.outcome import KernelOutcome, Problem, Status
from translators.command.trying import (
    AUTO,
    Tried,
    Wishes,
    is_enlarged,
    otherwise,
    problem_of,
    try_task,
)
from translators.command.verifying import Verifier, text_of
from translators.triton.launches import LaunchError
from translators.verify.backward import BACKWARD
from translators.verify.gradients import GRADIENTS
from translators.verify.report import Report, Rung
from translators.verify.report import Status as RungStatus
from translators.verify.workers import all_workers

__all__ = ["Wishes", "problem_of", "translate_all"]


def translate_all(tasks: Sequence[Task], wishes: Wishes) -> tuple[tuple[KernelOutcome, ...], str]:
    """What becomes of each launch, and the text emitted for all that have one.

    Raises:
      LaunchError: the backward kernel is not launched, or several others are.
    """
    if wishes.backward is not None:
        _check_backward(tasks, wishes.backward)
    taken: set[str] = set()
    tried = [try_task(task, wishes, taken) for task in tasks]
    if wishes.verify is None:
        file = assembled(tried, [None] * len(tried), wishes)
        return tuple(_outcome(each, wishes) for each in tried), file.text
    reports: dict[int, Report | None] = {}
    # Poison and overflow are among the inputs, and say nothing by themselves.
    with all_workers() as workers, np.errstate(all="ignore"):
        verifier = Verifier(wishes, wishes.verify, workers)
        pending = list(range(len(tried)))
        while pending:
            reports.update(verifier.reports(tried, pending))
            failed = {index: _failed(tried[index], reports[index], wishes) for index in pending}
            pending = []
            for index, rung in failed.items():
                if rung is not None:
                    tried[index] = otherwise(tried[index], rung, wishes, taken)
                    pending.append(index)
    text = text_of(tried, wishes.emit)
    found = [reports[index] for index in range(len(tried))]
    if all(_outcome(each, wishes, report).good for each, report in zip(tried, found, strict=True)):
        file = assembled(tried, found, wishes)
        text = file.text
        found = [_with_joined(*each, file, wishes) for each in zip(tried, found, strict=True)]
    outcomes = [_outcome(each, wishes, report) for each, report in zip(tried, found, strict=True)]
    return tuple(outcomes), text


def _with_joined(tried: Tried, report: Report | None, file: File, wishes: Wishes) -> Report | None:
    """The report of a forward kernel with what is known of its gradient."""
    forward = tried.task.launch.kernel.function != wishes.backward
    if report is None or file.joined is None or not forward:
        return report
    return report.with_rungs(file.joined)


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


def _failed(tried: Tried, report: Report | None, wishes: Wishes) -> Rung | None:
    """The rung for which something takes the place of a kernel in Pallas; `None` if it need not."""
    if tried.part is None or not tried.part.function.pallas:
        return None
    if wishes.emit != AUTO and not is_enlarged(tried, wishes):
        return None
    assert report is not None
    return next((rung for rung in report.rungs if rung.fatal or _left_out(rung)), None)


def _outcome(tried: Tried, wishes: Wishes, report: Report | None = None) -> KernelOutcome:
    task, part, problem = tried.task, tried.part, tried.problem
    if part is None:
        status = Status.REFUSED
    elif report is None:
        status = Status.TRANSLATED
    elif report.passed and not any(map(_left_out, report.rungs)):
        status = Status.VERIFIED
    elif report.proved and report.refused_for:
        status, problem = Status.REFUSED, _refusal(task, report)
    elif any(rung.fatal for rung in report.rungs):
        status = Status.NOT_EQUAL
    else:
        status = Status.NOT_PROVED
    return KernelOutcome(
        launch=task.launch,
        call=task.call,
        times=task.times,
        status=status,
        emitted="" if part is None else _language(part.function.pallas, wishes),
        function=None if part is None else part.function,
        analysis=tried.analysis,
        report=report,
        problem=problem,
        text="" if part is None else part.text,
    )


def _language(pallas: bool, wishes: Wishes) -> str:
    """What a part is written in."""
    if wishes.emit in ("graph", "stablehlo"):
        return wishes.emit
    return "pallas" if pallas else "jax"


def _refusal(task: Task, report: Report) -> Problem:
    """The compiler's refusal of what computes the same."""
    rung = next(each for each in report.rungs if each.fatal and each.generation)
    source = task.launch.kernel
    return Problem(
        message=f"the TPU compiler refuses what is emitted, for {rung.generation}: {rung.reason}",
        path=source.file,
        line=source.line,
        refusal=True,
        text=linecache.getline(source.file, source.line).rstrip(),
    )


def _left_out(rung: Rung) -> bool:
    """Whether it was asked for and skipped."""
    return rung.name in (GRADIENTS, BACKWARD) and rung.status is RungStatus.SKIPPED
