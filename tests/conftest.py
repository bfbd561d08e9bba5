"""Fixtures that more than one part of the tests uses."""

from pathlib import Path

import hypothesis
import pytest

# A shared machine is slow at times, which says nothing about the code.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite expected reports; review the difference before keeping it",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The directory of real dumps beside the repository; tests that need it skip without it."""
    directory = ROOT.parent / "shared" / "corpus"
    if not directory.is_dir():
        pytest.skip("no ../shared/corpus beside the repository")
    return directory
