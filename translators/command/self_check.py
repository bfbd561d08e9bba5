"""What an emitted file does when it is run: compares its kernels with references.

Each kernel in Pallas is joined by the JAX that the same Triton kernel is translated to. Run as a
script, the file draws inputs of the launch's shapes, calls both, and says how far they differ.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_tools.errors import InputError
from translators.command.differentiable import Pair
from translators.command.emitting import Part
from translators.command.renaming import renamed
from translators.emit.jax import JaxFunction
from translators.emit.layout import laid_out
from translators.general_translation import generalized
from translators.graph.numerics import Array
from translators.translation import translate_module
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.launches import ArrayArgument, Launch

_STEP = "    "
# Names that a check uses itself.
_TAKEN = (
    "jax",
    "jnp",
    "interpret",
    "keys",
    "found",
    "wanted",
    "found_pull",
    "wanted_pull",
    "differs",
)
# Recorded integers are written out up to so many.
_MOST_NUMBERS = 64
_GREATEST_DATA = 100
_COMPARED = '''

def _differs(kernel, name, found, wanted):
    """Prints how far two arrays differ, of the greatest element; whether that is much."""
    if not jnp.issubdtype(wanted.dtype, jnp.floating):
        count = int(jnp.sum(found != wanted))
        print(f"{kernel}: {name}: {count} of {wanted.size} elements differ")
        return count > 0
    # Half of the digits of the type.
    most = float(jnp.finfo(wanted.dtype).eps) ** 0.5
    wide = jnp.promote_types(wanted.dtype, jnp.float32)
    found, wanted = found.astype(wide), wanted.astype(wide)
    same = (found == wanted) | (jnp.isnan(found) & jnp.isnan(wanted))
    greatest = jnp.max(jnp.where(jnp.isfinite(wanted), jnp.abs(wanted), 0.0), initial=0.0)
    difference = jnp.where(same, 0.0, jnp.abs(found - wanted) / jnp.where(greatest, greatest, 1.0))
    worst = float(jnp.max(jnp.where(jnp.isnan(difference), jnp.inf, difference), initial=0.0))
    print(f"{kernel}: {name} differs by {worst:.2g} of its greatest element (at most {most:.2g})")
    return worst > most
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a launch was verified on.

    Attributes:
      kind: of the integers, as `verify.inputs` calls it, such as `small integers`; empty if none
        were drawn.
      positive: whether floats were positive.
      recorded: integers that host code gave, by array.
    """

    kind: str = ""
    positive: bool = False
    recorded: Mapping[str, Array] = field(default_factory=dict)


def drawn_on(inputs: Sequence[str], recorded: Mapping[str, Array]) -> Drawn:
    """What the titles of inputs say of how these were drawn.

    Args:
      inputs: the titles.
      recorded: integers that host code gave, by array.
    """
    kinds = [title.partition(", ")[2] for title in inputs]
    return Drawn(
        kind=next((each for each in kinds if each), ""),
        positive=any(title.startswith("positive") for title in inputs),
        recorded=recorded,
    )


def references(parts: Sequence[Part], taken: set[str]) -> dict[str, Part]:
    """JAX for the kernels in Pallas, by the name of the function of each.

    Args:
      parts: what is emitted.
      taken: names of functions; new ones are added.
    """
    found: dict[str, Part] = {}
    for part in parts:
        if not part.function.pallas:
            continue
        translation = part.translation
        try:
            plain = translate_module(translation.module, translation.launch)
        except InputError:
            continue  # there is no JAX to compare it with
        if part.function.sizes:
            plain = generalized(plain)
        name, number = f"{part.function.name}_reference", 1
        while name in taken:
            number += 1
            name = f"{part.function.name}_reference_{number}"
        taken.add(name)
        function = plain.function
        source = renamed(function.source, function.name, name)
        function = replace(function, name=name, source=source)
        found[part.function.name] = Part(translation=plain, function=function, text=source)
    return found


def check_lines(
    parts: Sequence[Part],
    references: Mapping[str, Part],
    drawn: Mapping[str, Drawn],
    pair: Pair | None = None,
) -> list[str]:
    """The lines at the end of a file by which it checks its kernels; none if it has nothing to.

    Args:
      parts: what is emitted.
      references: what `references` gives for them.
      drawn: what each was verified on, by the name of its function.
      pair: the kernels of which one has the other as its derivative, if there are such.
    """
    lines: list[str] = []
    names: list[str] = []
    for part in parts:
        reference = references.get(part.function.name)
        known = drawn.get(part.function.name, Drawn())
        own = pair if pair is not None and pair.forward is part else None
        body = None if reference is None else _body(part, reference.function, known, own)
        if body is not None:
            names.append(f"_check_{part.function.name}")
            lines += ["", "", f"def {names[-1]}(interpret):", *body]
    if not names:
        return []
    wide = any(part.function.wide for part in parts)
    return [*_COMPARED.rstrip().splitlines(), *lines, "", "", *_main(names, wide)]


