"""What runs beside what: every asynchronous form of TPU and GPU text."""

from pathlib import Path

import pytest

from hlo_tools.analysis.asynchrony import Asynchrony, AsyncSpan
from hlo_tools.analysis.execution import Execution
from hlo_tools.hlo.module import Instruction, Module
from hlo_tools.hlo.parser import parse_module


def analyse(text: str) -> tuple[Module, Asynchrony]:
    module = parse_module(text)
    return module, Asynchrony(module, Execution(module))


def only(text: str) -> AsyncSpan:
    (span,) = analyse(text)[1].spans
    return span


def names(instructions: tuple[Instruction, ...]) -> list[str]:
    return [instruction.name for instruction in instructions]


ENTRY = """HloModule m, is_scheduled=true, num_partitions=4

{computations}
ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8] parameter(0)
{body}
}}
"""


def entry(body: str, computations: str = "") -> str:
    return ENTRY.format(body=body, computations=computations)


@pytest.mark.parametrize(
    ("start", "done", "kind"),
    [
        ("(f32[8], f32[32]) all-gather-start(%p)", "f32[32] all-gather-done(%s)", "all-gather"),
        ("f32[8] all-reduce-start(%p)", "f32[8] all-reduce-done(%s)", "all-reduce"),
        (
            "(f32[8], f32[8], u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(%p)",
            "f32[8] collective-permute-done(%s)",
            "collective-permute",
        ),
        ("(f32[8]{0:S(1)}, f32[8], u32[]{:S(2)}) copy-start(%p)", "f32[8] copy-done(%s)", "copy"),
        ("((f32[8]), f32[2], s32[]{:S(2)}) slice-start(%p)", "f32[2] slice-done(%s)", "slice"),
        (
            "((f32[8], s32[]), f32[2], s32[]{:S(2)}) dynamic-slice-start(%p, %q)",
            "f32[2] dynamic-slice-done(%s)",
            "dynamic-slice",
        ),
        ("(f32[8], u32[], token[]) send(%p, %q)", "token[] send-done(%s)", "send"),
        ("(f32[8], u32[], token[]) recv(%q)", "(f32[8], token[]) recv-done(%s)", "recv"),
        ("((f32[8]), f32[8]) custom-call-start(%p)", "f32[8] custom-call-done(%s)", "custom-call"),
    ],
)
def test_start_and_done_make_a_span(start: str, done: str, kind: str) -> None:
    span = only(
        entry(
            "  %q = token[] after-all()\n"
            f"  %s = {start}\n"
            "  %a = f32[8] negate(%p)\n"
            "  %b = f32[8] negate(%a)\n"
            f"  %d = {done}\n"
            "  ROOT %r = f32[8] negate(%b)"
        )
    )
    assert (span.kind, span.start.name, span.operation.name) == (kind, "s", "s")
    assert span.done is not None and span.done.name == "d"
    assert names(span.between) == ["a", "b"]


WRAPPED = """%wrapped (w: f32[8]) -> f32[8] {
  %w = f32[8] parameter(0)
  ROOT %inner = f32[8] all-to-all(%w), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}
}
"""


def test_async_start_is_what_it_wraps() -> None:
    module, asynchrony = analyse(
        entry(
            "  %s = ((f32[8]), f32[8]) async-start(%p), calls=%wrapped\n"
            "  %a = f32[8] negate(%p)\n"
            "  %u = ((f32[8]), f32[8]) async-update(%s)\n"
            "  %b = f32[8] negate(%a)\n"
            "  ROOT %d = f32[8] async-done(%u)",
            WRAPPED,
        )
    )
    (span,) = asynchrony.spans
    assert (span.kind, span.operation.name) == ("all-to-all", "inner")
    assert names(span.carriers) == ["u"]
    assert names(span.between) == ["a", "u", "b"]
    assert module.entry is not None
    for name in ("s", "u", "d"):
        instruction = module.entry.instruction(name)
        assert instruction is not None and asynchrony.span_of(instruction) is span


