"""The same program is recognised, however its text is written, and what is not there is not."""

from pathlib import Path

import pytest
from comparing import (
    PLANTED,
    compared,
    module_of,
    pairs,
    planted,
    renamed,
    reordered,
    shuffled,
    text_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_tools.analysis.program import Program
from hlo_tools.diff.matching import Matching
from hlo_tools.hlo.provenance import Provenance

DUMPS = sorted(path.name.partition(".")[0] for path in PLANTED.glob("*.hlo.txt*"))


def matching(old: str, new: str) -> Matching:
    return Matching(*(_program(text) for text in (old, new)))


def _program(text: str) -> Program:
    module = module_of(text).module
    return Program(module, chip=None, provenance=Provenance(module))


@pytest.mark.parametrize("name", DUMPS)
def test_a_program_does_not_differ_from_itself(name: str) -> None:
    """Nothing is a cause, no buffer is new, and every instruction has its partner."""
    text = planted(name)
    same = compared(text, text)
    assert same.causes == () and same.live == ()
    assert same.old.unmatched == same.new.unmatched == 0
    assert same.old.figures == same.new.figures


@pytest.mark.parametrize("name", DUMPS)
def test_names_numbers_and_order_make_no_difference(name: str) -> None:
    text = planted(name)
    changed = reordered(shuffled(renamed(text), 7, everything=False))
    assert changed != text
    same = compared(text, changed)
    assert same.causes == () and same.live == ()
    assert same.old.unmatched == same.new.unmatched == 0


@settings(max_examples=15)
@given(name=st.sampled_from(DUMPS), seed=st.integers(0, 1 << 20))
def test_any_order_of_instructions_is_matched_whole(name: str, seed: int) -> None:
    """Another schedule may cost other seconds; what the instructions are does not change."""
    text = planted(name)
    found = matching(text, shuffled(renamed(text), seed, everything=True))
    assert len(found.pairs) == len(found.old.nodes) == len(found.new.nodes)
    for ours, theirs in found.pairs:
        assert (ours.opcode, ours.shape) == (theirs.opcode, theirs.shape)


def test_every_instruction_gets_its_own_renamed_self() -> None:
    """Where labels tell instructions apart, the pair is the right one, not only a like one."""
    for name in DUMPS:
        text = planted(name)
        found = matching(text, renamed(text))
        lines = [(ours.line, theirs.line) for ours, theirs in found.pairs]
        assert all(ours == theirs for ours, theirs in lines), name


@pytest.mark.parametrize("name", pairs())
def test_matching_does_not_depend_on_which_side_is_old(name: str) -> None:
    good, bad = planted(f"{name}_good"), planted(f"{name}_bad")
    there = {(ours.name, theirs.name) for ours, theirs in matching(good, bad).pairs}
    back = {(theirs.name, ours.name) for ours, theirs in matching(bad, good).pairs}
    assert there == back


def test_a_missing_instruction_is_the_only_one_without_a_partner() -> None:
    """What is taken away is missed, and nothing else takes its partner."""
    text = planted("good_mlp_v5e")
    entry = text[text.index("\nENTRY ") :].split("\n")
    extra = next(line for line in entry if " fusion(" in line and "ROOT" not in line)
    name = extra.split(" = ")[0].strip()
    added = text.replace(extra, f"{extra}\n{extra.replace(name, '%added', 1)}", 1)
    found = matching(text, added)
    paired = {theirs.name for _, theirs in found.pairs}
    left = [node.name for node in found.new.nodes if node.name not in paired]
    assert left == ["added"]
    assert len(found.pairs) == len(found.old.nodes)


def test_dumps_of_the_corpus_do_not_differ_from_themselves(corpus: Path) -> None:
    """Cut off, old and foreign text as well."""
    for path in sorted((corpus / "hlo_tpu_aot").glob("*.txt"))[:4]:
        text = text_of(path)
        same = compared(text, renamed(text))
        assert same.causes == () and same.live == (), path.name
