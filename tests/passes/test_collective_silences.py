"""Where rules about collectives must say nothing, and just beside that fire."""

import pytest
from test_silences import BIG, program, warned

GROUP = "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true"
WHOLE = "f32[65536,8192]{1,0:T(8,128)}"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def gathered(body: str) -> str:
    """A gather of the first parameter as `%g`, before `body`."""
    gather = f"  %g = {WHOLE} all-gather(%p0), channel_id=1, dimensions={{0}}, {GROUP}\n"
    return program(gather + body)


PRODUCT = f"  %dot = {WHOLE} dot(%g, %p1), {DOT}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{PRODUCT}  ROOT %r = {WHOLE} negate(%dot)", True),
        (f"{PRODUCT}  ROOT %r = ({WHOLE}, {WHOLE}) tuple(%dot, %g)", False),
        (f"  %n = {WHOLE} negate(%g)\n  ROOT %dot = {WHOLE} dot(%n, %p1), {DOT}", False),
    ],
)
def test_only_what_products_alone_read_can_be_windowed(body: str, expected: bool) -> None:
    """What is also returned, or computed with first, has to be there as a whole."""
    assert warned(gathered(body), "HLO409") == expected


@pytest.mark.parametrize(("rows", "expected"), [(512, True), (256, False)])
def test_small_gathers_are_not_worth_a_window(rows: int, expected: bool) -> None:
    """From a megabyte on the wire on: 512 rows send 1.8 MB a device, 256 rows 0.9 MB."""
    part, whole = f"f32[{rows // 8},1024]{{1,0:T(8,128)}}", f"f32[{rows},1024]{{1,0:T(8,128)}}"
    text = program(
        f"  %g = {whole} all-gather(%p0), channel_id=1, dimensions={{0}}, {GROUP}\n"
        f"  ROOT %dot = f32[{rows},8]{{1,0:T(8,128)}} dot(%g, %p1), {DOT}",
        shape=part,
    )
    assert warned(text, "HLO409") == expected


def test_what_other_work_could_hide_needs_no_window() -> None:
    """That gather is `sync-collective`."""
    other = f"  %other = {WHOLE} dot(%p2, %p1), {DOT}\n"
    result = f"  ROOT %r = ({WHOLE}, {WHOLE}) tuple(%dot, %other)"
    text = gathered(PRODUCT + other + other.replace("%other", "%more") + result).replace(
        "  %g =", f"  %p2 = {WHOLE} parameter(2)\n  %g ="
    )
    assert not warned(text, "HLO409")
    assert warned(text, "HLO401")


def test_a_body_whose_loop_was_cut_off_is_not_judged() -> None:
    """A gather in a loop could be started a trip ahead; without its caller nothing is known."""
    text = gathered(f"{PRODUCT}  ROOT %r = {WHOLE} negate(%dot)")
    assert not warned(text.replace("ENTRY %main", "%body"), "HLO409")


