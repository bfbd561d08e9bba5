"""The catalogue is complete, documented and consistent with its files."""

import re

import pytest
from linting import ROOT

from passes.catalog import BY_ID, BY_NAME, RULES
from passes.rule import Rule

HEADINGS = ["What it does", "Why it matters", "Known problems", "Example", "Use instead"]


def test_every_rule_file_is_in_the_catalogue() -> None:
    """A rule that is written but not registered never runs."""
    written = {
        path.stem.replace("_", "-")
        for path in (ROOT / "passes").glob("*.py")
        if "@rule(" in path.read_text()
    }
    assert {rule.name for rule in RULES} == written


def test_ids_and_names_are_unique_and_in_order() -> None:
    """Ids and names appear in people's configuration: each stands for one rule."""
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert len(BY_ID) == len(BY_NAME) == len(RULES)
    assert all(re.fullmatch(r"HLO[1-7]\d\d", rule.id) for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_documentation_has_every_heading(rule: Rule) -> None:
    """`--explain` tells what a rule does, why, where it errs, and the repair by example."""
    lines = rule.documentation.splitlines()
    assert [line for line in lines if line in HEADINGS] == HEADINGS
    assert rule.summary
    assert not rule.summary.endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_lies_in_the_file_of_its_name(rule: Rule) -> None:
    """One rule a file, found by its name."""
    assert rule.check.__module__ == f"passes.{rule.name.replace('-', '_')}"
