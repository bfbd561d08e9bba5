"""An emitted function as a file of its own."""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from translators.emit.facts import ArgumentFact, ArrayFact, ScalarFact
from translators.emit.layout import WIDTH, laid_out
from translators.graph.types import Number

# Of the lines of a docstring.
_WIDTH = WIDTH - 8


def python_file(
    *,
    name: str,
    kernel: str,
    arguments: Sequence[ArgumentFact],
    arrays: Sequence[tuple[str, ArrayFact]],
    scalars: Mapping[str, ScalarFact],
    results: Sequence[str],
    body: Sequence[str],
    helpers: Mapping[str, str],
    options: Sequence[tuple[str, str]] = (),
) -> str:
    """The text of a file that holds a function and imports nothing but jax.

    Args:
      name: the function.
      kernel: the Triton kernel.
      arguments: one fact for each of the kernel's arguments.
      arrays: the arrays that the function takes, with their names in the text.
      scalars: the numbers that it takes by name.
      results: the kernel's arrays whose new contents it gives.
      body: its lines, behind the checks of its arguments.
      helpers: the text of the functions that it calls, by name.
      options: further keywords with their defaults, each with what the docstring says of it.
    """
    text = "\n".join(body)
    keywords = [f"{each}={_default(fact.value)}" for each, fact in scalars.items()]
    keywords += [default for default, _ in options]
    parameters = [each for each, _ in arrays]
    signature = ", ".join([*parameters, *(["*", *keywords] if keywords else [])])
    lines = [f'"""`{kernel}`, translated from Triton."""', ""]
    lines += [*_imports(text, helpers.values()), ""]
    for helper in helpers.values():
        lines += ["", helper.strip(), ""]
    lines += ["", *laid_out(f"def {name}({signature}):", "")]
    told = _docstring(kernel, arguments, arrays, scalars, results, options)
    lines += [textwrap.indent(f'"""{told}"""', "    ")]
    lines += _checks(arrays)
    if body[0].lstrip().startswith(("def ", "@")):
        lines.append("")
    return "\n".join([*lines, *body, ""])


def _docstring(
    kernel: str,
    arguments: Sequence[ArgumentFact],
    arrays: Sequence[tuple[str, ArrayFact]],
    scalars: Mapping[str, ScalarFact],
    results: Sequence[str],
    options: Sequence[tuple[str, str]],
) -> str:
    lines = [f"Computes what the Triton kernel `{kernel}` computes.", ""]
    fixed = [
        f"{fact.name}={fact.value}"
        for fact in arguments
        if isinstance(fact, ScalarFact) and not fact.free
    ]
    if fixed:
        lines += [*textwrap.wrap(f"Made for {', '.join(fixed)}.", _WIDTH), ""]
    taken = [f"  {name}: {_held(fact)}{list(fact.shape)}." for name, fact in arrays]
    taken += [f"  {name}: a number, {fact.dtype}." for name, fact in scalars.items()]
    taken += [f"  {told}" for _, told in options]
    lines += ["Args:", *taken, ""] if taken else []
    names = ", ".join(f"`{each}`" for each in results)
    given = textwrap.wrap(f"The new contents of {names}.", _WIDTH - 2)
    lines += ["Returns:", *(f"  {each}" for each in given), ""]
    return "\n".join(lines)


def _default(number: Number) -> str:
    """A number as Python writes it."""
    if isinstance(number, float) and not math.isfinite(number):
        return f'float("{number}")'
    return repr(number)


def _held(fact: ArrayFact) -> str:
    """The element type; with what stands for it where JAX has no types of 64 bits."""
    return fact.dtype if fact.word is None else f"{fact.dtype} or {_short(fact)}"


def _short(fact: ArrayFact) -> str:
    """The type of half the bits."""
    return fact.dtype.replace("64", "32")


def _imports(text: str, helpers: Iterable[str]) -> list[str]:
    whole = text + "".join(helpers)
    found = []
    if re.search(r"\bjax\.", whole):
        found.append("import jax")
    found.append("import jax.numpy as jnp")
    if re.search(r"\blax\.", whole):
        found.append("from jax import lax")
    if re.search(r"\bpl\.", whole):
        found.append("from jax.experimental import pallas as pl")
    if re.search(r"\bpltpu\.", whole):
        found.append("from jax.experimental.pallas import tpu as pltpu")
    return found


def _checks(arrays: Sequence[tuple[str, ArrayFact]]) -> list[str]:
    """The function refuses what it was not made for: first other shapes, then other elements."""
    lines = []
    for name, fact in arrays:
        lines.append(f"    if {name}.shape != {fact.shape}:")
        told = (f"`{name}` must have the shape {fact.shape}, ", f"not {{{name}.shape}}")
        lines += _raised("ValueError", told)
    for name, fact in arrays:
        element = "bool_" if fact.dtype == "bool" else fact.dtype
        wrong = f"!= jnp.{element}"
        if fact.word is not None:
            wrong = f"not in (jnp.{element}, jnp.{_short(fact)})"
        lines.append(f"    if {name}.dtype {wrong}:")
        told = (f"`{name}` must hold {_held(fact)}, ", f"not {{{name}.dtype}}")
        lines += _raised("TypeError", told)
    return lines


def _raised(error: str, parts: Sequence[str]) -> list[str]:
    """A statement that raises an error with a message, on several lines if one is too short."""
    lines = laid_out(f'raise {error}(f"{"".join(parts)}")', "        ")
    if max(map(len, lines)) <= WIDTH:
        return lines
    return [lines[0], *(f'            f"{each}"' for each in parts), lines[-1]]
