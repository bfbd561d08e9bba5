"""The rungs of the ladder, each a function from what is verified to what was found."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hlo_tools.errors import InputError
from translators.graph.errors import EvaluationError
from translators.graph.graph import Module
from translators.triton.kernel_graph import kernel_graph
from translators.verify.emitted import Emitted, run_emitted
from translators.verify.errors import TooSlowError
from translators.verify.evaluation import Case, Clock, run
from translators.verify.inputs import Trial, share_of_nan, with_scalars, with_specials
from translators.verify.interpreter import Interpreter
from translators.verify.judging import Judge, Verdict
from translators.verify.memory import Layout, fill_with_poison, lay_out
from translators.verify.order import order_dependence, reversed_order, shuffled_order
from translators.verify.report import Rung, Status
from translators.verify.rewriting import ieee_dots
from translators.verify.sibling import sibling_case, sibling_launch
from translators.verify.unsuited import unsuited

PROOF = "JAX against the evaluator"
PALLAS_PROOF = "Pallas against the evaluator"
INTERPRETER = "evaluator against Triton's interpreter"
ORDER = "programs in another order"
PADDING = "poison in what is not read"
SPECIALS = "NaN and infinities"
SCALARS = "other scalars"

# The interpreter computes in the kernel's types throughout, and sums in another order; the
# evaluator rounds less.
_INTERPRETER_NOISE = 16.0
_SIMPLIFIED = "one input, as far as XLA does not simplify NaN away"
# How much of the time left one launch in the interpreter may take.
_INTERPRETER_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ascent:
    """What the rungs are climbed with.

    Attributes:
      module: the kernel's graph, its products of matrices at full precision.
      layout: that of the launch.
      kernel: the jitted function, where there is one.
      emitted: what was emitted.
      trials: inputs with what the evaluator leaves of them.
      judge: says whether a run gave the same.
      clock: how long all of it may take.
      rng: random numbers.
    """

    module: Module
    layout: Layout
    kernel: Any
    emitted: Emitted
    trials: tuple[Trial, ...]
    judge: Judge
    clock: Clock
    rng: np.random.Generator

    @property
    def proof(self) -> str:
        """The name of the rung without which nothing is proved."""
        return proof_of(self.emitted)

    def tried(self, case: Case) -> Trial:
        """The case, evaluated."""
        return Trial(case=case, outcome=run(self.module, self.layout, case, self.clock))

    def judged(
        self, name: str, trials: tuple[Trial, ...], passed: str, *, simplify: bool = True
    ) -> Rung:
        """The emitted function against the evaluator on some inputs."""
        verdicts: list[Verdict] = []
        own = Clock(self.clock.seconds)  # inputs may have taken all of the other one
        for trial in trials:
            if own.left == 0:
                return _skipped(name, f"the emitted function takes more than {own.seconds:g} s")
            try:
                found = run_emitted(self.emitted, self.layout, trial.case, simplify=simplify)
            except InputError as error:
                return _failed(name, error.message, trial.case)
            try:
                verdicts += self.judge.verdicts(found, trial)
            except TooSlowError as error:
                return _skipped(name, f"{error.message}, to say how much is rounding")
        return self.judge.rung(name, verdicts, passed)


def proof_of(emitted: Emitted) -> str:
    """The name of the rung that proves what was emitted."""
    return PALLAS_PROOF if emitted.signature.pallas else PROOF


def emitted_rung(ascent: Ascent) -> Rung:
    """The emitted function gives what the evaluator gives, on every input."""
    name = ascent.proof
    if all(share_of_nan(ascent.layout, trial) == 1 for trial in ascent.trials):
        return _skipped(name, "all that the kernel writes is NaN, on every input")
    return ascent.judged(name, ascent.trials, _inputs(ascent.trials))


def interpreter_rung(ascent: Ascent, interpreter: Interpreter | None) -> Rung:
    """Triton's interpreter gives what the evaluator gives."""
    if ascent.kernel is None:
        return _skipped(INTERPRETER, "the kernel is given as Triton IR, which it does not run")
    if interpreter is None:
        return _skipped(INTERPRETER, "not asked for")
    module, layout, trials, note = ascent.module, ascent.layout, ascent.trials, ""
    judge = ascent.judge
    try:
        sibling = sibling_launch(layout.launch)
        if sibling is not None:
            module = ieee_dots(kernel_graph(ascent.kernel, sibling))
            layout, note = lay_out(sibling), ", on `f32` for `bf16`"
            judge = Judge(module, layout, ascent.clock, None)
        reason = unsuited(module)
        if reason is not None:
            return _skipped(INTERPRETER, reason)
        verdicts: list[Verdict] = []
        for trial in trials:
            if sibling is not None:
                case = sibling_case(trial.case, layout)
                trial = Trial(case=case, outcome=run(module, layout, case, ascent.clock))
            seconds = ascent.clock.left * _INTERPRETER_SHARE
            if seconds < 1:
                return _skipped(INTERPRETER, "there is no time left for it")
            found = interpreter.run(ascent.kernel, layout, trial.case, seconds)
            verdicts += judge.verdicts(found, trial, noise_factor=_INTERPRETER_NOISE)
    except InputError as error:
        return _skipped(INTERPRETER, error.message)
    return judge.rung(INTERPRETER, verdicts, f"{_inputs(trials)}{note}")


