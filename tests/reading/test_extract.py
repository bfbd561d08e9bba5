"""Every module in a text is found, whole and on the right line, whatever stands around it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inputs import OTHER, SMALL, message, modules, read, time_limit

from hlo_tools.errors import InputError
from hlo_tools.io import read_inputs
from hlo_tools.reading.extract import MAX_MODULES, extract_modules

BODY = SMALL[SMALL.index("%fused") :]
ENTRY = SMALL[SMALL.index("ENTRY") :]


def test_a_dump_is_one_module_and_the_very_same_text() -> None:
    assert modules(read(SMALL)) == [(1, SMALL)]


def test_text_is_handed_on_without_a_copy() -> None:
    ((text, _),) = extract_modules(SMALL, path="-")
    assert text is SMALL


def test_modules_one_after_another() -> None:
    assert modules(read(SMALL + OTHER + SMALL)) == [(1, SMALL), (15, OTHER), (29, SMALL)]


def test_comments_before_the_header_belong_to_no_module() -> None:
    text = "// made by hand\n/* HloModule no, this\nHloModule no\n*/\n\n" + SMALL
    assert modules(read(text)) == [(6, SMALL)]


def test_a_commented_header_opens_no_module() -> None:
    text = SMALL.replace("\nENTRY", "\n// HloModule no, x=1\n/*\nHloModule no\n*/\nENTRY")
    assert modules(read(text)) == [(1, text)]


def test_comments_of_tuple_indices_hide_no_header() -> None:
    text = SMALL.replace("(%x)", "(/*index=0*/%x)")
    assert len(modules(read(text + OTHER))) == 2


@pytest.mark.parametrize("cut", range(10, len(SMALL), 7))
def test_a_text_cut_anywhere_is_kept_as_far_as_it_goes(cut: int) -> None:
    (module,) = modules(read(SMALL[:cut]))
    assert module == (1, SMALL[:cut])


@pytest.mark.parametrize(
    "text",
    [
        ENTRY,
        BODY,
        BODY.replace("%", ""),
        "region.1 {\n  a = f32[] parameter(0)\n}\n",
        "%c (a: f32[]) -> f32[] {\n%d (a: f32[]) -> (f32[], s32[]) {\n",
        "  %while.1 = (s32[], f32[2,3]{1,0:T(8,128)}) while(%tuple), condition=%c, body=%b\n",
        "ENTRY e {\n  a = bf16[8]{0} parameter(0)",
    ],
    ids=["entry", "computations", "no-percent", "short", "headers", "instructions", "cut"],
)
def test_text_without_a_header_is_hlo(text: str) -> None:
    assert modules(read(text)) == [(1, text)]
    assert modules(read("some words\n\n" + text)) == [(3, text)]


def test_the_separator_of_xla_tests_divides_modules() -> None:
    parts = [SMALL, OTHER]
    assert modules(read("\n// -----\n".join(parts))) == [(1, SMALL + "\n"), (17, OTHER)]
    headless = "e {\n  a = s4[4]{0:E(4)} parameter(0)\n}\n"
    text = f"// RUN: x\n\n{headless}\n// -----\n\n{headless}"
    assert modules(read(text)) == [(3, headless + "\n"), (9, headless)]


PREFIXES = [
    "I0000 00:00:00.{n:06}    {n} hlo.cc:45] ",
    "{n}: ",
    "E   ",
    "[worker-{n}] 2026-01-02 03:04:{n:02},123 INFO ",
    "2026-01-02T03:04:{n:02}Z stdout F ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_on_every_line_of_a_log_is_taken_off(prefix: str) -> None:
    lines = ["starting", *(prefix.format(n=n) + line for n, line in enumerate(SMALL.split("\n")))]
    ((start, text),) = modules(read("\n".join([*lines, "done"])))
    assert (start, text.rstrip("\n")) == (2, SMALL.rstrip("\n"))


def test_lines_of_others_inside_a_prefixed_module_become_blank() -> None:
    lines = [
        f"I0000 00:00:00.{n:06}  7 hlo.cc:45] {line}" for n, line in enumerate(SMALL.split("\n"))
    ]
    lines.insert(8, "W0000 00:00:00.000008  9 other.cc:1] something else")
    ((start, text),) = modules(read("\n".join(lines)))
    expected = SMALL.split("\n")
    expected.insert(8, "")
    assert (start, text.rstrip("\n").split("\n")) == (1, expected[:-1])


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_on_the_first_line_only(prefix: str) -> None:
    text = f"x\n{prefix.format(n=3)}{SMALL}{prefix.format(n=4)}compiled in 3 s\n"
    assert modules(read(text)) == [(2, SMALL)]


@pytest.mark.parametrize(
    "tail",
    ["I0000 00:00:01.000000 7 a.cc:1] done {\n", "```\n", '"""\n', "{\n}\n", "1 passed in 2s"],
)
def test_what_follows_the_entry_computation_is_left_out(tail: str) -> None:
    assert modules(read(SMALL + tail)) == [(1, SMALL)]
    assert modules(read(SMALL + tail + "\n" + OTHER)) == [
        (1, SMALL),
        (15 + tail.count("\n") + 1, OTHER),
    ]


