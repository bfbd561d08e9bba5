"""What is in memory at the fullest moment, against the TPU compiler's own buffer assignment."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_programs import QUICK

from aot_oracle import AVAILABLE, compile_for
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.liveness import HBM_SPACE, VMEM_SPACE, Liveness
from hlo_tools.hlo.parser import parse_module

ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = ROOT / "fixtures" / "planted"
MEBIBYTE = 1 << 20
TEMP = re.compile(r"^allocation \d+: size (\d+), page 0, preallocated-temp:", re.MULTILINE)


def liveness(text: str) -> Liveness:
    module = parse_module(text)
    return Liveness(module, Execution(module))


def read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def test_planted_dumps_agree_with_memory_analysis() -> None:
    """Temporaries within 5 % on nine of ten, arguments and outputs but for scalars."""
    if not (PLANTED / "MANIFEST.json").exists():
        pytest.skip("no planted dumps")
    close, total = 0, 0
    for name, case in json.loads((PLANTED / "MANIFEST.json").read_text()).items():
        memory, found = case["memory"], liveness(read(PLANTED / case["file"]))
        if memory is None:  # refused: the compiler tells the sum alone
            needed = case["refusal"]["needed_bytes"]
            assert abs(found.peak_bytes(HBM_SPACE) - needed) <= 0.05 * needed, name
            continue
        # Scalars and the table of the result's addresses, up to 512 bytes each, do not count.
        assert 0 <= memory["argument_bytes"] - found.argument_bytes() <= 4096, name
        outputs = memory["output_bytes"] - memory["alias_bytes"]
        assert 0 <= outputs - found.output_bytes() <= 4096, name
        if max(memory["temp_bytes"], found.temp_peak_bytes()) >= MEBIBYTE:
            total += 1
            difference = found.temp_peak_bytes() - memory["temp_bytes"]
            close += abs(difference) <= 0.05 * memory["temp_bytes"]
    assert total >= 10
    assert close >= 0.9 * total


@pytest.mark.skipif(not AVAILABLE, reason="needs jax and libtpu")
def test_temporaries_agree_with_buffer_assignment() -> None:
    """For programs compiled here and now: a chain, and a loop that saves its states."""
    programs = compile_for("v5e", QUICK)
    assert len(programs) == 2
    for program in programs:
        assigned = TEMP.search(program.files["buffer-assignment.txt"])
        assert assigned is not None
        theirs = int(assigned[1])
        assert liveness(program.text).temp_peak_bytes() == pytest.approx(theirs, rel=0.05)


BIG = "f32[1024,1024]{1,0:T(8,128)}"
BYTES = 4 << 20


def scheduled(*lines: str, header: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    text = f"HloModule m, is_scheduled=true{header}\n\nENTRY %main (p: BIG) -> BIG {{\n{body}\n}}\n"
    return text.replace("BIG", BIG)


def test_a_buffer_lives_from_its_definition_to_its_last_use() -> None:
    found = liveness(
        scheduled(
            "%p = BIG parameter(0)",
            '%a = BIG custom-call(%p), custom_call_target="f"',
            '%b = BIG custom-call(%a), custom_call_target="f"',
            '%c = BIG custom-call(%b), custom_call_target="f"',
            'ROOT %d = BIG custom-call(%c, %a), custom_call_target="f"',
        )
    )
    assert found.temp_peak_bytes() == 3 * BYTES
    assert found.peak_bytes(HBM_SPACE) == 5 * BYTES
    ranges = {b.instruction.name: (b.first, b.last, b.kind) for b in found.buffers}
    assert ranges["a"] == (1, 4, "temporary")
    assert ranges["b"] == (2, 3, "temporary")
    assert ranges["d"] == (4, 4, "output")
    assert ranges["p"][2] == "argument"


def test_elementwise_results_take_the_place_of_operands_that_die() -> None:
    chain = ("%p = BIG parameter(0)", "%a = BIG negate(%p)", "%b = BIG negate(%a)")
    assert liveness(scheduled(*chain, "ROOT %c = BIG copy(%b)")).temp_peak_bytes() == BYTES
    # Not while somebody still needs it.
    twice = liveness(scheduled(*chain, 'ROOT %c = BIG custom-call(%b, %a), custom_call_target="f"'))
    assert twice.temp_peak_bytes() == 2 * BYTES


def test_a_donated_argument_holds_the_output() -> None:
    lines = ("%p = BIG parameter(0)", "ROOT %a = BIG negate(%p)")
    alias = ", input_output_alias={ {}: (0, {}, may-alias) }"
    assert liveness(scheduled(*lines)).peak_bytes(HBM_SPACE) == 2 * BYTES
    assert liveness(scheduled(*lines, header=alias)).peak_bytes(HBM_SPACE) == BYTES


def test_memory_spaces_are_kept_apart() -> None:
    found = liveness(
        scheduled(
            "%p = BIG parameter(0)",
            "%s = (f32[1024,1024]{1,0:T(8,128)S(1)}, BIG, u32[]{:S(2)}) copy-start(%p)",
            "%d = f32[1024,1024]{1,0:T(8,128)S(1)} copy-done(%s)",
            'ROOT %a = BIG custom-call(%d), custom_call_target="f"',
        )
    )
    assert found.temp_peak_bytes(HBM_SPACE) == 0
    assert found.peak_bytes(VMEM_SPACE) == BYTES
    assert [b.instruction.name for b in found.live_at_peak(VMEM_SPACE)] == ["s"]


LOOP = """HloModule m, is_scheduled=true

