"""Each collective once, with who takes part and what it sends."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.analysis.asynchrony import COLLECTIVES, Asynchrony
from hlo_tools.analysis.collectives import Collective, Collectives
from hlo_tools.analysis.execution import Execution
from hlo_tools.hlo.parser import parse_module

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
"""


def collectives(text: str) -> tuple[Collective, ...]:
    module = parse_module(text)
    execution = Execution(module)
    return Collectives(module, execution, Asynchrony(module, execution)).all


def one(
    operation: str, computations: str = ADD, header: str = "num_partitions=8, replica_count=1"
) -> Collective:
    """The collective of a module whose root is `operation` on `%p`, of 64 bytes."""
    (found,) = collectives(
        f"HloModule m, is_scheduled=true, {header}\n\n{computations}\n"
        "ENTRY %main (p: f32[16]) -> f32[16] {\n"
        "  %p = f32[16]{0} parameter(0)\n"
        f"{operation}\n}}\n"
    )
    return found


GROUPS = "channel_id=5, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true"


@pytest.mark.parametrize(
    ("operation", "result", "wire"),
    [
        (f"f32[64]{{0}} all-gather(%p), {GROUPS}, dimensions={{0}}", 256, 192),
        (f"f32[16]{{0}} all-reduce(%p), {GROUPS}, to_apply=%add", 64, 96),
        (f"f32[4]{{0}} reduce-scatter(%p), {GROUPS}, dimensions={{0}}, to_apply=%add", 16, 48),
        (f"f32[16]{{0}} all-to-all(%p), {GROUPS}, dimensions={{0}}", 64, 48),
        (f"f32[16]{{0}} collective-broadcast(%p), {GROUPS}", 64, 64),
    ],
)
def test_wire_bytes_by_kind(operation: str, result: int, wire: int) -> None:
    """By hand, for 4 devices that hold 64 bytes each."""
    found = one(f"  ROOT %r = {operation}")
    assert found.kind == found.operation.opcode
    assert (found.operand_bytes, found.result_bytes, found.wire_bytes) == (64, result, wire)
    assert (found.group_size, found.channel_id, found.blocking) == (4, 5, True)
    assert found.stride == 1 and found.axes == ()


@given(size=st.integers(1, 64), elements=st.integers(1, 1000))
def test_an_all_reduce_sends_what_its_two_halves_send(size: int, elements: int) -> None:
    """Property: reduce-scatter plus all-gather of the same value make an all-reduce."""
    whole, part = f"f32[{elements * size}]", f"f32[{elements}]"
    groups = f"channel_id=1, replica_groups=[1,{size}]<=[{size}], use_global_device_ids=true"
    found = collectives(
        f"HloModule m, is_scheduled=true, num_partitions={size}\n{ADD}\n"
        f"ENTRY %main (p: {whole}) -> {whole} {{\n"
        f"  %p = {whole} parameter(0)\n"
        f"  %ar = {whole} all-reduce(%p), {groups}, to_apply=%add\n"
        f"  %rs = {part} reduce-scatter(%ar), {groups}, dimensions={{0}}, to_apply=%add\n"
        f"  ROOT %ag = {whole} all-gather(%rs), {groups}, dimensions={{0}}\n}}\n"
    )
    sent = {c.kind: c.wire_bytes for c in found}
    assert sent["all-gather"] == sent["reduce-scatter"] == 4 * elements * (size - 1)
    assert sent["all-reduce"] == 8 * elements * (size - 1)


def test_a_permute_to_oneself_sends_nothing() -> None:
    def permute(pairs: str) -> Collective:
        return one(f"  ROOT %r = f32[16]{{0}} collective-permute(%p), source_target_pairs={pairs}")

    ring = permute("{{0,1},{1,2},{2,0}}")
    assert (ring.pairs, ring.group_size, ring.wire_bytes) == (((0, 1), (1, 2), (2, 0)), 3, 64)
    assert permute("{{0,0},{1,1}}").wire_bytes == 0
    assert permute("{{0,0},{1,2}}").wire_bytes == 64


