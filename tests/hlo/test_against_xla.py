"""Agreement with XLA's own parser: the same module from the same text, wherever XLA reads it.

Two differences are XLA's doing and accounted for exactly: it renames what has the name of something
else in the module (`a` becomes `a.1`), and it reads `slice-start` and the like as `async-start` of
a computation that it makes up.
"""

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest
from models import model_of

import xla_oracle
from hlo_tools.errors import InputError
from hlo_tools.hlo.module import Computation, Instruction, Module
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.printer import print_module
from hlo_tools.hlo.shape import Shape
from xla_oracle import PlainComputation, PlainInstruction, PlainModule, PlainShape

pytestmark = pytest.mark.skipif(
    not xla_oracle.AVAILABLE, reason="this jaxlib has no parser of HLO text to compare with"
)

ROOT = Path(__file__).resolve().parents[2]
PLANTED = sorted((ROOT / "fixtures" / "planted" / "hlo").glob("*.txt"))
CORPUS = sorted((ROOT.parent / "shared" / "corpus").glob("hlo*/*.txt*"))

_ASYNC = re.compile(r"(.*)-(start|update|done)")


def read_text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace")


def plain_shape(shape: Shape) -> PlainShape:
    """Our shape in the oracle's terms, with the layout that XLA gives where the text gives none."""
    if shape.elements or shape.is_tuple:
        return shape.element_type, tuple(plain_shape(element) for element in shape.elements)
    layout = shape.layout
    if shape.element_type in ("token", "opaque"):
        plain = None
    elif layout is None:
        plain = (tuple(reversed(range(len(shape.dimensions)))), (), 0, 0, (), 1)
    else:
        plain = (
            layout.minor_to_major,
            layout.tiles,
            layout.element_bits,
            layout.memory_space,
            layout.splits,
            layout.tail_alignment,
        )
    return shape.element_type, shape.dimensions, shape.dynamic, plain


class Comparison:
    """Collects where a module of ours differs from XLA's."""

    def __init__(self, ours: Module, theirs: PlainModule) -> None:
        self.theirs = theirs
        self.ours = ours
        self.differences: list[str] = []
        names = Counter(i.name for i in ours.instructions())
        names.update(c.name for c in ours.computations)
        self.repeated = {name for name, count in names.items() if count > 1}
        self.made_up = set(theirs.computations) - {c.name for c in ours.computations}

    def run(self) -> list[str]:
        by_name = {c.name: c for c in self.ours.computations}
        self.equal("module", self.ours.name, self.theirs.name)
        self.equal("entry", self.ours.entry and self.ours.entry.name, self.theirs.entry)
        called_by_async = {
            name
            for c in self.theirs.computations.values()
            for i in c.instructions
            if i.opcode.startswith("async-")
            for name in i.called
        }
        expected = set(self.theirs.computations) - (self.made_up & called_by_async)
        self.equal("computations", sorted(by_name), sorted(expected))
        for name, computation in by_name.items():
            if name in self.theirs.computations:
                self.compare_computation(computation, self.theirs.computations[name])
        return self.differences

    def equal(self, what: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            self.differences.append(f"{what}: {ours!r}, XLA {theirs!r}")

    def compare_computation(self, ours: Computation, theirs: PlainComputation) -> None:
        pairs = list(zip(ours.instructions, theirs.instructions, strict=False))
        self.equal(f"{ours.name} length", len(ours.instructions), len(theirs.instructions))
        renamed = {plain.name: instruction.name for instruction, plain in pairs}
        self.equal(f"{ours.name} root", ours.root.name, renamed.get(theirs.root))
        for instruction, plain in pairs:
            self.compare_instruction(instruction, plain, renamed)

    def compare_instruction(
        self, ours: Instruction, theirs: PlainInstruction, renamed: dict[str, str]
    ) -> None:
        where = f"{ours.computation.name}/{ours.name}"
        if theirs.name != ours.name:
            is_renaming = re.fullmatch(re.escape(ours.name) + r"\.\d+", theirs.name)
            if not (is_renaming and ours.name in self.repeated):
                self.differences.append(f"{where}: XLA has {theirs.name}")
        self.equal(f"{where} shape", plain_shape(ours.shape), theirs.shape)
        self.equal(
            f"{where} operands",
            [operand.name for operand in ours.operands],
            [renamed.get(name) for name in theirs.operands],
        )
        called = [c.name for c in ours.called_computations]
        self.equal(f"{where} called names", called, list(ours.called_names()))
        sugar = _ASYNC.fullmatch(ours.opcode)
        if sugar and theirs.opcode == f"async-{sugar[2]}" != ours.opcode:
            self.equal(f"{where} called", called, [])
            self.check_made_up(where, sugar[1], theirs.called)
            return
        self.equal(f"{where} opcode", ours.opcode, theirs.opcode)
        if ours.opcode == "while":
            called.sort(key=lambda name: name != ours.called("body").name)
        self.equal(f"{where} called", called, list(theirs.called))

    def check_made_up(self, where: str, opcode: str, called: tuple[str, ...]) -> None:
        for name in called:
            if name not in self.made_up:
                self.differences.append(f"{where}: XLA calls {name}")
                continue
            work = [i for i in self.theirs.computations[name].instructions if i.opcode == opcode]
            self.equal(f"{where}: {opcode} in {name}", len(work), 1)


@pytest.mark.parametrize("path", [*PLANTED, *CORPUS], ids=lambda path: path.name)
def test_same_module_as_xla(path: Path) -> None:
    text = read_text(path)
    try:
        theirs = xla_oracle.parse(text)
    except xla_oracle.RefusedError:
        pytest.skip("XLA's parser refuses this text")
    ours = parse_module(text)
    assert Comparison(ours, theirs).run() == []
    assert not ours.truncated
    assert ours.unread_lines == []


@pytest.mark.parametrize("path", [*PLANTED, *CORPUS], ids=lambda path: path.name)
def test_a_printed_module_is_the_same_to_us_and_to_xla(path: Path) -> None:
    text = read_text(path)
    module = parse_or_none(text)
    if module is None:
        pytest.skip("no HLO")
    printed = print_module(module)
    assert model_of(parse_module(printed)) == model_of(module)
    if xla_oracle.accepts(text):
        assert Comparison(module, xla_oracle.parse(printed)).run() == []


def parse_or_none(text: str) -> Module | None:
    try:
        return parse_module(text)
    except InputError:
        return None
