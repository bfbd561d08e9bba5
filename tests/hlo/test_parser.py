"""Every form of HLO text is read, whatever breaks off or is unknown; nothing else is raised."""

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import model_of

from hlo_tools.hlo.module import MISSING, Instruction, Module
from hlo_tools.hlo.parser import MAX_UNREAD_LINES, ParseError, parse_module
from hlo_tools.hlo.shape import parse_shape
from strategies import module_texts

SMALL = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%fused (param_0.1: f32[8]) -> f32[8] {
  %param_0.1 = f32[8]{0:T(128)} parameter(0)
  ROOT %add.1 = f32[8]{0:T(128)} add(%param_0.1, %param_0.1), metadata={op_name="jit(f)/add"}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0:T(128)} parameter(0), metadata={op_name="x"}
  ROOT %fusion = f32[8]{0:T(128)} fusion(%x), kind=kLoop, calls=%fused
}
"""


def entry_of(text: str) -> Module:
    module = parse_module(text)
    assert module.entry is not None
    return module


def body(*lines: str) -> Module:
    """A module whose entry holds these lines behind a parameter `p`."""
    text = "\n".join(
        ["HloModule m", "", "ENTRY %main {", "  %p = f32[4]{0} parameter(0)", *lines, "}"]
    )
    return entry_of(text + "\n")


def instruction(module: Module, name: str) -> Instruction:
    assert module.entry is not None
    found = module.entry.instruction(name)
    assert found is not None, module.entry.instructions
    return found


def operand_names(found: Instruction) -> list[str]:
    return [operand.name for operand in found.operands]


def clean(module: Module) -> Module:
    assert not module.truncated
    assert module.unread_lines == []
    return module


def test_a_small_module_in_full() -> None:
    module = clean(parse_module(SMALL))
    assert module.name == "jit_f"
    assert module.is_scheduled
    assert module.attribute("entry_computation_layout") == "{(f32[8]{0})->f32[8]{0}}"
    assert module.frame_tables.startswith("FileNames\n1 ")
    assert module.frame_tables.endswith("parent_frame_id=1}")
    assert [c.name for c in module.computations] == ["fused", "main"]
    fusion = instruction(module, "fusion")
    assert fusion.is_root
    assert fusion.called_computations == (module.computations[0],)
    assert fusion.attribute("kind") == "kLoop"
    assert operand_names(fusion) == ["x"]
    assert instruction(module, "x").users == [fusion]
    assert fusion.line == SMALL[: SMALL.index("ROOT %fusion")].count("\n") + 1


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("ROOT %n = f32[4]{0} add(%p, %p)", ["p", "p"]),
        ("ROOT n = f32[4]{0} add(p, p)", ["p", "p"]),
        ("ROOT %n = f32[4]{0} add(f32[4]{0} %p, f32[4]{0} %p)", ["p", "p"]),
        ("ROOT n = f32[4]{0} add(f32[4]{0} p, f32[4]{0:T(8,128)(2,1)} p)", ["p", "p"]),
        ("ROOT n = f32[4]{0} add((f32[4]{0}, (s32[], pred[])) p, f32[4]{0} p)", ["p", "p"]),
        ("ROOT %n = f32[4]{0} add(%p, /*index=1*/%p)", ["p", "p"]),
        ("ROOT %n = f32[4]{0} add(f32[4]{0} %p, /*index=1*/f32[4]{0} %p)", ["p", "p"]),
        ("ROOT n = f32[4]{0} add(p, /*index=1*/p)", ["p", "p"]),
        ('ROOT %n =\n  f32[4]{0}\n  add(%p,\n   %p),\n  metadata={op_name="a"}', ["p", "p"]),
        ("ROOT %n = add(%p, %p)", ["p", "p"]),
        ("ROOT %n = f32[4]{0} rng-get-and-update-state(), delta=1", []),
        ("ROOT %n = f9[4]{0:Q(1)} frobnicate(%p), colour=blue", ["p"]),
        ("ROOT %n=f32[4]{0} negate(%p)", ["p"]),
        ("\tROOT\t%n = f32[4]{0} negate(%p)", ["p"]),
    ],
)
def test_operands_in_every_form(line: str, operands: list[str]) -> None:
    found = instruction(clean(body("  " + line)), "n")
    assert operand_names(found) == operands
    assert found.is_root


def test_names_of_every_kind() -> None:
    names = ["a.b-c_d", "fusion.1.remat<2>", "add.clone.1", "%".strip("%") + "x:y", "0", "ROOT2"]
    module = clean(body(*(f"  %{name} = f32[4]{{0}} negate(%p)" for name in names)))
    assert [i.name for i in module.entry.instructions[1:]] == names


@pytest.mark.parametrize(
    "literal",
    [
        "1", "-inf", "nan", "(1, 2)", "{...}", "{ { 1, 2 }, { 3, 4 } }", '"text with ) and ("',
        "{\n  { 1, 2 },\n  { 3, 4 }\n}", "((1, (2, (3, (4, (5, 6))))))", "{/*i0=0*/1}",
    ],
)  # fmt: skip
def test_literals_are_kept_and_are_no_operands(literal: str) -> None:
    module = clean(body(f"  %c = f32[4]{{0}} constant({literal}), sharding={{replicated}}"))
    found = instruction(module, "c")
    assert found.operands == ()
    assert found.attribute("sharding") == "{replicated}"
    if "/*" not in literal:
        assert found.argument_text == literal


@pytest.mark.parametrize(
    "shape",
    [
        "f32[]", "f32[4]{0}", "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", "f32[]{:T(128)}",
        "(f32[4]{0}, s32[]{:T(128)})", "((f32[4]{0}), (), token[])", "f32[<=4]{0}", "token[]",
        "(f32[1], f32[2], f32[3], f32[4], f32[5], /*index=5*/f32[6])", "b(f32[3]{0})",
        "pred[1000,256]{1,0:T(8,128)(4,1)S(1)SC(0:504)}", "f32[2]{0:D(S)}", "s4[8]{0:E(4)}",
    ],
)  # fmt: skip
def test_shapes_are_those_that_the_text_gives(shape: str) -> None:
    found = instruction(clean(body(f'  %n = {shape} custom-call(%p), custom_call_target="x"')), "n")
    assert found.shape == parse_shape(shape)
    assert operand_names(found) == ["p"]


def test_an_unknown_shape_is_kept_as_it_is() -> None:
    found = instruction(clean(body("  %n = f9[4]{0:Q(1)} negate(%p)")), "n")
    assert str(found.shape) == "f9[4]{0:Q(1)}"


@pytest.mark.parametrize(
    "attributes",
    [
        ', backend_config={"a": {\n    "b": [\n 1,\n 2\n ]\n }\n}, metadata={op_name="m"}',
        ', backend_config={\n}\n, metadata={op_name="m"}',
        ',\n    backend_config={"}": "{"},\n    metadata={op_name="m"}',
        ', backend_config={"a":1\n}, metadata={op_name="m"}',
        ', backend_config="{\\"a\\": \\"}\\"}", metadata={op_name="m"}',
        ', custom_call_target="a, calls=%zzz // { /*", metadata={op_name="m"}',
    ],
)
def test_attributes_over_several_lines(attributes: str) -> None:
    module = clean(
        body(f"  %n = f32[4]{{0}} custom-call(%p){attributes}", "  ROOT %r = f32[4]{0} negate(%n)")
    )
    found = instruction(module, "n")
    assert found.attribute("metadata") == '{op_name="m"}'
    assert found.called_names() == ()
    assert [i.name for i in module.entry.instructions] == ["p", "n", "r"]
    last = clean(body(f"  ROOT %n = f32[4]{{0}} custom-call(%p){attributes}"))
    assert instruction(last, "n").attribute("metadata") == '{op_name="m"}'


def test_comments_anywhere() -> None:
    text = """// made by hand
