"""The columns of the benchmark: what a launch is made, and how that is attempted."""

from contextlib import contextmanager

from .outcome import JaxOutcome, PallasOutcome

OUTCOMES = {"jax": JaxOutcome, "pallas": PallasOutcome}


@contextmanager
def attempts(names, announce, *, tpu, chips, seconds, debug=False):
    """The attempts of these columns, by name, with the processes that they ask.

    Args:
      names: the columns.
      announce: told before each step its name and the outcome so far.
      tpu: whether to compile for TPUs.
      chips: the generations for which Pallas kernels are compiled.
      seconds: how long one proof may take.
      debug: whether to print what was emitted and the whole proof.
    """
    from translators.verify.compiler import Compiler
    from translators.verify.simulator import Simulator
    from translators.verify.workers import Workers

    from .jax_attempt import JaxAttempt
    from .pallas_attempt import PallasAttempt

    with Simulator() as simulator, Compiler() as compiler:
        workers = Workers(simulator=simulator, compiler=compiler if tpu else None)
        settings = {"verify_seconds": seconds, "debug": debug}
        made = {
            "jax": JaxAttempt(announce, tpu=tpu, **settings),
            "pallas": PallasAttempt(announce, workers=workers, chips=chips, **settings),
        }
        yield {name: made[name] for name in names}
