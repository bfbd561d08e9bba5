"""From instructions to the user's lines: frame tables, old metadata, and places inferred."""

import random
from pathlib import Path

import pytest

from hlo_tools.hlo.location import SourceLocation
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.provenance import MAX_FRAMES, Provenance

TABLES = r"""HloModule m, is_scheduled=true

FileNames
1 "/home/me/train.py"
2 "/home/me/model.py"
3 "/venv/lib/python3.12/site-packages/flax/linen/linear.py"
4 "/home/me/odd \"name\".py"

FunctionNames
1 "<module>"
2 "step"
3 "Dense.__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=30 end_line=30 column=0 end_column=0}
2 {file_name_id=2 function_name_id=2 line=12 end_line=13 column=4 end_column=21}
3 {file_name_id=3 function_name_id=3 line=99 end_line=99 column=8 end_column=20}
4 {file_name_id=4 function_name_id=9 line=7 end_line=7 column=0 end_column=5}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=1}
5 {file_location_id=3 parent_frame_id=1}
6 {file_location_id=2 parent_frame_id=8}
7 {file_location_id=2 parent_frame_id=7}
8 {file_location_id=77 parent_frame_id=3}
9 {file_location_id=2 parent_frame_id=99}


"""


def program(body: str, *, tables: str = TABLES, computations: str = "") -> str:
    return (
        f"{tables}{computations}ENTRY %main (p: f32[4]) -> f32[4] {{\n"
        f'  %p = f32[4] parameter(0), metadata={{op_name="params[0]"}}\n{body}\n}}\n'
    )


def ask(
    text: str,
    name: str,
    *,
    library_paths: tuple[str, ...] = (),
    own_paths: tuple[str, ...] = (),
) -> tuple[Provenance, Instruction]:
    module = parse_module(text)
    found = [i for i in module.instructions() if i.name == name]
    provenance = Provenance(module, library_paths=library_paths, own_paths=own_paths)
    return provenance, found[0]


def at(text: str, name: str) -> SourceLocation | None:
    provenance, instruction = ask(text, name)
    return provenance.location(instruction)


def framed(frame: int) -> str:
    return program(f"  ROOT %r = f32[4] negate(%p), metadata={{stack_frame_id={frame}}}")


def test_the_headline_is_the_innermost_frame_of_the_users_own_code() -> None:
    provenance, instruction = ask(framed(3), "r")
    assert provenance.location(instruction) == SourceLocation(
        file="/home/me/model.py", line=12, end_line=13, column=5, end_column=22, function="step"
    )
    lines = [(frame.file.rsplit("/", 1)[1], frame.line) for frame in provenance.stack(instruction)]
    assert lines == [("linear.py", 99), ("model.py", 12), ("train.py", 30)]


def test_parents_are_printed_plus_one() -> None:
    """So that frame 4, whose parent is printed as 1, has none."""
    provenance, instruction = ask(framed(4), "r")
    assert [frame.line for frame in provenance.stack(instruction)] == [7]
    location = provenance.location(instruction)
    assert location is not None
    assert (location.file, location.function) == ('/home/me/odd "name".py', None)
    assert (location.column, location.end_column) == (1, 6)


def test_a_frame_without_columns_has_none() -> None:
    location = at(framed(1), "r")
    assert location is not None
    assert (location.line, location.column, location.end_column) == (30, None, None)


def test_a_stack_of_libraries_alone_is_told_as_it_is() -> None:
    provenance, instruction = ask(framed(5), "r")
    location = provenance.location(instruction)
    assert location is not None and location.line == 99
    assert provenance.is_library(location.file)


@pytest.mark.parametrize("frame", [6, 7, 9, 0, 1000, 999999999])
def test_cycles_and_frames_that_are_not_there_end(frame: int) -> None:
    provenance, instruction = ask(framed(frame), "r")
    assert len(provenance.stack(instruction)) <= 9


