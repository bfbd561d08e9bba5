"""The table of what Pallas compiles: its probes, how a compiler is asked, and how it is shown."""

import importlib.util
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jax")

import jax

from benchmarks.capabilities_parts.compiler import LONGEST, reason
from benchmarks.capabilities_parts.forms import Group, Limit, Row
from benchmarks.capabilities_parts.outcomes import FIELDS, outcome, read_lines, table_lines
from benchmarks.capabilities_parts.report import OTHER, page
from benchmarks.capabilities_parts.survey import Result, Verdict, last_that_compiles, survey
from benchmarks.capabilities_parts.table import GROUPS
from benchmarks.capabilities_parts.worker import Worker

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pallas-capabilities.md"
YES = Verdict(True)
VERSIONS = {"jax": "1.2", "libtpu": "3.4"}


def no(why, by="libtpu"):
    return Verdict(False, by, why)


def test_a_probe_is_found_by_its_group_and_its_name() -> None:
    """Results are kept under these names, and the page's tables have one row for each."""
    titles = [group.title for group in GROUPS]
    assert len(set(titles)) == len(titles)
    for group in GROUPS:
        names = [row.name for row in group.rows]
        assert len(set(names)) == len(names), group.title
        assert len({type(row) for row in group.rows}) == 1, group.title
        assert "  " not in group.about


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.title)
def test_probes_are_programs_that_jax_can_trace(group) -> None:
    """What a compiler turns down is then the kernel, not a slip in how the probe is written."""
    chip = jax.sharding.AbstractDevice("TPU v5 lite", 1, platform="tpu")
    mesh = jax.sharding.AbstractMesh((1,), ("chip",), abstract_device=chip)
    with jax.sharding.use_abstract_mesh(mesh):
        for row in group.rows:
            for column in [row.least] if isinstance(row, Limit) else row.columns:
                program = row.build(column)
                jax.jit(program.function).trace(*program.arguments)


@given(
    st.floats(min_value=0, max_value=300),
    st.sampled_from([1, 2, 8, 1 / 16]),
    st.integers(min_value=1, max_value=20),
    st.integers(min_value=2, max_value=100),
)
def test_a_limit_is_the_last_multiple_that_compiles(greatest, step, least, more) -> None:
    """For every compiler that takes all numbers up to some number, and none beyond."""
    limit = Limit("numbers", None, least * step, (least + more) * step, step)
    asked = []

    def ask(number):
        asked.append(number)
        return YES if number <= greatest else no(f"{number:g} is too much")

    said, verdict = last_that_compiles(limit, ask)
    assert all((number / step).is_integer() for number in asked)
    if greatest < limit.least:
        assert said == "none"
    elif greatest >= limit.most:
        assert said == f"{limit.most:.10g} or more"
        assert verdict == YES
    else:
        last = float(said)
        assert last <= greatest < last + step
        assert verdict == no(f"{last + step:g} is too much")


FAKE = (
    Group("Sizes", "How many.", (Limit("bytes", None, 1, 64, 1),)),
    Group(
        "Things",
        "Several.",
        (
            Row("a | b", ("f32", "i8"), None),
            Row("c", ("i8",), None),
            Row("d", ("f32",), None),
        ),
    ),
)
CHIPS = ("old", "new")


def fake(chip, group, row, column):
    """A compiler with an opinion."""
    if group == "Sizes":
        return YES if column <= {"old": 10, "new": 100}[chip] else no("too many")
    if (row, column) == ("a | b", "i8"):
        return YES if chip == "new" else no("no `i8` here")
    if row == "d":
        return no("not here", "jax") if chip == "old" else no("gone", "end")
    return YES


def test_every_probe_is_asked_of_every_generation() -> None:
    found = [
        (each.chip, each.row, each.column, each.number, each.verdict.compiles)
        for each in survey(FAKE, CHIPS, fake)
    ]
    assert found == [
        ("old", "bytes", "", "10", False),
        ("old", "a | b", "f32", "", True),
        ("old", "a | b", "i8", "", False),
        ("old", "c", "i8", "", True),
        ("old", "d", "f32", "", False),
        ("new", "bytes", "", "64 or more", True),
        ("new", "a | b", "f32", "", True),
        ("new", "a | b", "i8", "", True),
        ("new", "c", "i8", "", True),
        ("new", "d", "f32", "", False),
    ]


