"""Runs functions in Pallas's TPU interpret mode; a process of its own.

    python -m translators.verify.simulator_worker

It serves `simulator.py`, which starts it.
"""

import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from importlib import import_module
from io import StringIO
from typing import Any

from hlo_tools.errors import InputError
from translators.triton.host_code import HostCode
from translators.verify.processes import Channel
from translators.verify.simulator import Simulated, Simulation

# Every access is held against every other one to find races.
_WATCHED_STEPS = 64
_SECONDS_A_STEP = 0.02
_RACE = "RACE DETECTED"
_ACCESS = re.compile(r"^ *((?:read|write) of) .*?\[\((.*)\)\] from", re.MULTILINE)
_SLICE = re.compile(r"slice\((\d+), (\d+), (?:1|None)\)")
# What the simulation does not do, though TPUs do.
_UNLOWERED = "Cannot lower jaxpr with verifier errors:"
_BEYOND_IT = "must form a prefix of the grid"


def main() -> None:
    """Serves requests until there are no more."""
    channel = Channel()
    import_module("jax.experimental.pallas.tpu")  # before it says that it is ready
    channel.serve(simulated)


def simulated(request: Simulation) -> Simulated:
    """What becomes of a function."""
    import jax
    from jax.experimental.pallas import tpu

    with jax.enable_x64(request.program.wide), _callback_errors() as errors:
        printed = StringIO()
        watched = False
        try:
            with HostCode(None, ""), redirect_stdout(printed):
                function = request.program.load()
                steps = _grid_steps(function, request)
                if steps * _SECONDS_A_STEP > request.seconds:
                    return Simulated(unsuited=f"{steps} steps of the grid would take too long")
                watched = steps <= _WATCHED_STEPS
                mode = tpu.InterpretParams(num_cores_or_threads=2, detect_races=watched)
                arrays = _called(function, request, mode)
        except InputError as error:
            assert error.__cause__ is not None
            return _failed(error.__cause__, errors)
        finally:
            tpu.reset_tpu_interpret_mode_state()
    race = _race(printed.getvalue())
    return Simulated(problem=race) if race else Simulated(arrays=arrays, watched=watched)


def _called(function: Any, request: Simulation, mode: Any) -> tuple[Any, ...]:
    import jax
    import numpy as np

    given = [jax.numpy.asarray(each) for each in request.arrays]
    results = jax.jit(partial(function, interpret=mode))(*given, **request.scalars)
    many = results if isinstance(results, tuple | list) else [results]
    return tuple(np.asarray(each) for each in many)


def _grid_steps(function: Any, request: Simulation) -> int:
    """The steps of all grids, as far as they are numbers, each counted once."""
    import jax

    made = jax.make_jaxpr(partial(function, interpret=True))(*request.arrays, **request.scalars)
    pending, steps = [made.jaxpr], 0
    while pending:
        for equation in pending.pop().eqns:
            if equation.primitive.name == "pallas_call":
                grid = equation.params["grid_mapping"].grid
                steps += math.prod(each for each in grid if isinstance(each, int))
                continue
            for value in equation.params.values():
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    pending.append(inner)
    return steps


@contextmanager
def _callback_errors() -> Iterator[list[BaseException]]:
    """Collects the errors of callbacks, which JAX prints, in the order in which they come."""
    errors: list[BaseException] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                errors.append(record.exc_info[1])

    logger = logging.getLogger("jax._src.callback")
    collector = Collector()
    logger.addHandler(collector)
    try:
        yield errors
    finally:
        logger.removeHandler(collector)


def _failed(error: BaseException, errors: list[BaseException]) -> Simulated:
    # Of a callback's error JAX hands on the text alone.
    texts = [f"{type(each).__name__}: {each}" for each in (*errors, error)]
    race = next(filter(None, map(_race, texts)), "")
    if race:
        return Simulated(problem=race)
    own = next((each for each in errors if type(each).__name__ != "JaxRuntimeError"), error)
    last = [line for line in str(own).splitlines() if line.strip()][-1:]
    if _UNLOWERED in str(own):
        # It gives an array that is kept where nothing is written the length of its blocks.
        told = str(own).partition(_UNLOWERED)[2].partition(" in function ")[0].strip()
        return Simulated(unsuited=f"TPU interpret mode makes no right program of it: {told}")
    message = " ".join(last) if own is error else " ".join(str(own).split())
    if isinstance(own, NotImplementedError) or _BEYOND_IT in message:
        return Simulated(unsuited=f"TPU interpret mode has no such thing: {message}")
    return Simulated(problem=f"{type(own).__name__}: {_plain(message)}")


def _race(text: str) -> str:
    """The first race that a text tells of, as a clause; empty if it tells of none."""
    _, found, told = text.partition(_RACE)
    if not found:
        return ""
    accesses = [f"{what} [{_plain(where)}]" for what, where in _ACCESS.findall(told)[:2]]
    return f"a race between two cores: {' and '.join(accesses)}"


def _plain(text: str) -> str:
    """Slices as Python writes them."""
    return _SLICE.sub(r"\1:\2", text)


if __name__ == "__main__":
    main()
