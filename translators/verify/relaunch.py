"""The same host code called otherwise: with other sizes, and with other tuned configurations.

A launch alone does not say how its numbers depend on one another; the host code that makes it
does. So only calls such as `add(f32[98432], f32[98432])` can be varied.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import ModuleType
from typing import TypeAlias

from hlo_tools.errors import InputError
from translators.triton.launches import KernelSource, LaunchError
from translators.triton.recorder import RecordedLaunch, record_call
from translators.verify.ladder import INPUTS, Settings, climb
from translators.verify.report import Report, Rung, Status
from translators.verify.subject import Subject
from translators.verify.workers import NOBODY, Workers

SIZES = "other sizes"
CONFIGURATIONS = "other configurations"

Prepare: TypeAlias = Callable[[RecordedLaunch], Subject]
"""Translates a launch, or raises `InputError`."""

_DIMENSIONS = re.compile(r"(?<=[A-Za-z0-9])\[([\d,\s]*)\](:)?")
_INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_CONFIGURATIONS = 2
_EXPLICIT = "the launch is given as it is: nothing says how its grid follows from its sizes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Another call of the same host code.

    Attributes:
      title: what differs.
      call: the call.
      configuration: which of an autotuner's configurations is taken.
    """

    title: str
    call: str
    configuration: int = 0


def other_sizes(call: str) -> Iterator[Variant]:
    """Calls with other, odd sizes: first all of them changed, then one at a time.

    A size means the same wherever it occurs in the call, in a shape or as a number. Sizes of 1
    stay, as they say that there is nothing to go along.

    Raises:
      LaunchError: an array is given with strides of its own.
    """
    sizes: dict[int, None] = {}
    for match in _DIMENSIONS.finditer(call):
        if match[2]:
            raise LaunchError(f"`{call}` gives strides, which nothing says how to change")
        sizes.update(dict.fromkeys(int(each) for each in re.findall(r"\d+", match[1])))
    changes: dict[int, int] = {}
    for size in sizes:
        if size > 1:
            changes[size] = _odd_below(size, (*sizes, *changes.values()))
    choices = [changes, *({size: new} for size, new in changes.items())]
    for choice in choices if len(changes) > 1 else choices[:1]:
        title = ", ".join(f"{new} for {size}" for size, new in choice.items())
        if title:
            yield Variant(title=title, call=_replaced(call, choice))


def sizes_rung(
    module: ModuleType,
    call: str,
    prepare: Prepare,
    *,
    kernel: KernelSource,
    settings: Settings,
    workers: Workers = NOBODY,
) -> Rung:
    """Verifies a kernel in the launches of a call with other sizes.

    Args:
      module: the host code.
      call: the call that it was recorded from.
      prepare: translates a launch.
      kernel: which kernel; others that the call launches are left out.
      settings: how to verify.
      workers: whom to ask.
    """
    try:
        variants = list(other_sizes(call))
    except LaunchError as error:
        return _rung(SIZES, Status.SKIPPED, error.message)
    if not variants:
        return _rung(SIZES, Status.SKIPPED, "the call has no sizes")
    rung = _tried(SIZES, variants[:1], module, prepare, kernel, settings, workers)
    if rung.status is not Status.SKIPPED or len(variants) == 1:
        return rung
    # Host code may want some of the sizes as they are, a power of two say.
    return _tried(SIZES, variants[1:], module, prepare, kernel, settings, workers)


