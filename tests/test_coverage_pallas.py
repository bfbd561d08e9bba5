"""The Pallas columns of the coverage benchmark: what is verified, what falls back, the shares."""

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")


from benchmarks.coverage_parts import pallas_report
from benchmarks.coverage_parts.outcome import PallasOutcome
from benchmarks.coverage_parts.pallas_attempt import PallasAttempt, judge
from benchmarks.coverage_parts.store import Store
from coverage_launches import KERNELS, collected
from translators import translation
from translators.graph.errors import GraphError
from translators.graph.location import SourceLocation
from translators.verify.program import Program
from translators.verify.report import Report, Rung, Status
from translators.verify.rungs import PALLAS_PROOF
from translators.verify.tpu_rungs import COMPILER, SIMULATOR
from translators.verify.workers import NOBODY


def pallas_row(name="m.k", result="verified", **fields):
    """What came of a launch as a Pallas kernel, as the report takes it."""
    outcome = PallasOutcome(
        result=result,
        emitted=True,
        interpreted="yes",
        tpu_interpreted="yes",
        compiled={"v5e": "yes", "v6e": "yes"},
    )
    return {"package": "p", "name": name, "file": name, **outcome.as_dict(), **fields}


def test_shares_of_pallas_columns_are_of_the_kernels_attempted() -> None:
    """A kernel that falls back counts against every column."""
    fallback = {"emitted": False, "interpreted": "", "tpu_interpreted": "", "compiled": {}}
    rows = [
        pallas_row("a"),
        pallas_row("b", "does not compile", compiled={"v5e": "yes", "v6e": "no"}),
        pallas_row("c", "not equal", tpu_interpreted="no"),
        pallas_row("d", "fallback", reason="`tt.load` is no block of `x`", **fallback),
    ]
    table = [line.split(" | ") for line in pallas_report.table(rows).splitlines()]
    last = next(cells for cells in table if cells[0].strip() == "all")
    found = {name.strip(): cell for name, cell in zip(table[0], last, strict=True)}
    assert found["kernels"].strip() == "4"
    assert found["emitted"].split() == ["3", "75.0%"]
    assert found["TPU interpreter"].split() == ["2", "50.0%"]
    assert found["v5e"].split() == ["3", "75.0%"]
    assert found["v6e"].split() == ["2", "50.0%"]
    assert found["verified"].split() == ["1", "25.0%"]


def test_a_kernel_is_emitted_where_all_its_variants_are() -> None:
    """One launch that becomes a Pallas kernel does not hide another that falls back."""
    compiled = {"v5e": "yes", "v6e": "no"}
    rows = [pallas_row(), pallas_row(result="fallback", emitted=False, compiled=compiled)]
    (kernel,) = pallas_report.by_kernel(rows)
    assert (kernel["result"], kernel["emitted"]) == ("fallback", False)
    assert kernel["answers"]["v6e"] == "no"


def report_of(*rungs):
    """A report of a Pallas kernel that has these rungs."""
    return Report(kernel=None, grid=(1, 1, 1), inputs=(), proof=PALLAS_PROOF, rungs=rungs)


def rung(name, status=Status.PASSED, **fields):
    """A rung, passed if nothing else is said."""
    return Rung(name=name, status=status, reason="a reason", **fields)


RUNGS = {
    "interpreter": rung(PALLAS_PROOF),
    "simulator": rung(SIMULATOR),
    "v5e": rung(COMPILER, generation="v5e"),
    "v6e": rung(COMPILER, generation="v6e"),
}


@pytest.mark.parametrize(
    ("changed", "result"),
    [
        ({}, "verified"),
        ({"interpreter": rung(PALLAS_PROOF, Status.FAILED, array="y")}, "not equal"),
        ({"simulator": rung(SIMULATOR, Status.FAILED, array="y")}, "not equal"),
        ({"simulator": rung(SIMULATOR, Status.FAILED)}, "error"),
        ({"simulator": rung(SIMULATOR, Status.SKIPPED)}, "unjudged"),
        ({"interpreter": rung(PALLAS_PROOF, Status.SKIPPED)}, "unjudged"),
        ({"v6e": rung(COMPILER, Status.FAILED, generation="v6e")}, "does not compile"),
        ({"v6e": rung(COMPILER, Status.SKIPPED, generation="v6e")}, "unjudged"),
        ({"other": rung("NaN and infinities", Status.FAILED, array="y")}, "not equal"),
        ({"other": rung("programs in another order", Status.FAILED)}, "unjudged"),
    ],
)
def test_verified_is_what_every_step_says_yes_to(changed, result) -> None:
    """What one step denies, or was not asked, is not verified."""
    outcome = PallasOutcome()
    judge(report_of(*{**RUNGS, **changed}.values()), outcome)
    assert outcome.result == result
    assert bool(outcome.reason) == (result != "verified")


def test_a_launch_is_run_as_a_pallas_kernel(tmp_path) -> None:
    """A kernel of blocks is emitted as one and interpreted."""
    store = Store(tmp_path)
    store.keep(collected(n=2048, block=1024))
    attempt = PallasAttempt(lambda step, so_far: None, workers=NOBODY, chips=())
    outcome = attempt.run(store.paths()[0])
    assert (outcome.emitted, outcome.interpreted) == (True, "yes"), outcome


def test_what_only_jax_can_hold_is_a_fallback_with_the_line(tmp_path, monkeypatch) -> None:
    """Which access of which line decided it is kept."""
    real = translation.translate

    def refusing(kernel, launch, emit="jax"):
        if emit == "pallas":
            raise GraphError("no block", SourceLocation(file=str(KERNELS), line=1))
        return real(kernel, launch)

    monkeypatch.setattr("benchmarks.coverage_parts.pallas_attempt.translate", refusing)
    store = Store(tmp_path)
    store.keep(collected())
    attempt = PallasAttempt(lambda step, so_far: None, workers=NOBODY, chips=())
    outcome = attempt.run(store.paths()[0])
    assert (outcome.result, outcome.reason) == ("fallback", "no block")
    assert outcome.place == f"{KERNELS}:1"
    assert outcome.line == KERNELS.read_text(encoding="utf-8").splitlines()[0]


def test_a_pallas_kernel_that_gives_other_numbers_is_found_out(tmp_path, monkeypatch) -> None:
    """A wrong translation is called not equal, never verified."""
    real = Program.load

    def wrong(program):
        correct = real(program)
        return lambda *arrays, **scalars: correct(*arrays, **scalars) + 0.5

    monkeypatch.setattr(Program, "load", wrong)
    store = Store(tmp_path)
    store.keep(collected(n=2048, block=1024))
    attempt = PallasAttempt(lambda step, so_far: None, workers=NOBODY, chips=())
    outcome = attempt.run(store.paths()[0])
    assert (outcome.result, outcome.interpreted) == ("not equal", "no")
    assert "out_ptr" in outcome.reason
