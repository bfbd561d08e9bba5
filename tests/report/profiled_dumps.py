"""Outcomes with profiles, of planted dumps."""

import gzip
from pathlib import Path

from hlo_tools.findings import Outcome
from hlo_tools.settings import Settings
from passes.catalog import BY_ID
from passes.runner import ModuleResult, lint_text

ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = ROOT / "fixtures" / "planted" / "hlo"


def lint_profiled(
    name: str = "dump.txt", *, text: str | None = None, chip: str | None = "v5e"
) -> ModuleResult:
    """Lints a planted dump, or a text, and makes its profile."""
    if text is None:
        data = (PLANTED / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    settings = Settings(select=tuple(sorted(BY_ID)), source_root=ROOT, chip=chip)
    return lint_text(text, path=name, settings=settings, profiled=True)


def outcome_of(*names: str) -> Outcome:
    """The outcome of linting planted dumps."""
    results = [lint_profiled(name) for name in names]
    return Outcome(
        tool_version="0.1.0",
        modules=tuple(result.summary for result in results),
        findings=tuple(finding for result in results for finding in result.findings),
    )
