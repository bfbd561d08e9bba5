"""A module, its computations and their instructions, with operand, user and call edges.

All three are read-only once the parser has made them. What is seldom asked for (attributes, users,
called computations) is read from the text on first use.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from hlo_tools.hlo.attributes import find_attribute, iterate_attributes
from hlo_tools.hlo.grammar import INSTRUCTION_HEAD
from hlo_tools.hlo.shape import Shape

MISSING = "(missing)"
"""The opcode of the stand-in for an operand whose definition is not in the text."""

_CALL_KEYS = frozenset(
    {
        "calls", "to_apply", "body", "condition", "branch_computations", "true_computation",
        "false_computation", "called_computations", "select", "scatter", "async_execution_comp",
    }
)  # fmt: skip
_FAST_CALL = re.compile(
    r"(?:,\s*+(?!calls=|to_apply=)[\w.\-]++=[\w.\-%]++)*+,\s*+(?:calls|to_apply)=%?([^\s,={}()]++)"
    r"(?=,\s*+(?:metadata|backend_config|sharding|frontend_attributes|output_to_operand_aliasing)="
    r"|\s*+$)"
)
"""The one called computation of an instruction whose further attributes, if any, call none."""

_FUSION_CALLS = re.compile(r",\s*calls=%?([^\s,={}()]++)")
_NAME = re.compile(r"%?([^\s,={}()\[\]]+)")
_LEAF_OPCODES = frozenset(
    {
        "parameter", "constant", "iota", "tuple", "get-tuple-element", "bitcast", "bitcast-convert",
        "copy", "copy-start", "copy-done", "reshape", "transpose", "broadcast", "slice",
        "dynamic-slice", "dynamic-update-slice", "concatenate", "pad", "reverse", "convert",
        "convolution", "dot", "gather", "compare", "select", "clamp", "add", "subtract", "multiply",
        "divide", "remainder", "maximum", "minimum", "power", "and", "or", "not", "xor", "negate",
        "abs", "exponential", "log", "tanh", "rsqrt", "sqrt", "shift-left",
        "shift-right-logical", "shift-right-arithmetic",
    }
)  # fmt: skip
"""Opcodes that never call a computation: most of any module, so their attributes stay unread."""

_SHORT_FORM_CALLERS = frozenset(
    {
        "fusion", "call", "while", "conditional", "reduce", "reduce-window", "map", "sort",
        "scatter", "select-and-scatter", "all-reduce", "all-reduce-start", "reduce-scatter",
        "async-start", "async-update", "async-done", "topk",
    }
)  # fmt: skip
"""Opcodes whose attributes name a computation even in the short form of text, without `%`."""


class Instruction:
    """One operation of a computation.

    Attributes:
      name: without the `%`.
      shape: of the result.
      opcode: as in the text, for example `all-reduce-start`.
      operands: the instructions it reads, in order.
      computation: the one that holds it.
    """

    __slots__ = (
        "_at", "_attributes_at", "_called", "_users", "computation", "name", "opcode", "operands",
        "shape",
    )  # fmt: skip

    name: str
    shape: Shape
    opcode: str
    operands: tuple["Instruction", ...]
    computation: "Computation"
    _at: int
    _attributes_at: int
    _called: tuple["Computation", ...] | None
    _users: list["Instruction"] | None

    def __init__(
        self,
        name: str,
        shape: Shape,
        opcode: str,
        operands: tuple["Instruction", ...],
        computation: "Computation",
        at: int,
        attributes_at: int,
    ) -> None:
        self.name = name
        self.shape = shape
        self.opcode = opcode
        self.operands = operands
        self.computation = computation
        self._at = at
        self._attributes_at = attributes_at
        self._users = None
        self._called = None

    @property
    def attribute_text(self) -> str:
        """The attribute list as written, from the comma behind the operands to the line's end."""
        module, start = self.computation.module, self._attributes_at
        if start < 0:
            return ""
        end = module._attribute_ends.get(start) if module._attribute_ends else None
        if end is None:
            end = module.text.find("\n", start)
        return module.text[start:end] if end >= 0 else module.text[start:]

    @property
    def argument_text(self) -> str:
        """What stands between the parentheses: operands, a literal or a parameter's number."""
        text = self.computation.module.text
        head = INSTRUCTION_HEAD.match(text, self._at) if self._at >= 0 else None
        return text[head.end() : self._attributes_at - 1] if head else ""

    def attribute(self, name: str) -> str | None:
        """The unread value of an attribute, or `None`."""
        return find_attribute(self.attribute_text, name)

    def attributes(self) -> Mapping[str, str]:
        """All attributes, in the order of the text, values unread."""
        return dict(iterate_attributes(self.attribute_text))

    @property
    def users(self) -> list["Instruction"]:
        """The instructions of the same computation that read it, each once, in text order."""
        if self._users is None:
            self.computation.link_users()
        assert self._users is not None
        return self._users

    @property
    def called_computations(self) -> tuple["Computation", ...]:
        """The computations it calls, in the order of the attributes; unknown names are left out."""
        if self._called is None:
            names = self.called_names()
            known = self.computation.module._by_name
            self._called = tuple([known[name] for name in names if name in known]) if names else ()
        return self._called

    @property
    def fused_computation(self) -> "Computation | None":
        """The computation that a fusion runs; `None` for other opcodes, or if it is not defined."""
        if self.opcode != "fusion":
            return None
        called = self.called_computations
        return called[0] if called else None

    def called_names(self) -> tuple[str, ...]:
        """The names of the computations it calls, whether or not the text defines them."""
        if self.opcode in _LEAF_OPCODES:
            return ()
        text = self.attribute_text
        if self.opcode == "fusion":
            # XLA prints `calls` before the only attributes that hold strings.
            calls = _FUSION_CALLS.search(text)
            if calls and '"' not in text[: calls.start()]:
                return (calls[1],)
        may_call = (
            self.opcode in _SHORT_FORM_CALLERS
            or "=%" in text
            or "{%" in text
            or "called_computations=" in text
        )
        if not may_call:
            return ()
        fast = _FAST_CALL.match(text)
        if fast:
            return (fast[1],)
        names: list[str] = []
        for key, value in iterate_attributes(text):
            if key in _CALL_KEYS:
                names.extend(_NAME.findall(value))
        return tuple(names)

    def called(self, key: str) -> "Computation | None":
        """The computation that one attribute names, for example `body` or `condition`."""
        value = self.attribute(key)
        name = _NAME.search(value) if value else None
        return self.computation.module.computation(name[1]) if name else None

    @property
    def is_root(self) -> bool:
        """Whether its value is the result of its computation."""
        return self.computation.root is self

    @property
    def line(self) -> int:
        """1-based line in the text."""
        return self.computation.module.line_at(self._at)

    def __repr__(self) -> str:
        return f"<Instruction %{self.name} {self.opcode}>"


