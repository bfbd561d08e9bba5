"""What a verification found: rungs of a ladder, each passed, failed or skipped with the reason."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from translators.graph.location import SourceLocation
from translators.triton.launches import KernelSource

_SHOWN_LINES = 3


class Status(Enum):
    """What became of a rung."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One comparison.

    Attributes:
      name: what was compared with what.
      status: what became of it.
      reason: by which rule it passed, what is wrong, or why it was skipped; a clause.
      ulps: the worst difference in units in the last place of the array's type; infinite where no
        rounding explains it, `None` where nothing differs or nothing was compared.
      array: the kernel's parameter with the worst difference; empty if there is none.
      index: where in that array.
      expected: the element there that was expected.
      found: the element there that was found.
      case: the input on which that was.
      lines: the kernel's lines that write to that array, or where the kernel went wrong.
    """

    name: str
    status: Status
    reason: str
    ulps: float | None = None
    array: str = ""
    index: tuple[int, ...] = ()
    expected: str = ""
    found: str = ""
    case: str = ""
    lines: tuple[SourceLocation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The rung as JSON; an infinite difference is the text `inf`."""
        ulps = self.ulps
        return {
            "name": self.name,
            "status": self.status.value,
            "reason": self.reason,
            "ulps": "inf" if ulps is not None and math.isinf(ulps) else ulps,
            "array": self.array or None,
            "index": list(self.index) if self.array else None,
            "expected": self.expected or None,
            "found": self.found or None,
            "input": self.case or None,
            "lines": [
                {"file": each.file, "line": each.line, "text": each.text} for each in self.lines
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All rungs of one launch.

    Attributes:
      kernel: what was launched.
      grid: with how many programs.
      inputs: on what it was run.
      proof: the name of the rung without which nothing is proved.
      rungs: in the order in which they were climbed.
    """

    kernel: KernelSource
    grid: tuple[int, int, int]
    inputs: tuple[str, ...]
    proof: str
    rungs: tuple[Rung, ...]

    @property
    def passed(self) -> bool:
        """Whether the translation is proved: nothing failed, and the proof was made."""
        proved = any(
            rung.name == self.proof and rung.status is Status.PASSED for rung in self.rungs
        )
        return proved and not any(rung.status is Status.FAILED for rung in self.rungs)

    def with_rungs(self, *rungs: Rung) -> "Report":
        """The report with more rungs at its end."""
        return replace(self, rungs=(*self.rungs, *rungs))

    @property
    def worst(self) -> Rung | None:
        """The rung that failed first; else the one with the greatest difference, if any."""
        for rung in self.rungs:
            if rung.status is Status.FAILED:
                return rung
        measured = [rung for rung in self.rungs if rung.ulps is not None]
        return max(measured, key=lambda rung: rung.ulps or 0.0, default=None)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "kernel": self.kernel.function,
            "file": self.kernel.file,
            "line": self.kernel.line,
            "grid": list(self.grid),
            "passed": self.passed,
            "inputs": list(self.inputs),
            "rungs": [rung.to_json() for rung in self.rungs],
        }


def render(report: Report) -> str:
    """The report as text, one rung after another, with details below those that failed."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    kernel = report.kernel
    grid = " x ".join(map(str, report.grid))
    yield f"{kernel.file}:{kernel.line}: `{kernel.function}`, grid {grid}"
    if report.inputs:
        yield f"  inputs: {'; '.join(report.inputs)}"
    width = max((len(rung.name) for rung in report.rungs), default=0)
    for rung in report.rungs:
        status = rung.status.value
        shown = status.upper() if rung.status is Status.FAILED else status
        yield f"  {shown:<7}  {rung.name:<{width}}  {_summary(rung)}"
        if rung.status is Status.FAILED:
            yield from (f"           {line}" for line in _details(rung))
    yield f"  {'proved equal' if report.passed else 'NOT proved equal'}"


def _summary(rung: Rung) -> str:
    if rung.status is not Status.PASSED or rung.ulps is None:
        return rung.reason
    return f"{rung.reason}; worst {_ulps(rung.ulps)} at {_place(rung)}"


def _details(rung: Rung) -> Iterator[str]:
    if rung.array:
        distance = "" if rung.ulps is None or math.isinf(rung.ulps) else f" ({_ulps(rung.ulps)})"
        yield f"at {_place(rung)}: expected {rung.expected}, found {rung.found}{distance}"
    if rung.case:
        yield f"on the input: {rung.case}"
    for line in rung.lines[:_SHOWN_LINES]:
        yield f"{line}: {line.text}" if line.text else str(line)
    if len(rung.lines) > _SHOWN_LINES:
        yield f"and {len(rung.lines) - _SHOWN_LINES} more lines"


def _place(rung: Rung) -> str:
    return f"`{rung.array}[{', '.join(map(str, rung.index))}]`" if rung.index else f"`{rung.array}`"


def _ulps(ulps: float) -> str:
    return f"{ulps:.3g} ulp{'' if ulps == 1 else 's'}"
