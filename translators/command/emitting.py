"""Translations as one text: Python with Pallas or JAX, StableHLO, or the op graphs."""

import ast
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from translators.command.renaming import renamed
from translators.emit.jax import JaxFunction
from translators.emit.stablehlo import MODULE_SEPARATOR, ValueType, emit_stablehlo
from translators.graph.printer import print_module
from translators.translation import Translation, load
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.launches import ScalarArgument
from translators.verify.emitted import Emitted
from translators.verify.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One translation as text.

    Attributes:
      translation: what it is of.
      function: the emitted function, under a name that no other part has.
      text: what is emitted for it.
    """

    translation: Translation
    function: JaxFunction
    text: str


def emit_part(emit: str, translation: Translation, taken: set[str]) -> Part:
    """The text of one translation.

    Args:
      emit: `graph`, `stablehlo`, or anything else for Python.
      translation: what to emit.
      taken: names of other parts; the new one is added.

    Raises:
      GraphError: the translation has no form in StableHLO.
    """
    function = _renamed(translation.function, taken)
    taken.add(function.name)
    if emit == "graph":
        text = print_module(translation.module)
    elif emit == "stablehlo":
        text = emit_stablehlo(
            function, load(function), _types(translation), translation.module.kernel.location
        )
    else:
        text = function.source
    return Part(translation=translation, function=function, text=text)


def join(emit: str, parts: Sequence[Part]) -> str:
    """The parts as one file."""
    texts = [part.text for part in parts]
    if emit == "stablehlo":
        return MODULE_SEPARATOR.join(texts)
    if emit == "graph":
        return "\n".join(texts)
    return texts[0] if len(texts) == 1 else _one_python_file(parts)


def emitted_part(emit: str, text: str, part: Part) -> Emitted:
    """A part's function, out of the text of all parts.

    It takes arrays by position and scalars by name. A graph is no function: its part gives the
    JAX function that was made from it.
    """
    function = part.function
    program = Program(
        name=function.name,
        source=function.source if emit == "graph" else text,
        wide=function.wide,
    )
    if emit != "stablehlo":
        return Emitted(signature=function, call=program.load(), program=program)
    import jax.numpy as jnp

    numbers = _numbers(part.translation)
    dtypes = {name: NUMPY_DTYPES[each.dtype] for name, each in numbers.items()}
    program = replace(
        program, stablehlo=True, numbers=tuple(dtype.name for dtype in dtypes.values())
    )
    exported = program.load()

    def call(*arrays: Any, **scalars: Any) -> Any:
        values = [
            jnp.asarray(scalars.get(name, numbers[name].value), dtype)
            for name, dtype in dtypes.items()
        ]
        return exported(*arrays, *values)

    return Emitted(signature=function, call=call, program=program)


def _types(translation: Translation) -> dict[str, ValueType]:
    """What the function's arrays and numbers hold, by the name that it takes them under."""
    known = {
        each.name: ValueType(dtype=NUMPY_DTYPES[each.dtype].name, shape=each.shape)
        for each in translation.launch.arrays
        if each.dtype in NUMPY_DTYPES
    }
    for name, number in _numbers(translation).items():
        known[name] = ValueType(dtype=NUMPY_DTYPES[number.dtype].name, shape=())
    return known


def _numbers(translation: Translation) -> dict[str, ScalarArgument]:
    """The kernel's numbers that the function takes, by the name that it takes them under.

    They stand in the kernel's order. One whose name means something in Python, such as `max`, has
    a number behind it.
    """
    numbers = (each for each in translation.launch.singles if isinstance(each, ScalarArgument))
    return {
        name: next(each for each in numbers if name in (each.name, _numbered(each.name, name)))
        for name in translation.function.scalars
    }


def _numbered(name: str, like: str) -> str:
    """The name with the number behind it that another one has."""
    return name + like[len(name) :] if re.fullmatch(r"_\d+", like[len(name) :]) else name


def _renamed(function: JaxFunction, taken: set[str]) -> JaxFunction:
    """The function under a name that is not taken."""
    name, number = function.name, 1
    while name in taken:
        number += 1
        name = f"{function.name}_{number}"
    if name == function.name:
        return function
    return replace(function, name=name, source=renamed(function.source, function.name, name))


def _one_python_file(parts: Sequence[Part]) -> str:
    """One module with the functions of several, which share imports and helpers."""
    imports: dict[str, None] = {}
    statements: dict[str, str] = {}
    names = {part.function.name for part in parts}
    for part in parts:
        _, *body = _segments(_fitting(part.text, statements, names))
        for key, (node, segment) in _keyed(body).items():
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports[segment] = None
            else:
                statements[key] = segment
    kernels = dict.fromkeys(f"`{part.translation.launch.kernel.function}`" for part in parts)
    listed = ", ".join(kernels)
    single = len(kernels) == 1
    title = f"{listed}, translated from Triton" if single else f"Translated from Triton: {listed}"
    ordered = sorted(imports, key=lambda line: (line.startswith("from"), line))
    head = "\n".join([f'"""{title}."""', "", *ordered])
    return "\n\n\n".join([head, *statements.values()]) + "\n"


def _fitting(text: str, statements: Mapping[str, str], names: Container[str]) -> str:
    """A file whose helpers have other names than different ones of the other files.

    Args:
      text: the file.
      statements: what the other files hold, functions by name.
      names: those of kernels.
    """
    pending = True
    while pending:
        pending = False
        for name, (node, segment) in _keyed(_segments(text)).items():
            if isinstance(node, ast.FunctionDef) and statements.get(name, segment) != segment:
                text = _with_helper(text, name, statements, names)
                pending = True  # what calls it is another text now
                break
    return text


def _with_helper(text: str, name: str, statements: Mapping[str, str], names: Container[str]) -> str:
    """The file with a helper under the first name that it can have."""
    for number in count(2):
        new = f"{name}_{number}"
        if new in names or new in text:
            continue
        changed = renamed(text, name, new)
        segment = _keyed(_segments(changed))[new][1]
        if statements.get(new, segment) == segment:
            return changed
    raise AssertionError("there are names without end")


def _segments(text: str) -> list[tuple[ast.stmt, str]]:
    """The statements of a file, each with the comments and decorators above it."""
    lines, end, found = text.splitlines(), 0, []
    for node in ast.parse(text).body:
        found.append((node, "\n".join(lines[end : node.end_lineno]).strip("\n")))
        end = node.end_lineno or end
    return found


def _keyed(segments: Sequence[tuple[ast.stmt, str]]) -> dict[str, tuple[ast.stmt, str]]:
    """Statements by the name of the function, or by what they are."""
    return {
        node.name if isinstance(node, ast.FunctionDef) else segment: (node, segment)
        for node, segment in segments
    }
