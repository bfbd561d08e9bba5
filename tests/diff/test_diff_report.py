"""Reports of comparisons: as reviewed, by the schema, and harmless whatever a dump holds."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from comparing import ROOT, compared, pairs, planted
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_tools.comparison import (
    Cause,
    Change,
    ComparedModule,
    Comparison,
    LiveChange,
    ModuleComparison,
    Side,
)
from hlo_tools.diff.kinds import OPPOSITES
from hlo_tools.figures import Figures
from hlo_tools.findings import Problem
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report import diff_json, diff_text
from hlo_tools.report.view import ReportOptions
from hlo_tools.source import SourceTree

GOLDEN = Path(__file__).parent / "golden"
KINDS = sorted({kind for both in OPPOSITES for kind in both})


def comparison(*modules: ModuleComparison, **changes: Any) -> Comparison:
    return Comparison(**({"tool_version": "0.0.0", "modules": modules} | changes))


def text(value: Comparison, **options: Any) -> str:
    view = ReportOptions(sources=SourceTree(root=ROOT, base=ROOT), **options)
    return "".join(diff_text.render(value, view))


@pytest.mark.parametrize(
    ("golden", "name", "options"),
    [
        ("fusion-lost", "fusion_break_barrier_v6e", {}),
        ("collective-blocking", "sync_collective_barrier_v5e", {}),
        ("donation-lost", "missing_donation_cache_v5e", {}),
        ("unrolled-narrow", "sync_collective_ring_v5p", {"width": 64, "show_notes": True}),
        ("color", "high_precision_dot_highest_v5e", {"color": True}),
    ],
)
def test_report_is_as_reviewed(
    golden: str, name: str, options: dict[str, Any], update_golden: bool
) -> None:
    module = compared(planted(f"{name}_good"), planted(f"{name}_bad"))
    found = text(comparison(module, allowed=0.02), **options)
    expected = GOLDEN / f"{golden}.txt"
    if update_golden:
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_what_is_the_same_is_said_in_few_words() -> None:
    module = compared(planted("good_mlp_v5e"), planted("good_mlp_v5e"))
    found = text(comparison(module))
    assert "no difference" in found
    assert "->" in found and "as before" in found
    assert len(found.splitlines()) < 9


def test_causes_are_shown_worst_first_and_small_ones_counted() -> None:
    """What is hidden is counted, and shown when asked for."""
    module = compared(
        planted("sync_collective_ring_v5p_good"), planted("sync_collective_ring_v5p_bad")
    )
    short, whole = text(comparison(module)), text(comparison(module), show_notes=True)
    kinds = [cause.kind for cause in module.causes]
    assert sum(whole.count(f": {kind}\n") for kind in set(kinds)) == len(kinds)
    hidden = len(kinds) - sum(short.count(f": {kind}\n") for kind in set(kinds))
    assert hidden > 0 and f"{hidden} smaller changes hidden" in short
    assert "hidden" not in whole


@pytest.mark.parametrize("name", pairs())
def test_json_keeps_to_the_schema(name: str) -> None:
    module = compared(planted(f"{name}_good"), planted(f"{name}_bad"))
    document = validated(comparison(module, allowed=0.02))
    (listed,) = document["modules"]
    assert [cause["seconds"] for cause in listed["causes"]] == [c.seconds for c in module.causes]
    assert document["summary"]["exit_status"] == int((module.regression or 0) > 0.02)


def validated(value: Comparison) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads("".join(diff_json.render(value, ReportOptions())))
    schema = json.loads(files("hlo_tools").joinpath("schemas/diff.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


names = st.text(max_size=30)
counts = st.integers(0, 1 << 60)
seconds = st.floats(0, 1e6) | st.just(float("inf")) | st.just(float("nan"))
places = st.none() | st.builds(
    SourceLocation,
    file=names,
    line=st.integers(0, 1 << 40),
    column=st.none() | st.integers(1, 1000),
    function=st.none() | names,
    inferred=st.booleans(),
)
sides = st.builds(
    Side,
    computation=names,
    instruction=names,
    opcode=names,
    hlo_line=counts,
    shape=names,
    seconds=st.floats(0, 1e6),
    hbm_bytes=counts,
    times_per_step=counts,
)
causes = st.builds(
    Cause,
    kind=st.sampled_from(KINDS),
    message=names,
    source=places,
    source_is_new=st.booleans(),
    op_name=st.none() | names,
    seconds=st.floats(-1e6, 1e6),
    hbm_bytes=st.integers(-(1 << 60), 1 << 60),
    changes=st.lists(
        st.builds(Change, old=sides, new=st.none() | sides), min_size=1, max_size=5
    ).map(tuple),
)
figures = st.builds(
    Figures,
    step_seconds=st.none() | seconds,
    exposed_collective_seconds=st.none() | seconds,
    hbm_bytes=counts,
    wire_bytes=counts,
    dot_flops=counts,
    f32_dot_flops=counts,
    peak_hbm_bytes=counts,
    argument_bytes=counts,
    output_bytes=counts,
    buffer_bytes=counts,
    padding_bytes=counts,
    collectives=st.dictionaries(names, st.integers(1, 99), max_size=3).map(
        lambda kinds: tuple(sorted(kinds.items()))
    ),
)
programs = st.builds(
    ComparedModule,
    path=names,
    name=names,
    chip=st.none() | names,
    chip_assumed=st.booleans(),
    truncated=st.booleans(),
    instructions=counts,
    unmatched=counts,
    donated=counts,
    unknown_trip_counts=counts,
    figures=figures,
)
live = st.builds(
    LiveChange,
    shape=names,
    kind=st.sampled_from(("argument", "output", "temporary")),
    old_count=counts,
    new_count=counts,
    old_bytes=counts,
    new_bytes=counts,
    instruction=names,
    source=places,
)
comparisons = st.builds(
    Comparison,
    tool_version=names,
    modules=st.lists(
        st.builds(
            ModuleComparison,
            old=programs,
            new=programs,
            causes=st.lists(causes, max_size=3).map(tuple),
            live=st.lists(live, max_size=3).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    only_old=st.lists(st.tuples(names, names), max_size=2).map(tuple),
    only_new=st.lists(st.tuples(names, names), max_size=2).map(tuple),
    problems=st.lists(st.builds(Problem, message=names, path=st.none() | names), max_size=2).map(
        tuple
    ),
    allowed=st.none() | st.floats(0, 10),
)


@settings(max_examples=25)
@given(value=comparisons, show_notes=st.booleans(), width=st.integers(1, 120))
def test_text_of_anything_is_visible(value: Comparison, show_notes: bool, width: int) -> None:
    """No name in a dump moves the cursor, ends a line or is obeyed by a workflow runner."""
    view = ReportOptions(show_notes=show_notes, width=width)
    found = "".join(diff_text.render(value, view))
    assert all(c == "\n" or c.isprintable() or c.isspace() for c in found)
    assert not any(ord(c) < 32 and c != "\n" for c in found)
    assert "##[" not in found
    assert not any(line.lstrip().startswith("::") for line in found.split("\n"))


@settings(max_examples=25)
@given(value=comparisons)
def test_json_of_anything_keeps_to_the_schema(value: Comparison) -> None:
    """Names, infinities and NaN included; the text is ASCII."""
    assert "".join(diff_json.render(value, ReportOptions())).isascii()
    document = validated(value)
    assert [m["new"]["name"] for m in document["modules"]] == [m.new.name for m in value.modules]