def summing_loop(
    *, reducer: str = "add", step: str, reads_total: bool = False, trips: int = 8
) -> str:
    """A loop that reduces `%x` and does `step` with the sum `%sum` and the carry `%total`."""
    pair = f"(s32[], {BIG}, {BIG}, {BIG})"
    other = "%total" if reads_total else "%x"
    return (
        f"%op (a: f32[], b: f32[]) -> f32[] {{\n  %a = f32[] parameter(0)\n"
        f"  %b = f32[] parameter(1)\n  ROOT %o = f32[] {reducer}(%a, %b)\n}}\n\n"
        f"%body (c: s32[]) -> s32[] {{\n  %c = {pair} parameter(0)\n"
        "  %i = s32[] get-tuple-element(%c), index=0\n"
        f"  %total = {BIG} get-tuple-element(%c), index=1\n"
        f"  %x = {BIG} get-tuple-element(%c), index=2\n"
        "  %one = s32[] constant(1)\n  %next = s32[] add(%i, %one)\n"
        "  %half = f32[] constant(0.5)\n"
        f"  %halves = {BIG} broadcast(%half), dimensions={{}}\n"
        f"  %sum = {BIG} all-reduce(%x), channel_id=1, {GROUP}, to_apply=%op\n"
        f"{step}  %seen = {BIG} negate({other})\n"
        f"  ROOT %t = {pair} tuple(%next, %new, %x, %seen)\n}}\n\n"
        f"%cond (d: s32[]) -> pred[] {{\n  %d = {pair} parameter(0)\n"
        "  %j = s32[] get-tuple-element(%d), index=0\n"
        f"  %n = s32[] constant({trips})\n"
        "  ROOT %lt = pred[] compare(%j, %n), direction=LT\n}\n\n"
        f"ENTRY %main (p0: f32[1]) -> f32[1] {{\n  %p0 = {BIG} parameter(0)\n"
        f"  %zero = s32[] constant(0)\n  %s = {pair} tuple(%zero, %p0, %p0, %p0)\n"
        f"  %w = {pair} while(%s), condition=%cond, body=%body\n"
        f"  ROOT %r = {BIG} get-tuple-element(%w), index=1\n}}\n"
    )


ADDED = f"  %new = {BIG} add(%total, %sum)\n"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (ADDED, True),
        (f"  %h = {BIG} multiply(%sum, %halves)\n  %new = {BIG} add(%h, %total)\n", True),
        (f"  %h = {BIG} multiply(%sum, %x)\n  %new = {BIG} add(%h, %total)\n", False),
        (f"  %h = {BIG} divide(%halves, %sum)\n  %new = {BIG} add(%h, %total)\n", False),
        (f"  %h = {BIG} tanh(%sum)\n  %new = {BIG} add(%h, %total)\n", False),
        (f"  %new = {BIG} maximum(%total, %sum)\n", False),
        (f"  %new = {BIG} add(%x, %sum)\n", False),
    ],
)
def test_only_what_is_added_to_a_carry_can_be_reduced_after_the_loop(
    step: str, expected: bool
) -> None:
    """Sums change places with sums and with constant factors, and with nothing else."""
    assert warned(summing_loop(step=step), "HLO404") == expected


def test_a_total_that_each_trip_reads_must_be_whole_on_each_trip() -> None:
    """A gradient that is applied in the loop, for one."""
    assert not warned(summing_loop(step=ADDED, reads_total=True), "HLO404")


def test_a_maximum_over_devices_does_not_change_places_with_a_sum() -> None:
    """Only sums over the devices do."""
    assert not warned(summing_loop(step=ADDED, reducer="maximum"), "HLO404")


@pytest.mark.parametrize(("trips", "expected"), [(1, False), (2, True)])
def test_one_trip_reduces_once(trips: int, expected: bool) -> None:
    """From two trips on something is saved."""
    assert warned(summing_loop(step=ADDED, trips=trips), "HLO404") == expected


EXCHANGE = (
    f"{BIG} all-to-all(%p0), channel_id=1, dimensions={{0}}, "
    'replica_groups={{0,1,2,3,4,5,6,7}}, metadata={op_name="NAME"}'
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jit(f)/sharding_constraint", True),
        ("jit(f)/dot_general", True),
        ("jit(f)/shard_map/all_to_all", False),
        ("jit(f)/shard_map/mul", False),
        ("jit(f)/jit(shmap_body)/all_to_all[axis_name=('y',) tiled=True]", False),
        ("jit(f)/all_to_all[axis_name=('y',) tiled=True]", False),
        ("", False),
    ],
)
def test_resharding_is_what_the_program_did_not_write_itself(name: str, expected: bool) -> None:
    """Inside of `shard_map` the program says what is sent; without a name nobody knows."""
    text = program(f"  ROOT %a = {EXCHANGE.replace('NAME', name)}")
    assert warned(text, "HLO407") == expected


