"""The rungs that ask what a TPU would make of an emitted function."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from translators.verify import compiler as tpu_compiler
from translators.verify.compiler import Compiler
from translators.verify.emitted import Emitted, arguments, left_behind
from translators.verify.errors import TooSlowError, VerificationError
from translators.verify.evaluation import Case, Clock
from translators.verify.generations import DECISIVE, USUAL
from translators.verify.memory import Layout
from translators.verify.processes import NoReplyError
from translators.verify.program import ArrayType
from translators.verify.report import Rung, Status
from translators.verify.rungs import Ascent
from translators.verify.simulator import Simulator

SIMULATOR = "Pallas in TPU interpret mode"
COMPILER = "compiled ahead of time"

_NO_TEXT = "no other process has the emitted function"
# How much of the time left these may take.
_SIMULATOR_SHARE = 0.3
_COMPILER_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulating:
    """A call in TPU interpret mode that has begun.

    Attributes:
      replies: what will be its reply; `None` if nothing could be begun.
      reason: why not.
    """

    replies: "Future[list[Any]] | None"
    reason: str = ""


def begin_simulation(ascent: Ascent, simulator: Simulator | None) -> Simulating:
    """Calls the function in TPU interpret mode on the last input, while other rungs are climbed."""
    program = ascent.emitted.program
    if simulator is None or program is None:
        reason = "not asked for" if simulator is None else _NO_TEXT
        return Simulating(replies=None, reason=reason)
    case = ascent.trials[-1].case
    arrays = arguments(ascent.emitted, ascent.layout, case)
    seconds = ascent.clock.left * _SIMULATOR_SHARE
    return Simulating(replies=simulator.begin(program, arrays, case.scalars, seconds))


def simulation_rung(ascent: Ascent, simulating: Simulating) -> Rung:
    """In TPU interpret mode the function gives what the evaluator gives, on one input."""
    if simulating.replies is None:
        return _skipped(simulating.reason)
    (reply,) = simulating.replies.result()
    trial = ascent.trials[-1]
    if isinstance(reply, NoReplyError):
        return _skipped(reply.message)
    if reply.unsuited:
        return _skipped(reply.unsuited)
    if reply.problem:
        return _failed(reply.problem, trial.case)
    try:
        found = left_behind(ascent.emitted, ascent.layout, trial.case, reply.arrays)
        verdicts = ascent.judge.verdicts(found, trial)
    except TooSlowError as error:
        return _skipped(f"{error.message}, to say how much is rounding")
    except VerificationError as error:
        return _failed(error.message, trial.case)
    watched = "no races" if reply.watched else "not watched for races"
    return ascent.judge.rung(SIMULATOR, verdicts, f"one input, {watched}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiling:
    """Compilations that have begun.

    Attributes:
      generations: what is compiled for.
      decisive: those of them that it has to compile for.
      replies: what will be the replies; `None` if nothing could be begun.
      reason: why not.
    """

    generations: tuple[str, ...]
    decisive: frozenset[str]
    replies: "Future[list[Any]] | None"
    reason: str = ""


def begin_compilation(
    emitted: Emitted,
    layout: Layout,
    clock: Clock,
    compiler: Compiler,
    chips: tuple[str, ...],
) -> Compiling:
    """Compiles the function for the arrays of a launch, while other rungs are climbed.

    Args:
      emitted: the function.
      layout: that of the launch.
      clock: how long it may take.
      compiler: the compiler.
      chips: the generations that are asked for; if none is, the usual ones, of which a kernel in
        Pallas has to compile for `DECISIVE`, and a function in JAX for none.
    """
    generations = chips or USUAL
    decisive = frozenset(chips)
    if not chips and emitted.signature.pallas:
        decisive = DECISIVE
    reason = tpu_compiler.missing()
    if emitted.program is None:
        reason = _NO_TEXT
    if reason or emitted.program is None:
        return Compiling(generations=generations, decisive=decisive, replies=None, reason=reason)
    types = [
        ArrayType(dtype=view.dtype.name, shape=view.array.shape)
        for view in (layout.views[name] for name in emitted.signature.parameters)
    ]
    seconds = clock.left * _COMPILER_SHARE
    replies = compiler.begin(emitted.program, types, generations, seconds)
    return Compiling(generations=generations, decisive=decisive, replies=replies)


def compilation_rungs(compiling: Compiling) -> Iterator[Rung]:
    """The function compiles, and what `hlo-lint` says of what becomes of it."""
    replies = [None] * len(compiling.generations)
    if compiling.replies is not None:
        replies = compiling.replies.result()
    for generation, reply in zip(compiling.generations, replies, strict=True):
        status, reason, findings = Status.SKIPPED, compiling.reason, ()
        if isinstance(reply, NoReplyError):
            # What ends the compiler is no program that it compiles.
            status = Status.FAILED if reply.died else Status.SKIPPED
            reason = reply.message
        elif reply is not None:
            status, reason, findings = _judged(reply)
        yield Rung(
            name=COMPILER,
            generation=generation,
            status=status,
            reason=reason,
            findings=findings,
            decides=generation in compiling.decisive,
        )


def _judged(reply: tpu_compiler.Compiled) -> tuple[Status, str, tuple[Any, ...]]:
    if reply.absent:
        return Status.SKIPPED, reply.absent, ()
    if reply.problem:
        return Status.FAILED, reply.problem, ()
    if reply.unlinted:
        return Status.PASSED, f"`hlo-lint` cannot look at it: {reply.unlinted}", ()
    count = len(reply.findings)
    found = f"{count} finding{'' if count == 1 else 's'}" if count else "no findings"
    return Status.PASSED, f"`hlo-lint`: {found}", reply.findings


def _skipped(reason: str) -> Rung:
    return Rung(name=SIMULATOR, status=Status.SKIPPED, reason=reason)


def _failed(reason: str, case: Case) -> Rung:
    return Rung(name=SIMULATOR, status=Status.FAILED, reason=reason, case=case.title)
