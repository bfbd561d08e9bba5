"""Translations as one text: JAX, StableHLO, or the op graphs."""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from translators.emit.jax import JaxFunction
from translators.emit.stablehlo import (
    MODULE_SEPARATOR,
    ValueType,
    emit_stablehlo,
    load_stablehlo,
)
from translators.graph.printer import print_module
from translators.translation import Translation, load
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.launches import ScalarArgument


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
      emit: `graph`, `jax` or `stablehlo`.
      translation: what to emit.
      taken: names of other parts; the new one is added.

    Raises:
      GraphError: the translation has no form in StableHLO.
    """
    function = _renamed(translation.function, taken)
    taken.add(function.name)
    if emit == "graph":
        text = print_module(translation.module)
    elif emit == "jax":
        text = function.source
    else:
        text = emit_stablehlo(
            function, load(function), _types(translation), translation.module.kernel.location
        )
    return Part(translation=translation, function=function, text=text)


def join(emit: str, parts: Sequence[Part]) -> str:
    """The parts as one file."""
    texts = [part.text for part in parts]
    if emit == "stablehlo":
        return MODULE_SEPARATOR.join(texts)
    if emit == "graph":
        return "\n".join(texts)
    return texts[0] if len(texts) == 1 else _one_python_file(parts)


def load_part(emit: str, text: str, part: Part) -> Callable[..., Any]:
    """A part's function, out of the text of all parts.

    It takes arrays by position and scalars by name. A graph is no function: its part gives the
    JAX function that was made from it.
    """
    function = part.function
    if emit == "graph":
        return load(function)
    if emit == "jax":
        return load(replace(function, source=text))
    import jax.numpy as jnp

    exported = load_stablehlo(text, function.name)
    numbers = _numbers(part.translation)

    def call(*arrays: Any, **scalars: Any) -> Any:
        values = [
            jnp.asarray(scalars.get(name, numbers[name].value), NUMPY_DTYPES[numbers[name].dtype])
            for name in function.scalars
        ]
        return exported.call(*arrays, *values)

    return call


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
    name, count = function.name, 1
    while name in taken:
        count += 1
        name = f"{function.name}_{count}"
    if name == function.name:
        return function
    header = re.compile(rf"^def {re.escape(function.name)}\(", re.MULTILINE)
    source, _ = header.subn(f"def {name}(", function.source, count=1)
    return replace(function, name=name, source=source)


def _one_python_file(parts: Sequence[Part]) -> str:
    """One module with the functions of several, which share imports and helpers."""
    imports: dict[str, None] = {}
    statements: dict[str, str] = {}
    for part in parts:
        lines = part.text.splitlines()
        docstring, *body = ast.parse(part.text).body
        end = docstring.end_lineno or 0
        for node in body:
            # With the comments and decorators above it.
            segment = "\n".join(lines[end : node.end_lineno]).strip("\n")
            end = node.end_lineno or end
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports[segment] = None
                continue
            name = node.name if isinstance(node, ast.FunctionDef) else segment
            # What several parts bring along is the same: only kernels have names of their own.
            assert statements.setdefault(name, segment) == segment
    kernels = dict.fromkeys(f"`{part.translation.launch.kernel.function}`" for part in parts)
    title = f'"""Translated from Triton: {", ".join(kernels)}."""'
    ordered = sorted(imports, key=lambda line: (line.startswith("from"), line))
    head = "\n".join([title, "", *ordered])
    return "\n\n\n".join([head, *statements.values()]) + "\n"
