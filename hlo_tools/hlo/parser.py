"""HLO text -> Module, in one pass.

`INSTRUCTION` finds the instruction lines one after the other. What lies between two of them
(headers, closing braces, tables, instructions of an unusual form, garbage) is read line by line.
Unknown opcodes, types and attributes are kept as they are; text that breaks off keeps what was
read before. Only text without a single computation is an error.
"""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from hlo_tools.errors import InputError
from hlo_tools.hlo.grammar import (
    INSTRUCTION,
    INSTRUCTION_HEAD,
    MODULE,
    OPERAND,
    TABLES,
    blank_comments,
    closing_parenthesis,
    computation_header,
    continued_line_end,
    split_operands,
)
from hlo_tools.hlo.module import MISSING, Computation, Instruction, Module
from hlo_tools.hlo.shape import Shape, parse_shape

MAX_UNREAD_LINES = 100
"""How many line numbers of unreadable lines a module keeps."""

_UNKNOWN_SHAPE = Shape(element_type="unknown")
_NO_OPERANDS = frozenset({"parameter", "constant"})


class ParseError(InputError):
    """Text that holds no HLO computation."""


def parse_module(text: str, *, path: str | None = None) -> Module:
    """Reads the text of one module.

    Args:
      text: HLO as XLA prints it, in any of its forms; lines end in `\\n`.
      path: where the text came from, for error messages.

    Raises:
      ParseError: there is no computation with an instruction in the text.
    """
    with _collector_paused():
        module = _Reader(blank_comments(text)).read()
    if not module.computations:
        line = module.unread_lines[0] if module.unread_lines else 1
        raise ParseError("no HLO computation found", path=path, line=line)
    return module


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Cyclic garbage collection off: the model only grows here, and walking it costs a third."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Reader:
    """The state of one pass: the module so far and the computation that is open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.module = Module(name="", text=text)
        self.shapes: dict[str, Shape] = {}
        self.opcodes: dict[str, str] = {}
        self.computation: Computation | None = None
        self.by_name: dict[str, Instruction] = {}
        self.pending: list[tuple[Instruction, list[str]]] = []
        self.in_tables = False
        self.tables_start = self.tables_end = -1

    def read(self) -> Module:
        """Reads everything."""
        text = self.text
        shapes, opcodes, find_operands = self.shapes, self.opcodes, OPERAND.findall
        position = 0
        for match in INSTRUCTION.finditer(text):
            at = match.start()
            if at != position:
                self._read_between(position, at)
            position = match.end()
            root, name, shape_text, opcode, arguments = match.group(1, 2, 3, 4, 5)
            computation = self.computation
            if computation is None:
                computation = self._open_fragment(at)
            shape = shapes.get(shape_text)
            if shape is None:
                shape = self._shape(shape_text)
            opcode = opcodes.setdefault(opcode, opcode)
            instruction = Instruction(name, shape, opcode, (), computation, at)
            if arguments and opcode not in _NO_OPERANDS:
                names = find_operands(arguments)
                if not names or "/*" in arguments:
                    names = split_operands(arguments)
                try:
                    instruction.operands = tuple(map(self.by_name.__getitem__, names))
                except KeyError:
                    self.pending.append((instruction, names))
            self.by_name[name] = instruction
            computation.instructions.append(instruction)
            if root:
                computation._root = instruction
        self._read_between(position, len(text))
        if self.computation is not None:
            self.module.truncated = True
            self._close(complete=False)
        return self._finish()

    def _shape(self, text: str) -> Shape:
        shape = parse_shape(text)
        if shape is None:
            # A type of some later XLA: kept under its own name, of no known size.
            shape = Shape(element_type=text)
        self.shapes[text] = shape
        return shape

    def _read_between(self, start: int, end: int) -> None:
        """Reads the text between two instruction lines, which is whole lines."""
        text = self.text
        position = start
        while position < end:
            line_end = text.find("\n", position, end)
            line_end = end if line_end < 0 else line_end
            line = text[position:line_end].strip()
            if not line:
                self.in_tables = False
                position = line_end + 1
            elif line[0] == "}":
                if self.computation is not None:
                    self._close(complete=True)
                position = line_end + 1
            else:
                position = self._read_line(position, line_end, line)

    def _read_line(self, position: int, line_end: int, line: str) -> int:
        """Reads a line that is neither blank nor a closing brace; returns where to go on."""
        text = self.text
        if header := computation_header(line):
            self._open(header[0], is_entry=header[1], at=position)
            return line_end + 1
        if self.computation is None:
            if line in TABLES:
                self.in_tables = True
                self.tables_start = position if self.tables_start < 0 else self.tables_start
            if self.in_tables:
                self.tables_end = line_end
                return line_end + 1
            if header_line := MODULE.match(text, position):
                if not self.module.name:
                    self.module.name, self.module._header = header_line[1], header_line[2] or ""
                return line_end + 1
        if head := INSTRUCTION_HEAD.match(text, position):
            return self._read_irregular(position, line_end, head)
        if self.computation is not None and self.computation.instructions:
            end = self._continue_last(position)
            if end >= line_end:
                return end + 1
        self._unread(position)
        return line_end + 1

    def _read_irregular(self, at: int, line_end: int, head: re.Match[str]) -> int:
        """Reads an instruction whose arguments span lines, nest deeply or hold strings."""
        text = self.text
        arguments_end = closing_parenthesis(text, head.end(), len(text))
        if arguments_end < 0:
            self.module.truncated = True
            self._unread(at)
            return line_end + 1
        end = continued_line_end(text, arguments_end + 1)
        self.module._irregular[at] = (head.end(), arguments_end + 1, end)
        root, name, shape_text, opcode = head.group(1, 2, 3, 4)
        computation = self.computation or self._open_fragment(at)
        shape = self.shapes.get(shape_text) or self._shape(shape_text)
        opcode = self.opcodes.setdefault(opcode, opcode)
        instruction = Instruction(name, shape, opcode, (), computation, at)
        if opcode not in _NO_OPERANDS:
            self.pending.append((instruction, split_operands(text[head.end() : arguments_end])))
        self.by_name[name] = instruction
        computation.instructions.append(instruction)
        if root:
            computation._root = instruction
        return end + 1

    def _continue_last(self, position: int) -> int:
        """Gives the line at `position` to the last instruction if its attributes are open.

        Returns where they end; before `position` if they do not reach it.
        """
        assert self.computation is not None
        at = self.computation.instructions[-1]._at
        module = self.module
        irregular = module._irregular.get(at)
        if irregular is None:
            match = INSTRUCTION.match(self.text, at)
            assert match is not None
            irregular = (match.start(5), match.end(5) + 1, match.end(6))
        end = continued_line_end(self.text, irregular[1])
        if self.text[irregular[2] - 1] == "," or self.text[position:].lstrip()[:1] == ",":
            end = max(end, continued_line_end(self.text, position))
        module._irregular[at] = (irregular[0], irregular[1], end)
        return end

    def _open(self, name: str, *, is_entry: bool, at: int) -> Computation:
        if self.computation is not None:
            self.module.truncated = True
            self._close(complete=False)
        self.computation = Computation(name=name, module=self.module, is_entry=is_entry, at=at)
        self.by_name = {}
        return self.computation

    def _open_fragment(self, at: int) -> Computation:
        """For instructions with no header above them, as in text whose beginning is missing."""
        self.module.truncated = True
        return self._open(f"fragment.{len(self.module.computations)}", is_entry=False, at=at)

    def _close(self, *, complete: bool) -> None:
        computation = self.computation
        assert computation is not None
        for instruction, names in self.pending:
            instruction.operands = tuple(self._resolve(name, computation) for name in names)
        self.pending = []
        computation.complete = complete
        if computation.instructions:
            self.module.computations.append(computation)
        self.computation = None

    def _resolve(self, name: str, computation: Computation) -> Instruction:
        """The instruction of that name, or a stand-in for one that the text does not define."""
        found = self.by_name.get(name)
        if found is None:
            found = Instruction(name, _UNKNOWN_SHAPE, MISSING, (), computation, -1)
            self.by_name[name] = found
        return found

    def _unread(self, position: int) -> None:
        if self.computation is not None:
            self.module.truncated = True
        if len(self.module.unread_lines) < MAX_UNREAD_LINES:
            self.module.unread_lines.append(self.module.line_at(position))

    def _finish(self) -> Module:
        module = self.module
        if self.tables_start >= 0:
            module.frame_tables = self.text[self.tables_start : self.tables_end]
        for computation in module.computations:
            module._by_name[computation.name] = computation
            if computation.is_entry:
                module.entry = computation
        if not module.name:
            module.name = module.entry.name if module.entry else "fragment"
        return module
