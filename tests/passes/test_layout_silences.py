"""Where rules about layouts and types in memory must say nothing, and just beside that fire."""

import pytest
from test_silences import BIG, program, warned

TRANSPOSED = "f32[8192,8192]{0,1:T(8,128)}"


def transposed(reader: str, *, copy: str = TRANSPOSED, results: str = "") -> str:
    """An argument that is copied into another layout for a kernel, and perhaps read besides."""
    return program(
        f"  %copy = {copy} copy(%p0)\n"
        f'  %kernel = {BIG} custom-call(%copy), custom_call_target="tpu_custom_call"\n'
        f"{reader}"
        f"  ROOT %out = ({BIG}{results}) tuple(%kernel{', %other' if results else ''})",
    )


def test_an_argument_that_only_the_transpose_reads_is_reported_once() -> None:
    """Whose order the caller can change is `parameter-transpose`, and then no `layout-copy`."""
    assert warned(transposed(""), "HLO204")
    assert not warned(transposed(""), "HLO201")


def test_an_argument_that_is_also_read_as_it_comes_cannot_be_stored_transposed() -> None:
    """Another reader would need the copy that the first one is spared."""
    text = transposed(f"  %other = {BIG} add(%p0, %p1)\n", results=f", {BIG}")
    assert not warned(text, "HLO204")
    assert warned(text, "HLO201")


@pytest.mark.parametrize(
    "copy", ["f32[8192,8192]{1,0:T(2,128)}", "f32[8192,8192]{1,0:T(8,128)S(1)}"]
)
def test_another_tiling_or_memory_is_no_transpose(copy: str) -> None:
    """The order of the dimensions is what the caller can store."""
    assert not warned(transposed("", copy=copy), "HLO204")


@pytest.mark.parametrize(("rows", "expected"), [(16384, True), (8192, False)])
def test_a_transpose_counts_from_a_hundredth_of_the_step(rows: int, expected: bool) -> None:
    """A small argument is transposed for next to nothing."""
    small = f"f32[{rows},128]{{1,0:T(8,128)}}"
    text = (
        f"ENTRY %main (a: f32[1], b: f32[1]) -> f32[1] {{\n  %a = {small} parameter(0)\n"
        f"  %b = {BIG} parameter(1)\n  %copy = f32[{rows},128]{{0,1:T(8,128)}} copy(%a)\n"
        f'  %k = {BIG} custom-call(%copy, %b), custom_call_target="tpu_custom_call"\n'
        f"  ROOT %out = {BIG} negate(%k)\n}}\n"
    )
    assert warned(text, "HLO204") == expected
