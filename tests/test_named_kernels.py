"""Kernels by name: stand-ins for what a package imports, and rows that say what came out."""

import importlib
import sys
from pathlib import Path

import pytest

from benchmarks.named_parts import results, rows
from benchmarks.named_parts.stand_ins import StandIns

ROOT = Path(__file__).parents[1]


@pytest.fixture
def package(tmp_path):
    """A package whose every `__init__` fails, with one module that can be imported."""
    folder = tmp_path / "large_package"
    (folder / "kernels").mkdir(parents=True)
    for each in (folder, folder / "kernels"):
        (each / "__init__.py").write_text("raise RuntimeError('not to be executed')\n")
    (folder / "settings.py").write_text("raise RuntimeError('not to be executed')\n")
    (folder / "kernels" / "mine.py").write_text(
        "from large_package import settings\n"
        "from large_package.servers.http import Server\n"
        "from large_package.utils import helper\n"
        "FAST = settings.FAST\n"
        "def served(server: Server | None = None):\n"
        "    return helper(2)\n"
    )
    before = list(sys.meta_path), set(sys.modules)
    yield folder
    sys.meta_path[:] = before[0]
    for name in set(sys.modules) - before[1]:
        if name.partition(".")[0] == "large_package":
            del sys.modules[name]


def test_only_the_named_modules_of_a_package_are_executed(package):
    answers = {
        "large_package.settings.FAST": False,
        "large_package.utils.helper": lambda number: number + 1,
    }
    finder = StandIns(package, {"large_package.kernels.mine"}, answers)
    finder.install()
    finder.install()
    assert sys.meta_path.count(finder) == 1
    module = importlib.import_module("large_package.kernels.mine")
    assert module.FAST is False
    assert module.served() == 3
    assert module.__file__ == str(package / "kernels" / "mine.py")


def rung(name, status="passed", ulps=None, generation=None, reason=""):
    known = {"name": name, "status": status, "ulps": ulps, "generation": generation}
    return {**known, "reason": reason}


def result(**fields):
    known = {"package": "p", "module": "m", "kernel": "k", "unit": "u", "launches": 2}
    return {**known, "result": "verified", "seconds": 1.0, "rungs": [], **fields}


def test_a_row_says_what_was_emitted_by_what_it_is_verified_and_how_far_it_is_off():
    found = rows.table(
        [
            result(
                emitted="pallas",
                rungs=[
                    rung("Pallas against the evaluator", ulps=2.0),
                    rung("compiled ahead of time", generation="v5e"),
                    rung("other scalars", status="skipped"),
                ],
            ),
            result(
                emitted="jax",
                instead="`x` holds `f64`",
                rungs=[rung("JAX against the evaluator", ulps=3.5)],
            ),
        ]
    )
    row = found.splitlines()[2]
    assert row == (
        "| p | k | 2 (2) | Pallas (1), JAX (1): `x` holds `f64` | evaluator, v5e (1) | 3.5 ulps |"
    )
    assert "1 as Pallas, 1 as JAX, 0 not translated; 2 verified" in found


def test_differences_that_are_no_more_than_rounding_are_called_so():
    explained = rung("order", ulps=300.0, reason="as close to f64 as rounding lets it be")
    found = rows.table([result(emitted="jax", rungs=[rung("poison", ulps=2.0), explained])])
    assert "| 300 ulps (rounding) |" in found


@pytest.mark.parametrize("outcome", ["not equal", "not proved", "error", "timeout"])
def test_what_is_not_verified_stands_in_the_row(outcome):
    found = rows.table([result(emitted="jax", result=outcome, reason="because | of this")])
    assert f"**{outcome}**: because / of this" in found


def test_a_kernel_in_pallas_that_computes_something_else_stands_out():
    reason = "Pallas against the evaluator: `x`: 3 of 4 elements"
    found = rows.table([result(emitted="jax", instead=reason, wrong=True)])
    assert f"**Pallas differs**: {reason}" in found


def test_a_refusal_is_no_translation():
    found = rows.table([result(result="refused", reason="k.py:3: no")])
    assert "| nothing: k.py:3: no |" in found
    assert "0 as Pallas, 0 as JAX, 1 not translated; 0 verified" in found


def test_outcomes_are_kept_over_runs_and_the_last_one_counts(tmp_path):
    file = tmp_path / "results.jsonl"
    assert results.known(file) == {} == results.known(None)
    results.add(None, {"file": "a"})
    for each in ({"file": "a", "result": "error"}, {"file": "b"}, {"file": "a", "result": "x"}):
        results.add(file, each)
    assert results.known(file) == {"a": {"file": "a", "result": "x"}, "b": {"file": "b"}}


def test_packages_that_are_not_there_are_named():
    pytest.importorskip("torch")
    pytest.importorskip("triton.language")
    from benchmarks.named_parts import cases, vllm

    nowhere = Path("nowhere")
    assert cases.missing(vllm, nowhere) == "there is no checkout `nowhere/vllm`"
    names = [(case.package, case.name) for case in cases.cases()]
    assert len(names) == len(set(names))
