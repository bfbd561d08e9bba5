"""Modules as text that `reader.py` reads back.

kernel @"add"(%x: ptr<f32> {tt.divisibility = 16}, %n: i32) at "add.py":3 {
  %0 = tt.get_program_id() {axis = 0} : i32 at "add.py":4:10 "pid = tl.program_id(0)"
  scf.for(%lower, %upper, %step) {
  ^(%i: i32):
    scf.yield()
  }
  tt.return()
}
"""

import json
import re
from collections.abc import Iterator, Sequence

from translators.graph.graph import Attributes, AttributeValue, Function, Module, Op, Region, Value
from translators.graph.location import SourceLocation

_STRANGE = re.compile(r"[^A-Za-z0-9_]")


class Names:
    """Gives each value of a function a name of its own, after its hint where it has one."""

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._unnamed = 0

    def of(self, value: Value) -> str:
        """The value's name, without the leading `%`."""
        found = self._names.get(value)
        if found is None:
            found = self._fresh(value.name)
            self._names[value] = found
        return found

    def _fresh(self, hint: str) -> str:
        stem = _STRANGE.sub("_", hint)
        if not stem or stem.isdigit():
            self._unnamed += 1
            return str(self._unnamed - 1)
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


def print_module(module: Module) -> str:
    """The text of a module; the kernel is marked as such."""
    parts = (
        "\n".join(_function_lines(function, "kernel" if name == module.entry else "func"))
        for name, function in module.functions.items()
    )
    return "\n\n".join(parts) + "\n"


def print_function(function: Function) -> str:
    """The text of a kernel that stands alone."""
    return "\n".join(_function_lines(function, "kernel")) + "\n"


def _function_lines(function: Function, keyword: str) -> Iterator[str]:
    names = Names()
    hints = function.hints or ({},) * len(function.arguments)
    arguments = ", ".join(
        _typed(argument, names) + _attributes(hint)
        for argument, hint in zip(function.arguments, hints, strict=True)
    )
    results = ", ".join(map(str, function.result_types))
    arrow = f" -> ({results})" if results else ""
    place = _location(function.location)
    yield f"{keyword} @{json.dumps(function.name)}({arguments}){arrow}{place} {{"
    yield from _body_lines(function.body, names)
    yield "}"


def _body_lines(body: Region, names: Names) -> Iterator[str]:
    # Each entry: ops still to print in a region, and the regions of the same op that follow it.
    pending: list[tuple[Iterator[Op], Iterator[Region]]] = [(iter(body.ops), iter(()))]
    while pending:
        ops, following = pending[-1]
        indent = "  " * len(pending)
        op = next(ops, None)
        if op is not None:
            regions = iter(op.regions)
            first = next(regions, None)
            yield indent + _op(op, names) + (" {" if first is not None else "")
            if first is not None:
                yield from _arguments(first, names, indent)
                pending.append((iter(first.ops), regions))
            continue
        pending.pop()
        if not pending:
            return
        outer = indent[2:]
        region = next(following, None)
        if region is None:
            yield outer + "}"
        else:
            yield outer + "} {"
            yield from _arguments(region, names, outer)
            pending.append((iter(region.ops), following))


def _arguments(region: Region, names: Names, indent: str) -> Iterator[str]:
    if region.arguments:
        listed = ", ".join(_typed(each, names) for each in region.arguments)
        yield f"{indent}^({listed}):"


def _op(op: Op, names: Names) -> str:
    operands = ", ".join(f"%{names.of(each)}" for each in op.operands)
    text = f"{op.name}({operands}){_attributes(op.attributes)}"
    if op.results:
        # The results are named before those of the regions, as they are read.
        given = ", ".join(f"%{names.of(each)}" for each in op.results)
        text = f"{given} = {text} : {_types(op.results)}"
    return text + _location(op.location)


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(each.type) for each in values)


def _typed(value: Value, names: Names) -> str:
    return f"%{names.of(value)}: {value.type}"


def _attributes(attributes: Attributes) -> str:
    if not attributes:
        return ""
    return " {" + ", ".join(f"{key} = {_value(each)}" for key, each in attributes.items()) + "}"


def _value(value: AttributeValue) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _location(location: SourceLocation | None) -> str:
    if location is None:
        return ""
    column = f":{location.column}" if location.column else ""
    text = f" {json.dumps(location.text)}" if location.text else ""
    return f" at {json.dumps(location.file)}:{location.line}{column}{text}"
