"""The documentation builds as a site, without a link that leads nowhere."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from passes.catalog import RULES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_rule_has_a_page_with_its_defect_as_compiled(site: Path) -> None:
    without = []
    for rule in RULES:
        page = (site / "rules" / rule.id / "index.html").read_text(encoding="utf-8")
        assert rule.name in page
        if "As the compiler shows it" not in page:
            without.append(rule.name)
    # Of a program that does not fit into memory the compiler leaves no dump.
    assert without == ["out-of-memory"]


def test_every_page_is_in_the_navigation(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert re.search(rf'href="{page.stem}/', front), page.name


def test_links_of_files_in_the_repository_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not re.match(r"[a-z]+:", target) and target != "...":
                assert (page.parent / target).exists(), f"{page.name}: {target}"
