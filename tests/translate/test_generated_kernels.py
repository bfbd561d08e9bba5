"""Random kernels: Triton's interpreter, the evaluator and the translated function agree.

By default a few, always the same ones. More of them, and others each time:

    GENERATED_KERNELS=2000 pytest tests/translate/test_generated_kernels.py

With `--hypothesis-show-statistics` it says how many of them were refused.
"""

import os
import sys
from itertools import count

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

import jax
import numpy as np
from generator import kernels
from hypothesis import HealthCheck, event, given, reject, settings
from interpreter_server import Interpreter
from launch_case import Case, Memories, differ, evaluated, translated

from hlo_tools.errors import InputError

MANY = int(os.environ.get("GENERATED_KERNELS", "0"))
NUMBERS = count()


@pytest.fixture(scope="module")
def interpreter():
    server = Interpreter()
    yield server
    server.close()


def assert_agree(case, errors, left, right, who):
    """Both leave the same in every memory, floats up to the error of what was stored."""
    places = Memories(case.arrays).places
    allowed = {places[name][0]: error for name, error in errors.items()}
    for index, (one, other) in enumerate(zip(left, right, strict=True)):
        difference = differ(one, other, absolute=2 * allowed.get(index, 0.0) or 1e-300)
        names = [name for name, (buffer, _) in places.items() if buffer == index]
        assert not difference, f"{who}: {names[0]}: {difference}"


@settings(
    max_examples=MANY or 40,
    derandomize=not MANY,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)
@given(generated=kernels())
def test_three_ways_to_run_a_kernel_agree(generated, tmp_path_factory, interpreter):
    name = f"generated_{next(NUMBERS)}"
    file = tmp_path_factory.getbasetemp() / f"{name}.py"
    file.write_text(generated.source, encoding="utf-8")
    case = Case(
        name=name,
        file=file,
        kernel="kernel",
        arrays=generated.arrays,
        scalars=generated.scalars,
        grid=generated.grid,
    )
    try:
        found = evaluated(case)
        for memory in found:
            assert memory.dtype.kind in "biu" or np.isfinite(memory.astype(np.float64)).all()
        if generated.interpretable:
            interpreted = interpreter.run(case)
            assert_agree(case, generated.errors, found, interpreted, "evaluator, interpreter")
        try:
            in_jax = translated(case)
        except InputError as refusal:
            assert str(refusal).startswith(f"{file}:"), refusal
            event("refused")
            return
        except jax.errors.JaxRuntimeError as error:
            # XLA's own rewriting leaves its CPU backend products that it does not have.
            assert "UNIMPLEMENTED: Unsupported element type" in str(error), error
            reject()
        assert_agree(case, generated.errors, in_jax, found, "JAX, evaluator")
    finally:
        sys.modules.pop(name, None)