def configurations_rung(
    module: ModuleType,
    call: str,
    prepare: Prepare,
    *,
    kernel: KernelSource,
    settings: Settings,
    workers: Workers = NOBODY,
) -> Rung:
    """Verifies a kernel in the launches of a call with other configurations of its autotuner.

    Args:
      module: the host code.
      call: the call that it was recorded from.
      prepare: translates a launch.
      kernel: which kernel; others that the call launches are left out.
      settings: how to verify.
      workers: whom to ask.
    """
    variants = [
        Variant(title=f"configuration {number}", call=call, configuration=number)
        for number in range(1, _CONFIGURATIONS + 1)
    ]
    try:
        usual = [each.launch for each in record_call(module, call)]
        other = [each.launch for each in record_call(module, call, 1)]
    except InputError as error:
        return _rung(CONFIGURATIONS, Status.SKIPPED, error.message)
    if usual == other:
        return _rung(CONFIGURATIONS, Status.SKIPPED, "no autotuner chooses")
    return _tried(CONFIGURATIONS, variants, module, prepare, kernel, settings, workers)


def explicit_rungs() -> tuple[Rung, ...]:
    """The rungs that a launch without host code leaves out."""
    return tuple(_rung(name, Status.SKIPPED, _EXPLICIT) for name in (SIZES, CONFIGURATIONS))


def _tried(
    name: str,
    variants: list[Variant],
    module: ModuleType,
    prepare: Prepare,
    kernel: KernelSource,
    settings: Settings,
    workers: Workers,
) -> Rung:
    """Verifies every launch of the variants; fails with the first that does."""
    proved: list[str] = []
    worst: Rung | None = None
    reasons: list[str] = []
    for variant in variants:
        try:
            launches = record_call(module, variant.call, variant.configuration)
            subjects = [prepare(each) for each in launches if each.launch.kernel == kernel]
        except InputError as error:
            reasons.append(f"{variant.title}: {error.message}")
            continue
        reports = [climb(subject, settings, workers) for subject in subjects]
        for report in reports:
            rung = report.worst
            if rung is not None and rung.status is Status.FAILED:
                if rung.name != INPUTS:
                    return _with_title(name, variant, rung, Status.FAILED)
                # The kernel itself cannot be launched so, whatever it is translated to.
                reasons.append(f"{variant.title}: {rung.reason}")
                continue
            if not report.passed:
                reasons.append(f"{variant.title}: {_unproved(report)}")
            elif rung is not None and (worst is None or (rung.ulps or 0) > (worst.ulps or 0)):
                worst = _with_title(name, variant, rung, Status.PASSED)
        if reports and all(report.passed for report in reports):
            proved.append(variant.title)
    if not proved:
        return _rung(name, Status.SKIPPED, "; ".join(reasons) or "the kernel is not launched then")
    said = "; ".join(proved)
    return worst if worst is not None and len(proved) == 1 else _rung(name, Status.PASSED, said)


def _with_title(name: str, variant: Variant, rung: Rung, status: Status) -> Rung:
    return Rung(
        name=name,
        status=status,
        reason=f"{variant.title}: {rung.name}: {rung.reason}",
        ulps=rung.ulps,
        array=rung.array,
        index=rung.index,
        expected=rung.expected,
        found=rung.found,
        case=rung.case,
        lines=rung.lines,
    )


def _unproved(report: Report) -> str:
    skipped = [rung for rung in report.rungs if rung.status is Status.SKIPPED]
    of_proof = (rung.reason for rung in skipped if rung.name == report.proof)
    return next(chain(of_proof, (rung.reason for rung in skipped)), "nothing was compared")


def _odd_below(size: int, taken: tuple[int, ...]) -> int:
    """The greatest odd number below a size that is no other size; 1 at the least."""
    for number in range(size - 1, 1, -1):
        if number % 2 and number not in taken:
            return number
    return 1


def _replaced(call: str, changes: dict[int, int]) -> str:
    """The call with other numbers, in shapes, lists and alone, but not in strings or names."""

    def number(match: re.Match[str]) -> str:
        return str(changes.get(int(match[0]), match[0]))

    parts = re.split(r"('[^']*'|\"[^\"]*\")", call)
    return "".join(
        part if index % 2 else _INTEGER.sub(number, part) for index, part in enumerate(parts)
    )


def _rung(name: str, status: Status, reason: str) -> Rung:
    return Rung(name=name, status=status, reason=reason)
