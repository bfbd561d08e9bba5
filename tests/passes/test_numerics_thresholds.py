"""Both sides of the rules about numerics, on modules written by hand."""

import pytest
from linting import program, warned

SUM = (
    "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
    "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n"
    "%max (d: f32[], e: f32[]) -> f32[] {\n  %d = f32[] parameter(0)\n"
    "  %e = f32[] parameter(1)\n  ROOT %g = f32[] maximum(%d, %e)\n}\n\n"
)
M = "f32[1024,1024]{1,0:T(8,128)}"
ROW = "f32[1024]{0:T(1024)}"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def rowwise(name: str, of: str, by: str = "%sum") -> str:
    """A reduction of each row, and its value at every element."""
    return (
        f"  %{name}.r = {ROW} reduce(%{of}, %zero), dimensions={{1}}, to_apply={by}\n"
        f"  %{name} = {M} broadcast(%{name}.r), dimensions={{0}}\n"
    )


def softmax(argument: str, end: str = "divide") -> str:
    """Exponentials of `%x`, which `argument` ends with, and what is done with their sum."""
    last = {
        "divide": f"  ROOT %out = {M} divide(%e, %total)",
        "log": f"  ROOT %out = {ROW} log(%total.r)",
        "tanh": f"  ROOT %out = {ROW} tanh(%total.r)",
    }[end]
    return program(
        f"  %zero = f32[] constant(0)\n  %dot = {M} dot(%p0, %p1), {DOT}\n{argument}"
        f"  %e = {M} exponential(%x)\n{rowwise('total', 'e')}{last}",
        helpers=SUM,
        shape=M,
    )


UNBOUNDED = {
    "product": f"  %x = {M} copy(%dot)\n",
    "scaled": f"  %half = f32[] constant(0.5)\n  %halves = {M} broadcast(%half), dimensions={{}}\n"
    f"  %x = {M} multiply(%dot, %halves)\n",
    "with bias": f"  %x = {M} add(%dot, %p1)\n",
    "two products": f"  %other = {M} dot(%p1, %p0), {DOT}\n  %x = {M} add(%dot, %other)\n",
}
NOT_KNOWN = {
    "less its maximum": rowwise("top", "dot", "%max") + f"  %x = {M} subtract(%dot, %top)\n",
    "capped": f"  %x = {M} tanh(%dot)\n",
    "an argument": f"  %x = {M} copy(%p0)\n",
    "a distance": rowwise("norm", "p0") + f"  %x = {M} add(%dot, %norm)\n",
    "the negative": f"  %x = {M} negate(%dot)\n",
    "normalised": rowwise("norm", "dot")
    + f"  %scale = {M} rsqrt(%norm)\n  %unit = {M} multiply(%dot, %scale)\n"
    f"  %x = {M} dot(%unit, %unit), {DOT}\n",
}


@pytest.mark.parametrize("argument", UNBOUNDED.values(), ids=UNBOUNDED)
def test_what_is_known_to_be_unbounded_is_unstable(argument: str) -> None:
    """A product grows with its operands, scaled or shifted as it may be."""
    assert warned(softmax(argument), "HLO603")
    assert warned(softmax(argument, "log"), "HLO603")


