"""A run, and a list of kernels, as text for people."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from translators.access.explain import explain
from translators.command.listing import CONSTEXPR, UNKNOWN, ListedKernel, Parameter
from translators.command.outcome import (
    KernelOutcome,
    Outcome,
    Problem,
    Status,
    launch_options,
)
from translators.verify.report import render as render_report


def problem_lines(problem: Problem) -> Iterator[str]:
    """A problem as a compiler shows it: place, reason, and the source line."""
    places = [problem.path, problem.line, problem.column]
    place = ":".join(str(each) for each in places if each is not None)
    prefix = "refused" if problem.refusal else "error"
    yield f"{place}: {prefix}: {problem.message}" if place else f"{prefix}: {problem.message}"
    text = problem.text.strip()
    if not text:
        return
    number = str(problem.line or "")
    yield f"  {number} | {text}"
    indent = len(problem.text) - len(problem.text.lstrip())
    if problem.column is not None and 0 <= problem.column - 1 - indent < len(text):
        yield f"  {' ' * len(number)} | {' ' * (problem.column - 1 - indent)}^"


def report_lines(outcome: Outcome) -> Iterator[str]:
    """What became of a run."""
    return _as_given(_report_lines(outcome), Path(outcome.path))


def explanation_lines(outcome: Outcome) -> Iterator[str]:
    """The table of accesses of each launch that was analysed."""
    return _as_given(_explanation_lines(outcome), Path(outcome.path))


def listing_lines(path: Path, kernels: Sequence[ListedKernel]) -> Iterator[str]:
    """The kernels of a file, and how each could be launched."""
    return _as_given(_listing_lines(path, kernels), path)


def _as_given(lines: Iterable[str], path: Path) -> Iterator[str]:
    """The lines, with the person's file called as the person called it."""
    resolved = f"{path.resolve()}:"
    return (line.replace(resolved, f"{path}:") for line in lines)


def _report_lines(outcome: Outcome) -> Iterator[str]:
    for problem in outcome.problems:
        yield from problem_lines(problem)
    for kernel in outcome.kernels:
        yield from _kernel_lines(kernel)
    if outcome.kernels:
        yield _summary(outcome)


def _explanation_lines(outcome: Outcome) -> Iterator[str]:
    for kernel in outcome.kernels:
        if kernel.analysis is not None:
            source = kernel.launch.kernel
            yield f"{source.file}:{source.line}: `{source.function}`"
            yield f"  {shlex.join(launch_options(kernel.launch))}"
            yield from (f"  {line}" for line in explain(kernel.analysis).splitlines())


def _listing_lines(path: Path, kernels: Sequence[ListedKernel]) -> Iterator[str]:
    if not kernels:
        yield f"{path}: no kernels"
    for kernel in kernels:
        parameters = ", ".join(map(_parameter, kernel.parameters))
        yield f"{kernel.file}:{kernel.line}: {kernel.name}({parameters})"
        if kernel.configurations:
            count = kernel.configurations
            yield f"    autotuned: {count} configuration{'' if count == 1 else 's'}"
        if kernel.called_by:
            yield f"    called by: {', '.join(kernel.called_by)}"
        for function in kernel.launched_by:
            yield f"    launched by: {function}"
        if kernel.launched_by or not kernel.called_by:
            yield f"    launch: {kernel.needs}"


def _parameter(parameter: Parameter) -> str:
    text = parameter.name
    if parameter.kind == CONSTEXPR:
        text += ": constexpr"
    elif parameter.kind != UNKNOWN:
        text += f": {parameter.dtype} {parameter.kind}" if parameter.dtype else ": pointer"
    if parameter.chosen:
        text += " (chosen)"
    return f"{text} = {parameter.default}" if parameter.default else text


def _kernel_lines(kernel: KernelOutcome) -> Iterator[str]:
    source = kernel.launch.kernel
    if kernel.problem is not None:
        yield from problem_lines(kernel.problem)
    if kernel.report is not None:
        yield from render_report(kernel.report).splitlines()
    else:
        yield f"{source.file}:{source.line}: `{source.function}`, {kernel.status.value}"
    made = f" made by `{kernel.call}`" if kernel.call else ""
    times = f", {kernel.times} times" if kernel.times > 1 else ""
    yield f"  launch{made}{times}: {shlex.join(launch_options(kernel.launch))}"
    function = kernel.function
    if function is None:
        return
    scalars = [f"{name}=..." for name in function.scalars]
    takes = ", ".join([*function.parameters, *scalars])
    language = {"pallas": " in Pallas", "jax": " in JAX"}.get(kernel.emitted, "")
    yield f"  function{language}: {function.name}({takes}) -> {', '.join(function.results)}"
    if function.wide:
        yield '  needs 64-bit types: `jax.config.update("jax_enable_x64", True)`'
    for note in function.notes:
        place = f"line {note.line}: " if note.line else ""
        yield f"  note: {place}{note.text}"


def _summary(outcome: Outcome) -> str:
    counts: dict[Status, int] = {}
    for kernel in outcome.kernels:
        counts[kernel.status] = counts.get(kernel.status, 0) + 1
    said = ", ".join(f"{count} {status.value}" for status, count in counts.items())
    total = len(outcome.kernels)
    text = f"{total} launch{'' if total == 1 else 'es'}: {said}"
    if outcome.output is not None:
        return f"{text}; written to {outcome.output}"
    return text if all(each.good for each in outcome.kernels) else f"{text}; nothing is written"