@pytest.mark.parametrize(
    ("groups", "header", "size"),
    [
        ("replica_groups={}", "num_partitions=8", 8),
        ("replica_groups={}", "num_partitions=4, replica_count=2", 8),
        ("replica_groups={}", "replica_count=1", None),
        ("replica_groups={{0,1},{2,3}}", "replica_count=4", 2),
        ("replica_groups=[2,4]<=[8]", "num_partitions=8", 4),
        # Groups of replicas of which all partitions take part.
        ("channel_id=1, replica_groups={{0,1}}", "num_partitions=4, replica_count=2", 8),
        ("replica_groups=nonsense", "num_partitions=8", None),
    ],
)
def test_who_takes_part(groups: str, header: str, size: int | None) -> None:
    found = one(f"  ROOT %r = f32[16]{{0}} all-reduce(%p), {groups}, to_apply=%add", header=header)
    assert found.group_size == size
    assert (found.wire_bytes is None) == (size is None)


def test_axes_are_named_where_the_text_names_them() -> None:
    found = one(
        "  ROOT %r = f32[64]{0} all-gather(%p), channel_id=1, dimensions={0},"
        " replica_groups=mesh['x'=2,'y'=4] {'x'}, use_global_device_ids=true"
    )
    assert (found.axes, found.group_size, found.stride) == (("x",), 2, 4)


def test_sizes_count_tile_padding_on_the_wire() -> None:
    found = collectives(
        "HloModule m, is_scheduled=true, num_partitions=4\n\n"
        "ENTRY %main (p: f32[3,100]) -> f32[12,100] {\n"
        "  %p = f32[3,100]{1,0:T(8,128)} parameter(0)\n"
        f"  ROOT %r = f32[12,100]{{1,0:T(8,128)}} all-gather(%p), {GROUPS}, dimensions={{0}}\n}}\n"
    )[0]
    assert (found.operand_bytes, found.result_bytes) == (1200, 4800)
    assert (found.operand_padded_bytes, found.result_padded_bytes) == (4096, 8192)
    assert found.wire_bytes == 6144


STARTS = [
    (f"((f32[16]{{0}}), f32[64]{{0}}) all-gather-start(%p), {GROUPS}, dimensions={{0}}", 256),
    (f"(f32[16]{{0}}, f32[64]{{0}}) all-gather-start(%p), {GROUPS}, dimensions={{0}}", 256),
    (f"f32[16]{{0}} all-reduce-start(%p), {GROUPS}, to_apply=%add", 64),
    (
        "(f32[16]{0}, f32[16]{0}, u32[], u32[]) collective-permute-start(%p),"
        " source_target_pairs={{0,1}}",
        64,
    ),
    ("((f32[16]{0}), f32[16]{0}) async-start(%p), calls=%wrapped", 64),
]
WRAPPED = ADD + (
    "%wrapped (w: f32[16]) -> f32[16] {\n"
    "  %w = f32[16]{0} parameter(0)\n"
    f"  ROOT %inner = f32[16]{{0}} all-to-all(%w), {GROUPS}, dimensions={{0}}\n}}\n"
)


@pytest.mark.parametrize(("start", "result"), STARTS)
def test_an_asynchronous_collective_counts_once(start: str, result: int) -> None:
    """The sizes are those of what it moves, not of its start's bookkeeping."""
    opcode = start.split("(%p)")[0].split()[-1].removesuffix("-start")
    done = f"f32[{result // 4}]{{0}} {opcode}-done(%s)"
    found = one(f"  %s = {start}\n  ROOT %d = {done}", WRAPPED if "wrapped" in start else ADD)
    assert found.instruction.name == "s"
    assert not found.blocking and found.span is not None
    assert (found.operand_bytes, found.result_bytes) == (64, result)


def test_a_synchronous_start_blocks() -> None:
    found = one(
        f"  %s = f32[16]{{0}} all-reduce-start(%p), {GROUPS}, to_apply=%add,"
        ' backend_config={"collective_backend_config":{"is_sync":true}}\n'
        "  ROOT %d = f32[16]{0} all-reduce-done(%s)"
    )
    assert found.blocking and found.span is None


SCATTER = ADD + (
    "%all-reduce-scatter (i: f32[16]) -> f32[2] {\n"
    "  %i = f32[16]{0} parameter(0)\n"
    f"  %whole = f32[16]{{0}} all-reduce(%i), {GROUPS}, to_apply=%add\n"
    "  %id = u32[] partition-id()\n"
    "  ROOT %own = f32[4]{0} dynamic-slice(%whole, %id), dynamic_slice_sizes={4}\n}\n"
)


