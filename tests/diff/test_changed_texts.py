"""One thing changed in a real dump is the one cause that is told; size is no obstacle."""

import math
import re

import pytest
from comparing import compared, planted
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_tools.diff.similarity import WINDOW, _near
from hlo_tools.hardware import chip

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
DUMPS = ("good_mlp_v5e", "good_attention_v6e", "uncombined_collectives_clip_v5p_good")


def entry_cycles(text: str) -> list[re.Match[str]]:
    """The estimates of instructions of the entry, which run once a step."""
    return list(_CYCLES.finditer(text, text.index("\nENTRY ")))


@settings(max_examples=20)
@given(name=st.sampled_from(DUMPS), data=st.data())
def test_other_estimates_are_told_one_by_one(name: str, data: st.DataObject) -> None:
    """Whichever instructions are expected to take longer: these, by that much, and no other.

    What is copied beside them may be better hidden for it.
    """
    text = planted(name)
    found = entry_cycles(text)
    picked = data.draw(st.sets(st.integers(0, len(found) - 1), min_size=1, max_size=5))
    changed, lost = text, 0
    for number in sorted(picked, reverse=True):
        match = found[number]
        lost += int(match[1]) + 1000
        raised = f'"estimated_cycles":"{2 * int(match[1]) + 1000}"'
        changed = changed[: match.start()] + raised + changed[match.end() :]
    result = compared(text, changed, chip="v5e")
    clock = chip("v5e").clock_hz
    assert clock
    raised_causes = [cause for cause in result.causes if cause.kind == "estimate-raised"]
    assert all(c.kind == "prefetch-hidden" for c in result.causes if c not in raised_causes)
    lines = {text.rindex("\n  ", 0, found[n].start()) for n in picked}
    assert sum(len(cause.changes) for cause in raised_causes) == len(lines)
    raised_seconds = sum(cause.seconds for cause in raised_causes)
    assert math.isclose(raised_seconds, lost / clock, rel_tol=1e-6)


def test_a_longer_loop_is_told_as_such() -> None:
    """The same body, run 64 times instead of 32."""
    text = planted("loop_carried_copy_mlp_v6e_bad")
    changed = re.sub(r"constant\(32\)", "constant(64)", text)
    assert changed != text
    result = compared(text, changed)
    assert {cause.kind for cause in result.causes} == {"repeated-more"}
    matmul = result.causes[0].changes[0]
    assert matmul.old is not None and matmul.new is not None
    assert (matmul.old.times_per_step, matmul.new.times_per_step) == (32, 64)


def test_a_value_that_leaves_on_chip_memory_is_told_as_such() -> None:
    result = compared(
        planted("uncombined_collectives_clip_v5p_good"),
        planted("uncombined_collectives_clip_v5p_bad"),
    )
    moved = [cause for cause in result.causes if cause.kind == "moved-off-chip"]
    assert moved and all("lies in HBM, it was in on-chip memory" in c.message for c in moved)


def test_the_line_is_that_of_the_file_and_not_of_the_text() -> None:
    """Dumps of several modules in one file: the module starts further down."""
    from hlo_tools.diff.compare import Modelling, compare, read_module
    from hlo_tools.io import ModuleText

    old, new = planted("fusion_break_barrier_v6e_good"), planted("fusion_break_barrier_v6e_bad")
    sides = [
        read_module(ModuleText(path="x", text=text, start_line=line))
        for text, line in ((old, 101), (new, 1001))
    ]
    (cause,) = compare(*sides, Modelling()).causes
    plain = compared(old, new).causes[0]
    for shifted, change in zip(cause.changes, plain.changes, strict=True):
        if change.old is not None and shifted.old is not None:
            assert shifted.old.hlo_line == change.old.hlo_line + 100
        if change.new is not None and shifted.new is not None:
            assert shifted.new.hlo_line == change.new.hlo_line + 1000


def chain(length: int, *, extra: int = 0) -> str:
    """A program of additions, each of the last two; `extra` of them are subtractions."""
    lines = ["  %v0 = f32[8,128]{1,0} parameter(0)", "  %v1 = f32[8,128]{1,0} add(%v0, %v0)"]
    for n in range(2, length):
        opcode = "subtract" if n in range(length // 2, length // 2 + extra) else "add"
        lines.append(f"  %v{n} = f32[8,128]{{1,0}} {opcode}(%v{n - 1}, %v{n - 2})")
    lines[-1] = "  ROOT" + lines[-1][1:]
    body = "\n".join(lines)
    head = "HloModule jit_chain, is_scheduled=true\n\nENTRY %main (v0: f32[8,128]) -> f32[8,128] {"
    return f"{head}\n{body}\n}}\n"


def test_a_long_chain_is_matched_without_recursion() -> None:
    """Deeper than Python's stack, and with nothing but its place to tell its links apart."""
    result = compared(chain(3000), chain(3000, extra=3), chip="v5e")
    assert result.old.unmatched == result.new.unmatched
    assert result.old.unmatched <= 3
    assert len([c for cause in result.causes for c in cause.changes]) <= 6


@given(mine=st.integers(0, 300), other=st.integers(0, 300))
def test_candidates_grow_with_the_lists_and_not_with_their_square(mine: int, other: int) -> None:
    """And they are the same from both sides."""
    ours, theirs = list(range(mine)), list(range(1000, 1000 + other))
    pairs = set(_near(ours, theirs))
    assert pairs == {(a, b) for b, a in _near(theirs, ours)}
    if max(mine, other) > 32:
        assert len(pairs) <= (2 * WINDOW + 1) * max(mine, other) * 2
    if mine and other:
        assert {a for a, _ in pairs} == set(ours) and {b for _, b in pairs} == set(theirs)


@pytest.mark.parametrize("name", DUMPS)
def test_lines_added_above_in_the_source_change_nothing(name: str) -> None:
    text = planted(name)
    moved = re.sub(r"\b((?:end_)?line)=(\d+)", lambda m: f"{m[1]}={int(m[2]) + 40}", text)
    assert moved != text
    same = compared(text, moved)
    assert same.causes == () and same.live == ()
