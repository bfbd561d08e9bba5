"""HLO text -> Module, in one pass.

`INSTRUCTION` finds the instruction lines one after the other. What lies between two of them
(headers, closing braces, tables, instructions of an unusual form, garbage) is read line by line.
Unknown opcodes, types and attributes are kept as they are; text that breaks off keeps what was
read before. Only text without a single computation is an error.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from re import Match
from sys import intern

from hlo_tools.errors import InputError
from hlo_tools.hlo.grammar import (
    HEADER,
    HEADER_LINE,
    INSTRUCTION,
    INSTRUCTION_HEAD,
    MODULE,
    NEXT_COMPUTATION,
    OPERAND,
    TABLE_ROW,
    TABLES,
    attribute_list_end,
    blank_comments,
    closing_parenthesis,
    ends_with_line,
    split_operands,
    wrapped_header_end,
)
from hlo_tools.hlo.module import MISSING, Computation, Instruction, Module
from hlo_tools.hlo.shape import UNKNOWN_SHAPE, Shape, ShapeReader

MAX_UNREAD_LINES = 100
"""How many line numbers of unreadable lines a module keeps."""

_NO_OPERANDS = frozenset({"parameter", "constant"})


class ParseError(InputError):
    """Text that holds no HLO computation."""


def parse_module(text: str, *, path: str | None = None) -> Module:
    """Reads the text of one module.

    Args:
      text: HLO as XLA prints it, in any of its forms.
      path: where the text came from, for error messages.

    Raises:
      ParseError: there is no computation with an instruction in the text.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
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
        self.shape_reader = ShapeReader()
        self.computation: Computation | None = None
        self.by_name: dict[str, Instruction] = {}
        self.has_header = False
        self.in_table = False
        self.tables_start = self.tables_end = -1

    def read(self) -> Module:
        """Reads everything."""
        shapes, find_names, new = self.shapes, OPERAND.findall, Instruction.__new__
        position = -1
        for match in INSTRUCTION.finditer(self.text):
            at, end = match.span()
            if at != position:
                self._read_between(max(position, 0), at)
                computation = self.computation or self._open_fragment(at)
                append = computation.instructions.append
                by_name = self.by_name
                find = by_name.__getitem__
            position = end
            root, name, shape_text, opcode, arguments = match.groups()
            try:
                shape = shapes[shape_text]
            except KeyError:
                shape = self._shape(shape_text)
            # Every attribute set here and none by a call: one microsecond for each instruction.
            instruction = new(Instruction)
            instruction.name = name
            instruction.shape = shape
            instruction.opcode = intern(opcode)
            instruction.operands = ()
            instruction.computation = computation
            instruction._at = at
            instruction._attributes_at = match.end(5) + 1
            instruction._users = None
            instruction._called = None
            append(instruction)
            if root:
                computation._root = instruction
            if arguments and opcode not in _NO_OPERANDS:
                # Right if every piece is the name of an instruction above, for names hold no
                # commas. Comments and missing definitions take longer.
                try:
                    if arguments[0] == "%":
                        if "," in arguments:
                            instruction.operands = tuple(map(find, arguments[1:].split(", %")))
                        else:
                            instruction.operands = (by_name[arguments[1:]],)
                    elif "%" in arguments:
                        instruction.operands = tuple(map(find, find_names(arguments)))
                    else:
                        instruction.operands = tuple(map(find, arguments.split(", ")))
                except KeyError:
                    self._link(instruction, arguments)
            by_name[name] = instruction
        self._read_between(max(position, 0), len(self.text))
        if self.computation is not None:
            self.module.truncated = True
            self._close(complete=False)
        return self._finish()

    def _shape(self, text: str) -> Shape:
        shape = self.shape_reader.read(text)
        if shape is None:
            # A type of some later XLA: kept under its own name, of no known size.
            shape = Shape(element_type=text)
        self.shapes[text] = shape
        return shape

    def _read_between(self, start: int, end: int) -> None:
        """Reads the text between two instruction lines, which is whole lines."""
        text = self.text
        if self.computation is not None and (usual := NEXT_COMPUTATION.fullmatch(text, start, end)):
            self.computation._end = start + 1
            self._close(complete=True)
            self._open(usual[2], is_entry=bool(usual[1]), at=usual.start(2))
            return
        position = self._extend_last(start, end)
        may_wrap_header = True
        while position < end:
            line_end = text.find("\n", position, end)
            line_end = end if line_end < 0 else line_end
            line = text[position:line_end].strip()
            following = line_end + 1
            if not line:
                self.in_table = False
            elif line[0] == "}":
                if self.computation is not None:
                    self.computation._end = text.index("}", position) + 1
                    self._close(complete=True)
            elif line[-1] == "{" and (header := HEADER_LINE.match(line)):
                self._open(header[2], is_entry=bool(header[1]), at=position)
            elif self.in_table and TABLE_ROW.match(line):
                self.tables_end = line_end
            elif (head := INSTRUCTION_HEAD.match(text, position, end)) and (
                head[3] or self.computation is not None
            ):
                following = self._read_irregular(position, head, line_end, end)
            elif line in TABLES and self.computation is None:
                self.in_table = True
                self.tables_start = position if self.tables_start < 0 else self.tables_start
                self.tables_end = line_end
            elif module := MODULE.match(text, position, end):
                following = self._read_module_line(module, line_end, end)
            elif may_wrap_header and (body := self._wrapped_header(position, end)):
                following = body
            else:
                may_wrap_header = may_wrap_header and "(" not in line
                self._unread(position)
            position = following

    def _link(self, instruction: Instruction, arguments: str) -> None:
        """Sets the operands, with stand-ins for what no line above defines.

        XLA refuses an operand that is defined further down: without them no value leads back to
        itself, whatever the text says, and every walk along operands ends.
        """
        computation = instruction.computation
        instruction.operands = tuple(
            [self._resolve(name, computation) for name in split_operands(arguments)]
        )

    def _extend_last(self, start: int, end: int) -> int:
        """Gives the last instruction the lines over which its attributes go on.

        Returns where reading goes on: `start` if its line was whole, as nearly every line is.
        """
        if self.computation is None or not self.computation.instructions:
            return start
        text = self.text
        attributes_at = self.computation.instructions[-1]._attributes_at
        if ends_with_line(text, attributes_at, start, end):
            return start
        list_end = attribute_list_end(text, attributes_at, end)
        if list_end < start:
            return start
        self.module._attribute_ends[attributes_at] = list_end
        return list_end + 1

    def _read_irregular(self, at: int, head: Match[str], line_end: int, end: int) -> int:
        """Reads an instruction whose arguments span lines, nest deeply or hold strings."""
        text = self.text
        close = closing_parenthesis(text, head.end(), end)
        if close < 0:
            self.module.truncated = True
            self._unread(at)
            return line_end + 1
        attributes_at = close + 1
        list_end = attribute_list_end(text, attributes_at, end)
        if list_end < 0:
            list_end = text.find("\n", attributes_at, end)
            list_end = end if list_end < 0 else list_end
        self.module._attribute_ends[attributes_at] = list_end
        root, name, shape_text, opcode = head.groups()
        computation = self.computation or self._open_fragment(at)
        shape = self.shapes.get(shape_text or "")
        if shape is None:
            shape = self._shape(shape_text) if shape_text else UNKNOWN_SHAPE
        instruction = Instruction(name, shape, intern(opcode), (), computation, at, attributes_at)
        if opcode not in _NO_OPERANDS:
            self._link(instruction, text[head.end() : close])
        self.by_name[name] = instruction
        computation.instructions.append(instruction)
        if root:
            computation._root = instruction
        return list_end + 1

    def _read_module_line(self, head: Match[str], line_end: int, end: int) -> int:
        """Reads the attributes of a module; those of the first module where there are several."""
        if self.computation is not None:
            self.module.truncated = True
            self._close(complete=False)
        list_end = line_end
        if not ends_with_line(self.text, head.end(), line_end, end):
            list_end = max(line_end, attribute_list_end(self.text, head.end(), end))
        if not self.has_header:
            self.has_header = True
            self.module.name = head[1]
            self.module._header = self.text[head.end() : list_end].rstrip()
        return list_end + 1

    def _wrapped_header(self, position: int, end: int) -> int:
        """Opens the computation whose header, broken over lines, begins at `position`.

        Returns where its body begins, or 0 if there is no header.
        """
        head = HEADER.match(self.text, position, end)
        body = wrapped_header_end(self.text, head, end) if head else -1
        if head is None or body < 0:
            return 0
        self._open(head[2], is_entry=bool(head[1]), at=position)
        return body

    def _open(self, name: str, *, is_entry: bool, at: int) -> Computation:
        if self.computation is not None:
            self.module.truncated = True
            self._close(complete=False)
        self.in_table = False
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
        computation.complete = complete
        if computation.instructions:
            self.module.computations.append(computation)
        self.computation = None

    def _resolve(self, name: str, computation: Computation) -> Instruction:
        """The instruction of that name, or a stand-in for one that the text does not define."""
        found = self.by_name.get(name)
        if found is None:
            found = Instruction(name, UNKNOWN_SHAPE, MISSING, (), computation, -1, -1)
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
        if module.entry is None and module.computations:
            # By hand one may leave out the word; otherwise the dump was cut off between two
            # computations, before the entry, which comes last.
            only = module.computations[0]
            if len(module.computations) == 1 and not (module.truncated or module.header_text):
                module.entry = only
            else:
                module.truncated = True
        if not module.name:
            module.name = module.entry.name if module.entry else "fragment"
        return module
