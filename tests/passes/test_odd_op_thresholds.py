"""Both sides of the thresholds of the rules about odd ops, on modules written by hand."""

import pytest
from linting import program, warned

LESS = (
    "%less (a: f32[], b: f32[]) -> pred[] {\n  %a = f32[] parameter(0)\n"
    "  %b = f32[] parameter(1)\n  ROOT %c = pred[] compare(%a, %b), direction=LT\n}\n\n"
)
ROWS = "f32[1024,8192]{1,0:T(8,128)}"


def sorting(rest: str, op_name: str = "jit(f)/sort") -> str:
    """Rows of 8192 that are sorted; `rest` ends with the ROOT and reads %sort."""
    return program(
        f"  %sort = {ROWS} sort(%p0), dimensions={{1}}, to_apply=%less, "
        f'metadata={{op_name="{op_name}"}}\n{rest}',
        helpers=LESS,
        parameters=1,
        shape=ROWS,
    )


def part(start: int, limit: int, of: str = "%sort", rows: int = 1024) -> str:
    """A slice along the rows."""
    width = limit - start
    return (
        f"f32[{rows},{width}]{{1,0:T(8,128)}} slice({of}), slice={{[0:{rows}], [{start}:{limit}]}}"
    )


@pytest.mark.parametrize(
    ("start", "limit", "expected"),
    [
        (0, 1024, True),
        (0, 1025, False),
        (8192 - 1024, 8192, True),
        (8192 - 1025, 8192, False),
        (4096, 4097, False),
    ],
)
def test_a_sort_is_full_if_an_eighth_at_one_end_is_used(
    start: int, limit: int, expected: bool
) -> None:
    """More than that a selection hardly does faster; the median is not at the end."""
    assert warned(sorting(f"  ROOT %s = {part(start, limit)}"), "HLO503") == expected


def test_a_sort_whose_rows_are_used_otherwise_too_is_no_selection() -> None:
    """Every reader must take the same end; a reader that is no slice may take all."""
    whole = f"  %s = {part(0, 8)}\n  ROOT %n = {ROWS} tanh(%sort)"
    assert not warned(sorting(whole), "HLO503")


def test_a_slice_of_other_rows_is_no_selection() -> None:
    """What is sorted lies along dimension 1; a slice of dimension 0 keeps whole rows."""
    rows = "f32[8,8192]{1,0:T(8,128)} slice(%sort), slice={[0:8], [0:8192]}"
    assert not warned(sorting(f"  ROOT %s = {rows}"), "HLO503")


def test_a_slice_of_a_reshaped_sort_is_not_judged() -> None:
    """Its numbers are those of another shape."""
    flat = "f32[8192,1024]{1,0:T(8,128)}"
    text = f"  %b = {flat} bitcast(%sort)\n  ROOT %s = {part(0, 8, '%b', rows=8192)}"
    assert not warned(sorting(text), "HLO503")


def test_the_first_elements_of_a_reversed_sort_are_its_last() -> None:
    """`jnp.flip` after a sort changes nothing about how much of it is used."""
    text = f"  %r = {ROWS} reverse(%sort), dimensions={{1}}\n  ROOT %s = {part(0, 8, '%r')}"
    assert warned(sorting(text), "HLO503")


def test_the_sort_that_a_selection_was_compiled_to_is_asked_for() -> None:
    """The person wrote `top_k` already."""
    assert not warned(sorting(f"  ROOT %s = {part(0, 8)}", op_name="jit(f)/top_k"), "HLO503")


def baked(elements: int) -> str:
    """A constant of that many f32 beside an argument of 1 GB."""
    return program(
        f"  %c = f32[{elements}]{{0:T(1024)}} constant({{...}})\n"
        "  ROOT %t = (f32[16384,16384]{1,0:T(8,128)}, f32[1]{0:T(1024)}) tuple(%p0, %c)",
        parameters=1,
        shape="f32[16384,16384]{1,0:T(8,128)}",
    )


@pytest.mark.parametrize(("elements", "expected"), [(2_750_000, True), (2_680_000, False)])
def test_a_constant_is_large_from_a_hundredth_of_the_memory(elements: int, expected: bool) -> None:
    """11.0 MB of 1.085 GB is more than 1 %, 10.7 MB less."""
    assert warned(baked(elements), "HLO504") == expected


@pytest.mark.parametrize(("elements", "expected"), [(1 << 18, True), ((1 << 18) - 1024, False)])
def test_a_constant_of_a_small_program_is_large_from_a_megabyte(
    elements: int, expected: bool
) -> None:
    """Below that it is a table, however small the program around it."""
    text = program(
        f"  ROOT %c = f32[{elements}]{{0:T(1024)}} constant({{...}})",
        parameters=1,
        shape="f32[8]{0:T(128)}",
    )
    assert warned(text, "HLO504") == expected
