"""Expected reports, whole, for a person to review: `pytest --update-golden` rewrites them."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_cases import sample_outcome, sample_source

from hlo_tools.report.formats import render
from hlo_tools.report.names import FORMATS
from hlo_tools.report.view import ReportOptions

GOLDEN = Path(__file__).parent / "golden"
# In their own form these are one long line, which nobody could review.
PRETTY = frozenset({"sarif"})
# What a page looks like no text shows; `test_report_page.py` and a browser look at it.
PICTURES = frozenset({"html"})

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in FORMATS if name not in PICTURES},
    "text-narrow": ("text", {"width": 60}),
    "text-color": ("text", {"color": True}),
    "text-all": ("text", {"show_notes": True, "statistics": True}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_report_is_as_reviewed(variant: str, tmp_path: Path, update_golden: bool) -> None:
    name, changes = VARIANTS[variant]
    options = ReportOptions(sources=sample_source(tmp_path), **changes)
    text = "".join(render(name, sample_outcome(), options))
    if name in PRETTY:
        text = json.dumps(json.loads(text), indent=2) + "\n"
    expected = GOLDEN / f"{variant}.txt"
    if update_golden:
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")