def test_the_page_says_who_compiles_what_and_why_not() -> None:
    text = page(FAKE, list(survey(FAKE, CHIPS, fake)), CHIPS, VERSIONS)
    assert "with jax 1.2 and libtpu 3.4 for TPU old and new.\n" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables == [
        "|  | old | new |",
        "| --- | --- | --- |",
        "| of 4, compile | 2 | 3 |",
        "|  | old | new |",
        "| --- | --- | --- |",
        "| bytes | 10 | 64 or more |",
        "|  | `f32` | `i8` |",
        "| --- | --- | --- |",
        "| a \\| b | yes | new [1] |",
        "| c |  | yes |",
        "| d | no [2, 3] |  |",
    ]
    assert text.endswith(
        "1. libtpu: `no 'i8' here`\n2. jax: `not here`\n3. libtpu ends the process: `gone`\n"
    )


def test_outcomes_can_be_read_by_programs() -> None:
    """A line each, whatever the compiler writes into its reasons."""
    results = [
        Result("G", "p", "f32", "old", no("tabs\tand more")),
        Result("G", "n", "", "old", no("full"), "10"),
        Result("G", "q", "f32", "old", YES),
    ]
    lines = list(table_lines(results, VERSIONS))
    assert [line.split("\t") for line in lines] == [
        list(FIELDS),
        ["G", "p", "f32", "old", "no", "libtpu", "tabs and more", "1.2", "3.4"],
        ["G", "n", "", "old", "10", "libtpu", "full", "1.2", "3.4"],
        ["G", "q", "f32", "old", "yes", "", "", "1.2", "3.4"],
    ]
    read = read_lines(lines)
    assert read.versions == VERSIONS
    assert read.found == {
        (each.group, each.row, each.column, each.chip): outcome(each) for each in results
    }


def test_outcomes_of_several_versions_are_not_taken_for_one() -> None:
    one, other = (
        list(table_lines(survey(FAKE, ["old"], fake), versions))
        for versions in (VERSIONS, {"jax": "1.3", "libtpu": "3.4"})
    )
    with pytest.raises(ValueError, match="one pair of versions"):
        read_lines(one + other[1:])


def test_the_page_says_what_other_versions_make_of_it() -> None:
    """Of the generations for which they were asked, and only what differs."""

    def later(chip, group, row, column):
        if group == "Sizes":
            return YES if column <= 12 else no("too many")
        return YES if row == "d" else fake(chip, group, row, column)

    lines = table_lines(survey(FAKE, ["old"], later), {"jax": "2.0", "libtpu": "3.4"})
    results = list(survey(FAKE, CHIPS, fake))
    section = page(FAKE, results, CHIPS, VERSIONS, read_lines(lines)).partition(f"## {OTHER}\n")[2]
    assert section.splitlines()[1] == (
        "What jax 2.0 and libtpu 3.4 make of it for old, where that differs."
    )
    assert [line for line in section.splitlines() if line.startswith("|")][2:] == [
        "| Sizes | bytes |  | 10 | 12 | old |",
        "| Things | d | `f32` | no | yes | old |",
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "ValueError without a message"),
        ("Only float32 is supported.\nmore", "Only float32 is supported"),
        (
            "INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `<no name>` HLO"
            " name `tpu_custom_call.1`: failed to legalize operation 'func.return':"
            ' "func.return"(%arg0, %0) : (i32, i64) -> ()\n\nat location: loc(unknown)',
            "failed to legalize operation 'func.return'",
        ),
        (
            "INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `m` HLO name `h`:"
            " failed to legalize operation 'scf.for': %33:2 = \"scf.for\"(%3) ({...})",
            "failed to legalize operation 'scf.for'",
        ),
        (
            "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory"
            " space vmem while allocating on stack for %tpu_custom_call.1 = f32[8]",
            "E1001: CompileTimeScopedVmemOom: Ran out of memory in memory space vmem",
        ),
        (
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space"
            " smem. Used 1.00M of 1.00M smem.",
            "Ran out of memory in memory space smem. Used 1.00M of 1.00M smem",
        ),
        (
            "Pallas encountered an internal verification error. Please file a bug at"
            " https://github.com/x. Error details: 'tpu.weird' op Input type must be F32\n see",
            "'tpu.weird' op Input type must be F32",
        ),
        (
            "Unimplemented primitive in Pallas TPU lowering for tc: sort. Please file an issue at"
            " https://github.com/jax-ml/jax/issues/new/choose.",
            "Unimplemented primitive in Pallas TPU lowering for tc: sort",
        ),
        (
            "divisible by 8. Block spec for args[0] in pallas_call body at /home/x.py:19 has block",
            "divisible by 8",
        ),
        (
            "Index map function <lambda> at /home/x.py:285 for args[0]",
            "Index map function for args[0]",
        ),
        (
            'Invalid type:\nerror: "slice:"("slice"(callsite("f"("/home/x.py":1:26 to :66)))):'
            " sizes but got 32, 0",
            "sizes but got 32, 0",
        ),
        ("x" * (LONGEST + 1), "x" * LONGEST + "..."),
    ],
)
def test_a_reason_is_what_a_message_says_and_no_more(message, expected) -> None:
    """Neither what every message says, nor operations in full, nor places in our files."""
    assert reason(ValueError(message)) == expected