def _body(part: Part, reference: JaxFunction, drawn: Drawn, pair: Pair | None) -> list[str] | None:
    """The lines of the function that checks one kernel; `None` if its inputs are not known."""
    function, launch = part.function, part.translation.launch
    arrays = {array.name: array for array in launch.arrays}
    needed = list(dict.fromkeys((*function.parameters, *reference.parameters)))
    taken = set(_TAKEN)
    local = {name: _local(name, taken) for name in needed}
    doc = '"""Whether the kernel differs from its reference, on random inputs of its launch."""'
    lines = [doc]
    keys = len(needed) + (0 if pair is None else len(function.results) - len(pair.constant))
    if keys:
        lines.append(f"keys = jax.random.split(jax.random.key(0), {keys})")
    for place, name in enumerate(needed):
        text = _drawn(arrays[name], f"keys[{place}]", drawn, launch)
        if text is None:
            return None
        lines.append(f"{local[name]} = {text}")
    given = [local[name] for name in function.parameters]
    lines.append(f"found = {function.name}({', '.join([*given, 'interpret=interpret'])})")
    given = [local[name] for name in reference.parameters]
    called = f"wanted = {reference.name}({', '.join(given)})"
    if reference.wide and not function.wide:
        lines += ["with jax.enable_x64(True):", f"{_STEP}{called}"]
    else:
        lines.append(called)
    lines.append("differs = False")
    for name in function.results:
        one = _result("found", function, name)
        other = _result("wanted", reference, name)
        lines.append(f'differs |= _differs("{function.name}", "{name}", {one}, {other})')
    if pair is not None:
        lines += _gradients(pair, reference, local, len(needed))
    lines.append("return differs")
    return [
        line
        for each in lines
        for line in laid_out(each.lstrip(), _STEP * (2 if each.startswith(_STEP) else 1))
    ]


def _gradients(
    pair: Pair, reference: JaxFunction, local: Mapping[str, str], first: int
) -> Iterator[str]:
    """The lines that compare gradients; `first` is the first key that is free."""
    function, wished = pair.function, list(dict.fromkeys(pair.names.gradients.values()))
    changing = ", ".join(local[name] for name in wished)
    for which, other in (("found", function), ("wanted", reference)):
        given = [local[name] for name in other.parameters]
        if other.pallas:
            given.append("interpret=interpret")
        called = f"{other.name}({', '.join(given)})"
        yield f"{which}, {which}_pull = jax.vjp(lambda {changing}: {called}, {changing})"
    for which, other in (("found", function), ("wanted", reference)):
        parts = []
        for name in other.results:
            part = _result(which, other, name)
            if name in pair.constant:
                parts.append(f"jnp.zeros_like({part})")
            else:
                at = [each for each in function.results if each not in pair.constant].index(name)
                drawn = f"jax.random.normal(keys[{first + at}], {part}.shape, jnp.float32)"
                parts.append(f"{drawn}.astype({part}.dtype)")
        cotangents = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        yield f"{which} = {which}_pull({cotangents})"
    for place, name in enumerate(wished):
        told = f'"{function.name}", "gradient of {name}"'
        yield f"differs |= _differs({told}, found[{place}], wanted[{place}])"


def _result(whole: str, function: JaxFunction, name: str) -> str:
    """One of the arrays that a function gives."""
    if len(function.results) == 1:
        return whole
    return f"{whole}[{function.results.index(name)}]"


def _local(name: str, taken: set[str]) -> str:
    """A variable for an array that nothing else is called by."""
    stem = re.sub(r"\W", "_", name)
    found, number = stem, 1
    while found in taken:
        number += 1
        found = f"{stem}_{number}"
    taken.add(found)
    return found


def _drawn(array: ArrayArgument, key: str, drawn: Drawn, launch: Launch) -> str | None:
    """The expression of an input; `None` where it is not known what the kernel can bear."""
    dtype = NUMPY_DTYPES[array.dtype]
    shape = _tuple(array.shape)
    if dtype == np.bool_:
        return f"jax.random.bernoulli({key}, 0.5, {shape})"
    if dtype.kind in "iu":
        return _integers(array, dtype, key, drawn, launch)
    whole = dtype.itemsize > 1
    text = f"jax.random.normal({key}, {shape}, jnp.{dtype.name if whole else 'float32'})"
    if drawn.positive:
        text = f"jnp.abs({text})"
    return text if whole else f"{text}.astype(jnp.{dtype.name})"


def _integers(
    array: ArrayArgument, dtype: np.dtype[np.generic], key: str, drawn: Drawn, launch: Launch
) -> str | None:
    shape, name = _tuple(array.shape), f"jnp.{dtype.name}"
    known = drawn.recorded.get(array.name)
    if known is not None:
        if known.size > _MOST_NUMBERS:
            return None
        return f"jnp.array({known.tolist()}, {name})"
    count = int(np.prod(array.shape))
    smallest = min((size for each in launch.arrays for size in each.shape if size > 1), default=1)
    match drawn.kind:
        case "any integers":
            least = 0 if dtype.kind == "u" else -_GREATEST_DATA
            return f"jax.random.randint({key}, {shape}, {least}, {_GREATEST_DATA}, {name})"
        case "small integers":
            return f"jax.random.randint({key}, {shape}, 0, {smallest}, {name})"
        case "distinct integers":
            return f"jax.random.permutation({key}, {count}).reshape({shape}).astype({name})"
        case "rising integers":
            steps = f"jax.random.randint({key}, ({count},), 0, {smallest + 1}, {name})"
            return f"jnp.sort({steps}).at[0].set(0).reshape({shape})"
        case "integers all zero":
            return f"jnp.zeros({shape}, {name})"
    return None


def _tuple(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _main(names: Sequence[str], wide: bool) -> Iterator[str]:
    yield 'if __name__ == "__main__":'
    if wide:
        yield f'{_STEP}jax.config.update("jax_enable_x64", True)'
    yield f"{_STEP}# Where there is no TPU, kernels are interpreted."
    calls = ", ".join(f"{each}(interpret)" for each in names)
    statements = ['interpret = jax.default_backend() != "tpu"']
    if len(names) == 1:
        statements.append(f"if {calls}:")
    else:
        statements += [f"differ = [{calls}]", "if any(differ):"]
    for each in statements:
        yield from laid_out(each, _STEP)
    yield f'{_STEP * 2}raise SystemExit("what a kernel computes differs from its reference")'
