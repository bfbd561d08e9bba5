"""Where rules must say nothing: the other side of each threshold, and what is no defect at all.

The modules are written by hand, as small as the rule allows; that rules fire is shown on compiled
programs in test_planted.py.
"""

import pytest
from linting import HEADER, lint, program, warned

from hlo_tools.findings import Severity

BIG = "f32[8192,8192]{1,0:T(8,128)}"
BIG_VMEM = "f32[2048,2048]{1,0:T(8,128)S(1)}"


def elementwise(name: str, shape: str) -> str:
    """A fusion's computation that multiplies and adds, so that it is no op alone."""
    return (
        f"%{name} (a: f32[1], b: f32[1]) -> f32[1] {{\n"
        f"  %a = {shape} parameter(0)\n"
        f"  %b = {shape} parameter(1)\n"
        f"  %m = {shape} multiply(%a, %b)\n"
        f"  ROOT %s = {shape} add(%m, %b)\n}}\n\n"
    )


def chain(space: str, last: str) -> str:
    """A fusion whose result, in the given shape, a last instruction reads."""
    return program(
        f"  %first = {space} fusion(%p0, %p1), kind=kLoop, calls=%f1\n  ROOT %last = {last}",
        helpers=elementwise("f1", space) + elementwise("f2", space),
        shape=space,
    )


def test_fusion_break_is_only_about_values_in_device_memory() -> None:
    """What stays in VMEM between two fusions costs no round trip."""
    in_hbm = chain(BIG, f"{BIG} fusion(%first, %p1), kind=kLoop, calls=%f2")
    in_vmem = chain(BIG_VMEM, f"{BIG_VMEM} fusion(%first, %p1), kind=kLoop, calls=%f2")
    assert warned(in_hbm, "HLO101")
    assert not warned(in_vmem, "HLO101")


def test_fusion_break_leaves_operands_of_products_alone() -> None:
    """A matrix product must read its operand from memory anyway."""
    product = f"{BIG} dot(%first, %p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    assert not warned(chain(BIG, product), "HLO101")


def test_a_value_that_is_returned_is_no_fusion_break() -> None:
    """The program's result has to be written, whoever reads it besides."""
    text = program(
        f"  %first = {BIG} fusion(%p0, %p1), kind=kLoop, calls=%f1\n"
        f"  %second = {BIG} fusion(%first, %p1), kind=kLoop, calls=%f2\n"
        f"  ROOT %out = ({BIG}, {BIG}) tuple(%first, %second)",
        helpers=elementwise("f1", BIG) + elementwise("f2", BIG),
    )
    assert not warned(text, "HLO101")


def test_one_op_that_is_the_whole_program_is_not_unfused() -> None:
    """There is nothing that could have taken it in."""
    assert not warned(program(f"  ROOT %sum = {BIG} add(%p0, %p1)"), "HLO102")


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (f"{BIG} fusion(%t, %p1), kind=kLoop, calls=%f1", True),
        (f"{BIG} copy(%t)", False),
        (f"{BIG} fft(%t), fft_type=FFT, fft_length={{8192}}", False),
        (f"{BIG} sort(%t), dimensions={{1}}", False),
        (f'{BIG} custom-call(%t), custom_call_target="__cublas$gemm"', False),
        (f'{BIG} custom-call(%t), custom_call_target="tpu_custom_call"', True),
    ],
)
def test_an_op_is_unfused_only_beside_work_that_could_take_it_in(
    reader: str, expected: bool
) -> None:
    """A copy is no work, and nobody can add to a library's call; a Pallas kernel is the user's."""
    text = program(f"  %t = {BIG} tanh(%p0)\n  ROOT %r = {reader}", helpers=elementwise("f1", BIG))
    assert warned(text, "HLO102") == expected


def test_a_library_call_that_returns_a_tuple_takes_no_op_in() -> None:
    """cuDNN returns its result beside a scratch buffer; what follows is no part of the call."""
    text = program(
        f'  %conv = ({BIG}, u8[0]) custom-call(%p0), custom_call_target="__cudnn$convForward"\n'
        f"  %made = {BIG} get-tuple-element(%conv), index=0\n  ROOT %sum = {BIG} add(%made, %p1)"
    )
    assert not warned(text, "HLO102")


@pytest.mark.parametrize(("rows", "expected"), [(8192, True), (8, False)])
def test_an_op_beside_its_maker_costs_what_goes_between(rows: int, expected: bool) -> None:
    """Fused into the kernel of a small operand it would still read and write all the rest."""
    part = f"f32[{rows},8192]{{1,0:T(8,128)}}"
    text = program(
        f"  %q = {part} parameter(1)\n"
        f"  %made = {part} fusion(%q, %q), kind=kLoop, calls=%f1\n"
        f"  ROOT %all = {BIG} concatenate(%made, %p0), dimensions={{0}}",
        helpers=elementwise("f1", part),
        parameters=1,
    )
    assert warned(text, "HLO102") == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("f32[8192,8192]{0,1:T(8,128)}", True),
        ("f32[8192,8192]{1,0:T(8,128)S(1)}", False),
        ("f32[8192,8192]{1,0:T(8,128)}", False),
    ],
)
def test_layout_copy_is_about_layouts(result: str, expected: bool) -> None:
    """A copy into VMEM, or to another place, changes no layout."""
    assert warned(program(f"  ROOT %copy = {result} copy(%p0)"), "HLO201") == expected