def test_deep_stacks_are_cut_off() -> None:
    frames = "\n".join(
        f"{i} {{file_location_id=2 parent_frame_id={i}}}" for i in range(1, 5 * MAX_FRAMES)
    )
    tables = TABLES[: TABLES.index("StackFrames")] + "StackFrames\n" + frames + "\n\n"
    text = program(
        f"  ROOT %r = f32[4] negate(%p), metadata={{stack_frame_id={5 * MAX_FRAMES - 1}}}",
        tables=tables,
    )
    provenance, instruction = ask(text, "r")
    assert len(provenance.stack(instruction)) == MAX_FRAMES


OLD = "HloModule m\n\n"


def test_places_in_the_metadata_itself() -> None:
    text = program(
        '  ROOT %r = f32[4] negate(%p), metadata={op_type="neg" op_name="jit(f)/neg{x=\\"1\\"}"'
        ' source_file="/home/me/a b.py" source_line=7 source_end_line=8 source_column=2'
        " source_end_column=9}",
        tables=OLD,
    )
    provenance, instruction = ask(text, "r")
    assert provenance.location(instruction) == SourceLocation(
        file="/home/me/a b.py", line=7, end_line=8, column=3, end_column=10
    )
    assert provenance.op_name(instruction) == 'jit(f)/neg{x="1"}'


def test_a_file_without_a_line_keeps_line_zero() -> None:
    text = program('  ROOT %r = f32[4] negate(%p), metadata={source_file="x.py"}', tables=OLD)
    assert at(text, "r") == SourceLocation(file="x.py", line=0)


@pytest.mark.parametrize("number", ["source_line=" + "9" * 5000, "source_line=-3", "source_line=x"])
def test_numbers_that_are_none_are_left_out(number: str) -> None:
    text = program(
        f'  ROOT %r = f32[4] negate(%p), metadata={{source_file="x.py" {number}}}', tables=OLD
    )
    location = at(text, "r")
    assert location is not None and location.line == 0


@pytest.mark.parametrize(
    "path",
    [
        "/usr/lib/python3/dist-packages/numpy/core/x.py",
        "/venv/lib/python3.11/site-packages/jax/_src/api.py",
        "C:\\Python311\\Lib\\functools.py",
        "/usr/lib/python3.12/contextlib.py",
        "/root/jax/jax/_src/pjit.py",
        "/opt/flax/flax/linen/module.py",
        "third_party/py/absl/app.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        "<embedded module '_launcher'>",
    ],
)
def test_files_that_are_nobodys_own(path: str) -> None:
    provenance = Provenance(parse_module(framed(1)))
    assert provenance.is_library(path)


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/jax/train.py",
        "/home/me/flax/examples/run.py",
        "/home/me/lib/python/model.py",
        "/work/src/maxtext/layers/embeddings.py",
        "model.py",
        "/tmp/ipykernel_12/345.py",
        "<ipython-input-3-abc>",
    ],
)
def test_files_that_are_the_users_own(path: str) -> None:
    assert not Provenance(parse_module(framed(1))).is_library(path)


def test_the_user_decides_what_is_own() -> None:
    provenance, instruction = ask(framed(3), "r", own_paths=("*/flax/linen/*",))
    location = provenance.location(instruction)
    assert location is not None and location.line == 99
    provenance, instruction = ask(framed(3), "r", library_paths=("*/model.py",))
    location = provenance.location(instruction)
    assert location is not None and location.line == 30


FUSED = """%fused (f: f32[4]) -> f32[4] {
  %f = f32[4] parameter(0)
  %e = f32[4] exponential(%f), metadata={op_name="jit(f)/exp" stack_frame_id=2}
  ROOT %b = f32[4] bitcast(%e)
}

"""


