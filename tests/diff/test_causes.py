"""What a comparison says of two programs that the real compiler made: causes, places, sums."""

import json
import math

import pytest
from comparing import PLANTED, compared, pairs, planted

from hlo_tools.comparison import Cause
from hlo_tools.diff.kinds import OPPOSITES

MANIFEST = json.loads((PLANTED.parent / "MANIFEST.json").read_text())
OPPOSITE = dict(OPPOSITES) | {b: a for a, b in OPPOSITES}

NAMED = {
    "all_reduce_then_slice_mlp_tpu7x": "collective-replaced",
    "all_reduce_then_slice_zero_v5p": "collective-added",
    "fusion_break_barrier_v6e": "fusion-lost",
    "fusion_break_concatenate_v4": "work-added",
    "fusion_break_kernel_v5p": "work-added",
    "high_precision_dot_high_v4": "precision-raised",
    "high_precision_dot_highest_v5e": "precision-raised",
    "host_transfer_callback_v6e": "host-transfer-added",
    "host_transfer_weights_v5e": "host-transfer-added",
    "layout_copy_kernel_v6e": "layout-copy-added",
    "layout_copy_prefill_v5e": "layout-copy-added",
    "loop_carried_copy_mlp_v6e": "copy-added",
    "loop_carried_copy_rotate_v5p": "copy-added",
    "loop_invariant_collective_micro_batches_v6e": "collective-more-often",
    "loop_invariant_collective_tied_v5e": "collective-more-often",
    "missing_donation_cache_v5e": "copy-added",
    "missing_donation_defeated_v6e": "copy-added",
    "mxu_underuse_blocks_v6e": "layout-copy-added",
    "mxu_underuse_convolution_v5e": "layout-copy-added",
    "padding_waste_head_dim_v5p": "layout-copy-added",
    "block_padding_statistics_v6e": "layout-copy-added",
    "sync_collective_barrier_v5e": "collective-blocking",
    "uncombined_collectives_clip_v5p": "collective-added",
    "uncombined_collectives_scales_v6e": "collective-added",
    "unfused_elementwise_cast_v5e": "work-added",
    "unfused_elementwise_pad_v6e": "work-added",
}
"""The kind of the costliest cause between a repaired program and its defective twin."""

AMONG = {
    "padding_waste_class_token_v5e": "padding-grown",
    "mxu_underuse_convolution_v5e": "padding-grown",
    "block_padding_statistics_v6e": "padding-grown",
    "sync_collective_ring_v5p": "collective-exposed",
}
"""A kind that is among the causes, where others cost as much."""


@pytest.mark.parametrize("name", NAMED)
def test_the_costliest_cause_is_the_planted_defect(name: str) -> None:
    """Its kind, and the line that was marked as guilty when the program was written."""
    worst = compared(planted(f"{name}_good"), planted(f"{name}_bad")).causes[0]
    assert worst.kind == NAMED[name]
    assert worst.seconds > 0 and worst.source_is_new
    assert worst.source is not None
    assert worst.source.line == MANIFEST[f"{name}_bad"]["expect"]["line"]


@pytest.mark.parametrize("name", AMONG)
def test_the_planted_defect_is_among_the_causes(name: str) -> None:
    causes = compared(planted(f"{name}_good"), planted(f"{name}_bad")).causes
    guilty = MANIFEST[f"{name}_bad"]["expect"]["line"]
    assert (AMONG[name], guilty) in {(c.kind, c.source.line) for c in causes if c.source}


@pytest.mark.parametrize("name", pairs())
def test_causes_add_up_to_what_the_step_lost(name: str) -> None:
    """Nothing is counted twice or left out."""
    found = compared(planted(f"{name}_good"), planted(f"{name}_bad"))
    before, after = found.old.figures, found.new.figures
    assert before.step_seconds is not None and after.step_seconds is not None
    lost = sum(cause.seconds for cause in found.causes)
    assert math.isclose(lost, after.step_seconds - before.step_seconds, abs_tol=1e-12)
    assert sum(cause.hbm_bytes for cause in found.causes) == after.hbm_bytes - before.hbm_bytes


@pytest.mark.parametrize("name", pairs())
def test_the_other_way_round_everything_is_its_opposite(name: str) -> None:
    good, bad = planted(f"{name}_good"), planted(f"{name}_bad")
    there, back = compared(good, bad), compared(bad, good)
    assert (there.old.figures, there.new.figures) == (back.new.figures, back.old.figures)
    assert sorted(_sum(c) for c in there.causes) == sorted(_sum(c, -1) for c in back.causes)
    live = sorted((c.shape, c.kind, c.old_bytes, c.new_bytes) for c in there.live)
    assert live == sorted((c.shape, c.kind, c.new_bytes, c.old_bytes) for c in back.live)


def _sum(cause: Cause, sign: int = 1) -> tuple[str, float, int]:
    kind = cause.kind if sign > 0 else OPPOSITE[cause.kind]
    return kind, round(sign * cause.seconds, 15) + 0.0, sign * cause.hbm_bytes


def test_a_donation_that_is_lost_shows_in_the_memory_alone() -> None:
    found = compared(
        planted("missing_donation_momentum_tpu7x_good"),
        planted("missing_donation_momentum_tpu7x_bad"),
    )
    assert found.causes == () and found.regression == 0.0
    (output,) = found.live
    assert (found.old.donated, found.new.donated) == (2, 1)
    assert (output.kind, output.old_count, output.new_count) == ("output", 0, 1)
    grown = found.new.figures.peak_hbm_bytes - found.old.figures.peak_hbm_bytes
    assert output.new_bytes - output.old_bytes == grown > 0


@pytest.mark.parametrize("name", pairs())
def test_buffers_of_the_fullest_moments_explain_how_it_moved(name: str) -> None:
    found = compared(planted(f"{name}_good"), planted(f"{name}_bad"))
    grown = found.new.figures.peak_hbm_bytes - found.old.figures.peak_hbm_bytes
    listed = sum(change.new_bytes - change.old_bytes for change in found.live)
    # The model begins temporaries at multiples of 16 KiB; the list has their own sizes.
    assert abs(grown - listed) <= 16384 * sum(c.old_count + c.new_count for c in found.live)


def test_a_chip_that_one_dump_tells_is_that_of_both() -> None:
    """Otherwise the difference of the chips would pass for one of the programs."""
    found = compared(
        planted("sync_collective_ring_v5p_bad"), planted("sync_collective_ring_v5p_good")
    )
    assert (found.old.chip, found.new.chip) == ("v5p", "v5p")
    assert not found.old.chip_assumed and not found.new.chip_assumed
