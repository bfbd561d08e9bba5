"""Reads the text that `printer.py` writes, for tests and for looking at graphs.

Whether the graph is legal is not asked here; `verifier.py` does that.
"""

import json
import re
from dataclasses import dataclass, field
from typing import NoReturn

from translators.graph.errors import GraphSyntaxError
from translators.graph.graph import (
    Attributes,
    AttributeValue,
    Function,
    Module,
    Region,
    Value,
    make_module,
    make_op,
    make_region,
)
from translators.graph.location import SourceLocation
from translators.graph.types import (
    FLOAT_TYPES,
    DescriptorType,
    ElementType,
    IntType,
    Number,
    PointerType,
    TensorType,
    Type,
)

_TOKEN = re.compile(
    r"""(?P<space>[ \t\n]+)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<value>%\w+)
    | (?P<number>-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf\b|nan\b))
    | (?P<word>[A-Za-z_][\w.]*(?:<[\w<>]*>)?)
    | (?P<mark>->|[@(){}\[\]=:,^])
    """,
    re.VERBOSE | re.ASCII,
)
_SHAPED = re.compile(r"(tensor|desc)<((?:\d+x)+)(.+)>\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    offset: int


@dataclass(slots=True)
class _Header:
    """An op up to its regions."""

    results: list[str]
    name: str
    operands: list[Value]
    attributes: Attributes
    types: list[Type]
    location: SourceLocation | None
    regions: list[Region] = field(default_factory=list)


def read_module(text: str) -> Module:
    """The module that the text describes.

    Raises:
      GraphSyntaxError: the text is not a graph.
    """
    return _Reader(text).module()


def read_type(text: str) -> Type | None:
    """The type that the text names; `None` if it names none."""
    found = _SHAPED.match(text)
    if found is None:
        return _read_element(text)
    element = _read_element(found[3])
    shape = tuple(int(size) for size in found[2].split("x")[:-1])
    if element is None or min(shape) < 1:
        return None
    block = TensorType(shape, element)
    return block if found[1] == "tensor" else DescriptorType(block)


def _read_element(text: str) -> ElementType | None:
    depth = 0
    while text.startswith("ptr<") and text.endswith(">"):
        text = text[len("ptr<") : -1]
        depth += 1
    element: ElementType | None = FLOAT_TYPES.get(text)
    if element is None and re.fullmatch(r"i[1-9][0-9]?", text) and int(text[1:]) <= 64:
        element = IntType(int(text[1:]))
    for _ in range(depth if element is not None else 0):
        element = PointerType(element)  # type: ignore[arg-type]
    return element


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._next = 0
        self._values: dict[str, Value] = {}

    def _split(self) -> list[_Token]:
        tokens = []
        offset = 0
        while offset < len(self._text):
            found = _TOKEN.match(self._text, offset)
            if found is None:
                self._fail(f"no token starts with {self._text[offset]!r}", offset)
            if found.lastgroup != "space":
                tokens.append(_Token(str(found.lastgroup), found[0], offset))
            offset = found.end()
        tokens.append(_Token("end", "", offset))
        return tokens

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        at = self._tokens[self._next].offset if offset is None else offset
        before = self._text[:at]
        line = before.count("\n") + 1
        column = at - (before.rfind("\n") + 1) + 1
        raise GraphSyntaxError(message, line=line, column=column)

    def _peek(self) -> str:
        return self._tokens[self._next].text

    def _accept(self, text: str) -> bool:
        token = self._tokens[self._next]
        if token.kind in ("mark", "word") and token.text == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._fail(f"expected `{text}`, found `{self._peek()}`")

    def _take(self, kind: str) -> str:
        token = self._tokens[self._next]
        if token.kind != kind:
            self._fail(f"expected a {kind}, found `{token.text}`")
        self._next += 1
        return token.text

    def _string(self) -> str:
        text = self._take("string")
        try:
            return str(json.loads(text))
        except json.JSONDecodeError:
            self._next -= 1
            self._fail(f"the string {text} cannot be read")

    def _integer(self) -> int:
        text = self._take("number")
        if not text.isdecimal():
            self._next -= 1
            self._fail(f"expected a whole number, found `{text}`")
        return int(text)

    def module(self) -> Module:
        functions: list[Function] = []
        entry = None
        while self._tokens[self._next].kind != "end":
            is_kernel = self._accept("kernel")
            if not is_kernel:
                self._expect("func")
            function = self._function()
            if any(function.name == other.name for other in functions):
                self._fail(f'the function "{function.name}" occurs twice')
            functions.append(function)
            if is_kernel:
                if entry is not None:
                    self._fail("there are two kernels")
                entry = function.name
        if entry is None:
            self._fail("there is no kernel")
        return make_module(functions, entry)

    def _function(self) -> Function:
        self._values = {}
        self._expect("@")
        name = self._string()
        body, hints = self._arguments()
        results: list[Type] = []
        if self._accept("->"):
            self._expect("(")
            results.append(self._type())
            while self._accept(","):
                results.append(self._type())
            self._expect(")")
        location = self._location()
        self._expect("{")
        self._body(body)
        return Function(
            name=name,
            body=body,
            result_types=tuple(results),
            hints=tuple(hints) if any(hints) else (),
            location=location,
        )

    def _arguments(self) -> tuple[Region, list[Attributes]]:
        names: list[str] = []
        types: list[Type] = []
        hints: list[Attributes] = []
        self._expect("(")
        while not self._accept(")"):
            if names:
                self._expect(",")
            names.append(self._new_name(names))
            self._expect(":")
            types.append(self._type())
            hints.append(self._attributes())
        region = make_region(types, [_hint(name) for name in names])
        for name, argument in zip(names, region.arguments, strict=True):
            self._define(name, argument)
        return region, hints

    def _define(self, name: str, value: Value) -> None:
        if name in self._values:
            self._fail(f"`%{name}` is defined twice")
        self._values[name] = value

    def _new_name(self, others: list[str]) -> str:
        name = self._take("value")[1:]
        if name in self._values or name in others:
            self._next -= 1
            self._fail(f"`%{name}` is defined twice")
        return name

    def _body(self, body: Region) -> None:
        """Reads ops up to the closing brace of `body`, whatever is nested in it."""
        regions = [body]
        headers: list[_Header] = []
        while regions:
            if not self._accept("}"):
                header = self._header()
                if self._accept("{"):
                    headers.append(header)
                    regions.append(self._open())
                else:
                    self._finish(header, regions[-1])
                continue
            closed = regions.pop()
            if not regions:
                return
            headers[-1].regions.append(closed)
            if self._accept("{"):
                regions.append(self._open())
            else:
                self._finish(headers.pop(), regions[-1])

    def _open(self) -> Region:
        if not self._accept("^"):
            return make_region()
        region, _ = self._arguments()
        self._expect(":")
        return region

    def _header(self) -> _Header:
        results: list[str] = []
        if self._peek().startswith("%"):
            results.append(self._new_name(results))
            while self._accept(","):
                results.append(self._new_name(results))
            self._expect("=")
        name = self._take("word")
        operands: list[Value] = []
        self._expect("(")
        while not self._accept(")"):
            if operands:
                self._expect(",")
            operands.append(self._operand())
        attributes = self._attributes() if self._opens_attributes() else {}
        types: list[Type] = []
        if results:
            self._expect(":")
            types.append(self._type())
            while self._accept(","):
                types.append(self._type())
        if len(types) != len(results):
            self._fail(f"{len(results)} results have {len(types)} types")
        return _Header(results, name, operands, attributes, types, self._location())

    def _opens_attributes(self) -> bool:
        """Whether the brace that follows holds attributes, which a region cannot be taken for."""
        ahead = self._tokens[self._next : self._next + 3]
        return [each.kind for each in ahead] == ["mark", "word", "mark"] and (
            ahead[0].text == "{" and ahead[2].text == "="
        )

    def _operand(self) -> Value:
        name = self._take("value")[1:]
        if name not in self._values:
            self._next -= 1
            self._fail(f"`%{name}` is not defined before its use")
        return self._values[name]

    def _finish(self, header: _Header, region: Region) -> None:
        op = make_op(
            header.name,
            header.operands,
            header.types,
            attributes=header.attributes,
            regions=header.regions,
            location=header.location,
            result_names=[_hint(name) for name in header.results],
        )
        for name, result in zip(header.results, op.results, strict=True):
            self._define(name, result)
        region.ops.append(op)

    def _attributes(self) -> Attributes:
        found: dict[str, AttributeValue] = {}
        if not self._accept("{"):
            return found
        while not self._accept("}"):
            if found:
                self._expect(",")
            key = self._take("word")
            self._expect("=")
            found[key] = self._value()
        return found

    def _value(self) -> AttributeValue:
        if self._tokens[self._next].kind == "string":
            return self._string()
        if self._accept("true"):
            return True
        if self._accept("false"):
            return False
        if not self._accept("["):
            return self._number()
        numbers: list[Number] = []
        while not self._accept("]"):
            if numbers:
                self._expect(",")
            numbers.append(self._number())
        return tuple(numbers)

    def _number(self) -> Number:
        text = self._take("number")
        return int(text) if text.lstrip("-").isdecimal() else float(text)

    def _type(self) -> Type:
        text = self._take("word")
        found = read_type(text)
        if found is None:
            self._next -= 1
            self._fail(f"`{text}` is no type")
        return found

    def _location(self) -> SourceLocation | None:
        if not self._accept("at"):
            return None
        file = self._string()
        self._expect(":")
        line = self._integer()
        column = self._integer() if self._accept(":") else 0
        text = self._string() if self._tokens[self._next].kind == "string" else ""
        return SourceLocation(file=file, line=line, column=column, text=text)


def _hint(name: str) -> str:
    return "" if name.isdigit() else name
