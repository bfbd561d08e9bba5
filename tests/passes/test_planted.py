"""Rules fire on the guilty line of programs that the TPU compiler made, and on no other.

The dumps and what is expected of them are made by fixtures/planted/generate.py.
"""

import json
from collections import defaultdict
from functools import cache
from typing import Any

import pytest
from linting import ROOT, lint, read_dump

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.findings import Finding, Severity
from passes.catalog import BY_ID
from passes.runner import ModuleResult

PLANTED = ROOT / "fixtures" / "planted"
CASES: dict[str, dict[str, Any]] = json.loads((PLANTED / "MANIFEST.json").read_text())


@cache
def linted(case: str) -> ModuleResult:
    """What all rules say of a case's dump, on the chip that it was compiled for."""
    facts = CASES[case]
    chip = facts["topology"].partition(":")[0]
    refusal = facts.get("refusal")
    return lint(
        read_dump(PLANTED / facts["file"]),
        chip=chip,
        refusal=MemoryRefusal(**refusal) if refusal else None,
    )


def warnings_of(result: ModuleResult, rule: str) -> list[Finding]:
    """The findings of a rule that a user sees by default."""
    return [f for f in result.findings if f.id == rule and f.severity >= Severity.WARNING]


def describe(findings: list[Finding]) -> str:
    """The findings, for the message of a failed assertion."""
    return "\n".join(
        f"{f.source and (f.source.file, f.source.line)} %{f.instruction} {f.cost} {f.message}"
        for f in findings
    )


@pytest.mark.parametrize("case", [c for c, facts in CASES.items() if not facts["good"]])
def test_the_rule_fires_on_the_marked_line_and_on_no_other(case: str) -> None:
    """A planted defect is reported, by its rule, at the line that the program marks."""
    facts = CASES[case]
    findings = warnings_of(linted(case), facts["rule"])
    assert findings, f"{facts['rule']} is silent on {case}"
    marked = (facts["expect"]["file"], facts["expect"]["line"])
    places = {(f.source.file, f.source.line) if f.source else None for f in findings}
    assert places == {marked}, describe(findings)


@pytest.mark.parametrize(
    "case", [c for c, facts in CASES.items() if facts["good"] and facts["rule"]]
)
def test_the_rule_is_silent_on_the_repaired_twin(case: str) -> None:
    """What mends the defect also silences the rule."""
    findings = warnings_of(linted(case), CASES[case]["rule"])
    assert not findings, describe(findings)


@pytest.mark.parametrize("case", [c for c, facts in CASES.items() if facts["rule"] is None])
def test_known_good_programs_give_no_warning(case: str) -> None:
    """A program that is written as it should be gives no warning from any rule."""
    findings = [f for f in linted(case).findings if f.severity >= Severity.WARNING]
    assert not findings, describe(findings)


@pytest.mark.parametrize("case", CASES)
def test_every_rule_runs_on_every_dump(case: str) -> None:
    """No rule fails on a real dump."""
    assert linted(case).problems == ()


def test_every_rule_has_two_pairs_on_different_generations() -> None:
    """A rule without planted pairs is not proved."""
    generations: dict[str, set[str]] = defaultdict(set)
    for facts in CASES.values():
        if facts["rule"] and not facts["good"]:
            generations[facts["rule"]].add(facts["topology"].partition(":")[0])
    lacking = {rule for rule in BY_ID if len(generations[rule]) < 2}
    assert not lacking


@pytest.mark.parametrize("case", CASES)
def test_the_shares_of_a_module_stay_within_its_step(case: str) -> None:
    """No finding claims more than the whole step, and all of them together do not either."""
    result = linted(case)
    for finding in result.findings:
        assert finding.cost.share is None or 0 <= finding.cost.share <= 1
    step = result.summary.step_seconds or 0.0
    assert sum(finding.cost.seconds or 0.0 for finding in result.findings) <= step * (1 + 1e-9)