HloModule m /* here */, is_scheduled=true // there
/* ENTRY %not { */
ENTRY %main (p: f32[4]) /* result */ -> f32[4] { // go
  // %q = f32[4] negate(%p)
  /* two
     lines } */ %p = f32[4]{0} /* c */ parameter(0) // f32
  ROOT %n = f32[4]{0} add(%p, /* second */ %p), metadata={op_name="a // b /* c */"} // end
} // done
"""
    module = clean(entry_of(text))
    assert module.is_scheduled
    found = instruction(module, "n")
    assert operand_names(found) == ["p", "p"]
    assert found.attribute("metadata") == '{op_name="a // b /* c */"}'
    assert found.line == 8


def test_windows_line_ends() -> None:
    assert model_of(parse_module(SMALL.replace("\n", "\r\n"))) == model_of(parse_module(SMALL))


@pytest.mark.parametrize(
    "header",
    [
        "ENTRY %main (p: f32[4]) -> f32[4] {",
        "ENTRY main {",
        "ENTRY %main{",
        "ENTRY %main (p: f32[4],\n  q: (f32[], /*index=1*/s32[])) -> f32[4]{0:T(128)} {",
        "ENTRY %main (p: f32[4])\n  -> (f32[4],\n  f32[2]{0}) {",
        "ENTRY\n%main\n(p: f32[4])\n->\nf32[4]\n{",
    ],
)
def test_headers_in_every_form(header: str) -> None:
    module = clean(entry_of(f"HloModule m\n\n{header}\n  ROOT %p = f32[4]{{0}} parameter(0)\n}}\n"))
    assert module.entry.name == "main"
    assert module.entry.complete


def test_a_module_line_over_several_lines() -> None:
    text = SMALL.replace("is_scheduled=true, ", "is_scheduled=true,\n  ", 1)
    module = clean(parse_module(text))
    assert module.attribute("entry_computation_layout") == "{(f32[8]{0})->f32[8]{0}}"


def test_what_follows_the_closing_brace() -> None:
    text = SMALL.replace("}\n\nENTRY", '}, execution_thread="host"\n\nENTRY')
    module = clean(parse_module(text))
    assert module.computations[0].attribute_text == ', execution_thread="host"'
    assert module.computations[1].attribute_text == ""


def test_table_rows_that_look_like_something_else() -> None:
    rows = '1 "}"\n2 "f (x) -> y {"\n3 "%a = f32[] add(%b)"\n4 "odd {"'
    module = clean(parse_module(SMALL.replace('1 "model.py"', rows)))
    assert [c.name for c in module.computations] == ["fused", "main"]
    assert rows in module.frame_tables


def test_empty_tables() -> None:
    text = (
        "HloModule m\n\nFileNames\n\nFunctionNames\n\nStackFrames\n\n\n"
        + SMALL[SMALL.index("%fused") :]
    )
    assert clean(parse_module(text)).instruction_count == 4


def test_text_that_starts_at_the_entry() -> None:
    module = entry_of(SMALL[SMALL.index("ENTRY") :])
    assert module.name == "main"
    assert not module.truncated
    assert instruction(module, "fusion").called_names() == ("fused",)
    assert instruction(module, "fusion").called_computations == ()


def test_a_fragment_without_a_header() -> None:
    start = SMALL.index("  ROOT %add.1")
    module = parse_module(SMALL[start:])
    assert module.truncated
    assert [c.name for c in module.computations] == ["fragment.0", "main"]
    missing = module.computations[0].instructions[0].operands[0]
    assert (missing.name, missing.opcode, missing.line) == ("param_0.1", MISSING, 0)
    assert missing.attribute_text == missing.argument_text == ""
    assert missing.users == [module.computations[0].root]


def test_no_value_leads_back_to_itself() -> None:
    """XLA refuses operands that are defined further down; here a stand-in takes their place."""
    module = body(
        "  %late = f32[4]{0} add(%early, %p)",
        "  %early = f32[4]{0} negate(%late)",
        "  %own = f32[4]{0} bitcast(%own)",
        "  ROOT %p.1 = f32[4]{0} add(%late, %early)",
    )
    early, late = (instruction(module, name) for name in ("early", "late"))
    assert [operand.opcode for operand in late.operands] == [MISSING, "parameter"]
    assert early.operands == (late,)
    assert [operand.opcode for operand in instruction(module, "own").operands] == [MISSING]
    assert module.entry.root.operands == (late, early)


def test_repeated_names() -> None:
    twice = body(
        "  %a = f32[4]{0} negate(%p)", "  %a = f32[4]{0} tanh(%a)", "  ROOT %b = f32[4]{0} exp(%a)"
    )
    first, second, root = twice.entry.instructions[1:]
    assert second.operands == (first,)
    assert root.operands == (second,)


@pytest.mark.parametrize("percent", ["%", ""])
def test_called_computations_in_both_forms(percent: str) -> None:
    calls = {
        f"fusion(p), kind=kLoop, calls={percent}a": ["a"],
        f'call(p), to_apply={percent}a, metadata={{op_name="x"}}': ["a"],
        f"while(p), condition={percent}a, body={percent}b": ["a", "b"],
        f"conditional(p), branch_computations={{{percent}a, {percent}b}}": ["a", "b"],
        f"conditional(p), true_computation={percent}a, false_computation={percent}b": ["a", "b"],
        f'custom-call(p), custom_call_target="x", called_computations={{{percent}a}}': ["a"],
        f"select-and-scatter(p), select={percent}a, scatter={percent}b": ["a", "b"],
        f'custom-call(p), custom_call_target="calls={percent}a"': [],
    }
    for line, expected in calls.items():
        text = "HloModule m\n"
        for name in "ab":
            text += f"{percent}{name} {{\n  ROOT {percent}x.{name} = f32[] parameter(0)\n}}\n"
        text += f"ENTRY main {{\n  p = f32[] parameter(0)\n  ROOT n = f32[] {line}\n}}\n"
        found = instruction(clean(parse_module(text)), "n")
        assert list(found.called_names()) == expected, line
        assert [c.name for c in found.called_computations] == expected


@pytest.mark.parametrize("text", [SMALL, SMALL.replace("%", "")])
def test_cut_off_at_every_byte(text: str) -> None:
    """What is read is what stood before the cut; the cut is reported unless nothing is missing."""
    whole = model_of(parse_module(text))["computations"]
    for end in range(len(text)):
        try:
            module = parse_module(text[:end])
        except ParseError:
            continue
        assert module.truncated or text[end:].strip() == ""
        read = model_of(module)["computations"]
        for ours, original in zip(read, whole, strict=False):
            assert ours[0] == original[0]
            # The line in which the text was cut may itself be read in part.
            complete = ours[5] if ours[3] else ours[5][:-1]
            assert [i[:3] for i in complete] == [i[:3] for i in original[5]][: len(complete)]


@settings(max_examples=60)
@given(module_texts(), st.data())
def test_damaged_text_raises_nothing_else(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 40))
    junk = data.draw(st.text('{}()[]"\\/*%=, \nROTENY\u2028\x85', max_size=8))
    try:
        module = parse_module(text[:position] + junk + text[position + length :])
    except ParseError:
        return
    for found in module.instructions():
        assert found.line >= 1
        found.attributes()
        assert all(user in found.computation.instructions for user in found.users)
        assert all(c.module is module for c in found.called_computations)


@given(st.text(max_size=200))
def test_any_text_is_a_module_or_a_parse_error(text: str) -> None:
    try:
        module = parse_module(text, path="x.txt")
    except ParseError as error:
        assert error.path == "x.txt"
        assert error.line >= 1
        return
    assert module.instruction_count > 0


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "HloModule m\n", "x = await fetch(url)\n", "module @m {\n }\n",
     "for i in range(3):\n  y = g[0] (i)\n", "ENTRY %main {\n}\n"],
)  # fmt: skip
def test_text_that_is_no_hlo(text: str) -> None:
    with pytest.raises(ParseError, match="no HLO computation found"):
        parse_module(text)


def test_unreadable_lines_are_counted_and_bounded() -> None:
    module = body("  what is this", "  ROOT %n = f32[4]{0} negate(%p)")
    assert module.unread_lines == [5]
    assert module.truncated
    assert [i.name for i in module.entry.instructions] == ["p", "n"]
    many = parse_module(SMALL + "garbage\n" * 10_000)
    assert len(many.unread_lines) == MAX_UNREAD_LINES


def test_a_computation_that_breaks_off_harms_no_other() -> None:
    broken = SMALL.replace('add"}\n}\n', 'add"}\n')
    module = parse_module(broken)
    assert module.truncated
    assert [(c.name, c.complete) for c in module.computations] == [("fused", False), ("main", True)]
    open_brace = SMALL.replace('{op_name="jit(f)/add"}', '{op_name="jit(f')
    assert [c.name for c in parse_module(open_brace).computations] == ["fused", "main"]


def test_a_module_cut_between_computations_is_truncated() -> None:
    first = SMALL[: SMALL.index("ENTRY")]
    twice = first + first[first.index("%fused") :].replace("fused", "other")
    module = parse_module(twice)
    assert module.truncated
    assert module.entry is None
    assert [c.name for c in module.roots()] == ["fused", "other"]


def test_a_megabyte_of_base64_on_one_line() -> None:
    blob = "".join(random.Random(0).choices("ABCxyz019+/", k=1_000_000)) + "//=="
    module = clean(
        body(
            f'  %k = f32[4]{{0}} custom-call(%p), custom_call_target="tpu_custom_call", '
            f'backend_config={{"custom_call_config": {{"body": "{blob}"}}}}, '
            f'metadata={{op_name="k"}}',
            "  ROOT %n = f32[4]{0} negate(%k)",
        )
    )
    found = instruction(module, "k")
    assert found.attribute("metadata") == '{op_name="k"}'
    assert blob in found.attribute("backend_config")


def hostile_texts() -> dict[str, Callable[[int], str]]:
    """Texts of about that many bytes on which a careless expression takes quadratic time."""
    head = "ENTRY %main {\n  %p = f32[4]{0} parameter(0)\n"
    return {
        "open strings": lambda n: head + '  %c = f32[] constant("' + '\\"' * (n // 2),
        "open string in attributes": lambda n: (
            head + '  %c = f32[] add(%p), x="' + '\\"' * (n // 2)
        ),
        "open comments": lambda n: head + "/* " * (n // 3),
        "open comments after strings": lambda n: head + '"/*" // /* \n' * (n // 12),
        "open parentheses": lambda n: head + "  %c = f32[] add(" + "(" * n,
        "unclosed instructions": lambda n: head + "  %c = f32[] add((((((\n" * (n // 24),
        "unclosed tuples": lambda n: head + "  %c = (f32[],\n" * (n // 16),
        "unclosed attributes": lambda n: head + '  %c = f32[] constant("a"), b={{\n' * (n // 34),
        "unclosed headers": lambda n: head + "a (b\n" * (n // 5),
        "closed headers": lambda n: head + "a (b\n" * (n // 10) + ")\n" * (n // 4),
        "braces": lambda n: head + "  %c = f32[] add(%p), x=" + "{" * n,
        "closing braces": lambda n: head + "}\n" * (n // 2),
        "spaces": lambda n: head + "  %c = f32[] add(%p)," + " " * n + "x",
        "blank lines": lambda n: head + "  %c = f32[] add(%p),\n" + "\n" * n + "x",
        "commas": lambda n: head + "  %c = f32[] add(" + "%p, " * (n // 4),
        "nested operands": lambda n: (
            head + "  %c = f32[] add(" + "(" * (n // 2) + ")" * (n // 2) + ")"
        ),
        "nested shape": lambda n: head + "  %c = " + "(" * (n // 2) + ")" * (n // 2) + " add(%p)\n",
        "names": lambda n: head + "a\n" * (n // 2),
        "one name": lambda n: head + "a" * n,
        "slashes": lambda n: head + "/" * n,
        "stars": lambda n: head + "/*/" * (n // 3),
        "equals": lambda n: head + " = " * (n // 3),
        "index comments": lambda n: head + "  %c = (" + "/*index=5*/" * (n // 11) + " = add(",
        "tables": lambda n: "FileNames\n" * (n // 10) + head,
        "no newline": lambda n: head.replace("\n", " ") * (n // 40),
    }


@pytest.mark.parametrize("kind", hostile_texts())
def test_hostile_text_takes_time_in_proportion(kind: str) -> None:
    """Eight times the text may take no more than some multiple of eight times as long."""
    make = hostile_texts()[kind]

    def seconds(size: int) -> float:
        text = make(size)
        best = float("inf")
        for _ in range(2):
            start = time.thread_time()
            try:
                for found in parse_module(text).instructions():
                    found.attributes()
                    found.called_names()
            except ParseError:
                pass
            best = min(best, time.thread_time() - start)
        return best

    small = max(seconds(20_000), 0.002)
    assert seconds(160_000) / small < 32