@pytest.mark.parametrize(
    ("width", "expected"),
    [(1, True), (96, True), (97, False), (128, False)],
)
def test_padding_counts_from_a_quarter_of_the_buffer(width: int, expected: bool) -> None:
    """96 of 128 lanes leave exactly a quarter empty; 97 leave less."""
    shape = f"f32[100000,{width}]{{1,0:T(8,128)}}"
    text = program(f"  ROOT %sum = {shape} add(%p0, %p1)", shape=shape)
    assert warned(text, "HLO301") == expected


@pytest.mark.parametrize(("space", "expected"), [("", False), ("S(1)", True)])
def test_products_that_memory_bounds_are_not_underuse(space: str, expected: bool) -> None:
    """K = 64 fills a quarter of a 256-wide array; writing the result to HBM takes longer still."""
    text = program(
        f"  ROOT %dot = bf16[8192,8192]{{1,0:T(8,128)(2,1){space}}} dot(%p0, %p1), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        shape="bf16[8192,64]{1,0:T(8,128)(2,1)}",
    )
    assert warned(text, "HLO302", chip="v6e") == expected


def all_reduces(count: int, *, chained: bool) -> str:
    """Scalar all-reduces, beside a kernel that makes the step last longer."""
    add = (
        "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
        "  %y = f32[] parameter(1)\n  ROOT %z = f32[] add(%x, %y)\n}\n\n"
    )
    lines = ["  %s = f32[]{:T(128)} parameter(2)"]
    for number in range(count):
        operand = f"%r{number - 1}" if chained and number else "%s"
        lines.append(
            f"  %r{number} = f32[]{{:T(128)}} all-reduce({operand}), channel_id={number + 1}, "
            "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=%add"
        )
    lines.append(
        "  ROOT %out = ("
        + ", ".join(["f32[]{:T(128)}"] * count)
        + ") tuple("
        + ", ".join(f"%r{n}" for n in range(count))
        + ")"
    )
    return program("\n".join(lines), helpers=add, shape="f32[8]{0:T(128)}")


@pytest.mark.parametrize(
    ("count", "chained", "expected"), [(4, False, True), (3, False, False), (8, True, False)]
)
def test_collectives_combine_only_if_many_and_independent(
    count: int, chained: bool, expected: bool
) -> None:
    """Three are few, and what needs the result of another cannot join it."""
    assert warned(all_reduces(count, chained=chained), "HLO405") == expected


def test_a_collective_with_nothing_beside_it_is_not_called_synchronous() -> None:
    """Where all other work waits for it or leads to it, nothing could hide it."""
    gather = (
        "f32[65536,8192]{1,0:T(8,128)} all-gather(%p0), channel_id=1, dimensions={0}, "
        "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true"
    )
    alone = program(f"  ROOT %g = {gather}")
    beside = program(
        f"  %g = {gather}\n  %other = {BIG} fusion(%p1, %p1), kind=kLoop, calls=%f1\n"
        f"  ROOT %out = (f32[65536,8192]{{1,0:T(8,128)}}, {BIG}) tuple(%g, %other)",
        helpers=elementwise("f1", BIG),
    )
    assert not warned(alone, "HLO401")
    assert warned(beside, "HLO401")


@pytest.mark.parametrize(("operand", "expected"), [("f32", True), ("bf16", False)])
def test_precision_matters_for_f32_operands_only(operand: str, expected: bool) -> None:
    """bf16 operands are multiplied in one pass, whatever precision is asked for."""
    shape = f"{operand}[8192,8192]{{1,0:T(8,128)}}"
    text = program(
        f"  ROOT %dot = {BIG} dot(%p0, %p1), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={0}, operand_precision={highest,highest}",
        shape=shape,
    )
    assert warned(text, "HLO601") == expected


def test_an_argument_that_is_passed_on_unchanged_is_no_missed_update() -> None:
    """Returning an argument as it came is not replacing it."""
    passed = program(f"  %c = {BIG} copy(%p0)\n  ROOT %out = ({BIG}, {BIG}) tuple(%c, %p1)")
    updated = program(
        f"  %new = {BIG} subtract(%p0, %p1)\n  ROOT %out = ({BIG}, f32[]) tuple(%new, %p2)",
        parameters=3,
    )
    assert not warned(passed, "HLO203")
    assert warned(updated, "HLO203")


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("", True),
        (", input_output_alias={ {0}: (0, {}, may-alias) }", False),
        (", buffer_donor={ (0, {}) }", False),
        (", buffer_donor={ (2, {}) }", True),
    ],
)
def test_what_the_header_calls_donated_is_not_missing(attribute: str, expected: bool) -> None:
    """An argument may be given up without a result that takes its place."""
    body = program(
        f"  %new = {BIG} subtract(%p0, %p1)\n  ROOT %out = ({BIG}, f32[]) tuple(%new, %p2)",
        parameters=3,
    )
    header = HEADER.replace("num_partitions=8", "num_partitions=8" + attribute)
    found = lint(header + body, chip="v5e", select=("HLO203",)).findings
    first = [f for f in found if f.severity >= Severity.WARNING and f.instruction == "p0"]
    assert bool(first) == expected


def test_text_that_no_compiler_has_optimised_is_not_judged() -> None:
    """Before optimisation every op stands alone, and no layout has been chosen."""
    text = (
        "HloModule jit_f\n\nENTRY main {\n  a = f32[8192,8192]{1,0} parameter(0)\n"
        "  b = f32[8192,8192]{0,1} copy(a)\n  c = f32[8192,8192]{0,1} exponential(b)\n"
        "  ROOT d = f32[8192,8192]{0,1} tanh(c)\n}\n"
    )
    result = lint(text, chip="v5e")
    assert result.findings == ()
    assert not result.summary.optimized
    assert result.summary.step_seconds is None
