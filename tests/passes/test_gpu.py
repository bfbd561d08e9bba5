"""What is said of GPU text: library calls, transposes, collectives, command buffers."""

import pytest
from linting import lint

from hlo_tools.findings import Severity

HEADER = "HloModule jit_f, is_scheduled=true, num_partitions=8\n\n"
SUM = (
    "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
    "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n"
)
GEMM = (
    'custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":'
    '{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],'
    '"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}'
)
BIG = "f32[8192,8192]{1,0}"


def warned(text: str, rule: str) -> bool:
    """Whether a rule gives a warning or an error."""
    found = lint(HEADER + text, chip="h100", select=(rule,)).findings
    return any(finding.severity >= Severity.WARNING for finding in found)


def gemms(count: int, *, side: int = 64, chained: bool = False, graph: bool = False) -> str:
    """Library products of square matrices, side by side or one after another."""
    array = f"f32[{side},{side}]{{1,0}}"
    lines = [f"  %p = {array} parameter(0)"]
    for number in range(count):
        operand = f"%g{number - 1}" if chained and number else "%p"
        lines.append(f"  %g{number} = {array} custom-call({operand}, %p), {GEMM}")
    types = ", ".join([array] * count)
    names = ", ".join(f"%g{n}" for n in range(count))
    lines.append(f"  ROOT %out = ({types}) tuple({names})")
    body = "\n".join(lines)
    if not graph:
        return f"ENTRY %main (p: f32[1]) -> f32[1] {{\n{body}\n}}\n"
    return (
        f"%command_buffer (p: f32[1]) -> f32[1] {{\n{body}\n}}\n\n"
        f"ENTRY %main (q: f32[1]) -> f32[1] {{\n  %q = {array} parameter(0)\n"
        f"  ROOT %call = ({types}) call(%q), to_apply=%command_buffer\n}}\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (gemms(5), True),
        (gemms(4), False),
        (gemms(5, chained=True), False),
        (gemms(5, graph=True), False),
        (gemms(5, side=2048), False),
    ],
    ids=["five", "four", "one after another", "in a command buffer", "large"],
)
def test_small_library_products_are_worth_batching(text: str, expected: bool) -> None:
    """Four calls must be spared, and each must start for longer than it computes."""
    assert warned(text, "HLO302") == expected


TRANSPOSE = (
    "%wrapped (t: f32[1]) -> f32[1] {\n"
    f"  %t = {BIG} parameter(0)\n  ROOT %x = {BIG} transpose(%t), dimensions={{1,0}}\n}}\n\n"
)


def test_a_transpose_that_stands_alone_is_found_inside_a_command_buffer() -> None:
    """What a command buffer starts together runs all the same."""
    text = (
        TRANSPOSE + f"%command_buffer (p: f32[1]) -> f32[1] {{\n  %p = {BIG} parameter(0)\n"
        f"  %e = {BIG} exponential(%p)\n"
        f"  %w = {BIG} fusion(%e), kind=kInput, calls=%wrapped\n"
        f"  ROOT %r = {BIG} custom-call(%w, %p), {GEMM}\n}}\n\n"
        f"ENTRY %main (q: f32[1]) -> f32[1] {{\n  %q = {BIG} parameter(0)\n"
        f"  ROOT %call = {BIG} call(%q), to_apply=%command_buffer\n}}\n"
    )
    assert warned(text, "HLO201")


def test_a_copy_to_another_layout_before_a_library_call_is_found() -> None:
    """cuBLAS takes what the producer did not make."""
    text = (
        f"ENTRY %main (p: f32[1]) -> f32[1] {{\n  %p = {BIG} parameter(0)\n"
        f"  %e = {BIG} exponential(%p)\n  %c = f32[8192,8192]{{0,1}} copy(%e)\n"
        f"  ROOT %r = {BIG} custom-call(%c, %p), {GEMM}\n}}\n"
    )
    assert warned(text, "HLO201")


def all_reduce(form: str) -> str:
    """An all-reduce of a form beside a large product that does not need it."""
    groups = "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=%sum"
    config = ', backend_config={"collective_backend_config":{"is_sync":true}}'
    product = f"  %r = {BIG} custom-call(%q, %q), {GEMM}\n"
    reduced = {
        "plain": f"  %s = {BIG} all-reduce(%p), channel_id=1, {groups}\n{product}",
        "sync": f"  %b = {BIG} all-reduce-start(%p), channel_id=1, {groups}{config}\n"
        f"  %s = {BIG} all-reduce-done(%b)\n{product}",
        "adjacent": f"  %b = {BIG} all-reduce-start(%p), channel_id=1, {groups}\n"
        f"  %s = {BIG} all-reduce-done(%b)\n{product}",
        "overlapped": f"  %b = {BIG} all-reduce-start(%p), channel_id=1, {groups}\n{product}"
        f"  %s = {BIG} all-reduce-done(%b)\n",
    }[form]
    return (
        f"{SUM}ENTRY %main (p: f32[1], q: f32[1]) -> f32[1] {{\n  %p = {BIG} parameter(0)\n"
        f"  %q = {BIG} parameter(1)\n{reduced}  ROOT %out = ({BIG}, {BIG}) tuple(%s, %r)\n}}\n"
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [("plain", True), ("sync", True), ("adjacent", True), ("overlapped", False)],
)
def test_collectives_that_nothing_hides_are_synchronous(form: str, expected: bool) -> None:
    """A start with `is_sync`, or with its done right behind it, blocks like a plain one."""
    assert warned(all_reduce(form), "HLO401") == expected


def test_a_round_trip_through_a_wider_type_is_found() -> None:
    """bf16 to f32 and back, with the wide value in memory."""
    wide = "f32[8192,8192]{1,0}"
    narrow = "bf16[8192,8192]{1,0}"
    text = (
        "%up (u: f32[1]) -> f32[1] {\n"
        f"  %u = {narrow} parameter(0)\n  ROOT %v = {wide} convert(%u)\n}}\n\n"
        "%down (d: f32[1]) -> f32[1] {\n"
        f"  %d = {wide} parameter(0)\n  ROOT %w = {narrow} convert(%d)\n}}\n\n"
        f"ENTRY %main (p: f32[1]) -> f32[1] {{\n  %p = {narrow} parameter(0)\n"
        f"  %m = {narrow} tanh(%p)\n  %a = {wide} fusion(%m), kind=kLoop, calls=%up\n"
        f"  ROOT %b = {narrow} fusion(%a), kind=kLoop, calls=%down\n}}\n"
    )
    assert warned(text, "HLO205")
