"""Rules of other distributions: run like those of the catalogue, and refused where they clash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from linting import ROOT

DUMP = "fixtures/planted/hlo/missing_donation_cache_v5e_good.hlo.txt"

RULE = '''"""Programs that are named.

What it does
  Reports the root.
"""

from passes.rule import rule


@rule(id="{id}", name="{name}", options={{"least": 1}})
def check(ctx):
    """One finding, on the root of the entry computation."""
    root = ctx.facts.module.entry.root
    yield ctx.finding(
        root, ctx.price(root, effect="holds", seconds=1.0), message="it has a name", fix="none"
    )


RULES = (check,)
'''


def distribution(folder: Path, code: str, entry: str = "acme_rules:RULES") -> dict[str, str]:
    """Installs a distribution that offers rules, as far as Python can tell; its environment."""
    (folder / "acme_rules.py").write_text(code)
    metadata = folder / "acme_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[hlo_tools.rules]\nacme = {entry}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


def hlo_lint(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hlo_tools", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_rule_of_another_distribution_is_one_of_the_catalogue(tmp_path: Path) -> None:
    """It runs, is listed and explained, and is selected and configured by its name."""
    environment = distribution(tmp_path, RULE.format(id="ACME101", name="named-program"))
    done = hlo_lint(environment, "--chip", "v5e", "--select", "named-program", DUMP)
    assert done.returncode == 1, done.stderr
    assert "error ACME101 named-program\n  it has a name\n" in done.stdout
    assert "ACME101  named-program" in hlo_lint(environment, "--list-rules").stdout
    explained = hlo_lint(environment, "--explain", "ACME101").stdout
    assert explained.startswith("ACME101 named-program\n\nPrograms that are named.\n")
    (tmp_path / "settings.toml").write_text("[rules.named-program]\nleast = 2\n")
    config = ("--config", str(tmp_path / "settings.toml"), "--ignore", "ACME101")
    assert "ACME101" not in hlo_lint(environment, *config, DUMP).stdout


@pytest.mark.parametrize(
    ("code", "entry", "said"),
    [
        (RULE.format(id="HLO101", name="named"), "acme_rules:RULES", "id `HLO101` must be capital"),
        (RULE.format(id="ACME1", name="named"), "acme_rules:RULES", "for example `ACME101`"),
        (RULE.format(id="ACME101", name="A b"), "acme_rules:RULES", "the name `A b` must be"),
        (
            RULE.format(id="ACME101", name="layout-copy"),
            "acme_rules:RULES",
            "rule `layout-copy` of `acme-rules` (entry point `acme = acme_rules:RULES`) has the "
            "same name as one of hlo-lint",
        ),
        ("RULES = 3\n", "acme_rules:RULES", "is no rule: it must name"),
        ("RULES = [3]\n", "acme_rules:RULES", "is no rule: it must name"),
        ("1 / 0\n", "acme_rules:RULES", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("", "acme_rules:RULES", "cannot be loaded: AttributeError"),
    ],
)
def test_what_is_wrong_with_it_is_said_with_its_name(
    code: str, entry: str, said: str, tmp_path: Path
) -> None:
    """Nothing is linted with half of the rules that the person has installed."""
    done = hlo_lint(distribution(tmp_path, code, entry), DUMP)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "`acme-rules`" in done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
