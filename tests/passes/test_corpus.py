"""Rules on real dumps that were collected, not made for them."""

from pathlib import Path

import pytest
from linting import lint, read_dump, settings

from hlo_tools.errors import InputError
from hlo_tools.findings import Finding, Severity
from hlo_tools.io import read_inputs
from passes.runner import lint_text


def warnings_of(path: Path, chip: str) -> list[Finding]:
    """What a user sees by default."""
    found = lint(read_dump(path), chip=chip).findings
    return [f for f in found if f.severity >= Severity.WARNING]


def test_no_rule_fails_on_any_dump(corpus: Path) -> None:
    """Every rule runs on every module of every file: TPU, GPU, CPU, old, new and cut off."""
    modules = 0
    for item in read_inputs([str(corpus)]):
        assert not isinstance(item, InputError), item
        result = lint_text(item.text, path=item.path, settings=settings())
        assert result.problems == (), item.path
        modules += 1
    assert modules > 140


@pytest.mark.parametrize(
    ("dump", "chip", "rules"),
    [
        ("v5e1_bf16_pingpong", "v5e", set()),
        ("v5e1_embed_scatter_grad", "v5e", set()),
        ("v5e1_f32_highest", "v5e", {"HLO601"}),
        ("v5e1_decode_kv_nodonate", "v5e", {"HLO203", "HLO301"}),
        ("v5e1_decode_kv_donate", "v5e", {"HLO203", "HLO301"}),
        ("v5e8_fsdp_scan_train_nodonate", "v5e", {"HLO203", "HLO401", "HLO407"}),
        ("v5e8_fsdp_scan_train_donate", "v5e", {"HLO401", "HLO407"}),
        ("v5e8_reshard_all_to_all", "v5e", {"HLO402", "HLO407"}),
    ],
)
def test_rules_find_what_a_reader_of_the_dump_finds(
    corpus: Path, dump: str, chip: str, rules: set[str]
) -> None:
    """Each of these dumps was read by hand: these rules have a point there, and no others."""
    found = warnings_of(corpus / "hlo_tpu_aot" / f"tpu_aot_{dump}.txt", chip)
    assert {finding.id for finding in found} == rules


def test_a_donated_cache_that_is_copied_is_told_from_one_that_is_not_donated(
    corpus: Path,
) -> None:
    """Both cost memory traffic; what the person must change is different."""
    directory = corpus / "hlo_tpu_aot"
    donated = warnings_of(directory / "tpu_aot_v5e1_decode_kv_donate.txt", "v5e")
    kept = warnings_of(directory / "tpu_aot_v5e1_decode_kv_nodonate.txt", "v5e")
    assert [f.cost.effect for f in donated if f.id == "HLO203"] == ["moves", "moves"]
    assert [f.cost.effect for f in kept if f.id == "HLO203"] == ["holds"]