def answering(connection, errors):
    """A process that dies when it is told to, and else says what it was asked."""
    connection.send("ready")
    while True:
        (order,) = connection.recv()
        if order == "die":
            Path(errors).write_text("I1 a\nF1201 00:55:20.9 113 t.cc:7] Not supported: add\n")
            os.abort()
        if order == "hang":
            time.sleep(600)
        connection.send(order)


def stillborn(connection, errors):
    """A process that cannot start."""
    Path(errors).write_text("no such module")


@pytest.fixture
def worker():
    made = Worker(answering, seconds=60)
    yield made
    made.close()


def test_a_compiler_that_ends_the_process_ends_no_run(worker) -> None:
    """What it wrote last is the reason, and the next question has an answer."""
    assert worker.ask("one") == "one"
    assert worker.ask("die") == Verdict(False, "end", "Not supported: add")
    assert worker.ask("two") == "two"


def test_a_compiler_that_hangs_is_given_up() -> None:
    worker = Worker(answering, seconds=0.5)
    try:
        assert worker.ask("hang") == Verdict(False, "end", "not compiled within 0.5 s")
    finally:
        worker.close()


def test_a_compiler_that_does_not_start_is_an_error() -> None:
    """Not a page full of refusals."""
    worker = Worker(stillborn)
    try:
        with pytest.raises(RuntimeError, match="no such module"):
            worker.ask("one")
    finally:
        worker.close()


@pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="needs libtpu")
def test_the_real_compiler_takes_exp_and_no_sort() -> None:
    worker = Worker()
    try:
        assert worker.ask("v5e", "Elementwise functions", "exp", "f32") == YES
        refused = worker.ask("v5e", "Scans, sorts, gathers, rolls", "sort, axis 1", "f32")
        assert (refused.compiles, refused.by) == (False, "jax")
        assert "sort" in refused.reason
        limit = worker.ask("v5e", "Memory", "MiB of scratch in VMEM, by default", 64)
        assert (limit.compiles, limit.by) == (False, "libtpu")
        assert "Ran out of memory" in limit.reason
    finally:
        worker.close()


def test_the_page_in_the_docs_is_of_these_probes() -> None:
    """A probe that is added is on the page only when the page is written again."""
    text = PAGE.read_text(encoding="utf-8")
    sections = dict(each.split("\n", 1) for each in text.split("\n## ")[1:])
    assert list(sections) == [*(group.title for group in GROUPS), OTHER, "Reasons"]
    for group in GROUPS:
        lines = [line for line in sections[group.title].splitlines() if line.startswith("| ")]
        names = [line.removeprefix("| ").partition(" | ")[0].replace("\\|", "|") for line in lines]
        assert names[2:] == [row.name for row in group.rows], group.title