class Computation:
    """A named sequence of instructions; in a scheduled module, the order in which they run.

    Attributes:
      name: without the `%`.
      module: the one that holds it.
      instructions: in text order.
      is_entry: whether it is the one that runs when the module does.
      complete: whether its closing brace was read.
    """

    __slots__ = (
        "_at", "_by_name", "_end", "_parameters", "_root", "complete", "instructions", "is_entry",
        "module", "name",
    )  # fmt: skip

    def __init__(self, *, name: str, module: "Module", is_entry: bool, at: int) -> None:
        self.name = name
        self.module = module
        self.is_entry = is_entry
        self.instructions: list[Instruction] = []
        self.complete = False
        self._at = at
        self._end = -1
        self._root: Instruction | None = None
        self._by_name: dict[str, Instruction] | None = None
        self._parameters: tuple[Instruction, ...] | None = None

    @property
    def root(self) -> Instruction:
        """The instruction whose value is the result: the one marked ROOT, otherwise the last."""
        return self._root if self._root is not None else self.instructions[-1]

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters, by number."""
        if self._parameters is None:
            found = [i for i in self.instructions if i.opcode == "parameter"]
            self._parameters = tuple(sorted(found, key=parameter_number))
        return self._parameters

    @property
    def attribute_text(self) -> str:
        """What follows its closing brace, for example `, execution_thread="host"`."""
        if self._end < 0:
            return ""
        text = self.module.text
        line_end = text.find("\n", self._end)
        return (text[self._end : line_end] if line_end >= 0 else text[self._end :]).rstrip()

    @property
    def at(self) -> int:
        """Where it begins: an offset into the text of its module."""
        return self._at

    @property
    def line(self) -> int:
        """1-based line of its header in the text."""
        return self.module.line_at(self._at)

    def instruction(self, name: str) -> Instruction | None:
        """The instruction of that name, or `None`."""
        if self._by_name is None:
            self._by_name = {i.name: i for i in self.instructions}
        return self._by_name.get(name)

    def link_users(self) -> None:
        """Fills in the users of every instruction here, and of the stand-ins among operands."""
        for instruction in self.instructions:
            instruction._users = []
        for instruction in self.instructions:
            operands = instruction.operands
            if len(operands) > 1:
                operands = tuple(dict.fromkeys(operands))
            for operand in operands:
                users = operand._users
                if users is None:
                    users = operand._users = []
                users.append(instruction)

    def __repr__(self) -> str:
        return f"<Computation %{self.name}, {len(self.instructions)} instructions>"


def parameter_number(instruction: Instruction) -> int:
    """The number of a `parameter(n)`; -1 where it is unreadable."""
    text = instruction.argument_text.strip()
    return int(text) if text.isascii() and text.isdigit() else -1


class Module:
    """A compiled program.

    Attributes:
      name: from the `HloModule` line, otherwise that of the entry computation.
      text: what was parsed.
      computations: in text order.
      entry: the entry computation; `None` in a fragment.
      truncated: the text ended, or broke, in the middle.
      unread_lines: 1-based numbers of lines that are no HLO, at most the first hundred.
    """

    __slots__ = (
        "_attribute_ends", "_by_name", "_header", "_line_starts", "computations", "entry",
        "frame_tables", "name", "text", "truncated", "unread_lines",
    )  # fmt: skip

    def __init__(self, *, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.computations: list[Computation] = []
        self.entry: Computation | None = None
        self.truncated = False
        self.unread_lines: list[int] = []
        self.frame_tables = ""
        self._header = ""
        self._attribute_ends: dict[int, int] = {}
        self._by_name: dict[str, Computation] = {}
        self._line_starts: array[int] | None = None

    @property
    def header_text(self) -> str:
        """The attribute list of the `HloModule` line."""
        return self._header

    def attribute(self, name: str) -> str | None:
        """The unread value of an attribute of the `HloModule` line, or `None`."""
        return find_attribute(self._header, name)

    @property
    def is_scheduled(self) -> bool:
        """Whether the order of instructions is that in which they run."""
        return self.attribute("is_scheduled") == "true"

    @property
    def partitions(self) -> int:
        """Devices over which the program was partitioned; 1 where the header says nothing."""
        value = self.attribute("num_partitions")
        return int(value) if value and value.isascii() and value.isdigit() else 1

    @property
    def replicas(self) -> int:
        """Copies of the program that run together; 1 where the header says nothing."""
        value = self.attribute("replica_count")
        return int(value) if value and value.isascii() and value.isdigit() else 1

    def computation(self, name: str) -> Computation | None:
        """The computation of that name, or `None`."""
        return self._by_name.get(name)

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation, in text order."""
        for computation in self.computations:
            yield from computation.instructions

    @property
    def instruction_count(self) -> int:
        """Instructions in all computations."""
        return sum(len(c.instructions) for c in self.computations)

    def roots(self) -> list[Computation]:
        """Where execution starts: the entry, or in a fragment what nothing else calls."""
        if self.entry is not None:
            return [self.entry]
        called = {name for i in self.instructions() for name in i.called_names()}
        return [c for c in self.computations if c.name not in called]

    def line_at(self, at: int) -> int:
        """1-based line number of an offset; 0 for what is not in the text."""
        if at < 0:
            return 0
        if self._line_starts is None:
            self._line_starts = array("Q", (m.end() for m in re.finditer("\n", self.text)))
        return bisect_right(self._line_starts, at) + 1

    def __repr__(self) -> str:
        return f"<Module {self.name}, {len(self.computations)} computations>"
