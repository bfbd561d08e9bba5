"""One launch -> what is emitted for it, or why there is nothing."""

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hlo_tools.errors import InputError
from translators.access.analysis import Analysis, analyze
from translators.command.emitting import Part, emit_part
from translators.command.launching import Task
from translators.command.outcome import Problem
from translators.emit.emission import Note
from translators.general_translation import generalized
from translators.graph.errors import GraphError
from translators.graph.graph import Module
from translators.specializing import specialization
from translators.translation import Translation, translate_for_tpu, translate_module
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import ConstantArgument, Launch
from translators.verify.ladder import Settings
from translators.verify.report import Rung

AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is to be done with each launch.

    Attributes:
      emit: `auto`, `pallas`, `jax`, `stablehlo` or `graph`.
      blocks: how long blocks are to be in Pallas, by the name of the dimension.
      explain: whether to keep the analysis of accesses.
      verify: how to verify; `None` not to.
      gradients: whether to verify gradients too.
      backward: the kernel that is the backward one of the other; `None` if there is none.
      step: told what is being done, and with which kernel.
    """

    emit: str
    blocks: Mapping[str, int]
    explain: bool
    verify: Settings | None
    gradients: bool
    backward: str | None
    step: Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A launch with what is emitted for it, or why there is nothing."""

    task: Task
    analysis: Analysis | None = None
    part: Part | None = None
    problem: Problem | None = None


def try_task(
    task: Task,
    wishes: Wishes,
    taken: set[str],
    instead: Note | None = None,
    *,
    enlarge: bool = True,
) -> Tried:
    """What is emitted for a launch.

    Args:
      task: the launch.
      wishes: what to emit.
      taken: names that functions of other launches have; the new one is added.
      instead: why it is to be JAX in the place of Pallas, where it is.
      enlarge: whether blocks may be longer than the launch's, if the result is verified.
    """
    launch = task.launch
    wishes.step("translating", launch.kernel.function)
    analysis = None
    try:
        module = task.graph if task.graph is not None else kernel_graph(task.kernel, launch)
        if wishes.explain:
            analysis = analyze(module, specialization(module, launch))
        translation = _translated(task.kernel, module, launch, wishes, instead, enlarge)
        part = emit_part(wishes.emit, translation, taken)
    except InputError as error:
        if error.path is None:
            error.path, error.line = launch.kernel.file, error.line or launch.kernel.line
        problem = replace(problem_of(error), refusal=True)
        return Tried(task=task, analysis=analysis, problem=problem)
    return Tried(task=task, analysis=analysis, part=part)


def otherwise(tried: Tried, failed: Rung, wishes: Wishes, taken: set[str]) -> Tried:
    """A launch with what takes the place of a kernel in Pallas that fails a rung.

    That is the kernel with the blocks of its launch, if it had larger ones, and JAX otherwise.

    Args:
      tried: the launch, with the kernel in Pallas.
      failed: the rung.
      wishes: what else to emit.
      taken: names of functions; the kernel's becomes free.
    """
    assert tried.part is not None
    taken.discard(tried.part.function.name)
    if is_enlarged(tried, wishes):
        return try_task(tried.task, wishes, taken, enlarge=False)
    generation = f" for {failed.generation}" if failed.generation else ""
    line = failed.lines[0].line if failed.lines else 0
    reason = " ".join(failed.reason.split())
    note = _instead(f"{failed.name}{generation}: {reason}", line)
    return try_task(tried.task, wishes, taken, note)


def is_enlarged(tried: Tried, wishes: Wishes) -> bool:
    """Whether a kernel in Pallas has larger blocks than its launch, which nobody asked for."""
    return tried.part is not None and tried.part.function.reblocked and not wishes.blocks


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


def _translated(
    kernel: Any,
    module: Module,
    launch: Launch,
    wishes: Wishes,
    instead: Note | None,
    enlarge: bool,
) -> Translation:
    if wishes.emit in (AUTO, "pallas") and instead is None:
        try:
            enlarge = enlarge and wishes.verify is not None
            translation = translate_for_tpu(
                kernel, module, launch, "pallas", wishes.blocks, enlarge=enlarge
            )
            constants = {each.name for each in launch.singles if isinstance(each, ConstantArgument)}
            blocks = {name: n for name, n in wishes.blocks.items() if name not in constants}
            return generalized(translation, blocks=blocks)
        except GraphError as error:
            if wishes.emit != AUTO:
                raise
            instead = _instead(error.message, error.line or 0)
    translation = translate_module(module, launch)
    if wishes.emit in ("graph", "stablehlo"):
        return translation
    translation = generalized(translation)
    if instead is None:
        return translation
    function = translation.function
    return replace(translation, function=replace(function, notes=(*function.notes, instead)))


def _instead(reason: str, line: int) -> Note:
    return Note(text=f"JAX in the place of Pallas: {reason}", line=line)
