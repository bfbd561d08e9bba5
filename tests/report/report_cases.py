"""Outcomes for the tests of reports: one that a person can read, and arbitrary ones."""

from pathlib import Path

from hypothesis import strategies as st

from hlo_tools.findings import (
    Cost,
    Finding,
    ModuleSummary,
    Outcome,
    Problem,
    Related,
    RuleInfo,
    Severity,
    UnusedSuppression,
)
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.profile import (
    LaneProfile,
    LiveValue,
    MemoryProfile,
    Operation,
    Roof,
    Slice,
    Span,
    StepProfile,
)
from hlo_tools.report.view import ReportOptions
from hlo_tools.source import SourceTree

SOURCE = '''\
"""A model with things to find in it."""

import jax.numpy as jnp


def block(x, scale):
\tnormed = x * scale
\ts = jnp.sum(normed * normed, axis=-1, keepdims=True)
\treturn jnp.concatenate([normed, s], axis=-1)


def loss(params, batch):
    größe = batch["größe"]; logits = jnp.einsum("btd,dv->btv", größe, params["embedding"])
    return logits.mean()
'''


def sample_source(directory: Path) -> SourceTree:
    """Writes `model/layers.py` below a directory and returns the tree that shows it relative."""
    file = directory / "model" / "layers.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE, encoding="utf-8")
    return SourceTree(root=directory.resolve(), base=directory.resolve())


def sample_finding(**changes: object) -> Finding:
    values: dict[str, object] = {
        "rule": "padding-waste",
        "id": "HLO301",
        "severity": Severity.WARNING,
        "module": "jit_train_step",
        "path": "dumps/train.txt",
        "computation": "main.42",
        "instruction": "fusion.12",
        "hlo_line": 123,
        "op_name": "jit(train_step)/concatenate",
        "source": SourceLocation(
            file="/home/ci/project/model/layers.py",
            line=9,
            end_line=9,
            column=9,
            end_column=47,
            function="block",
        ),
        "stack": (),
        "message": (
            "`f32[256,512,65]{2,1,0:T(8,128)}` takes 67.1 MB in HBM where its elements take "
            "34.1 MB: dimension 2 of size 65 is padded to 128."
        ),
        "fix": (
            "Keep the last dimension a multiple of 128: store the sum beside the features "
            "instead of concatenating it."
        ),
        "cost": Cost(
            effect="wastes", bytes=33_030_144, seconds=8.1e-5, share=0.0057, times_per_step=1
        ),
        "fingerprint": "0123456789abcdef",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


def sample_outcome() -> Outcome:
    """An outcome with every kind of thing that a report has to show."""
    copy = sample_finding(
        rule="layout-copy",
        id="HLO201",
        severity=Severity.ERROR,
        instruction="copy.7",
        hlo_line=140,
        source=SourceLocation(
            file="/home/ci/project/model/layers.py",
            line=13,
            end_line=13,
            column=37,
            end_column=99,
            function="loss",
            inferred=True,
        ),
        message=(
            "`bf16[64,2048,4096]` is copied from layout {2,1,0} to {1,2,0} because the parameter "
            "`params['embedding']` and the dot `convolution.3` want different layouts."
        ),
        fix="Store the embedding transposed, or write the einsum as `btd,vd->btv`.",
        cost=Cost(
            effect="moves", bytes=2_147_483_648, seconds=2.6e-3, share=0.184, times_per_step=4
        ),
        related=(
            Related(
                computation="main.42",
                instruction="convolution.3",
                hlo_line=151,
                message="reads the copy",
                source=SourceLocation(file="/home/ci/project/model/layers.py", line=13, column=39),
            ),
        ),
        fingerprint="1111111111111111",
    )
    collective = sample_finding(
        rule="sync-collective",
        id="HLO401",
        computation="while_body.3",
        instruction="all-gather.59",
        hlo_line=77,
        source=None,
        op_name=None,
        message="`all-gather.59` blocks the core: no work runs between its start and its end.",
        fix="Gather the weights of the next layer while this one computes.",
        cost=Cost(effect="sends", bytes=50_331_648, seconds=9e-4, share=0.064, times_per_step=None),
        fingerprint="2222222222222222",
    )
    note = sample_finding(
        severity=Severity.NOTE, instruction="fusion.13", fingerprint="3333333333333333"
    )
    silenced = sample_finding(
        instruction="fusion.14", fingerprint="4444444444444444", suppressed="source"
    )
    return Outcome(
        tool_version="0.1.0",
        modules=(
            ModuleSummary(
                path="dumps/train.txt",
                name="jit_train_step",
                backend="tpu",
                chip="v5e",
                chip_assumed=True,
                partitions=8,
                instructions=1234,
                truncated=True,
                step_seconds=0.0141,
                peak_hbm_bytes=9_876_543_210,
                unknown_trip_counts=1,
                opaque_calls=2,
            ),
        ),
        findings=(note, sample_finding(), silenced, collective, copy),
        problems=(
            Problem(
                message="rule `fusion-break` failed with KeyError: 'x' at fusion_break.py:88",
                path="dumps/train.txt",
                rule="fusion-break",
            ),
        ),
        unused_suppressions=(
            UnusedSuppression(
                kind="source", text="ignore[layout-copy]", file="model/layers.py", line=8
            ),
        ),
        rules=(
            RuleInfo(
                id="HLO201",
                name="layout-copy",
                summary="A copy changes a layout only",
                documentation="A copy changes a layout only.\n\nWhat it does\n\nFinds copies.",
            ),
        ),
        timings=(("parse", 0.5),),
    )


HOSTILE = (
    "\x1b[2J\x1b]0;title\x07",
    "\r\n::set-output name=x::y",
    "::error::pwned",
    "##[add-path]/tmp",
    "\u202egnp.exe",
    "\u200b\ufeff\u2028\u2029\x85",
    "</failure><script>&amp;\"'",
    "]]>",
    "a,b:c%0Ad=e",
    "\ud800",
    "\U000e0041",
    "\x00\x7f\x9b31m",
    "../../etc/passwd",
    "C:\\temp\\x.py",
    "//host/share",
)

texts = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE))
_counts = st.integers(0, 10**15)
_floats = st.floats() | st.floats(0, 1)