def test_the_wrapped_operation_is_found_through_calls() -> None:
    """As on the SparseCore, where the wrapped computation only calls another one."""
    span = only(
        entry(
            "  %s = ((f32[8]), f32[8], u32[]) async-start(%p), calls=%outer\n"
            "  ROOT %d = f32[8] async-done(%s)",
            "%called (c: f32[8]) -> f32[8] {\n"
            "  %c = f32[8] parameter(0)\n"
            "  ROOT %work = f32[8] scatter(%c, %c, %c)\n"
            "}\n"
            "%outer (o: f32[8]) -> f32[8] {\n"
            "  %o = f32[8] parameter(0)\n"
            "  ROOT %call = f32[8] call(%o), to_apply=%called\n"
            "}\n",
        )
    )
    assert (span.kind, span.operation.name) == ("scatter", "work")


@pytest.mark.parametrize(
    "config",
    [
        '{"collective_backend_config":{"is_sync":true}}',
        '{"is_sync":true}',
        '"{\\"is_sync\\":true}"',
    ],
)
def test_is_sync_means_blocking(config: str) -> None:
    text = entry(
        f"  %s = f32[8] all-reduce-start(%p), backend_config={config}\n"
        "  ROOT %d = f32[8] all-reduce-done(%s)"
    )
    module, asynchrony = analyse(text)
    assert asynchrony.spans == ()
    assert module.entry is not None
    span = asynchrony.span_of(module.entry.root)
    assert span is not None and span.blocking
    assert len(analyse(text.replace("true}", "false}"))[1].spans) == 1


CHAIN = """HloModule m, is_scheduled=true, num_partitions=4

%begin (a: bf16[8]) -> (bf16[8], bf16[32], s32[2], u32[]) {
  %a = bf16[8]{0:S(1)} parameter(0)
  %gather = bf16[32]{0} all-gather(%a), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %x = (bf16[8]{0:S(1)}, bf16[32]{0:S(1)}, s32[2]{0:S(4)}, u32[]{:S(2)}) custom-call(%gather), custom_call_target="AsyncCollectiveStart"
}

%carry (a: bf16[8], b: bf16[32], f: s32[2], g: u32[], h: f32[8]) -> (f32[8], bf16[8], bf16[32], s32[2], u32[]) {
  %a = bf16[8]{0:S(1)} parameter(0)
  %b = bf16[32]{0:S(1)} parameter(1)
  %f = s32[2]{0:S(4)} parameter(2)
  %g = u32[]{:S(2)} parameter(3)
  %h = f32[8]{0} parameter(4)
  %n = f32[8]{0} negate(%h)
  %again = bf16[32]{0:S(1)} all-gather(%a), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %t = (f32[8]{0}, bf16[8]{0:S(1)}, bf16[32]{0:S(1)}, s32[2]{0:S(4)}, u32[]{:S(2)}) tuple(%n, %a, %b, %f, %g)
}

%end (a: bf16[8], b: bf16[32], f: s32[2], g: u32[]) -> bf16[32] {
  %a = bf16[8]{0:S(1)} parameter(0)
  %b = bf16[32]{0:S(1)} parameter(1)
  %last = bf16[32]{0} all-gather(%a), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
  %f = s32[2]{0:S(4)} parameter(2)
  %g = u32[]{:S(2)} parameter(3)
  ROOT %y = bf16[32]{0:S(1)} custom-call(%a, %b, %last, %f, %g), custom_call_target="AsyncCollectiveDone"
}

%use (n: f32[8]) -> f32[8] {
  %n = f32[8]{0} parameter(0)
  ROOT %e = f32[8]{0} exponential(%n)
}

ENTRY %main (p: bf16[8], q: f32[8]) -> (bf16[32], f32[8]) {
  %p = bf16[8]{0:S(1)} parameter(0)
  %q = f32[8]{0} parameter(1)
  %start = (bf16[8]{0:S(1)}, bf16[32]{0:S(1)}, s32[2]{0:S(4)}, u32[]{:S(2)}) fusion(%p), kind=kCustom, output_to_operand_aliasing={{0}: (0, {})}, calls=%begin
  %g3 = u32[]{:S(2)} get-tuple-element(%start), index=3
  %g2 = s32[2]{0:S(4)} get-tuple-element(%start), index=2
  %g1 = bf16[32]{0:S(1)} get-tuple-element(%start), index=1
  %g0 = bf16[8]{0:S(1)} get-tuple-element(%start), index=0
  %beside = (f32[8]{0}, bf16[8]{0:S(1)}, bf16[32]{0:S(1)}, s32[2]{0:S(4)}, u32[]{:S(2)}) fusion(%g0, %g1, %g2, %g3, %q), kind=kLoop, calls=%carry
  %h4 = u32[]{:S(2)} get-tuple-element(%beside), index=4
  %h3 = s32[2]{0:S(4)} get-tuple-element(%beside), index=3
  %h2 = bf16[32]{0:S(1)} get-tuple-element(%beside), index=2
  %h1 = bf16[8]{0:S(1)} get-tuple-element(%beside), index=1
  %value = f32[8]{0} get-tuple-element(%beside), index=0
  %other = f32[8]{0} fusion(%value), kind=kLoop, calls=%use
  %done = bf16[32]{0:S(1)} fusion(%h1, %h2, %h3, %h4), kind=kCustom, calls=%end
  ROOT %r = (bf16[32]{0:S(1)}, f32[8]{0}) tuple(%done, %other)
}
"""  # noqa: E501