def test_computations_after_the_entry_are_kept() -> None:
    text = SMALL + "\n// called\n%last (a: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n}\n"
    assert modules(read(text)) == [(1, text)]


@pytest.mark.parametrize(
    "line",
    [
        "compiling HloModule jit_f, which takes long",
        "see HloModule jit_f",
        "# HloModule jit_f, is_scheduled=true",
        'x = {"hlo": "HloModule jit_f, is_scheduled=true"}',
        "HloModuleProto, and the like",
    ],
)
def test_a_mention_is_no_module(line: str) -> None:
    assert "no HLO module" in message(read(f"{line}\nof words\n"))
    assert modules(read(f"{line}\n{SMALL}")) == [(2, SMALL)]


def test_a_module_in_a_string_of_a_program_is_found() -> None:
    text = f'import x\nHLO = """{SMALL}"""\nrun(HLO)\n'
    assert modules(read(text)) == [(2, SMALL)]


def test_line_numbers_count_line_feeds_only() -> None:
    """Other line separators occur inside names and constants, where editors do not count them."""
    text = "a\u2028b\x0bc\x0cd\x85e\n" + SMALL
    assert modules(read(text)) == [(2, SMALL)]


def test_too_many_modules_are_refused() -> None:
    assert f"more than {MAX_MODULES} modules" in message(read("HloModule a\n" * (MAX_MODULES + 1)))


junk_lines = st.lists(
    st.text(
        st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=30
    ).filter(
        lambda line: "HloModule" not in line and "/*" not in line and not re.search(r"[{(=]", line)
    ),
    max_size=4,
).map(lambda lines: "".join(line + "\n" for line in lines))


@given(st.lists(st.tuples(junk_lines, st.sampled_from([SMALL, OTHER])), max_size=4), junk_lines)
def test_modules_survive_any_lines_between_them(parts: list[tuple[str, str]], tail: str) -> None:
    text = "".join(junk + module for junk, module in parts) + tail
    found = list(extract_modules(text, path="-"))
    for (piece, line), (_, module) in zip(found, parts, strict=True):
        assert piece.startswith(module)
        assert text.split("\n")[line - 1] == module.split("\n")[0]


@given(st.text(st.sampled_from("HloModule {}()=->%/*\n// -----f32[]ENTRY ROOT\"'\t"), max_size=300))
def test_any_text_gives_pieces_of_itself(text: str) -> None:
    """Every line of every piece stands in the text, on the line that the piece claims."""
    lines = text.split("\n")
    for piece, start in extract_modules(text, path="-"):
        for offset, line in enumerate(piece.split("\n")):
            if line:
                assert line in lines[start - 1 + offset]


HOSTILE = {
    "keywords": "HloModule " * 100_000,
    "mentions": "I0000 x] HloModule a,\n" * 20_000,
    "separators": "\n// -----" * 100_000,
    "braces": "HloModule a\n" + "\n}" * 300_000,
    "entries": "HloModule a\nENTRY a {\n" + "}\n\n" * 300_000,
    "comments": "\n/* HloModule a */" * 20_000,
    "open-comments": "/*\n" * 300_000 + "HloModule a\n" * 1000,
    "parentheses": "(" * 1_000_000,
    "one-name": "a" * 1_000_000 + " {",
    "spaces": "\n\n" + " " * 1_000_000,
    "lines": "\n" * 1_000_000,
    "arrows": "HloModule a\n}\na (" + "->" * 500_000,
    "arrows-and-braces": "HloModule a\n}\na (" + "-> {//" * 200_000,
    "results": "a (" + ") -> f32[" * 100_000 + "\na (" + ") -> f32[" * 5_000 + " {",
    "blocks": ("a {" + "{ " * 300_000 + " x\n") * 3,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name: str) -> None:
    """Each of these takes minutes or more where a search starts over at every character."""
    with time_limit(seconds=30):
        read(HOSTILE[name])


def test_every_corpus_file_gives_its_modules(corpus: Path) -> None:
    """One module a file, but for those that hold several or something else."""
    several = {
        "xla2023_dynamic_update_slice_inplace.hlo.txt": 7,
        "xla_import_async.hlo.txt": 17,
        "xla_kernel_reuse.hlo.txt": 5,
        "xla_sub_byte_collectives.hlo.txt": 5,
    }
    foreign = {
        "neg_levanter_train_step.hlo.txt": "this is MHLO (MLIR), not HLO",
        "neg_torchxla_module_0002.jit_f.after_optimizations-buffer-assignment.txt": (
            "this is a buffer assignment, not HLO; give "
            "`neg_torchxla_module_0002.jit_f.after_optimizations.txt` beside it"
        ),
        "xla_module_attributes.hlo.txt": "this is an HLO proto in protobuf text format",
        "xla_stacktrace_to_location.hlo.txt": "this is an HLO proto in protobuf text format",
    }
    files = [file for file in sorted(corpus.glob("hlo*/*")) if ".txt" in file.name]
    assert len(files) == 144
    for file in files:
        items = list(read_inputs([str(file)]))
        if expected := foreign.get(file.name):
            assert message(items).startswith(expected), file.name
        else:
            assert len(modules(items)) == several.get(file.name, 1), file.name


def test_errors_name_the_input() -> None:
    (item,) = read("nothing\n")
    assert isinstance(item, InputError)
    assert item.path == "-"
