"""How often computations run: against brute force for loops, and against the programs' own text."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hlo_tools.analysis.execution import MAX_TIMES, Execution
from hlo_tools.hlo.module import Computation, Instruction, Module
from hlo_tools.hlo.parser import ParseError, parse_module

COMPARISONS = {
    "LT": int.__lt__,
    "LE": int.__le__,
    "GT": int.__gt__,
    "GE": int.__ge__,
    "NE": int.__ne__,
    "EQ": int.__eq__,
}
LONGEST = 300


def simulate(direction: str, init: int, step: int, limit: int) -> int | None:
    """What running the loop gives: trips until it ends, `None` if it has not after many."""
    counter, trips = init, 0
    while COMPARISONS[direction](counter, limit):
        counter += step
        trips += 1
        if trips > LONGEST:
            return None
    return trips


PLAIN = """
%condition (c: (s32[], f32[4], s32[])) -> pred[] {{
  %c = (s32[], f32[4], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant({limit})
  ROOT %more = pred[] compare({sides}), direction={direction}
}}
"""
FUSED = """
%compares (a: s32[], b: s32[]) -> pred[] {{
  %b = s32[] parameter(1)
  %a = s32[] parameter(0)
  ROOT %more.1 = pred[] compare({fused_sides}), direction={direction}
}}

%condition (c: (s32[], f32[4], s32[])) -> pred[] {{
  %c = (s32[], f32[4], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant({limit})
  ROOT %more = pred[] fusion(%i, %n), kind=kLoop, calls=%compares
}}
"""
CARRIED = """
%condition (c: (s32[], f32[4], s32[])) -> pred[] {{
  %c = (s32[], f32[4], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] get-tuple-element(%c), index=2
  ROOT %more = pred[] compare({sides}), direction={direction}
}}
"""
LOOP = """HloModule loop, is_scheduled=true
{condition}
%body (b: (s32[], f32[4], s32[])) -> (s32[], f32[4], s32[]) {{
  %b = (s32[], f32[4], s32[]) parameter(0)
  %j = s32[] get-tuple-element(%b), index=0
  %k = s32[] copy(%j)
  %x = f32[4] get-tuple-element(%b), index=1
  %m = s32[] get-tuple-element(%b), index=2
  %by = s32[] constant({step})
  %next = s32[] add(%by, %k)
  ROOT %t = (s32[], f32[4], s32[]) tuple(%next, %x, %m)
}}

ENTRY %main (p: f32[4]) -> f32[4] {{
  %p = f32[4] parameter(0)
  %zero = s32[] constant({init})
  %start = s32[] copy(%zero)
  %bound = s32[] constant({limit})
  %init = (s32[], f32[4], s32[]) tuple(%start, %p, %bound)
  %loop = (s32[], f32[4], s32[]) while(%init), condition=%condition, body=%body
  ROOT %out = f32[4] get-tuple-element(%loop), index=1
}}
"""
PLAIN_STEP = "%next = s32[] add(%by, %k)"
FUSED_STEP = "%next = s32[] fusion(%k), kind=kLoop, calls=%adds.{step}"
FUSED_ADD = """
%adds.{step} (a: s32[]) -> s32[] {{
  %a = s32[] parameter(0)
  %one = s32[] constant({step})
  %copied = s32[] bitcast(%a)
  ROOT %sum = s32[] add(%copied, %one)
}}
"""
MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE", "EQ": "EQ"}


@given(
    direction=st.sampled_from(sorted(COMPARISONS)),
    init=st.integers(-40, 40),
    step=st.integers(-7, 7),
    limit=st.integers(-40, 40),
    form=st.sampled_from([PLAIN, FUSED, CARRIED]),
    mirrored=st.booleans(),
    fused_step=st.booleans(),
)
def test_trip_count_is_what_running_the_loop_gives(
    direction: str,
    init: int,
    step: int,
    limit: int,
    form: str,
    mirrored: bool,
    fused_step: bool,
) -> None:
    expected = simulate(direction, init, step, limit)
    # A counter that misses `NE` ends only by wrapping around, which is said to be unknown.
    assume(expected is None or expected <= LONGEST)
    condition = form.format(
        limit=limit,
        direction=MIRRORED[direction] if mirrored else direction,
        sides="%n, %i" if mirrored else "%i, %n",
        fused_sides="%b, %a" if mirrored else "%a, %b",
    )
    text = LOOP.format(condition=condition, init=init, step=step, limit=limit)
    if fused_step:
        text = text.replace(PLAIN_STEP, FUSED_STEP.format(step=step)) + FUSED_ADD.format(step=step)
    module = parse_module(text)
    execution = Execution(module)
    assert module.entry is not None
    loop = module.entry.instruction("loop")
    assert loop is not None
    assert execution.trip_count(loop) == expected
    body, cond = named(module, "body"), named(module, "condition")
    assert execution.times(body) == expected
    assert execution.times(cond) == (None if expected is None else expected + 1)
    assert execution.times_at_least(body) == (1 if expected is None else expected)
    assert execution.loop_of(body) is loop
    assert execution.unknown_loops == ((loop,) if expected is None else ())


def test_the_compilers_own_count_wins_over_the_condition() -> None:
    condition = PLAIN.format(limit=10, direction="LT", sides="%i, %n")
    text = LOOP.format(condition=condition, init=0, step=1, limit=10)
    for config in (
        '{"known_trip_count":{"n":"7"}}',
        '"{\\"known_trip_count\\":{\\"n\\":\\"7\\"}}"',
    ):
        module = parse_module(text.replace("body=%body", f"body=%body, backend_config={config}", 1))
        assert Execution(module).times(named(module, "body")) == 7


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%next = s32[] add(%by, %k)", "%next = s32[] multiply(%by, %k)"),
        ("%next = s32[] add(%by, %k)", "%next = s32[] subtract(%by, %k)"),
        ("%next = s32[] add(%by, %k)", "%next = s32[] add(%m, %k)"),
        ("%start = s32[] copy(%zero)", "%start = s32[] custom-call(%zero)"),
        ("compare(%i, %n)", "and(%i, %n)"),
    ],
)
def test_an_unclear_loop_is_unknown_not_guessed(old: str, new: str) -> None:
    condition = PLAIN.format(limit=10, direction="LT", sides="%i, %n")
    text = LOOP.format(condition=condition, init=0, step=1, limit=10)
    assert old in text
    execution = Execution(parse_module(text.replace(old, new)))
    assert [loop.name for loop in execution.unknown_loops] == ["loop"]


NESTED = """HloModule nested, is_scheduled=true

%leaf (l: f32[4]) -> f32[4] {
  %l = f32[4] parameter(0)
  ROOT %n = f32[4] negate(%l)
}

%inner_condition (c: (s32[], f32[4])) -> pred[] {
  %c = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(3)
  ROOT %more = pred[] compare(%i, %n), direction=LT
}

%inner_body (b: (s32[], f32[4])) -> (s32[], f32[4]) {
  %b = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %x = f32[4] get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = f32[4] call(%x), to_apply=%leaf
  %z = f32[4] call(%y), to_apply=%leaf
  ROOT %t = (s32[], f32[4]) tuple(%next, %z)
}

%outer_condition (c: (s32[], f32[4])) -> pred[] {
  %c = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(5)
  ROOT %more = pred[] compare(%i, %n), direction=LT
}

%outer_body (b: (s32[], f32[4])) -> (s32[], f32[4]) {
  %b = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %x = f32[4] get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]) tuple(%zero, %x)
  %inner = (s32[], f32[4]) while(%init), condition=%inner_condition, body=%inner_body
  %y = f32[4] get-tuple-element(%inner), index=1
  ROOT %t = (s32[], f32[4]) tuple(%next, %y)
}

