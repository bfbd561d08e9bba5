"""The coverage benchmark: launches kept and loaded again, attempts that end, counts that add up."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent / "triton"))

from launching import KERNELS, explicit

from benchmarks.coverage_parts import report
from benchmarks.coverage_parts.attempt import Attempt
from benchmarks.coverage_parts.pool import Pool
from benchmarks.coverage_parts.store import VARIANTS, Collected, Store, header, load

ROOT = Path(__file__).resolve().parents[1]
N = 50


def collected(n=N, block=32, package="tests"):
    """A launch of `vector_add` with what its arrays hold."""
    arguments = [f"{name}=f32[{n}]" for name in ("x_ptr", "y_ptr", "out_ptr")] + [f"n={n}"]
    kernel, launch = explicit("vector_add", arguments, [f"BLOCK={block}"], str(-(-n // block)))
    values = np.random.default_rng(0).standard_normal((3, n)).astype(np.float32)
    return Collected(
        package=package,
        module="kernels",
        kernel="vector_add",
        unit="test",
        launch=launch,
        memory={number: row.view(np.uint8) for number, row in enumerate(values)},
        jitted=kernel,
    )


def row(name="m.k", result="verified", **fields):
    """What came of a launch, as the report takes it."""
    known = {
        **{"package": "p", "name": name, "result": result, "reason": "", "place": "", "access": ""},
        **{"tpu": "yes", "tpu_reason": "", "launch": "", "file": name},
        "seconds": {"translate": 0.5},
    }
    return {**known, **fields}


def test_a_kept_launch_is_loaded_with_its_kernel_and_the_bytes_of_its_arrays(tmp_path) -> None:
    """What is verified later is what host code launched."""
    given = collected()
    store = Store(tmp_path)
    assert store.keep(given)
    (path,) = store.paths()
    found = load(path)
    assert found.launch == given.launch
    assert found.jitted.fn.__code__.co_filename == str(KERNELS)
    for number, memory in given.memory.items():
        np.testing.assert_array_equal(found.memory[number], memory)


def test_of_one_specialisation_the_smallest_launch_is_kept(tmp_path) -> None:
    """Small launches say as much and are run in less time."""
    store = Store(tmp_path)
    assert store.keep(collected(n=500))
    assert store.keep(collected(n=60))
    assert not store.keep(collected(n=300))
    (path,) = store.paths()
    assert load(path).launch.arrays[0].shape == (60,)


def test_of_one_kernel_a_few_specialisations_are_kept(tmp_path) -> None:
    """Many launches of one kernel do not crowd out the time for the others."""
    store = Store(tmp_path)
    for power in range(4, 10):
        store.keep(collected(block=2**power))
    paths = store.paths()
    assert len(paths) == VARIANTS
    assert max(header(path)["cost"] for path in paths) < collected(block=16).cost


def test_a_launch_is_taken_through_every_step(tmp_path) -> None:
    """A kernel that translates is verified on what was collected."""
    store = Store(tmp_path)
    store.keep(collected())
    steps = []
    outcome = Attempt(lambda step, so_far: steps.append(step), tpu=False).run(store.paths()[0])
    assert (outcome.result, outcome.reason) == ("verified", "")
    assert outcome.access == "block"
    assert steps == ["load", "translate", "verify"]


def test_a_function_that_gives_other_numbers_is_found_out(tmp_path, monkeypatch) -> None:
    """A wrong translation is called not equal, never verified."""
    from translators import translation

    real = translation.load

    def wrong(function):
        correct = real(function)
        return lambda *arrays: correct(*arrays) + 0.5

    monkeypatch.setattr(translation, "load", wrong)
    store = Store(tmp_path)
    store.keep(collected())
    outcome = Attempt(lambda step, so_far: None, tpu=False).run(store.paths()[0])
    assert outcome.result == "not equal"
    assert "out_ptr" in outcome.reason


def test_an_error_of_ours_is_neither_verified_nor_refused(tmp_path) -> None:
    """A crash of the translator is counted as such, with its traceback."""
    outcome = Attempt(lambda step, so_far: None, tpu=False).run(tmp_path / "absent.launch")
    assert outcome.result == "error"
    assert "FileNotFoundError" in outcome.trace


# Answers every path with its own text, except that it dies of one and hangs at another.
_WORKER = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"step": "translate"}), flush=True)
    if "dies" in line:
        print("F0101 emitter.cc:1] Check failed: one", file=sys.stderr)
        sys.exit(3)
    if "compiles" in line:
        known = {"result": "verified", "reason": "", "seconds": {}}
        print(json.dumps({"step": "compile", "so_far": known}), flush=True)
    while "hangs" in line: pass
    print(json.dumps({"outcome": {"result": "verified", "reason": line.strip()}}), flush=True)
"""


def test_one_that_hangs_and_one_that_dies_do_not_stop_the_others() -> None:
    """Each launch has an outcome, and those after a lost worker are served by a new one."""
    pool = Pool([sys.executable, "-c", _WORKER], jobs=1, seconds=1.0)
    found = dict(pool.run(["a", "dies", "b", "hangs", "c", "compiles, hangs"]))
    assert {path: outcome["result"] for path, outcome in found.items()} == {
        **{"a": "verified", "b": "verified", "c": "verified"},
        **{"dies": "error", "hangs": "timeout", "compiles, hangs": "verified"},
    }
    assert found["compiles, hangs"]["tpu"] == "no"
    assert "the step `translate` takes more than" in found["hangs"]["reason"]
    assert "Check failed: one" in found["dies"]["reason"]
    assert found["c"]["reason"] == "c"


def test_a_kernel_is_what_its_worst_variant_is() -> None:
    """One launch that verifies does not hide another that gives wrong numbers."""
    rows = [row(result="verified"), row(result="not equal", tpu="no"), row(result="refused")]
    (kernel,) = report.by_kernel(rows)
    assert (kernel["result"], kernel["tpu"], kernel["variants"]) == ("not equal", "no", 3)


def test_the_table_counts_kernels_and_not_launches() -> None:
    """The shares against the targets are of distinct kernels."""
    rows = [row("a"), row("a"), row("b", "refused", tpu=""), row("c", "error", tpu="")]
    text = report.table(rows)
    assert "attempted: 3 kernels, 4 variants" in text
    assert "translated and verified: 33.3%" in text
    assert "verified or refused at a place: 66.7%" in text


def test_the_same_cause_in_different_kernels_is_one_cause() -> None:
    """Names and numbers in a reason do not split what one change would mend."""
    rows = [
        row("a", "refused", reason="`tt.load` of `x` has 3 axes", file="a.launch"),
        row("b", "refused", reason="`tt.store` of `y` has 4 axes", file="b.launch"),
        row("c"),
    ]
    text = report.causes(rows, "run")
    assert "### 2 kernels" in text
    assert "--only 'a.launch'" in text
    assert "`c`" not in text


def test_the_command_attempts_what_is_in_the_cache(tmp_path) -> None:
    """The whole program, with workers, on a cache of one launch."""
    pytest.importorskip("torch")
    Store(tmp_path).keep(collected())
    command = [sys.executable, str(ROOT / "benchmarks" / "coverage.py"), "--cache", str(tmp_path)]
    command += ["--no-tpu", "--jobs", "1", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)
    assert (outcome["name"], outcome["result"]) == ("kernels.vector_add", "verified")
