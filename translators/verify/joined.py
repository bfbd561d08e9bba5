"""The gradient of one function that is made of a forward and a backward kernel."""

from dataclasses import replace

import numpy as np

from hlo_tools.errors import InputError
from translators.verify.backward import BackwardNames, judged
from translators.verify.emitted import Emitted
from translators.verify.errors import VerificationError
from translators.verify.evaluation import Case
from translators.verify.gradients import differentiate
from translators.verify.memory import lay_out
from translators.verify.report import Rung, Status
from translators.verify.subject import Subject

JOINED = "jax.grad through both kernels"


def joined_rung(
    forward: Subject, joined: Emitted, case: Case, rng: np.random.Generator, names: BackwardNames
) -> Rung:
    """Compares the gradient of a function made of two kernels with that of the forward one in JAX.

    Args:
      forward: the forward kernel's launch, with a function that JAX differentiates.
      joined: the function that is made of both kernels.
      case: an input of the forward kernel.
      rng: draws the cotangents.
      names: what the backward kernel's parameters are.
    """
    layout = lay_out(forward.launch)
    arrays = layout.arrays(case.storages)
    cotangents = {
        name: rng.integers(-8, 9, layout.views[name].array.shape) / 8.0
        for name in dict.fromkeys(names.cotangents.values())
    }
    parameters = list(dict.fromkeys(names.gradients.values()))
    try:
        wanted = differentiate(forward.emitted, arrays, parameters, cotangents)
        found = differentiate(joined, arrays, parameters, cotangents)
        by_result = {result: found[name] for result, name in names.gradients.items()}
        return replace(judged(by_result, wanted, names), name=JOINED)
    except VerificationError as error:
        return Rung(name=JOINED, status=Status.SKIPPED, reason=error.message)
    except InputError as error:
        return Rung(name=JOINED, status=Status.FAILED, reason=error.message)