@pytest.mark.parametrize("argument", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_what_may_be_bounded_is_not_unstable(argument: str) -> None:
    """Subtracting a maximum, caps, kernels of distances, cosines, and what the caller knows."""
    assert not warned(softmax(argument), "HLO603")


def test_a_sum_that_normalises_nothing_is_no_softmax() -> None:
    """The exponentials of a product may be summed for their own sake."""
    assert not warned(softmax(UNBOUNDED["product"], "tanh"), "HLO603")


def summing(kind: str, trips: int, update: str) -> str:
    """A loop that carries `%s` in a type; `update` defines `%new`."""
    array = f"{kind}[1024,1024]{{1,0:T(8,128)(2,1)}}"
    state = f"(s32[], {array}, {array})"
    helpers = (
        "%cond (c: s32[]) -> pred[] {\n"
        f"  %c = {state} parameter(0)\n  %n = s32[] get-tuple-element(%c), index=0\n"
        f"  %end = s32[] constant({trips})\n"
        "  ROOT %go = pred[] compare(%n, %end), direction=LT\n}\n\n"
        "%body (b: s32[]) -> s32[] {\n"
        f"  %b = {state} parameter(0)\n  %i = s32[] get-tuple-element(%b), index=0\n"
        f"  %s = {array} get-tuple-element(%b), index=1\n"
        f"  %t = {array} get-tuple-element(%b), index=2\n"
        f"  %one = s32[] constant(1)\n{update.format(a=array)}"
        f"  %next = s32[] add(%i, %one)\n  ROOT %r = {state} tuple(%next, %new, %t)\n}}\n\n"
    )
    return program(
        f"  %start = s32[] constant(0)\n  %init = {state} tuple(%start, %p0, %p1)\n"
        f"  %loop = {state} while(%init), condition=%cond, body=%body\n"
        f"  ROOT %out = {array} get-tuple-element(%loop), index=1",
        helpers=helpers,
        shape=array,
    )


ADDED = "  %new = {a} add(%s, %t)\n"


@pytest.mark.parametrize(
    ("kind", "trips", "expected"),
    [
        ("bf16", 64, True), ("bf16", 63, False), ("f16", 512, True), ("f16", 511, False),
        ("f8e4m3fn", 4, True), ("f8e4m3fn", 3, False), ("f32", 100_000, False),
    ],
)  # fmt: skip
def test_a_sum_is_long_where_two_bits_of_a_term_are_left(
    kind: str, trips: int, expected: bool
) -> None:
    """Eight bits less log2(64) are two."""
    assert warned(summing(kind, trips, ADDED), "HLO602") == expected


@pytest.mark.parametrize(
    "update",
    [
        "  %f = {a} tanh(%s)\n  %new = {a} add(%s, %f)\n",
        "  %f = {a} multiply(%s, %t)\n  %new = {a} add(%f, %t)\n",
        "  %new = {a} maximum(%s, %t)\n",
        "  %f = {a} add(%t, %t)\n  %new = {a} add(%f, %t)\n",
    ],
    ids=["residual stream", "moving average", "maximum", "not carried"],
)
def test_carries_that_are_no_sums_may_be_narrow(update: str) -> None:
    """A residual stream depends on itself, an average decays, and the rest adds nothing up."""
    assert not warned(summing("bf16", 1000, update), "HLO602")


@pytest.mark.parametrize(
    ("devices", "kind", "by", "expected"),
    [
        (64, "bf16", "add", True), (32, "bf16", "add", False), (64, "f32", "add", False),
        (64, "bf16", "maximum", False),
    ],
)  # fmt: skip
def test_collectives_add_as_many_terms_as_devices(
    devices: int, kind: str, by: str, expected: bool
) -> None:
    """A ring rounds the partial sum on every hop."""
    group = ",".join(map(str, range(devices)))
    text = program(
        f"  ROOT %r = {kind}[8192,8192]{{1,0:T(8,128)(2,1)}} all-reduce(%p0), channel_id=1, "
        f"replica_groups={{{{{group}}}}}, use_global_device_ids=true, to_apply=%f",
        helpers=f"%f (x: {kind}[], y: {kind}[]) -> {kind}[] {{\n  %x = {kind}[] parameter(0)\n"
        f"  %y = {kind}[] parameter(1)\n  ROOT %z = {kind}[] {by}(%x, %y)\n}}\n\n",
        parameters=1,
        shape=f"{kind}[8192,8192]{{1,0:T(8,128)(2,1)}}",
    )
    assert warned(text, "HLO602") == expected


def widening(argument: str, body: str, result: str = "f32") -> str:
    """A fusion of an argument; `body` ends with its ROOT."""
    array = f"{argument}[4096,4096]{{1,0}}"
    return program(
        f"  ROOT %f = {result}[4096,4096]{{1,0}} fusion(%p0), kind=kLoop, calls=%wide",
        helpers=f"%wide (q: f32[1]) -> f32[1] {{\n  %q = {array} parameter(0)\n{body}}}\n\n",
        parameters=1,
        shape=array,
    )


D = "f64[4096,4096]{1,0}"
THERE_AND_BACK = (
    f"  %w = {D} convert(%q)\n  %e = {D} tanh(%w)\n  ROOT %n = f32[4096,4096]{{1,0}} convert(%e)\n"
)


def test_what_is_widened_and_narrowed_again_was_not_meant() -> None:
    """All that goes in and comes out is f32."""
    assert warned(widening("f32", THERE_AND_BACK), "HLO604", chip="h100")


def test_a_program_that_is_given_wide_arrays_means_them() -> None:
    """An f64 argument says that the program computes in f64."""
    assert not warned(widening("f64", THERE_AND_BACK), "HLO604", chip="h100")
    mixed = widening("f32", THERE_AND_BACK).replace(
        "  ROOT %f = ", "  %p9 = f64[64]{0} parameter(1)\n  ROOT %f = "
    )
    assert not warned(mixed, "HLO604", chip="h100")


def test_a_sum_that_is_widened_to_be_exact_is_meant() -> None:
    """Nothing but the conversion and the sum is wide."""
    body = (
        f"  %w = {D} convert(%q)\n  %zero = f64[] constant(0)\n"
        "  %s = f64[4096]{0} reduce(%w, %zero), dimensions={1}, to_apply=%sum\n"
        "  ROOT %n = f32[4096]{0} convert(%s)\n"
    )
    text = SUM + widening("f32", body).replace(
        "ROOT %f = f32[4096,4096]{1,0}", "ROOT %f = f32[4096]{0}"
    )
    assert not warned(text, "HLO604", chip="h100")


def test_wide_scalars_are_no_wide_arrays() -> None:
    """A learning rate in f64 costs nothing."""
    body = (
        "  %c = f64[] constant(0.5)\n  %n = f32[] convert(%c)\n"
        "  %b = f32[4096,4096]{1,0} broadcast(%n), dimensions={}\n"
        "  ROOT %m = f32[4096,4096]{1,0} multiply(%q, %b)\n"
    )
    assert not warned(widening("f32", body), "HLO604", chip="h100")


def test_wide_indices_inside_a_kernel_cost_nothing() -> None:
    """The positions that an argmax compares are s64 in TensorFlow, and never in memory."""
    body = (
        "  %i = s64[4096,4096]{1,0} iota(), iota_dimension=1\n"
        "  %k = s64[4096,4096]{1,0} add(%i, %i)\n"
        "  ROOT %n = f32[4096,4096]{1,0} convert(%k)\n"
    )
    assert not warned(widening("f32", body), "HLO604", chip="h100")
    assert warned(
        widening(
            "f32",
            body.replace("f32[4096,4096]{1,0} convert(%k)", "s64[4096,4096]{1,0} negate(%k)"),
            "s64",
        ),
        "HLO604",
        chip="h100",
    )


def test_a_reduction_that_is_printed_in_bf16_is_added_in_f32_on_tpu() -> None:
    """The compiler writes `jnp.sum` of bf16, which adds in f32, as a reduction in bf16."""
    text = program(
        "  %zero = bf16[] constant(0)\n  ROOT %r = bf16[8192]{0:T(1024)(128)(2,1)} "
        "reduce(%p0, %zero), dimensions={1}, to_apply=%sum",
        helpers=SUM.replace("f32", "bf16"),
        parameters=1,
        shape="bf16[8192,8192]{1,0:T(8,128)(2,1)}",
    )
    assert not warned(text, "HLO602")
