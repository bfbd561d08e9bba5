"""What was emitted for launches, verified as it stands in the text of all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from translators.command.emitting import Part, emitted_part, join
from translators.command.launching import Task
from translators.command.trying import AUTO, Tried, Wishes
from translators.emit.jax import JaxFunction
from translators.translation import Target, load, translate, translate_module
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import ConstantArgument, Launch
from translators.triton.recorder import RecordedLaunch
from translators.verify.backward import BACKWARD
from translators.verify.emitted import Emitted, for_launch, takes
from translators.verify.ladder import Settings, climb, climb_backward, climb_gradient
from translators.verify.relaunch import configurations_rung, explicit_rungs, sizes_rung
from translators.verify.report import Report, Rung, Status
from translators.verify.subject import Subject, subject_of
from translators.verify.workers import Workers


class Verifier:
    """Verifies what was emitted.

    Args:
      wishes: what is to be done.
      settings: how to verify.
      workers: whom to ask.
    """

    def __init__(self, wishes: Wishes, settings: Settings, workers: Workers) -> None:
        self._wishes = wishes
        self._settings = settings
        self._workers = workers

    def reports(
        self, tried: Sequence[Tried], which: Sequence[int]
    ) -> Iterator[tuple[int, Report | None]]:
        """What the verification of some launches finds; `None` where nothing was emitted.

        Args:
          tried: all launches.
          which: those to verify.
        """
        text = text_of(tried, self._wishes.emit)
        for index in which:
            yield index, self._report(tried, tried[index], text)

    def _report(self, all_tried: Sequence[Tried], tried: Tried, text: str) -> Report | None:
        part, task = tried.part, tried.task
        if part is None:
            return None
        name = task.launch.kernel.function
        self._wishes.step("verifying", name)
        emitted = emitted_part(self._wishes.emit, text, part)
        # Of a kernel in Pallas that fails, another translation takes the place.
        hasty = self._wishes.emit == AUTO and part.function.pallas
        settings = replace(self._settings, hasty=hasty)
        report = climb(_subject(task, part, emitted), settings, self._workers)
        if not report.passed:
            return report
        rungs = [*report.rungs, *self._variations(task, part, emitted)]
        if self._wishes.gradients:
            self._wishes.step("verifying gradients of", name)
            rungs.append(self._gradient(all_tried, task, part))
        return replace(report, rungs=tuple(rungs))

    def _variations(self, task: Task, part: Part, emitted: Emitted) -> Iterator[Rung]:
        """Other launches by the same host code: by the function itself where it takes them."""
        if task.kernel is None or task.module is None or not task.call:
            yield from explicit_rungs()
            return
        for rung in (sizes_rung, configurations_rung):
            self._wishes.step("verifying other launches of", task.launch.kernel.function)
            yield rung(
                task.module,
                task.call,
                lambda recorded: self._recorded_subject(recorded, task, part, emitted),
                kernel=task.launch.kernel,
                settings=self._settings,
                workers=self._workers.on_cpu,
            )

    def _recorded_subject(
        self, recorded: RecordedLaunch, task: Task, part: Part, emitted: Emitted
    ) -> Subject:
        launch = recorded.launch
        if _constants(launch) == _constants(task.launch):
            own = for_launch(emitted, launch)
            if takes(own, launch):
                return Subject(
                    launch=launch,
                    module=kernel_graph(recorded.kernel, launch),
                    emitted=own,
                    kernel=recorded.kernel,
                    values=recorded.values,
                )
        target: Target = "pallas" if part.function.pallas else "jax"
        translation = translate(recorded.kernel, launch, target, self._wishes.blocks)
        return subject_of(translation, recorded.kernel, recorded.values)

    def _gradient(self, all_tried: Sequence[Tried], task: Task, part: Part) -> Rung:
        # JAX differentiates its own functions only, whatever else they were emitted as.
        own = part.function
        if task.launch.kernel.function != self._wishes.backward:
            if self._wishes.backward is None:
                return climb_gradient(_subject(task, part, _callable(own)), self._settings)
            # What the backward kernel is compared with, and what that is compared with.
            rung = climb_gradient(_subject(task, part, _callable(_in_jax(part))), self._settings)
            return replace(rung, reason=f"{rung.reason}, in JAX") if own.pallas else rung
        forward = next(
            each for each in all_tried if each.task.launch.kernel.function != self._wishes.backward
        )
        if forward.part is None:
            return Rung(
                name=BACKWARD, status=Status.SKIPPED, reason="the forward kernel is refused"
            )
        subject = _subject(task, part, _callable(own))
        forward_subject = _subject(forward.task, forward.part, _callable(_in_jax(forward.part)))
        return climb_backward(forward_subject, subject, settings=self._settings)


def text_of(tried: Sequence[Tried], emit: str) -> str:
    """The text emitted for all launches that have one."""
    parts = [each.part for each in tried if each.part is not None]
    return join(emit, parts) if parts else ""


def _in_jax(part: Part) -> JaxFunction:
    """The function that JAX can differentiate: the one that is emitted, or JAX for its launch."""
    if not part.function.pallas:
        return part.function
    return translate_module(part.translation.module, part.translation.launch).function


def _callable(function: JaxFunction) -> Emitted:
    return Emitted(signature=function, call=load(function))


def _subject(task: Task, part: Part, emitted: Emitted) -> Subject:
    return Subject(
        launch=task.launch,
        module=part.translation.module,
        emitted=emitted,
        kernel=task.kernel,
        values=task.values,
    )


def _constants(launch: Launch) -> list[ConstantArgument]:
    return [each for each in launch.singles if isinstance(each, ConstantArgument)]
