"""What findings claim of a step, together, is no more than the step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.findings import Cost, Finding, Severity
from passes.apportion import apportioned

STEP = 0.5


def finding(share: float | None, effect: str = "moves", seconds: float | None = None) -> Finding:
    """A finding that claims a share of a step of half a second."""
    if seconds is None and share is not None and effect != "holds":
        seconds = share * STEP
    cost = Cost(effect=effect, bytes=1, seconds=seconds, share=share, times_per_step=1)
    return Finding(
        rule="layout-copy", id="HLO201", severity=Severity.ERROR, module="m", path="p",
        computation="c", instruction="i", hlo_line=1, op_name=None, source=None, stack=(),
        message="", fix="", cost=cost,
    )  # fmt: skip


def shares(findings: list[Finding]) -> list[float | None]:
    """What each claims, rounded."""
    return [f.cost.share if f.cost.share is None else round(f.cost.share, 9) for f in findings]


def test_the_largest_claims_are_kept_and_the_others_get_what_is_left() -> None:
    """In the order given, each as severe as before."""
    kept = apportioned([finding(0.3), finding(0.6), finding(0.25), finding(None)], STEP)
    assert shares(kept) == [0.3, 0.6, 0.1, None]
    assert kept[2].cost.seconds == pytest.approx(0.1 * STEP)
    assert {f.severity for f in kept} == {Severity.ERROR}


def test_memory_that_is_held_is_no_part_of_the_step() -> None:
    """Of what also takes time only the time is counted."""
    held = finding(0.9, "holds", seconds=0.2)
    kept = apportioned([held, finding(0.7)], STEP)
    assert shares(kept) == [0.9, 0.7]
    assert kept[0].cost.seconds == pytest.approx(0.3 * STEP)


def test_claims_that_fit_are_left_as_they_are() -> None:
    """Nothing is changed that need not be."""
    findings = [finding(0.5), finding(0.5), finding(0.4, "holds")]
    assert apportioned(findings, STEP) == findings


@given(st.lists(st.none() | st.floats(0, 1), max_size=12))
def test_all_claims_together_are_at_most_the_step(claims: list[float | None]) -> None:
    """Whatever rules say."""
    kept = apportioned([finding(share) for share in claims], STEP)
    assert sum(f.cost.share or 0.0 for f in kept) <= 1 + 1e-9
    assert sum(f.cost.seconds or 0.0 for f in kept) <= STEP * (1 + 1e-9)
    for before, after in zip(claims, kept, strict=True):
        assert after.cost.share is None or 0 <= after.cost.share <= (before or 0.0)