%branch (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  ROOT %r = f32[4] call(%p), to_apply=%leaf
}

%fused (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  ROOT %e = f32[4] exponential(%p)
}

ENTRY %main (p: f32[4], which: s32[]) -> f32[4] {
  %p = f32[4] parameter(0)
  %which = s32[] parameter(1)
  %zero = s32[] constant(0)
  %f = f32[4] fusion(%p), kind=kLoop, calls=%fused
  %init = (s32[], f32[4]) tuple(%zero, %f)
  %outer = (s32[], f32[4]) while(%init), condition=%outer_condition, body=%outer_body
  %x = f32[4] get-tuple-element(%outer), index=1
  %y = f32[4] conditional(%which, %x, %x), branch_computations={%branch, %leaf}
  ROOT %z = f32[4] call(%y), to_apply=%leaf
}
"""


def test_nested_loops_multiply_and_call_sites_add_up() -> None:
    module = parse_module(NESTED)
    execution = Execution(module)
    times = {c.name: execution.times(c) for c in execution.executed}
    assert times == {
        "main": 1,
        "outer_condition": 6,
        "outer_body": 5,
        "inner_condition": 5 * 4,
        "inner_body": 5 * 3,
        "branch": 1,
        "leaf": 5 * 3 * 2 + 1 + 1 + 1,
    }
    assert execution.times(named(module, "fused")) == 0
    assert not execution.runs(named(module, "fused"))


def test_order_is_that_of_the_first_call() -> None:
    module = parse_module(NESTED)
    execution = Execution(module)
    assert [c.name for c in execution.executed] == [
        "main",
        "outer_condition",
        "outer_body",
        "inner_condition",
        "inner_body",
        "leaf",
        "branch",
    ]
    callers = [i.name for i in execution.callers(named(module, "leaf"))]
    assert sorted(callers) == ["r", "y", "y", "z", "z"]
    loop = execution.loop_of(named(module, "leaf"))
    assert loop is not None and loop.name == "inner"
    assert execution.loop_of(named(module, "branch")) is None


def test_what_an_async_start_wraps_runs_beside_the_rest() -> None:
    text = """HloModule m, is_scheduled=true

