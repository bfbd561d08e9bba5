"""Where rules about layouts and types in memory must say nothing, and just beside that fire."""

from itertools import pairwise

import pytest
from test_silences import BIG, BIG_VMEM, elementwise, program, warned

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


NARROW = BIG.replace("f32", "bf16")
MADE = f"  %made = {BIG} fusion(%p0, %p1), kind=kLoop, calls=%f1\n"


def stored(body: str) -> str:
    """A value `%made` in f32 that a fusion stores, before `body`."""
    return program(MADE + body, helpers=elementwise("f1", BIG))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"  ROOT %c = {NARROW} convert(%made)", True),
        (f"  %b = {BIG} copy(%made)\n  ROOT %c = {NARROW} convert(%b)", True),
        (f"  ROOT %n = {BIG} negate(%made)", False),
        (f"  %c = {NARROW} convert(%made)\n  ROOT %r = ({NARROW}, {BIG}) tuple(%c, %made)", False),
        (f"  ROOT %c = {BIG.replace('f32', 's16')} convert(%made)", False),
        (f"  ROOT %c = {BIG.replace('f32', 'f64')} convert(%made)", False),
        (f"  ROOT %r = ({BIG}) tuple(%made)", False),
    ],
)
def test_a_value_is_stored_too_wide_if_all_readers_round_it_first(
    body: str, expected: bool
) -> None:
    """One reader that computes with all the digits, or a result, needs them."""
    assert warned(stored(body), "HLO205") == expected


def test_what_stays_on_the_chip_may_be_wide() -> None:
    """Nothing goes through device memory."""
    text = stored(f"  ROOT %c = {NARROW} convert(%made)").replace(BIG, BIG_VMEM)
    assert not warned(text.replace(NARROW, BIG_VMEM.replace("f32", "bf16")), "HLO205")


def fused_twice(
    body: str, *, size: str = "f32[65536,1024]{1,0:T(8,128)}", alike: bool = True
) -> str:
    """Two fusions that each compute `body` from `%a`, then something of their own."""
    first = f"%f1 (a: f32[1]) -> f32[1] {{\n  %a = {size} parameter(0)\n{body}"
    second = first.replace("%f1", "%f2")
    argument = "%p0" if alike else "%p1"
    return program(
        f"  %x = {size} fusion(%p0), kind=kLoop, calls=%f1\n"
        f"  %y = {size} fusion({argument}), kind=kLoop, calls=%f2\n"
        f"  ROOT %r = ({size}, {size}) tuple(%x, %y)",
        helpers=f"{first}  ROOT %n = {size} negate(%v)\n}}\n\n"
        f"{second}  ROOT %n = {size} abs(%v)\n}}\n\n",
        shape=size,
    )


def costly(steps: int, size: str = "f32[65536,1024]{1,0:T(8,128)}") -> str:
    """A chain of powers that ends in `%v`."""
    names = ["%a", *(f"%s{n}" for n in range(steps - 1)), "%v"]
    return "".join(f"  {new} = {size} power({old}, {old})\n" for old, new in pairwise(names))


def test_what_two_fusions_compute_alike_is_recomputed_if_it_costs_more_than_memory() -> None:
    """Two powers are cheaper than a round trip to memory; thirty are not."""
    assert warned(fused_twice(costly(30)), "HLO103")
    assert not warned(fused_twice(costly(1)), "HLO103")


def test_values_of_different_operands_are_different() -> None:
    """The same arithmetic on another argument is no recomputation."""
    assert not warned(fused_twice(costly(30), alike=False), "HLO103")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("f.remat", True), ("f.remat3.clone", True), ("f.remated", False), ("f.1", False)],
)
def test_clones_that_save_memory_are_told_by_their_names(name: str, expected: bool) -> None:
    """XLA appends `.remat` and a number."""
    text = stored(f"  ROOT %n = {BIG} negate(%made)").replace("%made", f"%{name}")
    assert warned(text, "HLO103") == expected


def kernel_on(width: int, *, target: str = "tpu_custom_call") -> str:
    """A kernel over an array with rows of so many values."""
    shape = f"f32[262144,{width}]{{1,0:T(8,128)}}"
    return program(
        f'  ROOT %k = {shape} custom-call(%p0), custom_call_target="{target}"', shape=shape
    )


@pytest.mark.parametrize(("width", "rule"), [(1, "HLO303"), (8, "HLO303"), (9, "HLO301")])
def test_short_rows_at_a_kernel_are_reported_once(width: int, rule: str) -> None:
    """Up to eight values a row they are `block-padding`, longer ones `padding-waste`."""
    other = "HLO301" if rule == "HLO303" else "HLO303"
    assert warned(kernel_on(width), rule)
    assert not warned(kernel_on(width), other)


def test_short_rows_elsewhere_are_no_matter_of_a_kernel() -> None:
    """Other custom calls are not written by whoever reads the report."""
    assert not warned(kernel_on(1, target="TopK"), "HLO303")
    assert warned(kernel_on(1, target="TopK"), "HLO301")
