"""A run, or a list of kernels, as one JSON object; docs/triton2pallas.md says what it has."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hlo_tools import __version__
from translators.access.analysis import Access
from translators.command.listing import ListedKernel
from translators.command.outcome import (
    KernelOutcome,
    Outcome,
    Problem,
    launch_options,
)

SCHEMA_VERSION = 1


def report_json(outcome: Outcome) -> Iterator[str]:
    """What became of a run."""
    yield from _object(
        path=outcome.path,
        emit=outcome.emit,
        exit_status=outcome.exit_status,
        output=outcome.output,
        kernels=[_kernel(each) for each in outcome.kernels],
        problems=[_problem(each) for each in outcome.problems],
        text=outcome.text or None,
    )


def listing_json(path: Path, kernels: Sequence[ListedKernel], exit_status: int) -> Iterator[str]:
    """The kernels of a file."""
    yield from _object(
        path=str(path),
        exit_status=exit_status,
        found=[
            {
                "name": each.name,
                "file": each.file,
                "line": each.line,
                "parameters": [
                    {
                        "name": parameter.name,
                        "kind": parameter.kind,
                        "dtype": parameter.dtype or None,
                        "default": parameter.default or None,
                        "chosen": parameter.chosen,
                    }
                    for parameter in each.parameters
                ],
                "configurations": each.configurations,
                "launched_by": list(each.launched_by),
                "called_by": list(each.called_by),
                "needs": each.needs,
            }
            for each in kernels
        ],
        problems=[],
    )


def _object(**members: Any) -> Iterator[str]:
    tool = {"name": "triton2pallas", "version": __version__}
    whole = {"schema_version": SCHEMA_VERSION, "tool": tool, **members}
    yield json.dumps(whole, indent=2, ensure_ascii=True, allow_nan=False)
    yield "\n"


def _kernel(kernel: KernelOutcome) -> dict[str, Any]:
    source, function = kernel.launch.kernel, kernel.function
    members: dict[str, Any] = {
        "kernel": source.function,
        "file": source.file,
        "line": source.line,
        "status": kernel.status.value,
        "emitted": kernel.emitted or None,
        "call": kernel.call or None,
        "times": kernel.times,
        "grid": list(kernel.launch.grid),
        "launch": launch_options(kernel.launch),
        "problem": None if kernel.problem is None else _problem(kernel.problem),
        "function": None,
        "verification": None if kernel.report is None else kernel.report.to_json(),
    }
    if function is not None:
        members["function"] = {
            "name": function.name,
            "parameters": list(function.parameters),
            "scalars": list(function.scalars),
            "results": list(function.results),
            "needs_x64": function.wide,
            "notes": [{"text": each.text, "line": each.line or None} for each in function.notes],
        }
    if kernel.analysis is not None:
        members["accesses"] = [_access(each) for each in kernel.analysis.accesses]
    return members


def _access(access: Access) -> dict[str, Any]:
    location = access.op.location
    return {
        "number": access.number,
        "op": access.op.name,
        "file": None if location is None else location.file,
        "line": None if location is None else location.line,
        "text": None if location is None else location.text,
        "array": None if access.buffer is None else access.buffer.name,
        "class": access.kind.label,
        "reasons": [str(each) for each in access.reasons],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "message": problem.message,
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "text": problem.text.strip() or None,
    }