%work (a: f32[4]) -> f32[4] {
  %a = f32[4] parameter(0)
  ROOT %n = f32[4] negate(%a)
}

%wrapped (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  ROOT %c = f32[4] call(%p), to_apply=%work
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  %s = ((f32[4]), f32[4], u32[]) async-start(%p), calls=%wrapped
  ROOT %d = f32[4] async-done(%s)
}
"""
    module = parse_module(text)
    execution = Execution(module)
    assert [c.name for c in execution.executed] == ["main", "wrapped", "work"]
    for name in ("wrapped", "work"):
        wrapper = execution.wrapper_of(named(module, name))
        assert wrapper is not None and wrapper.name == "s"
    assert execution.wrapper_of(named(module, "main")) is None


def test_calls_in_a_circle_end() -> None:
    text = """HloModule circle

%a (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %x = f32[] call(%p), to_apply=%b
}

%b (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  ROOT %y = f32[] call(%q), to_apply=%a
}

ENTRY %main (r: f32[]) -> f32[] {
  %r = f32[] parameter(0)
  %w = f32[] while(%r), condition=%main, body=%a
  ROOT %z = f32[] call(%w), to_apply=%a
}
"""
    execution = Execution(parse_module(text))
    assert {c.name for c in execution.executed} == {"main", "a", "b"}
    assert [loop.name for loop in execution.unknown_loops] == ["w"]


def test_operands_in_a_circle_end() -> None:
    condition = PLAIN.format(limit=10, direction="LT", sides="%i, %n")
    text = LOOP.format(condition=condition, init=0, step=1, limit=10)
    text = text.replace("%k = s32[] copy(%j)", "%k = s32[] copy(%next)")
    assert len(Execution(parse_module(text)).unknown_loops) == 1


def test_counts_that_no_program_reaches_are_unknown() -> None:
    """Sixty computations that each call the next one twice would run the last 2**60 times."""
    depth = 60
    parts = ["HloModule doubling\n"]
    parts.append("%f0 (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n")
    for level in range(1, depth + 1):
        head = "ENTRY " if level == depth else ""
        parts.append(
            f"{head}%f{level} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n"
            f"  %a = f32[] call(%p), to_apply=%f{level - 1}\n"
            f"  ROOT %b = f32[] call(%a), to_apply=%f{level - 1}\n}}\n"
        )
    module = parse_module("\n".join(parts))
    execution = Execution(module)
    assert execution.times(named(module, "f50")) == 2 ** (depth - 50)
    assert execution.times(named(module, "f0")) is None
    assert execution.times_at_least(named(module, "f0")) == MAX_TIMES


def test_deep_nesting_needs_no_deep_stack() -> None:
    depth = 5000
    parts = ["HloModule deep\n%f0 (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"]
    for level in range(1, depth):
        head = "ENTRY " if level == depth - 1 else ""
        parts.append(
            f"{head}%f{level} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n"
            f"  ROOT %a = f32[] call(%p), to_apply=%f{level - 1}\n}}\n"
        )
    module = parse_module("\n".join(parts))
    assert Execution(module).times(named(module, "f0")) == 1


HEADLESS = NESTED[: NESTED.index("ENTRY")]


def test_loop_bodies_run_although_the_entry_is_cut_off() -> None:
    """How often is unknown then, and the fusion's body does not count as run."""
    text = HEADLESS.replace(
        "HloModule nested", "HloModule nested, entry_computation_layout={()->()}"
    )
    module = parse_module(text)
    execution = Execution(module)
    assert not execution.runs(named(module, "fused"))
    assert execution.runs(named(module, "outer_body"))
    assert execution.times(named(module, "outer_body")) is None
    assert execution.times_at_least(named(module, "inner_body")) == 3


