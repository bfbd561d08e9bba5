"""The runner: one rule that fails is reported, and nothing else is lost."""

from collections.abc import Iterator

import pytest
from linting import ROOT, lint, read_dump

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.errors import InputError
from hlo_tools.findings import Finding
from passes import runner
from passes.catalog import BY_ID
from passes.rule import RuleContext, rule

DUMP = ROOT / "fixtures" / "planted" / "hlo" / "layout_copy_kernel_v6e_bad.hlo.txt"


@rule(id="HLO301", name="padding-waste")
def failing(ctx: RuleContext) -> Iterator[Finding]:
    """Stands for a rule with a bug."""
    if ctx.facts.module.name:
        raise KeyError("no such thing")
    yield from ()


def test_a_rule_that_fails_is_reported_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bug in one rule costs the user that rule only."""
    whole = lint(read_dump(DUMP), chip="v6e")
    monkeypatch.setattr(runner, "BY_ID", {**BY_ID, "HLO301": failing})
    broken = lint(read_dump(DUMP), chip="v6e")
    assert [(p.rule, p.path) for p in broken.problems] == [("padding-waste", "dump.txt")]
    assert "KeyError" in broken.problems[0].message
    kept = [f for f in whole.findings if f.id != "HLO301"]
    assert [f.fingerprint for f in broken.findings] == [f.fingerprint for f in kept]
    assert kept


def test_only_selected_rules_run() -> None:
    """`--select` leaves the other rules out."""
    assert {f.id for f in lint(read_dump(DUMP), select=("HLO201",)).findings} == {"HLO201"}


def test_an_unknown_chip_is_an_input_error() -> None:
    """A misspelt chip must not be modelled as another."""
    with pytest.raises(InputError, match="v5x"):
        lint(read_dump(DUMP), chip="v5x")


def test_without_metadata_findings_have_no_place_but_still_come() -> None:
    """Frame tables and metadata may be missing altogether."""
    text = read_dump(DUMP)
    bare = "\n".join(
        line.partition(", metadata={")[0] if ", metadata={" in line else line
        for line in text.split("\n")
    )
    findings = lint(bare, chip="v6e", select=("HLO201",)).findings
    assert findings
    assert all(f.source is None for f in findings)


def test_kernels_that_hide_their_arithmetic_are_counted() -> None:
    """A step with a kernel of unknown arithmetic takes longer than modelled: the reader is told."""
    assert lint(read_dump(DUMP), chip="v6e").summary.opaque_calls == 1
    plain = DUMP.with_name("fusion_break_barrier_v6e_bad.hlo.txt")
    assert lint(read_dump(plain), chip="v6e").summary.opaque_calls == 0


def test_running_out_of_memory_is_never_silent() -> None:
    """With the rule off it is a problem: the program was not compiled, whatever else was found."""
    dump = read_dump(DUMP.with_name("out_of_memory_wide_v5e_bad.hlo.txt"))
    refusal = MemoryRefusal(needed_bytes=34 * 10**9, available_bytes=17 * 10**9)
    on = lint(dump, chip="v5e", refusal=refusal)
    assert "HLO701" in {f.id for f in on.findings}
    assert on.problems == ()
    off = lint(dump, chip="v5e", refusal=refusal, select=("HLO301",))
    assert [p.message.partition(" (")[0] for p in off.problems] == [
        "this does not fit into device memory: it needs 34 GB where 17 GB are available"
    ]
