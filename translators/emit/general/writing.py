"""Writes a function that reads sizes off its arguments, from a template and its formulas."""

import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from translators.emit.general.formula import Factor, Formula, Sizes
from translators.emit.general.template import Number, Template
from translators.emit.layout import laid_out

# Within so many elements, 32-bit integers count them, and what lies around them as padding.
LARGEST = "2**30"
# Stands for the name of an array, among those of sizes.
_ARRAY = Factor(())
_INDENT = "    "
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_NAMED = re.compile(r"(\w+(?:, \w+)*) = (.*)")
# What a function for one launch says of it.
_MADE_FOR = re.compile(r"^ *Made for .*?\n\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An array that the function takes.

    Attributes:
      name: the kernel's parameter.
      shape: its dimensions.
    """

    name: str
    shape: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Which values of a size a function is for.

    Attributes:
      least: the smallest one.
      most: the greatest one; `None` if there is none.
      step: what it must be a multiple of.
    """

    least: int = 1
    most: int | None = None
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """What a function of any sizes is written from.

    Attributes:
      template: its text without numbers.
      written: a formula or a literal for each number.
      taken: the arrays that it takes, in order.
      fixed: sizes that are as in the launch, by name.
      bounds: of the other sizes, by name.
      blocks: lengths of blocks, by the name that formulas have for them: what they are at most,
        and how long the dimension is.
      promises: what else holds of the launches that it is for, by name: text, or the dimensions
        after a text.
    """

    template: Template
    written: Sequence[Formula | Number]
    taken: Sequence[Taken]
    fixed: Sizes
    bounds: Mapping[str, Bounds]
    blocks: Mapping[str, tuple[int, Formula]]
    promises: Sequence[tuple[str, str, Sequence[Formula]]]

    def source(self) -> str:
        """The whole file."""
        head = self.template
        names = _names(self)
        lines = [head.head, *laid_out(head.header, "")]
        lines += indent(f'"""{self._docstring(names)}"""', _INDENT).splitlines()
        body = list(head.body(self.written, names))
        front = [*self._sizes(names), *self._checks(names), *self._counts(names)]
        for each in _without_unused(front, body):
            depth = len(each) - len(each.lstrip())
            lines += laid_out(each.lstrip(), _INDENT + " " * depth)
        return "\n".join([*lines, *body, ""])

    def _docstring(self, names: Mapping[Factor, str]) -> str:
        told = {**names, **_in_words(names)}
        text = _MADE_FOR.sub("", self.template.docstring)
        for argument, taken in zip(self.template.arguments, self.taken, strict=True):
            shape = ", ".join(each.text(told) for each in taken.shape)
            for name in {argument, taken.name}:
                typed = rf"(?m)^( *{re.escape(name)}: \w+)\[[^\]\n]*\]"
                text = re.sub(typed, rf"\g<1>[{shape}]", text)
        told_of = [
            f"  {name}: {before}{_listed(shape, told)}".rstrip()
            for name, before, shape in self.promises
        ]
        # The first line of a docstring stands where its quotes do, the others are indented.
        section = indent("\n".join(["Launch:", *told_of]), _INDENT)
        return "\n".join([text.rstrip(), "", section, _INDENT]).replace(f"\n{_INDENT}", "\n")

    def _sizes(self, names: Mapping[Factor, str]) -> Iterator[str]:
        """The sizes, read off the arguments, with checks of the arrays' shapes."""
        known: set[str] = set(self.fixed)
        for argument, taken in zip(self.template.arguments, self.taken, strict=True):
            rank = len(taken.shape)
            singles = [each.single for each in taken.shape]
            new = [name for name in singles if name is not None and name not in known]
            variables = [names[Factor((name,))] for name in new]
            known.update(new)
            if rank and len(new) == rank == len(set(new)):
                yield f"if {argument}.ndim != {rank}:"
                message = f"`{taken.name}` must have {rank} dimensions, not {{{argument}.ndim}}"
                if rank == 1:
                    message = message.replace("dimensions", "dimension")
                yield f'    raise ValueError(f"{message}")'
                if rank == 1:
                    yield f"{variables[0]} = {argument}.shape[0]"
                else:
                    yield f"{', '.join(variables)} = {argument}.shape"
                continue
            for name, variable in zip(new, variables, strict=True):
                yield f"{variable} = {argument}.shape[{singles.index(name)}]"
            shape = _tupled(
                [
                    each.text({**names, **_inline(names, self.template.is_pallas)})
                    for each in taken.shape
                ]
            )
            yield f"if {argument}.shape != {shape}:"
            message = f"`{taken.name}` must have the shape {shape}, not {{{argument}.shape}}"
            yield f'    raise ValueError(f"{message}")'

    def _checks(self, names: Mapping[Factor, str]) -> Iterator[str]:
        """Checks of what the sizes may be."""
        for name, bounds in self.bounds.items():
            variable = names[Factor((name,))]
            for wrong, what in (
                (f"{variable} < {bounds.least}", f"at least {bounds.least}"),
                (f"{variable} > {bounds.most}", f"at most {bounds.most}"),
                (f"{variable} % {bounds.step}", f"a multiple of {bounds.step}"),
            ):
                if wrong in (f"{variable} < 1", f"{variable} > None", f"{variable} % 1"):
                    continue
                yield f"if {wrong}:"
                yield f'    raise ValueError(f"`{variable}` must be {what}, not {{{variable}}}")'
        yield f"for {names[_ARRAY]} in {_tupled(self.template.arguments)}:"
        yield f"    if not 0 < {names[_ARRAY]}.size <= {LARGEST}:"
        yield f'        raise ValueError("arrays must have from 1 to {LARGEST} elements")'

    def _counts(self, names: Mapping[Factor, str]) -> Iterator[str]:
        """The lengths of blocks, and the counts of blocks that have a name."""
        for name, (length, whole) in self.blocks.items():
            shown = whole.text({**names, **_inline(names, self.template.is_pallas)})
            yield f"{names[Factor((name,))]} = min({shown}, {length})"
        for factor in _counted(self):
            if factor not in _written_out(self):
                yield f"{names[factor]} = {_divided(factor, names, self.template.is_pallas)}"


def _names(general: General) -> dict[Factor, str]:
    """What each factor is called in the text."""
    used = set(general.template.names)

    def fresh(stem: str) -> str:
        name, count = stem, 1
        while name in used or keyword.iskeyword(name):
            count += 1
            name = f"{stem}_{count}"
        used.add(name)
        return name

    names: dict[Factor, str] = {_ARRAY: fresh("array")}
    for name, value in general.fixed.items():
        names[Factor((name,))] = str(value)
    for name in general.bounds:
        stem = f"{name}_size" if name in used else name
        names[Factor((name,))] = fresh(stem)
    for name in general.blocks:
        names[Factor((name,))] = fresh(name)
    for factor in _counted(general):
        if factor in _written_out(general):
            names[factor] = _divided(factor, names, True)
            continue
        stem = "_".join(each for each in factor.sizes if each in general.bounds)
        names[factor] = fresh(f"{stem}_blocks")
    formulas = [each for each in general.written if isinstance(each, Formula)]
    formulas += [each for taken in general.taken for each in taken.shape]
    formulas += [each for *_, shape in general.promises for each in shape]
    for factor in {factor for each in formulas for factor in each.factors}:
        if factor not in names:
            # Not in the text itself, but in what is told or checked.
            names[factor] = _divided(factor, names, general.template.is_pallas)
    return names


def _counted(general: General) -> list[Factor]:
    """The counts of blocks that the text uses."""
    formulas = [each for each in general.written if isinstance(each, Formula)]
    return sorted({each for one in formulas for each in one.factors if each.counts_blocks})


def _written_out(general: General) -> set[Factor]:
    """The counts of blocks that have no name: in Pallas those that occur once."""
    if not general.template.is_pallas:
        return set()
    formulas = [each for each in general.written if isinstance(each, Formula)]
    uses = Counter(factor for each in formulas for factor in each.factors)
    return {
        factor
        for factor, count in uses.items()
        if factor.counts_blocks and (count == 1 or general.blocks.keys() >= set(factor.sizes))
    }


def _divided(factor: Factor, names: Mapping[Factor, str], pallas: bool) -> str:
    whole = " * ".join(names[Factor((each,))] for each in factor.sizes)
    parts = [names[Factor((factor.block,))]] if factor.block else []
    if factor.divisor > 1 or not parts:
        parts.append(str(factor.divisor))
    divisor = " * ".join(parts)
    if pallas:
        return f"pl.cdiv({whole}, {divisor})"
    if len(factor.sizes) > 1:
        whole = f"({whole})"
    return f"-(-{whole} // {divisor if len(parts) == 1 else f'({divisor})'})"


def _inline(names: Mapping[Factor, str], pallas: bool) -> dict[Factor, str]:
    """Counts of blocks, written out."""
    return {each: _divided(each, names, pallas) for each in names if each.counts_blocks}


def _in_words(names: Mapping[Factor, str]) -> dict[Factor, str]:
    """Counts of blocks as people write them."""
    found = {}
    for factor in names:
        if factor.counts_blocks:
            whole = " * ".join(names[Factor((each,))] for each in factor.sizes)
            found[factor] = f"ceil({whole} / {factor.divisor})"
    return found


def _without_unused(front: Sequence[str], body: Sequence[str]) -> Iterator[str]:
    """The lines in front of the body; sizes that nobody asks for with an underscore, or not at all.

    Args:
      front: lines that give names to sizes, and others.
      body: what comes behind.
    """
    found = [(each, _NAMED.fullmatch(each)) for each in front]
    others = [each for each, named in found if named is None]
    others += [named[2] for _, named in found if named is not None]
    others += [each for each in body if not each.lstrip().startswith("#")]
    used = {name for each in others for name in _NAME.findall(each)}
    for line, named in found:
        if named is None:
            yield line
            continue
        new = [each if each in used else f"_{each}" for each in named[1].split(", ")]
        if len(new) > 1 or new[0] in used:
            yield f"{', '.join(new)} = {named[2]}"


def _tupled(parts: Sequence[str]) -> str:
    """A tuple as Python writes it."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _listed(shape: Sequence[Formula], names: Mapping[Factor, str]) -> str:
    return ", ".join(each.text(names) for each in shape)