%cond (c: (s32[], BIG)) -> pred[] {
  %c = (s32[], BIG) parameter(0)
  %n = s32[] get-tuple-element(%c), index=0
  %k = s32[] constant(3)
  ROOT %l = pred[] compare(%n, %k), direction=LT
}

%body (b: (s32[], BIG)) -> (s32[], BIG) {
  %b = (s32[], BIG) parameter(0)
  %n = s32[] get-tuple-element(%b), index=0
  %one = s32[] constant(1)
  %m = s32[] add(%n, %one)
  %x = BIG get-tuple-element(%b), index=1
  %y = BIG custom-call(%x), custom_call_target="f"
  %z = BIG custom-call(%y), custom_call_target="f"
  %w = BIG custom-call(%y, %z), custom_call_target="f"
  ROOT %t = (s32[], BIG) tuple(%m, %w)
}

ENTRY %main (p: BIG) -> BIG {
  %p = BIG parameter(0)
  %zero = s32[] constant(0)
  %copy = BIG copy(%p)
  %init = (s32[], BIG) tuple(%zero, %copy)
  %loop = (s32[], BIG) while(%init), condition=%cond, body=%body
  %out = BIG get-tuple-element(%loop), index=1
  ROOT %r = BIG custom-call(%out), custom_call_target="f"
}
""".replace("BIG", "f32[1024,1024]{1,0:T(8,128)}")


def test_a_loop_has_one_state_and_its_bodys_temporaries_on_top() -> None:
    """State, `y` and `z`; what the body gives back lies in the state's buffer."""
    found = liveness(LOOP)
    assert found.temp_peak_bytes() == pytest.approx(3 * BYTES, rel=0.01)
    names = [b.instruction.name for b in found.live_at_peak(HBM_SPACE) if b.bytes == BYTES]
    assert sorted(names) == ["copy", "p", "r", "y", "z"]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25))
def test_the_peak_is_that_of_a_simulation(uses: list[tuple[int, int]]) -> None:
    """Opaque calls in a row, each reading two earlier values: live bytes counted one by one."""
    lines, names = ["%p = BIG parameter(0)"], ["p"]
    reads: list[set[int]] = [set()]
    for number, pair in enumerate(uses, start=1):
        chosen = [value % number for value in pair]
        operands = ", ".join(f"%{names[c]}" for c in chosen)
        root = "ROOT " if number == len(uses) else ""
        lines.append(f'{root}%v{number} = BIG custom-call({operands}), custom_call_target="f"')
        names.append(f"v{number}")
        reads.append(set(chosen))
    end = len(uses)
    peak = 0
    for now in range(1, end + 1):
        live = [
            v for v in range(1, end)
            if v <= now and (v == now or any(v in reads[later] for later in range(now, end + 1)))
        ]  # fmt: skip
        peak = max(peak, len(live))
    found = liveness(scheduled(*lines))
    assert found.temp_peak_bytes() == peak * BYTES
    at_peak = [b for b in found.live_at_peak(HBM_SPACE) if b.kind == "temporary"]
    assert sum(b.bytes for b in at_peak) == found.temp_peak_bytes()


def test_tuples_of_tuples_do_not_grow_without_end() -> None:
    """Forty tuples that each name the one before twice: 2**40 leaves, were they followed."""
    lines = ["%p = BIG parameter(0)", "%t0 = (BIG, BIG) tuple(%p, %p)"]
    lines += [f"%t{n} = (BIG, BIG) tuple(%t{n - 1}, %t{n - 1})" for n in range(1, 40)]
    lines.append('ROOT %r = BIG custom-call(%t39), custom_call_target="f"')
    assert liveness(scheduled(*lines)).temp_peak_bytes() == 0


def test_every_dump_of_the_corpus_has_a_peak(corpus: Path) -> None:
    """Broken, headless and unscheduled text included; what is live adds up to the peak."""
    for path in sorted([*corpus.glob("hlo/gpu_*after_opt*.txt*"), *corpus.glob("hlo/tpu_*")]):
        found = liveness(read(path))
        for space in (HBM_SPACE, VMEM_SPACE):
            live = sum(b.bytes for b in found.live_at_peak(space))
            assert 0 <= live <= found.peak_bytes(space)