@pytest.mark.parametrize(
    ("pairs", "name", "expected"),
    [
        ("{0,1},{1,0}", "jit(f)/sharding_constraint", True),
        ("{0,1},{1,2}", "jit(f)/sharding_constraint", False),
        ("{0,0},{1,1}", "jit(f)/sharding_constraint", False),
        ("{0,1},{1,0}", "jit(f)/while/body/dot_general", False),
        ("{0,1},{1,0}", "jit(f)/roll", False),
    ],
)
def test_a_permute_reshards_if_it_moves_whole_shards(pairs: str, name: str, expected: bool) -> None:
    """Borders of a neighbour, and the parts of a windowed product, change no sharding."""
    text = program(
        f"  ROOT %a = {BIG} collective-permute(%p0), channel_id=1, "
        f'source_target_pairs={{{pairs}}}, metadata={{op_name="{name}"}}'
    )
    assert warned(text, "HLO407") == expected


def narrow(bits: str) -> str:
    """The type of `WHOLE` with another element type."""
    return WHOLE.replace("f32", bits)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"  ROOT %c = {narrow('bf16')} convert(%g)", True),
        (f"  ROOT %c = {narrow('f64')} convert(%g)", False),
        (f"  ROOT %c = {narrow('s16')} convert(%g)", False),
        (
            f"  %c = {narrow('bf16')} convert(%g)\n  %n = {WHOLE} negate(%g)\n"
            f"  ROOT %r = ({narrow('bf16')}, {WHOLE}) tuple(%c, %n)",
            False,
        ),
        (f"  ROOT %r = ({WHOLE}) tuple(%g)", False),
    ],
)
def test_what_is_sent_may_be_rounded_if_all_readers_round_it(body: str, expected: bool) -> None:
    """One reader of all the digits is enough to need them on the wire."""
    assert warned(gathered(body), "HLO406") == expected


@pytest.mark.parametrize(("width", "expected"), [(7936, True), (8128, False), (8192, False)])
def test_a_gather_is_too_wide_if_fixed_slices_are_all_that_is_read(
    width: int, expected: bool
) -> None:
    """7936 of 8192 columns leave 3 % unread, 8128 leave 0.8 %, 8192 leave nothing."""
    text = gathered(
        f"  ROOT %s = f32[65536,{width}]{{1,0:T(8,128)}} slice(%g), "
        f"slice={{[0:65536], [0:{width}]}}"
    )
    assert warned(text, "HLO406") == expected


@pytest.mark.parametrize(("source", "expected"), [("bf16", True), ("s16", False)])
def test_what_was_widened_just_before_is_sent_too_wide(source: str, expected: bool) -> None:
    """Only floats are taken to be the same value in a narrower type."""
    text = program(
        f"  %w = {BIG} convert(%p0)\n"
        f"  %g = {WHOLE} all-gather(%w), channel_id=1, dimensions={{0}}, {GROUP}\n"
        f"  ROOT %n = {WHOLE} negate(%g)",
        shape=BIG.replace("f32", source),
    )
    assert warned(text, "HLO406") == expected


def test_a_sum_over_devices_is_never_too_wide() -> None:
    """Rounding before a sum is another sum."""
    add = (
        "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %o = f32[] add(%a, %b)\n}\n\n"
    )
    text = program(
        f"  %g = {BIG} all-reduce(%p0), channel_id=1, {GROUP}, to_apply=%add\n"
        f"  ROOT %c = {BIG.replace('f32', 'bf16')} convert(%g)",
        helpers=add,
    )
    assert not warned(text, "HLO406")


PAIRS = "replica_groups={{0,1},{2,3},{4,5},{6,7}}, use_global_device_ids=true"
SQUARE = f"  %d = {BIG} dot(%g, %g), {DOT}\n"


