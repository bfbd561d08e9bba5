"""The coverage benchmark: launches kept and loaded again, attempts that end, counts that add up."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")


from benchmarks.coverage_parts import report
from benchmarks.coverage_parts.columns import OUTCOMES
from benchmarks.coverage_parts.jax_attempt import JaxAttempt
from benchmarks.coverage_parts.limits import Limit
from benchmarks.coverage_parts.pool import Pool
from benchmarks.coverage_parts.process_tree import end_group
from benchmarks.coverage_parts.results import Results, in_column
from benchmarks.coverage_parts.selection import chosen_launches
from benchmarks.coverage_parts.serving import Job, lost_outcome
from benchmarks.coverage_parts.store import VARIANTS, Store, header, load
from coverage_launches import KERNELS, ROOT, collected
from translators.verify.program import Program


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
    outcome = JaxAttempt(lambda step, so_far: steps.append(step), tpu=False).run(store.paths()[0])
    assert (outcome.result, outcome.reason) == ("verified", "")
    assert outcome.access == "block"
    assert steps == ["load", "translate", "verify"]


def test_a_function_that_gives_other_numbers_is_found_out(tmp_path, monkeypatch) -> None:
    """A wrong translation is called not equal, never verified."""
    real = Program.load

    def wrong(program):
        correct = real(program)
        return lambda *arrays, **scalars: correct(*arrays, **scalars) + 0.5

    monkeypatch.setattr(Program, "load", wrong)
    store = Store(tmp_path)
    store.keep(collected())
    outcome = JaxAttempt(lambda step, so_far: None, tpu=False).run(store.paths()[0])
    assert outcome.result == "not equal"
    assert "out_ptr" in outcome.reason


def test_an_error_of_ours_is_neither_verified_nor_refused(tmp_path) -> None:
    """A crash of the translator is counted as such, with its traceback."""
    outcome = JaxAttempt(lambda step, so_far: None, tpu=False).run(tmp_path / "absent.launch")
    assert outcome.result == "error"
    assert "FileNotFoundError" in outcome.trace


# A kernel in Pallas for TPUs, which no CPU compiles.
_OF_NO_ARRAYS = """
from benchmarks.coverage_parts.tpu import compile_for_tpu, use_environment
use_environment()
import jax
from jax.experimental import pallas as pl

def ones(out_ref):
    out_ref[...] = out_ref[...] * 0 + 1