def test_uncompiled_text_without_an_entry_runs_whole() -> None:
    module = parse_module("%f (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4] parameter(0)\n}\n")
    execution = Execution(module)
    assert [c.name for c in execution.executed] == ["f"]
    assert execution.times(named(module, "f")) == 1


def corpus_modules(corpus: Path) -> Iterator[tuple[str, Module]]:
    for path in sorted(corpus.glob("hlo*/*.txt*")):
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        try:
            yield path.name, parse_module(data.decode("utf-8", "replace"))
        except ParseError:
            continue


def test_scans_of_the_corpus_have_the_trip_counts_of_their_programs(corpus: Path) -> None:
    """The programs scan over 4 and 8 layers; the scatter that became a loop has 100 updates."""
    trips = {
        path.name: sorted(
            (execution.trip_count(loop), execution.times(loop.computation))
            for loop in execution.instructions()
            if loop.opcode == "while"
        )
        for path in (corpus / "hlo_tpu_aot").glob("*.txt")
        for execution in [Execution(parse_module(path.read_text()))]
    }
    scans = [name for name in trips if "fsdp_scan" in name and "v4" not in name]
    assert scans and all(trips[name] == [(4, 1), (4, 1)] for name in scans)
    # The v4 compiler also turned a matmul into a loop of two permutes a trip, over 8 devices.
    assert trips["tpu_aot_v4_fsdp_scan_train_donate.txt"] == [(2, 4), (4, 1), (4, 1)]
    assert trips["tpu_aot_v5e1_decode_kv_donate.txt"] == [(8, 1)]
    assert trips["tpu_aot_v5e1_vmap_dus_scatter_loop.txt"] == [(100, 1)]


def test_the_condition_says_what_the_compiler_noted(corpus: Path) -> None:
    """An oracle: dumps with `known_trip_count` must give the same count without it."""
    compared = 0
    for _name, module in corpus_modules(corpus):
        if "known_trip_count" not in module.text:
            continue
        bare = parse_module(module.text.replace("known_trip_count", "noted"))
        noted = {i.name: n for e in [Execution(module)] for i, n in loops(e)}
        read = {i.name: n for e in [Execution(bare)] for i, n in loops(e)}
        for name, count in noted.items():
            compared += 1
            assert read[name] == count
    assert compared


def loops(execution: Execution) -> list[tuple[Instruction, int | None]]:
    return [(i, execution.trip_count(i)) for i in execution.instructions() if i.opcode == "while"]


def test_a_fusion_runs_what_its_attribute_names(corpus: Path) -> None:
    """The quick look for `calls` finds what reading all attributes finds."""
    for _name, module in corpus_modules(corpus):
        for instruction in module.instructions():
            if instruction.opcode == "fusion":
                name = instruction.attributes().get("calls", "").removeprefix("%")
                assert instruction.fused_computation is module.computation(name)


def named(module: Module, name: str) -> Computation:
    computation = module.computation(name)
    assert computation is not None
    return computation