def computed(operand: str, *, groups: str = GROUP) -> str:
    """A product of what was gathered, or of something else, and a small result made of it."""
    part = "f32[1024,8192]{1,0:T(8,128)}"
    return program(
        f"  %s = {part} slice(%p0), slice={{[0:1024], [0:8192]}}\n"
        f"  %gather = {BIG} all-gather(%s), channel_id=1, dimensions={{0}}, {groups}\n"
        f"  %g = {BIG} {operand}\n{SQUARE}"
        f"  %zero = f32[] constant(0)\n  ROOT %r = f32[8192]{{0:T(1024)}} reduce(%d, %zero), "
        "dimensions={1}, to_apply=%add",
        helpers="%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %o = f32[] add(%a, %b)\n}\n\n",
    )


@pytest.mark.parametrize(
    ("operand", "groups", "expected"),
    [
        ("negate(%gather)", GROUP, True),
        ("negate(%gather)", PAIRS, True),
        ("add(%gather, %p1)", GROUP, False),
        ("negate(%p1)", GROUP, False),
        ('custom-call(%gather), custom_call_target="draws"', GROUP, False),
        ("collective-permute(%gather), channel_id=2, source_target_pairs={{0,1}}", GROUP, False),
    ],
)
def test_work_is_replicated_if_all_it_reads_is_proved_to_be(
    operand: str, groups: str, expected: bool
) -> None:
    """Arguments, exchanges and custom calls may differ from device to device."""
    assert warned(computed(operand, groups=groups), "HLO408") == expected


def test_work_that_is_cheaper_than_gathering_its_result_may_be_replicated() -> None:
    """An elementwise op on a gathered value takes less time than its result on the wire."""
    text = computed("negate(%gather)").replace(SQUARE, f"  %d = {BIG} multiply(%g, %g)\n")
    returned = text.partition("  %zero =")[0] + f"  ROOT %r = {BIG} negate(%d)\n}}\n"
    assert not warned(returned, "HLO408")


@pytest.mark.parametrize(("gathered_carry", "expected"), [("%h", True), ("%x", False)])
def test_a_gather_that_could_start_a_trip_ahead_needs_no_window(
    gathered_carry: str, expected: bool
) -> None:
    """What no trip changes can be gathered beside the product of the trip before."""
    part = "f32[1024,8192]{1,0:T(8,128)}"
    pair = f"(s32[], {part}, {part}, {BIG})"
    text = (
        f"%body (c: s32[]) -> s32[] {{\n  %c = {pair} parameter(0)\n"
        "  %i = s32[] get-tuple-element(%c), index=0\n"
        f"  %h = {part} get-tuple-element(%c), index=1\n"
        f"  %x = {part} get-tuple-element(%c), index=2\n"
        f"  %w = {BIG} get-tuple-element(%c), index=3\n"
        "  %one = s32[] constant(1)\n  %next = s32[] add(%i, %one)\n"
        f"  %g = {BIG} all-gather({gathered_carry}), channel_id=1, dimensions={{0}}, {GROUP}\n"
        f"  %d = {BIG} dot(%g, %w), {DOT}\n"
        f"  %new = {part} slice(%d), slice={{[0:1024], [0:8192]}}\n"
        f"  ROOT %t = {pair} tuple(%next, %new, %x, %w)\n}}\n\n"
        f"%cond (d: s32[]) -> pred[] {{\n  %d = {pair} parameter(0)\n"
        "  %j = s32[] get-tuple-element(%d), index=0\n  %n = s32[] constant(8)\n"
        "  ROOT %lt = pred[] compare(%j, %n), direction=LT\n}\n\n"
        f"ENTRY %main (p0: f32[1], p1: f32[1]) -> f32[1] {{\n  %p0 = {part} parameter(0)\n"
        f"  %p1 = {BIG} parameter(1)\n  %zero = s32[] constant(0)\n"
        f"  %s = {pair} tuple(%zero, %p0, %p0, %p1)\n"
        f"  %w = {pair} while(%s), condition=%cond, body=%body\n"
        f"  ROOT %r = {part} get-tuple-element(%w), index=1\n}}\n"
    )
    assert warned(text, "HLO409") == expected