def test_tpu_collective_inside_fusions_is_one_span() -> None:
    module, asynchrony = analyse(CHAIN)
    (span,) = asynchrony.spans
    assert (span.kind, span.operation.name, span.start.name) == ("all-gather", "gather", "start")
    assert span.done is not None and span.done.name == "done"
    assert names(span.carriers) == ["beside"]
    fusions = [i.name for i in span.between if i.opcode == "fusion"]
    assert fusions == ["beside", "other"]
    assert module.entry is not None
    other = module.entry.instruction("other")
    assert other is not None and asynchrony.span_of(other) is None


def test_two_tpu_collectives_in_the_same_fusion_are_told_apart() -> None:
    """`both` hands on two of them, in an order of its own; each ends in its own fusion."""
    flags = "s32[2]{0:S(4)}"
    begin = "\n".join(
        f"%begin{k} (a: bf16[8]) -> (bf16[8], s32[2]) {{\n"
        f"  %a{k} = bf16[8] parameter(0)\n"
        f"  %c{k} = bf16[8] all-reduce(%a{k}), channel_id={k}, replica_groups={{}}\n"
        f"  ROOT %x{k} = (bf16[8], {flags}) custom-call(%c{k}),"
        ' custom_call_target="AsyncCollectiveStart"\n}\n'
        f"%end{k} (f: s32[2]) -> bf16[8] {{\n"
        f"  %f{k} = {flags} parameter(0)\n"
        f'  ROOT %y{k} = bf16[8] custom-call(%f{k}), custom_call_target="AsyncCollectiveDone"\n}}\n'
        for k in (1, 2)
    )
    both = (
        f"%hand (f: s32[2], g: s32[2]) -> (bf16[8], s32[2], s32[2]) {{\n"
        f"  %f = {flags} parameter(0)\n  %g = {flags} parameter(1)\n"
        "  %w = bf16[8] constant({0,0,0,0,0,0,0,0})\n"
        f"  ROOT %t = (bf16[8], {flags}, {flags}) tuple(%w, %g, %f)\n}}\n"
    )
    body = "\n".join(
        [
            *(
                f"  %s{k} = (bf16[8], {flags}) fusion(%p), kind=kCustom, calls=%begin{k}\n"
                f"  %g{k} = {flags} get-tuple-element(%s{k}), index=1"
                for k in (1, 2)
            ),
            f"  %both = (bf16[8], {flags}, {flags}) fusion(%g1, %g2), kind=kLoop, calls=%hand",
            f"  %h2 = {flags} get-tuple-element(%both), index=1",
            f"  %h1 = {flags} get-tuple-element(%both), index=2",
            "  %d2 = bf16[8] fusion(%h2), kind=kCustom, calls=%end2",
            "  %d1 = bf16[8] fusion(%h1), kind=kCustom, calls=%end1",
            "  ROOT %r = (bf16[8], bf16[8]) tuple(%d1, %d2)",
        ]
    )
    _, asynchrony = analyse(entry(body, begin + both))
    ends = {s.start.name: s.done.name for s in asynchrony.spans if s.done is not None}
    assert ends == {"s1": "d1", "s2": "d2"}
    assert all(names(span.carriers) == ["both"] for span in asynchrony.spans)