compile_for_tpu(pl.pallas_call(ones, out_shape=jax.ShapeDtypeStruct((8, 128), "float32")), [])
"""


def test_a_function_of_no_arrays_is_compiled_for_a_tpu_too() -> None:
    """What is said of TPUs is never what a CPU's compiler says."""
    pytest.importorskip("libtpu")
    command = [sys.executable, "-c", _OF_NO_ARRAYS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Answers every path with its own text, except that it dies of one and hangs at another.
_WORKER = """
import json, os, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"step": "translate"}), flush=True)
    if "dies" in line:
        print("F0101 emitter.cc:1] Check failed: one", file=sys.stderr)
        sys.exit(3)
    if "compiles" in line:
        known = {"result": "verified"}
        print(json.dumps({"step": "compile", "so_far": known}), flush=True)
    while "hangs" in line: pass
    outcome = {"result": "verified", "reason": line.strip(), "pid": os.getpid()}
    print(json.dumps({"outcome": outcome}), flush=True)
"""

_BUSY = "while True: pass"


def test_one_that_hangs_and_one_that_dies_do_not_stop_the_others() -> None:
    """Each job has an outcome, and those after a lost worker are done by a new one."""
    pool = Pool([sys.executable, "-c", _WORKER], workers=1, seconds=1.0)
    found = dict(pool.run(["a", "dies", "b", "hangs", "c"]))
    assert {job: outcome["result"] for job, outcome in found.items()} == {
        **{"a": "verified", "b": "verified", "c": "verified"},
        **{"dies": "error", "hangs": "timeout"},
    }
    assert "the step `translate` takes more than" in found["hangs"]["reason"]
    assert "Check failed: one" in found["dies"]["reason"]
    assert found["c"]["reason"] == "c"


def test_what_was_proved_before_a_compiler_ended_the_process_stays_so() -> None:
    """A crash of the TPU compiler is one of the compilation alone."""
    pool = Pool([sys.executable, "-c", _WORKER], 1, 1.0, lost_outcome)
    ((_, outcome),) = pool.run([Job("jax", Path("compiles, hangs"))])
    assert (outcome["result"], outcome["tpu"]) == ("verified", "no")
    assert "to compile it takes more than" in outcome["tpu_reason"]


def test_a_run_that_is_given_up_leaves_no_worker_behind() -> None:
    """Somebody who ends a run has the machine for something else."""
    running = Pool([sys.executable, "-c", _WORKER], workers=1, seconds=1e6).run(["a", "hangs", "b"])
    _, outcome = next(running)
    running.close()
    assert not Path(f"/proc/{outcome['pid']}").exists()


def test_an_error_in_the_pool_itself_is_raised() -> None:
    """Nobody waits for the outcome of a job whose thread has ended."""

    def lost(*args):
        raise KeyError("lost")

    pool = Pool([sys.executable, "-c", _WORKER], 1, 1.0, lost)
    with pytest.raises(KeyError):
        list(pool.run(["dies"]))


def test_a_process_that_waits_forever_is_found_by_its_idleness() -> None:
    """A hang takes no processor time, and must not cost what the clock allows a busy process."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    limit = Limit(process.pid, seconds=1e6, idle=0.5)
    try:
        with pytest.raises(TimeoutError, match="does nothing"):
            for _ in range(100):
                time.sleep(0.1)
                limit.check()
    finally:
        process.communicate(b"\n")


def test_the_time_of_what_a_process_started_counts() -> None:
    """A worker that waits for a busy process of its own does not hang, and is not free either."""
    busy = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_BUSY!r}])"
    process = subprocess.Popen([sys.executable, "-c", busy], start_new_session=True)
    limit = Limit(process.pid, seconds=0.5, idle=1e6)
    try:
        with pytest.raises(TimeoutError, match="takes more than"):
            for _ in range(300):
                time.sleep(0.1)
                limit.check()
    finally:
        end_group(process)


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


def test_numbers_and_names_do_not_hide_which_type_it_is() -> None:
    """What has to be done for one element type is not what has to be done for another."""
    rows = [row("a", "refused", reason=f"`x{n}` holds `i{n}`") for n in (8, 64)]
    text = report.causes(rows, "run")
    assert "holds `i8`" in text
    assert "holds `i64`" in text
    assert "| 1 | refused | … holds `i64` |" in text


def test_outcomes_of_several_runs_are_one_row_of_a_launch(tmp_path) -> None:
    """What a run of one column finds does not take away what another one found."""
    known = {"package": "p", "name": "m.k", "file": "f"}
    path = tmp_path / "results.jsonl"
    Results(path).add(known, "jax", {"result": "error"})
    Results(path).add(known, "pallas", {"result": "fallback"})
    Results(path).add(known, "jax", {"result": "verified"})
    results = Results(path)
    assert results.of("f", "jax") == {"result": "verified"}
    assert results.of("f", "pallas") == {"result": "fallback"}
    assert results.of("g", "jax") is None
    (found,) = in_column(results.rows(["f", "g"]), "pallas")
    assert found == {**known, "result": "fallback"}


def test_a_sample_is_the_same_kernels_whatever_their_launches_cost(tmp_path) -> None:
    """Two runs of a sample can be compared."""
    store = Store(tmp_path)
    for number, name in enumerate("abcdef"):
        store.keep(collected(n=600 - 100 * number, name=name))
    found = chosen_launches(tmp_path, every=2)
    assert sorted(known["name"] for known in found.values()) == [f"kernels.{n}" for n in "ace"]
    costs = [header(path)["cost"] for path in found]
    assert costs == sorted(costs)


@pytest.mark.parametrize("column", OUTCOMES)
def test_the_command_attempts_what_is_in_the_cache_and_resumes(tmp_path, column) -> None:
    """The whole program, with workers, on a cache of one launch."""
    pytest.importorskip("torch")
    Store(tmp_path).keep(collected(n=2048, block=1024))
    command = [sys.executable, str(ROOT / "benchmarks" / "coverage.py"), "--cache", str(tmp_path)]
    command += ["--no-tpu", "--jobs", "1", "--format", "json", "--columns", column]
    command += ["--results", str(tmp_path / "results.jsonl"), "--resume"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (found,) = json.loads(done.stdout)
        assert (found["name"], found[column]["result"]) == ("kernels.vector_add", "verified")
    assert len((tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 1