def test_a_fusion_without_a_place_takes_that_of_its_body() -> None:
    text = program("  ROOT %r = f32[4] fusion(%p), kind=kLoop, calls=%fused", computations=FUSED)
    provenance, instruction = ask(text, "r")
    location = provenance.location(instruction)
    assert location is not None and (location.line, location.inferred) == (12, True)
    assert provenance.op_name(instruction) == "jit(f)/exp"


def test_users_come_before_operands_through_what_only_hands_on() -> None:
    text = program(
        "  %made = f32[4] negate(%p), metadata={stack_frame_id=4}\n"
        "  %start = (f32[4], f32[4], u32[]) copy-start(%made)\n"
        "  %done = f32[4] copy-done(%start)\n"
        "  %cast = f32[4] bitcast(%done)\n"
        "  ROOT %used = f32[4] exponential(%cast), metadata={stack_frame_id=2}"
    )
    for name in ("start", "done", "cast"):
        location = at(text, name)
        assert location is not None and (location.line, location.inferred) == (12, True)
    last = at(text.replace(", metadata={stack_frame_id=2}", ""), "used")
    assert last is not None and (last.line, last.inferred) == (7, True)


def test_a_parameter_is_called_as_its_argument() -> None:
    provenance, instruction = ask(framed(2), "p")
    assert provenance.op_name(instruction) == "params[0]"
    location = provenance.location(instruction)
    assert location is not None and location.inferred


def test_what_the_compiler_put_in_a_loop_takes_the_place_of_the_loop() -> None:
    text = program(
        "  ROOT %r = f32[4] while(%p), condition=%go, body=%body, metadata={stack_frame_id=2}",
        computations=(
            "%body (b: f32[4]) -> f32[4] {\n  %b = f32[4] parameter(0)\n"
            "  ROOT %c = f32[4] copy(%b)\n}\n\n"
            "%go (g: f32[4]) -> pred[] {\n  %g = f32[4] parameter(0)\n"
            "  ROOT %t = pred[] constant(true)\n}\n\n"
        ),
    )
    location = at(text, "c")
    assert location is not None and (location.line, location.inferred) == (12, True)


def test_names_are_found_where_places_are_not() -> None:
    """As in dumps whose frame tables are empty."""
    text = program(
        '  %n = f32[4] negate(%p), metadata={op_name="jit(f)/neg"}\n  ROOT %r = f32[4] copy(%n)',
        tables=OLD,
    )
    provenance, instruction = ask(text, "r")
    assert provenance.location(instruction) is None
    assert provenance.op_name(instruction) == "jit(f)/neg"


def test_no_place_at_all_is_none() -> None:
    text = program("  ROOT %r = f32[4] negate(%p)", tables=OLD)
    provenance, instruction = ask(text.replace(', metadata={op_name="params[0]"}', ""), "r")
    assert provenance.location(instruction) is None
    assert provenance.stack(instruction) == ()
    assert provenance.op_name(instruction) is None


def test_broken_tables_are_read_as_far_as_they_go() -> None:
    """Property: whatever characters are lost, there is an answer."""
    generator = random.Random(7)
    text = framed(3)
    end = text.index("ENTRY")
    for _ in range(200):
        start = generator.randrange(end)
        cut = text[:start] + text[min(end, start + generator.randrange(40)) :]
        provenance, instruction = ask(cut, "r")
        provenance.location(instruction)


def test_every_instruction_of_a_real_program_leads_to_its_lines(corpus: Path) -> None:
    """`model.py` holds all functions that were compiled; no kernel is without a place."""
    for path in sorted((corpus / "hlo_tpu_aot").glob("*.txt")):
        module = parse_module(path.read_text())
        provenance = Provenance(module)
        assert module.entry is not None
        for instruction in module.entry.instructions:
            location = provenance.location(instruction)
            if location is not None:
                assert location.file == "model.py"
                assert location.line >= 1
        kernels = [i for i in module.entry.instructions if i.opcode == "fusion"]
        assert all(provenance.location(kernel) is not None for kernel in kernels)
