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


def scattering(*, rows: int, name: str = 'metadata={op_name="jit(f)/vmap()/scatter"}') -> str:
    """A loop of 256 trips of two microseconds each over an array of so many rows of 4 kB."""
    state = f"f32[{rows},1024]{{1,0:T(8,128)}}"
    pair = f"(s32[], {state})"
    helpers = (
        "%cond (c: s32[]) -> pred[] {\n"
        f"  %c = {pair} parameter(0)\n  %n = s32[] get-tuple-element(%c), index=0\n"
        "  %end = s32[] constant(256)\n"
        "  ROOT %go = pred[] compare(%n, %end), direction=LT\n}\n\n"
        "%body (b: s32[]) -> s32[] {\n"
        f"  %b = {pair} parameter(0)\n  %i = s32[] get-tuple-element(%b), index=0\n"
        f"  %x = {state} get-tuple-element(%b), index=1\n"
        "  %one = s32[] constant(1)\n  %zero = s32[] constant(0)\n"
        "  %row = f32[128,1024]{1,0:T(8,128)} dynamic-slice(%x, %zero, %zero), "
        "dynamic_slice_sizes={128,1024}\n"
        f"  %y = {state} dynamic-update-slice(%x, %row, %i, %zero)\n"
        f"  %next = s32[] add(%i, %one)\n  ROOT %t = {pair} tuple(%next, %y)\n}}\n\n"
    )
    return program(
        f"  %start = s32[] constant(0)\n  %init = {pair} tuple(%start, %p0)\n"
        f"  %loop = {pair} while(%init), condition=%cond, body=%body, {name}\n"
        f"  ROOT %out = {state} get-tuple-element(%loop), index=1",
        helpers=helpers,
        parameters=1,
        shape=state,
    )


@pytest.mark.parametrize(("rows", "expected"), [(4096, True), (1 << 18, False)])
def test_a_scatter_loop_costs_what_exceeds_one_pass(rows: int, expected: bool) -> None:
    """256 trips take 2 ms; over 17 MB a masked pass takes 50 microseconds, over 1 GB 3 ms."""
    assert warned(scattering(rows=rows), "HLO502") == expected


@pytest.mark.parametrize("name", ['metadata={op_name="jit(f)/while"}', "metadata={}"])
def test_a_loop_that_the_program_has_is_no_scatter(name: str) -> None:
    """A loop is judged by its own name only, and a written one is called `while`."""
    assert not warned(scattering(rows=4096, name=name), "HLO502")


def threefry_bits(rounds: int) -> str:
    """A fusion with that many rounds over 32 Mi words, before a kernel that uses them."""
    words = "u32[8192,4096]{1,0:T(8,128)}"
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    lines = [f"  %a0 = {words} parameter(0)", f"  %x0 = {words} parameter(1)"]
    for number in range(rounds):
        rotation = rotations[number % 8]
        new = number + 1
        lines += [
            f"  %l{new} = u32[] constant({rotation})",
            f"  %bl{new} = {words} broadcast(%l{new}), dimensions={{}}",
            f"  %r{new} = u32[] constant({32 - rotation})",
            f"  %br{new} = {words} broadcast(%r{new}), dimensions={{}}",
            f"  %a{new} = {words} add(%a{number}, %x{number})",
            f"  %sl{new} = {words} shift-left(%x{number}, %bl{new})",
            f"  %sr{new} = {words} shift-right-logical(%x{number}, %br{new})",
            f"  %o{new} = {words} or(%sl{new}, %sr{new})",
            f"  {'ROOT ' * (new == rounds)}%x{new} = {words} xor(%a{new}, %o{new})",
        ]
    body = "%bits (p: u32[]) -> u32[] {\n" + "\n".join(lines) + "\n}\n\n"
    return program(
        f"  ROOT %f = {words} fusion(%p0, %p1), kind=kLoop, calls=%bits",
        helpers=body,
        shape=words,
    )


@pytest.mark.parametrize(
    ("rounds", "chip", "expected"), [(20, "7x", True), (19, "7x", False), (20, "v5e", False)]
)
def test_threefry_is_twenty_rounds_and_costs_where_memory_is_fast(
    rounds: int, chip: str, expected: bool
) -> None:
    """Fewer rounds are something else; on v5e the bits are no cheaper to read than to compute."""
    assert warned(threefry_bits(rounds), "HLO505", chip=chip) == expected


TABLES = """
FileNames
1 "model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

"""


def products(count: int, *, chained: bool, others: int = 0, frame: str = "stack_frame_id=1") -> str:
    """Products that one line makes, one after another or side by side, and some of another line."""
    array = "bf16[1024,1024]{1,0:T(8,128)(2,1)}"
    lines = []
    for number in range(count + others):
        operand = f"%d{number - 1}" if chained and 0 < number < count else "%p0"
        place = frame if number < count else "stack_frame_id=2"
        lines.append(
            f"  %d{number} = {array} dot(%{operand.lstrip('%')}, %p1), lhs_contracting_dims={{1}}, "
            f'rhs_contracting_dims={{0}}, metadata={{op_name="jit(f)/dot{number}" {place}}}'
        )
    tuple_type = ", ".join([array] * (count + others))
    names = ", ".join(f"%d{n}" for n in range(count + others))
    lines.append(f"  ROOT %out = ({tuple_type}) tuple({names})")
    return TABLES + program("\n".join(lines), shape=array)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (products(8, chained=True), True),
        (products(7, chained=True), False),
        (products(8, chained=False), False),
        (products(8, chained=True, others=8), True),
        (products(8, chained=True, others=9), False),
        (products(8, chained=True, frame=""), False),
    ],
    ids=["eight", "seven", "side by side", "half of all", "less than half", "no line"],
)
def test_layers_are_eight_products_of_a_line_one_after_another(text: str, expected: bool) -> None:
    """Fewer are soon compiled, and what does not follow on itself is no stack of layers."""
    assert warned(text, "HLO506") == expected
