"""What the README shows is what the tool does."""

import re
import subprocess
import sys
from pathlib import Path

from hlo_tools.settings import Overrides, load_settings
from passes.catalog import BY_NAME, RULES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_is_the_output_of_the_first_command() -> None:
    """`make demo` prints what the README says it prints."""
    arguments = re.search(r"^DEMO \?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert arguments
    run = subprocess.run(
        [sys.executable, "-m", "hlo_tools", "--fail-on", "never", *arguments[1].split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    example = README.split("```\n")[1]
    assert run.stdout == example


def test_the_table_of_rules_is_the_catalogue() -> None:
    """Every rule is listed, and none that does not exist."""
    listed = re.findall(r"^\| (HLO\d+) \| ([\w-]+) \|", README, re.MULTILINE)
    assert listed == [(rule.id, rule.name) for rule in RULES]


def test_the_configuration_that_it_shows_is_accepted(tmp_path: Path) -> None:
    """Keys, rules and options of the example exist."""
    block = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert block
    (tmp_path / "pyproject.toml").write_text(block[1])
    settings = load_settings(tmp_path / "pyproject.toml", Overrides(), BY_NAME)
    assert settings.ignore == ("HLO501",)
    assert settings.rule_options == {"padding-waste": {"min_waste": 0.5}}
    assert settings.op_ignores[0].rules == ("HLO601",)