def order_rung(ascent: Ascent) -> Rung:
    """Programs leave the same in whichever order they run."""
    grid = ascent.layout.launch.grid
    orders = {"the last program first": reversed_order(grid)}
    if len(orders["the last program first"]) == 1:
        return _skipped(ORDER, "there is only one program")
    orders["programs at random"] = shuffled_order(grid, ascent.rng)
    trial = ascent.trials[0]
    for title, order in orders.items():
        try:
            found = order_dependence(
                ascent.module, ascent.layout, trial, order, ascent.judge, ascent.clock
            )
        except TooSlowError as error:
            return _skipped(ORDER, error.message)
        except EvaluationError as error:
            return _failed(ORDER, error.message, trial.case)
        if found is None:
            continue
        comparison = replace(
            found.comparison,
            agrees=False,
            reason=f"depends on the order of programs: with {title} {found.comparison.reason}",
        )
        verdict = Verdict(array=found.name, case=trial.case, comparison=comparison)
        return ascent.judge.rung(ORDER, [verdict], "")
    return Rung(
        name=ORDER, status=Status.PASSED, reason="the last program first, and programs at random"
    )


def padding_rung(ascent: Ascent) -> Rung:
    """What no program reads, between arrays or in them, changes nothing."""
    trial = ascent.trials[0]
    layout, before = ascent.layout, trial.outcome
    unread = {
        buffer: ~(before.read[buffer] & storage.owned)
        for buffer, storage in layout.storages.items()
    }
    if not any(each.any() for each in unread.values()):
        return _skipped(PADDING, "programs read every element, and there are no gaps")
    for filling in (0, 1):
        case = Case(
            title=f"{trial.case.title}, poison {filling + 1} where nothing is read",
            storages={
                # What leaks from inputs must not be hidden by the same in what is written to.
                buffer: fill_with_poison(
                    array, unread[buffer], filling ^ int(before.written[buffer].any())
                )
                for buffer, array in trial.case.storages.items()
            },
        )
        try:
            poisoned = ascent.tried(case)
        except TooSlowError as error:
            return _skipped(PADDING, error.message)
        except EvaluationError as error:
            return _failed(PADDING, error.message, case)
        beside = layout.damaged_gap(case.storages, poisoned.outcome.storages)
        if beside is not None:
            return replace(
                _failed(PADDING, f"the kernel writes beside the elements of `{beside}`", case),
                lines=ascent.judge.lines(beside),
            )
        rung = ascent.judged(PADDING, (poisoned,), "NaN and other poison, in gaps and in arrays")
        if rung.status is Status.FAILED:
            return rung
    return rung


def specials_rung(ascent: Ascent) -> Rung:
    """NaN and infinities among the inputs come out where the evaluator has them.

    What XLA's simplifier changes about them is no error of the emitted function, and is said.
    """
    if ascent.emitted.signature.reblocked:
        return _skipped(SPECIALS, "in blocks of another length infinities meet in another order")
    case = with_specials(ascent.trials[-1].case, ascent.rng)
    try:
        trial = ascent.tried(case)
    except (EvaluationError, TooSlowError) as error:
        return _skipped(SPECIALS, error.message)
    rung = ascent.judged(SPECIALS, (trial,), "one input")
    if rung.status is not Status.FAILED:
        return rung
    plain = ascent.judged(SPECIALS, (trial,), _SIMPLIFIED, simplify=False)
    return plain if plain.status is Status.PASSED else rung


def scalars_rung(ascent: Ascent) -> Rung:
    """Float scalars given to the emitted function do what they do in the kernel."""
    names = ascent.emitted.signature.scalars
    if not names:
        return _skipped(SCALARS, "the emitted function takes no scalars")
    case = with_scalars(ascent.trials[0].case, ascent.layout, names)
    try:
        trial = ascent.tried(case)
    except (EvaluationError, TooSlowError) as error:
        return _skipped(SCALARS, error.message)
    return ascent.judged(SCALARS, (trial,), ", ".join(f"`{name}`" for name in names))


def _inputs(trials: tuple[Trial, ...]) -> str:
    return "one input" if len(trials) == 1 else f"{len(trials)} inputs"


def _skipped(name: str, reason: str) -> Rung:
    return Rung(name=name, status=Status.SKIPPED, reason=reason)


def _failed(name: str, reason: str, case: Case) -> Rung:
    return Rung(name=name, status=Status.FAILED, reason=reason, case=case.title)
