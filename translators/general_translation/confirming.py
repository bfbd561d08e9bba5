"""Runs of a function for a launch that it was not emitted for, against the evaluator."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlo_tools.errors import InputError
from translators.emit.jax import JaxFunction
from translators.graph.graph import Module, walk
from translators.triton.launches import Launch
from translators.verify.emitted import Emitted, run_emitted
from translators.verify.errors import TooSlowError
from translators.verify.evaluation import Clock
from translators.verify.inputs import Source, Trial, trials
from translators.verify.judging import Judge
from translators.verify.memory import lay_out
from translators.verify.order import order_dependence, reversed_order
from translators.verify.rewriting import ieee_dots

_SECONDS = 5.0
_SEED = 0
# With these, programs take locks.
_WAITING = frozenset({"tt.atomic_cas", "tt.atomic_poll"})


class UnknownError(Exception):
    """There was no time to find out; the message is a clause."""


def problem(function: JaxFunction, call: Callable[..., Any], module: Module, launch: Launch) -> str:
    """What is wrong with a function on a random input, as a clause; empty if nothing is.

    Args:
      function: what is known of it.
      call: the function itself.
      module: the kernel's graph.
      launch: how the kernel is launched.

    Raises:
      UnknownError: the launch takes too long to be evaluated, or may never end.
    """
    if any(op.name in _WAITING for op in walk(module.kernel.body)):
        raise UnknownError("its programs may wait for one another, on random inputs for ever")
    clock = Clock(_SECONDS)
    try:
        layout = lay_out(launch)
        exact = ieee_dots(module)
        judge = Judge(exact, layout, clock, None)
        backwards = reversed_order(launch.grid)

        def any_order(trial: Trial) -> bool:
            return order_dependence(exact, layout, trial, backwards, judge, clock) is None

        source = Source(
            module=exact,
            layout=layout,
            recorded=None,
            any_order=any_order,
            rng=np.random.default_rng(_SEED),
        )
        (trial,) = trials(source, clock, 1)
        found = run_emitted(Emitted(signature=function, call=call), layout, trial.case)
        verdicts = judge.verdicts(found, trial)
    except TooSlowError as error:
        raise UnknownError(error.message) from error
    except InputError as error:
        return error.message
    wrong = (each for each in verdicts if not each.comparison.agrees)
    return next((f"`{each.array}`: {each.comparison.reason}" for each in wrong), "")