locations = st.builds(
    SourceLocation,
    file=texts,
    line=st.integers(0, 10**6),
    end_line=st.none() | st.integers(0, 10**6),
    column=st.none() | st.integers(0, 500),
    end_column=st.none() | st.integers(0, 500),
    function=st.none() | texts,
    inferred=st.booleans(),
)
costs = st.builds(
    Cost,
    effect=st.sampled_from(("moves", "holds", "sends", "wastes")),
    bytes=st.none() | _counts,
    seconds=st.none() | _floats,
    share=st.none() | _floats,
    times_per_step=st.none() | _counts,
)
related = st.builds(
    Related,
    computation=texts,
    instruction=texts,
    hlo_line=st.integers(1, 10**6),
    message=texts,
    source=st.none() | locations,
)
findings = st.builds(
    Finding,
    rule=texts,
    id=texts,
    severity=st.sampled_from(Severity),
    module=texts,
    path=texts,
    computation=texts,
    instruction=texts,
    hlo_line=st.integers(1, 10**6),
    op_name=st.none() | texts,
    source=st.none() | locations,
    stack=st.lists(locations, max_size=2).map(tuple),
    message=texts,
    fix=texts,
    cost=costs,
    related=st.lists(related, max_size=2).map(tuple),
    fingerprint=texts,
    suppressed=st.sampled_from((None, None, "source", "config", "baseline")),
)
_seconds = st.floats(0, 1e3) | st.just(1e-12)
_amounts = st.integers(0, 10**18)
operations = st.builds(
    Operation,
    name=texts,
    opcode=texts,
    computation=texts,
    hlo_line=st.integers(1, 10**6),
    shape=texts,
    op_name=st.none() | texts,
    source=st.none() | locations,
    activity=st.sampled_from(
        ("matrix", "vector", "movement", "collective", "host", "kernel", "control")
    ),
    bound=st.none() | st.sampled_from(("memory", "stream", "vector", "matrix", "links")),
    times=st.integers(1, 1000),
    seconds=st.floats(1e-12, 1e3),
    flops=st.none() | _amounts,
    hbm_bytes=_amounts,
)
_lanes = st.builds(
    LaneProfile,
    computation=texts,
    caller=st.none() | texts,
    times=st.integers(1, 1000),
    seconds=st.floats(1e-12, 1e3),
    slices=st.lists(
        st.builds(
            Slice,
            begin=_seconds,
            end=_seconds,
            operations=st.lists(operations, min_size=1, max_size=2).map(tuple),
            count=st.integers(1, 9),
            is_wait=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    spans=st.lists(
        st.builds(
            Span,
            operation=operations,
            kind=texts,
            begin=_seconds,
            end=_seconds,
            alone=_seconds,
            exposed=_seconds,
        ),
        max_size=2,
    ).map(tuple),
    more_spans=st.integers(0, 3),
)
_memory = st.builds(
    MemoryProfile,
    argument_bytes=_amounts,
    output_bytes=_amounts,
    curve=st.lists(st.tuples(_seconds, _amounts), min_size=1, max_size=4).map(tuple),
    peak_bytes=_amounts,
    peak_seconds=_seconds,
    live=st.lists(
        st.builds(
            LiveValue,
            name=texts,
            computation=texts,
            hlo_line=st.integers(1, 10**6),
            shape=texts,
            bytes=_amounts,
            kind=st.sampled_from(("argument", "output", "temporary")),
            op_name=st.none() | texts,
            source=st.none() | locations,
        ),
        max_size=2,
    ).map(tuple),
    more_live=st.integers(0, 3),
    more_bytes=_amounts,
    capacity=st.none() | st.integers(1, 10**12),
)
profiles = st.builds(
    StepProfile,
    seconds=_seconds,
    matrix_flops=_amounts,
    hbm_bytes=_amounts,
    exposed_collective_seconds=_seconds,
    roof=st.builds(
        Roof,
        flops=st.floats(1e9, 1e16),
        hbm_bandwidth=st.floats(1e9, 1e13),
        vector_flops=st.none() | st.floats(1e9, 1e14),
    ),
    activities=st.lists(
        st.tuples(st.sampled_from(("matrix", "vector", "exposed")), _seconds),
        max_size=3,
    ).map(tuple),
    operations=st.lists(operations, max_size=3).map(tuple),
    more_operations=st.integers(0, 3),
    more_seconds=_seconds,
    lanes=st.lists(_lanes, max_size=2).map(tuple),
    memory=st.none() | _memory,
)
modules = st.builds(
    ModuleSummary,
    path=texts,
    name=texts,
    backend=st.sampled_from(("tpu", "gpu", "cpu", "neuron", "unknown")),
    chip=st.none() | texts,
    chip_assumed=st.booleans(),
    partitions=st.integers(1, 4096),
    instructions=_counts,
    truncated=st.booleans(),
    step_seconds=st.none() | _floats,
    peak_hbm_bytes=st.none() | _counts,
    unknown_trip_counts=st.integers(0, 3),
    opaque_calls=st.integers(0, 3),
    profile=st.none() | profiles,
)
outcomes = st.builds(
    Outcome,
    tool_version=st.just("0.1.0"),
    modules=st.lists(modules, max_size=2).map(tuple),
    findings=st.lists(findings, max_size=4).map(tuple),
    problems=st.lists(
        st.builds(
            Problem,
            message=texts,
            path=st.none() | texts,
            line=st.none() | st.integers(1, 10**6),
            rule=st.none() | texts,
        ),
        max_size=2,
    ).map(tuple),
    unused_suppressions=st.lists(
        st.builds(
            UnusedSuppression,
            kind=st.sampled_from(("source", "config", "baseline")),
            text=texts,
            file=texts,
            line=st.none() | st.integers(1, 10**6),
        ),
        max_size=7,
    ).map(tuple),
    rules=st.lists(
        st.builds(RuleInfo, id=texts, name=texts, summary=texts, documentation=texts),
        max_size=2,
        unique_by=lambda rule: rule.id,
    ).map(tuple),
)
options = st.builds(
    ReportOptions,
    show_notes=st.booleans(),
    fail_on=st.none() | st.sampled_from(Severity),
    statistics=st.booleans(),
    width=st.integers(1, 120),
)
