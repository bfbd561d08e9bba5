"""Each rule of what Triton's ops mean, in the smallest kernel that tells it from its neighbours.

Three oracles: what the case expects (NumPy, in exact or higher precision), Triton's interpreter
where it is right, and for the translated function both by way of the case.
"""

from importlib import import_module

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from interpreter_server import Interpreter
from launch_case import assert_left, evaluated, launched, translated

from hlo_tools.errors import InputError
from translators.graph.evaluator import all_programs

MODULES = (
    "corner_integers",
    "corner_floats",
    "corner_conversions",
    "corner_libdevice",
    "corner_dots",
    "corner_reductions",
    "corner_scans",
    "corner_atomics",
    "corner_control",
    "corner_addresses",
    "corner_indices",
    "corner_shapes",
    "corner_random",
    "corner_order",
    "corner_forms",
    "corner_extras",
)
CASES = [case for module in MODULES for case in import_module(module).CASES]
DONE = [case for case in CASES if not case.refused]
TRANSLATED = [case for case in DONE if not case.untranslated]


@pytest.fixture(scope="module")
def interpreter():
    server = Interpreter()
    yield server
    server.close()


@pytest.mark.parametrize("case", DONE, ids=str)
def test_the_evaluator_gives_what_is_expected(case):
    assert_left(case, evaluated(case), "evaluator")


@pytest.mark.parametrize("case", [each for each in DONE if each.interpreted], ids=str)
def test_the_interpreter_agrees_with_what_is_expected(case, interpreter):
    assert_left(case, interpreter.run(case), "interpreter")


def test_case_names_are_unique():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", [each for each in DONE if each.unordered], ids=str)
def test_the_order_of_programs_does_not_matter(case):
    _, launch = launched(case)
    order = list(all_programs(launch.grid))[::-1]
    assert_left(case, evaluated(case, order=order), "evaluator, last program first")


@pytest.mark.parametrize("case", TRANSLATED, ids=str)
def test_the_translated_function_gives_what_is_expected(case):
    assert_left(case, translated(case), "JAX")


@pytest.mark.parametrize("name", ["addresses: in place", "indices: rows scattered, some nowhere"])
def test_the_translated_function_takes_arrays_of_numpy_without_being_compiled(name):
    (case,) = (case for case in CASES if case.name == name)
    assert_left(case, translated(case, compiled=False), "JAX")


@pytest.mark.parametrize("case", [each for each in CASES if each.refused], ids=str)
def test_what_cannot_be_evaluated_is_refused(case):
    with pytest.raises(InputError, match=case.refused) as refusal:
        evaluated(case)
    assert str(refusal.value).startswith(f"{case.file}:")


@pytest.mark.parametrize("case", [each for each in CASES if each.untranslated], ids=str)
def test_what_has_no_form_in_jax_is_refused(case):
    with pytest.raises(InputError, match=case.untranslated) as refusal:
        translated(case)
    assert str(refusal.value).startswith(f"{case.file}:")
