"""The file that is written for launches: their functions, and what joins and checks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from translators.command.differentiable import Pair, UnwiredError, pair_of, wired
from translators.command.emitting import Part, join
from translators.command.self_check import Drawn, check_lines, drawn_on, references
from translators.command.trying import AUTO, Tried, Wishes
from translators.graph.numerics import Array
from translators.translation import load
from translators.verify.emitted import Emitted
from translators.verify.joined import JOINED
from translators.verify.ladder import Settings, climb_joined
from translators.verify.memory import lay_out
from translators.verify.program import Program
from translators.verify.recorded import recorded_storages
from translators.verify.report import Report, Rung, Status
from translators.verify.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """What is written.

    Attributes:
      text: the file.
      joined: what is known of the gradient of the forward function, where a backward kernel was
        given and one of the two is in Pallas.
    """

    text: str
    joined: Rung | None = None


def assembled(tried: Sequence[Tried], reports: Sequence[Report | None], wishes: Wishes) -> File:
    """The file with the functions of all launches.

    Kernels in Pallas are joined by JAX to compare them with, and the file checks them when it is
    run. Of a forward and a backward kernel one function is made that `jax.grad` goes through.

    Args:
      tried: the launches with what is emitted for them.
      reports: what verifying each has found, if it was verified.
      wishes: what is to be done.
    """
    parts = [each.part for each in tried if each.part is not None]
    text = join(wishes.emit, parts) if parts else ""
    if wishes.emit not in (AUTO, "pallas") or not any(part.function.pallas for part in parts):
        return File(text=text)
    taken = {part.function.name for part in parts}
    plain = references(parts, taken)
    text = join(wishes.emit, [*parts, *plain.values()])
    pair, rung = None, None
    if wishes.backward is not None:
        try:
            pair = _pair(tried, wishes.backward, plain)
            text = wired(text, pair)
            rung = _verified(text, pair, plain, wishes.verify)
        except UnwiredError as error:
            reason = f"no function is made of both kernels: {error}"
            rung = Rung(name=JOINED, status=Status.SKIPPED, reason=reason)
    drawn = {
        each.part.function.name: _drawn(each, report)
        for each, report in zip(tried, reports, strict=True)
        if each.part is not None
    }
    lines = check_lines(parts, plain, drawn, pair)
    return File(text="\n".join([text.rstrip("\n"), *lines, ""]), joined=rung)


def _pair(tried: Sequence[Tried], backward: str, plain: Mapping[str, Part]) -> Pair:
    """The forward and the backward kernel.

    Raises:
      UnwiredError: one of them is refused, launched several times, or not known well enough.
    """
    found: dict[bool, list[Part]] = {False: [], True: []}
    for each in tried:
        if each.part is None:
            raise UnwiredError("one of them is refused")
        found[each.task.launch.kernel.function == backward].append(each.part)
    if len(found[False]) != 1 or len(found[True]) != 1:
        raise UnwiredError("one of them is launched several times")
    forward = found[False][0]
    reference = plain.get(forward.function.name, forward)
    return pair_of(forward, found[True][0], reference.function.parameters)


def _verified(
    text: str, pair: Pair, plain: Mapping[str, Part], settings: Settings | None
) -> Rung | None:
    """Whether the gradient of the function made of both kernels is right."""
    if settings is None:
        return None
    forward = plain.get(pair.forward.function.name, pair.forward)
    translation = forward.translation
    subject = Subject(
        launch=translation.launch,
        module=translation.module,
        emitted=Emitted(signature=forward.function, call=load(forward.function)),
    )
    function = pair.function
    program = Program(name=function.name, source=text, wide=function.wide)
    joined = Emitted(signature=function, call=program.load(), program=program)
    return climb_joined(subject, joined, pair.names, settings)


def _drawn(tried: Tried, report: Report | None) -> Drawn:
    """What a launch was verified on."""
    inputs = () if report is None else report.inputs
    recorded: dict[str, Array] = {}
    if tried.task.values is not None:
        layout = lay_out(tried.task.launch)
        arrays = layout.arrays(recorded_storages(layout, tried.task.values))
        recorded = {name: array for name, array in arrays.items() if _says_something(array)}
    return drawn_on(inputs, recorded)


def _says_something(array: Array) -> bool:
    """Whether host code gave integers that are not the same everywhere, as examples are."""
    return array.dtype.kind in "iu" and bool(array.size) and bool(np.any(array != array.flat[0]))