PIPELINED = """HloModule m, is_scheduled=true, num_partitions=4

%condition (c: (s32[], (f32[8], u32[]), f32[8])) -> pred[] {
  %c = (s32[], (f32[8], u32[]), f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(6)
  ROOT %more = pred[] compare(%i, %n), direction=LT
}

%body (b: (s32[], (f32[8], u32[]), f32[8])) -> (s32[], (f32[8], u32[]), f32[8]) {
  %b = (s32[], (f32[8], u32[]), f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %flying = (f32[8], u32[]) get-tuple-element(%b), index=1
  %x = f32[8] get-tuple-element(%b), index=2
  %early = f32[8] negate(%x)
  %wait = f32[8] copy-done(%flying)
  %start = (f32[8], u32[]) copy-start(%wait)
  %late = f32[8] negate(%early)
  ROOT %t = (s32[], (f32[8], u32[]), f32[8]) tuple(%next, %start, %late)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  %zero = s32[] constant(0)
  %first = (f32[8], u32[]) copy-start(%p)
  %init = (s32[], (f32[8], u32[]), f32[8]) tuple(%zero, %first, %p)
  %loop = (s32[], (f32[8], u32[]), f32[8]) while(%init), condition=%condition, body=%body
  %left = (f32[8], u32[]) get-tuple-element(%loop), index=1
  ROOT %last = f32[8] copy-done(%left)
}
"""


def test_a_start_carried_to_the_next_trip_is_waited_for_there() -> None:
    module, asynchrony = analyse(PIPELINED)
    inside = next(span for span in asynchrony.spans if span.start.name == "start")
    assert inside.carried and inside.done is not None and inside.done.name == "wait"
    assert names(inside.between)[:2] == ["late", "t"]
    assert names(inside.between)[-1] == "early"
    before = next(span for span in asynchrony.spans if span.start.name == "first")
    assert before.done is None and before.between == ()
    assert module.entry is not None
    assert asynchrony.span_of(module.entry.root) is inside


def test_a_start_without_a_wait_has_no_end() -> None:
    span = only(entry("  ROOT %s = (f32[8], f32[8], u32[]) copy-start(%p)"))
    assert span.done is None and span.between == () and span.done_position is None


def test_the_corpus_has_every_start_matched(corpus: Path) -> None:
    """Complete dumps: each `-start`, `async-start` and AsyncCollectiveStart has its own wait."""
    for path in sorted((corpus / "hlo_tpu_aot").glob("*.txt")):
        module, asynchrony = analyse(path.read_text())
        starts = module.text.count('"AsyncCollectiveStart"') + sum(
            i.opcode.endswith("-start") for i in module.instructions()
        )
        assert len(asynchrony.spans) == starts
        waits = [span.done for span in asynchrony.spans]
        assert None not in waits and len(set(waits)) == starts
        for span in asynchrony.spans:
            assert span.done_position is not None
            assert span.start_position < span.done_position


def test_work_beside_the_gathers_of_a_real_dump(corpus: Path) -> None:
    path = corpus / "hlo_tpu_aot" / "tpu_aot_v5e8_fsdp_scan_train_donate.txt"
    _, asynchrony = analyse(path.read_text())
    gathers = [span for span in asynchrony.spans if span.kind == "all-gather"]
    assert [(span.operation.name, names(span.carriers)) for span in gathers] == [
        ("all-gather.30", ["fusion.94"]),
        ("all-gather.48", ["fusion.99"]),
        ("all-gather.54", ["fusion.106"]),
    ]