def test_a_fused_all_reduce_of_which_a_slice_is_kept_is_a_reduce_scatter() -> None:
    """The all-reduce inside is not another collective, nor is a fusion of the same shape."""
    found = one(
        "  %f = f32[4]{0} fusion(%p), kind=kCustom, calls=%all-reduce-scatter\n"
        "  %g = f32[4]{0} fusion(%p), kind=kLoop, calls=%slices\n"
        "  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%f, %g)",
        SCATTER
        + "%slices (i: f32[16]) -> f32[4] {\n  %i = f32[16]{0} parameter(0)\n"
        + "  ROOT %s = f32[4]{0} slice(%i), slice={[0:4]}\n}\n",
    )
    assert (found.kind, found.instruction.name, found.operation.name) == (
        "reduce-scatter",
        "f",
        "whole",
    )
    assert (found.operand_bytes, found.result_bytes, found.wire_bytes) == (64, 16, 48)
    assert found.blocking


def test_operands_that_are_not_in_the_text_are_known_by_the_result() -> None:
    found = one(f"  ROOT %r = f32[64]{{0}} all-gather(%gone), {GROUPS}, dimensions={{0}}")
    assert (found.operand_bytes, found.result_bytes) == (64, 256)


def test_numbers_of_any_length_are_read_or_left_out() -> None:
    digits = "9" * 5000
    found = one(
        f"  ROOT %r = f32[16]{{0}} collective-permute(%p), channel_id={digits},"
        f" source_target_pairs={{{{0,{digits}}}}}"
    )
    assert found.channel_id is None and found.pairs == ()
    for groups in (
        f"{{{{0,{digits}}}}}",
        f"[1,{digits}]<=[{digits}]",
        f"mesh['x'={digits}] {{'x'}}",
    ):
        found = one(f"  ROOT %r = f32[16]{{0}} all-to-all(%p), replica_groups={groups}")
        assert found.groups is None and found.group_size is None


REAL = {
    "tpu_aot_v5e8_fsdp_scan_train_donate.txt": {
        ("all-reduce", True): 1,
        ("all-gather", True): 2,
        ("all-gather", False): 3,
        ("all-to-all", True): 6,
        ("reduce-scatter", True): 1,
    },
    "tpu_aot_v6e_fsdp_scan_train_donate.txt": {
        ("all-reduce", True): 1,
        ("all-gather", True): 5,
        ("all-to-all", True): 6,
        ("reduce-scatter", True): 1,
    },
    "tpu_aot_v5p_fsdp_scan_train_donate.txt": {
        ("all-reduce", True): 2,
        ("all-gather", True): 5,
        ("all-to-all", True): 6,
    },
    "tpu_aot_v4_fsdp_scan_train_donate.txt": {
        ("all-reduce", True): 2,
        ("all-gather", True): 4,
        ("all-to-all", True): 6,
        ("collective-permute", False): 5,
    },
    "tpu_aot_v5e8_reshard_all_to_all.txt": {
        ("all-to-all", True): 1,
        ("collective-permute", False): 1,
        ("all-gather", True): 1,
    },
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_collectives_of_real_dumps(corpus: Path, name: str) -> None:
    """Counted by reading the dumps; a chain that the text prints three times is one."""
    found = collectives((corpus / "hlo_tpu_aot" / name).read_text())
    counts: dict[tuple[str, bool], int] = {}
    for collective in found:
        key = (collective.kind, collective.blocking)
        counts[key] = counts.get(key, 0) + 1
    assert counts == REAL[name]
    assert all(c.wire_bytes for c in found)


def test_every_channel_of_a_complete_dump_is_a_collective(corpus: Path) -> None:
    """Each collective has a channel of its own there, whatever form it is printed in."""
    for path in sorted((corpus / "hlo_tpu_aot").glob("*.txt")):
        module = parse_module(path.read_text())
        printed = {
            i.attribute("channel_id")
            for i in module.instructions()
            if i.opcode.removesuffix("-start") in COLLECTIVES
        }
        found = collectives(module.text)
        assert len(found) == len(printed)
        assert {str(c.channel_id) for c in found} == printed
