"""What holds for every module: printing, comments, line ends, names and order change nothing."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import model_of
from test_against_xla import Comparison

import xla_oracle
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.printer import print_module
from strategies import module_texts

few = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@few
@given(module_texts())
def test_a_printed_module_is_the_same_module(text: str) -> None:
    module = parse_module(text)
    assert not module.truncated
    assert module.unread_lines == []
    again = parse_module(print_module(module))
    assert model_of(again) == model_of(module)
    assert print_module(again) == print_module(module)


@pytest.mark.skipif(not xla_oracle.AVAILABLE, reason="this jaxlib has no parser of HLO text")
@few
@given(module_texts())
def test_xla_reads_generated_and_printed_modules_alike(text: str) -> None:
    module = parse_module(text)
    assert Comparison(module, xla_oracle.parse(text)).run() == []
    assert Comparison(module, xla_oracle.parse(print_module(module))).run() == []


@few
@given(module_texts(), st.randoms(use_true_random=False))
def test_comments_and_line_ends_change_nothing(text: str, random) -> None:
    comments = ("// f32[2] %x = add(", "/* %a */", "/* } \n */", "/*index=7*/")
    pieces = re.split(r'("[^"\n]*"|(?<=, )|\n)', text)
    noisy = []
    for piece in pieces:
        if piece == "\n" and random.random() < 0.2:
            noisy.append(" " + random.choice(comments[:2]))
        elif piece == "" and random.random() < 0.2:
            noisy.append(random.choice(comments[1:2]))
        noisy.append(piece)
    changed = "".join(noisy)
    expected = model_of(parse_module(text), attributes=False)
    assert model_of(parse_module(changed), attributes=False) == expected
    windows = parse_module(text.replace("\n", "\r\n"))
    assert model_of(windows) == model_of(parse_module(text))


@few
@given(module_texts())
def test_reordered_computations_are_the_same_computations(text: str) -> None:
    module = parse_module(text)
    head, *bodies = re.split(r"(?m)^(?=(?:ENTRY )?%)", text)
    turned = parse_module(head + "\n".join(reversed(bodies)))
    assert turned.entry is not None
    assert module.entry is not None
    assert turned.entry.name == module.entry.name
    ours = {c[0]: c for c in model_of(module)["computations"]}
    assert {c[0]: c for c in model_of(turned)["computations"]} == ours
    for computation in module.computations:
        for instruction in computation.instructions:
            twin = turned.computation(computation.name).instruction(instruction.name)
            assert [c.name for c in twin.called_computations] == [
                c.name for c in instruction.called_computations
            ]


@few
@given(module_texts())
def test_renamed_instructions_keep_every_edge(text: str) -> None:
    module = parse_module(text)
    names = {i.name: f"renamed.{n}" for n, i in enumerate(module.instructions())}
    renamed = parse_module(re.sub(r"%([^\s,)(=]+)", lambda m: "%" + names.get(m[1], m[1]), text))
    pairs = zip(module.instructions(), renamed.instructions(), strict=True)
    for before, after in pairs:
        assert after.name == names[before.name]
        assert (after.opcode, after.shape, after.line) == (before.opcode, before.shape, before.line)
        assert [o.name for o in after.operands] == [names[o.name] for o in before.operands]
        assert [u.name for u in after.users] == [names[u.name] for u in before.users]


@few
@given(module_texts())
def test_users_mirror_operands(text: str) -> None:
    for instruction in parse_module(text).instructions():
        for operand in instruction.operands:
            assert operand.users.count(instruction) == 1
        for user in instruction.users:
            assert instruction in user.operands
