"""A pytest plugin: compile a step, lint it, and hold it to conditions and to a reviewed file.

    def test_step(hlo_lint):
        hlo_lint(step, *arguments, topology="v5e:4x4").check(peak_hbm=12 * GiB)

Nothing but pytest is imported until the fixture is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hlo_tools.testing import Linter

_UPDATE = "--hlo-lint-update"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that rewrites snapshots."""
    parser.getgroup("hlo-lint").addoption(
        _UPDATE,
        action="store_true",
        help="write the findings of `matches_snapshot` to their files; review the difference",
    )


@pytest.fixture
def hlo_lint(request: pytest.FixtureRequest) -> "Iterator[Linter]":
    """Lints programs: `hlo_lint(step, *args, topology="v5e:4x4")`; see docs/pytest.md."""
    from hlo_tools.testing import Linter, Snapshots

    snapshots = Snapshots(
        folder=request.path.parent / "hlo_snapshots" / request.path.stem,
        test=request.node.name,
        update=bool(request.config.getoption(_UPDATE)),
        root=request.config.rootpath,
    )
    yield Linter(snapshots)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Says what a figure is and what makes it up, where an assertion on it fails."""
    import sys

    # Where no program was linted, there is no figure.
    quantities: Any = sys.modules.get("hlo_tools.quantities")
    if quantities is None or not isinstance(left, quantities.Quantity):
        return None
    lines: list[str] = quantities.explained(left, op, right)
    return lines
