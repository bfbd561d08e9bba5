"""What a verification found: rungs of a ladder, each passed, failed or skipped with the reason."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from translators.graph.location import SourceLocation
from translators.triton.launches import KernelSource

_SHOWN_LINES = 3
_SHOWN_FINDINGS = 5
_HEAD = ("result", "rung", "chip", "worst error", "reason")
_NONE = "-"


class Status(Enum):
    """What became of a rung."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A defect that `hlo-lint` finds in a compiled program.

    Attributes:
      code: of the rule, such as `HLO201`.
      rule: its name.
      severity: `warning` or `error`.
      message: what is wrong.
    """

    code: str
    rule: str
    severity: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.rule}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One comparison, or one compilation.

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
      generation: of the TPU that was compiled for; empty for comparisons.
      findings: what is slow in the compiled program.
      decides: whether a failure here is one of the whole translation.
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
    generation: str = ""
    findings: tuple[Finding, ...] = ()
    decides: bool = True

    @property
    def fatal(self) -> bool:
        """Whether it fails the translation."""
        return self.status is Status.FAILED and self.decides

    def to_json(self) -> dict[str, Any]:
        """The rung as JSON; an infinite difference is the text `inf`."""
        ulps = self.ulps
        return {
            "name": self.name,
            "generation": self.generation or None,
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
            "findings": [asdict(each) for each in self.findings],
            "decides": self.decides,
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
    def proved(self) -> bool:
        """Whether the translation computes the same: the proof was made, no comparison failed."""
        proved = any(
            rung.name == self.proof and rung.status is Status.PASSED for rung in self.rungs
        )
        return proved and not any(rung.fatal and not rung.generation for rung in self.rungs)

    @property
    def passed(self) -> bool:
        """Whether it is proved, and compiles for every generation that it has to."""
        return self.proved and not self.refused_for

    @property
    def refused_for(self) -> tuple[str, ...]:
        """The generations that it has to compile for and does not."""
        return tuple(rung.generation for rung in self.rungs if rung.fatal and rung.generation)

    def with_rungs(self, *rungs: Rung) -> "Report":
        """The report with more rungs at its end."""
        return replace(self, rungs=(*self.rungs, *rungs))

    @property
    def worst(self) -> Rung | None:
        """The rung that failed first; else the one with the greatest difference, if any."""
        for rung in self.rungs:
            if rung.fatal:
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
    rows = [_HEAD, *(_row(rung) for rung in report.rungs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, row in enumerate(rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
        if index:
            yield from (f"           {line}" for line in _details(report.rungs[index - 1]))
    yield from (f"  {line}" for line in _findings(report))
    yield f"  {_verdict(report)}"


def _row(rung: Rung) -> tuple[str, ...]:
    failed = rung.status is Status.FAILED
    return (
        rung.status.value.upper() if failed else rung.status.value,
        rung.name,
        rung.generation or _NONE,
        _NONE if failed or rung.ulps is None else f"{_ulps(rung.ulps)} at {_place(rung)}",
        " ".join(rung.reason.split()),
    )


def _findings(report: Report) -> Iterator[str]:
    """What is slow in the compiled programs, each thing once."""
    found: dict[Finding, list[str]] = {}
    for rung in report.rungs:
        for finding in rung.findings:
            found.setdefault(finding, []).append(rung.generation)
    for finding, generations in [*found.items()][:_SHOWN_FINDINGS]:
        yield f"{', '.join(dict.fromkeys(generations))}: {finding}"
    if len(found) > _SHOWN_FINDINGS:
        yield f"and {len(found) - _SHOWN_FINDINGS} more of `hlo-lint`"


def _verdict(report: Report) -> str:
    if not report.proved:
        return "NOT proved equal"
    refused = ", ".join(report.refused_for)
    return f"proved equal, NOT compiled for {refused}" if refused else "proved equal"


def _details(rung: Rung) -> Iterator[str]:
    if rung.status is not Status.FAILED:
        return
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
