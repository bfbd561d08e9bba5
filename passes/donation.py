"""What the module's header says about arguments whose memory the results take over."""

import re
from dataclasses import dataclass

from hlo_tools.hlo.module import Instruction, Module
from hlo_tools.hlo.shape import Shape
from passes.graph import element_maker, producer, tuple_index

_DONOR = re.compile(r"\((\d+),\s*\{")
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{[\d,\s]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """One entry of `input_output_alias`.

    Attributes:
      output: index path into the result; empty for a result that is no tuple.
      parameter: the number of the argument.
    """

    output: tuple[int, ...]
    parameter: int


def aliases(module: Module) -> tuple[Alias, ...]:
    """The entries of the header's `input_output_alias`, in the order of the text."""
    text = module.attribute("input_output_alias") or ""
    return tuple(
        Alias(
            output=_path(match[1]),
            parameter=int(match[2]),
        )
        for match in _ALIAS.finditer(text)
    )


def donated_parameters(module: Module) -> set[int]:
    """The numbers of the arguments that the caller gives up, aliased by a result or not.

    What is donated without a result that could take its place stands in `buffer_donor`.
    """
    donors = _DONOR.findall(module.attribute("buffer_donor") or "")
    return {alias.parameter for alias in aliases(module)} | {int(number) for number in donors}


def _path(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One array that the entry computation returns.

    Attributes:
      path: its index path in the result; empty for a result that is no tuple.
      instruction: what makes it, or makes a tuple with it.
      index: the element of that tuple; `None` where the instruction makes the array itself.
      shape: its type and layout.
    """

    path: tuple[int, ...]
    instruction: Instruction
    index: int | None
    shape: Shape

    @property
    def maker(self) -> Instruction:
        """The instruction whose place in the source is that of the value, inside fusions too."""
        made = producer(self.instruction)
        index = self.index
        if made.opcode == "get-tuple-element":
            index, made = tuple_index(made), made.operands[0]
        if made.opcode == "parameter":
            return self.instruction
        return made if index is None else element_maker(made, index)


def results(module: Module) -> tuple[Result, ...]:
    """The arrays that the entry returns, those in nested tuples left out."""
    if module.entry is None or not module.entry.instructions:
        return ()
    root = module.entry.root
    made: list[tuple[tuple[int, ...], Instruction, int | None, Shape]]
    if root.opcode == "tuple":
        made = [((i,), operand, None, operand.shape) for i, operand in enumerate(root.operands)]
    elif root.shape.is_tuple:
        made = [((i,), root, i, shape) for i, shape in enumerate(root.shape.elements)]
    else:
        made = [((), root, None, root.shape)]
    return tuple(
        Result(path=path, instruction=instruction, index=index, shape=shape)
        for path, instruction, index, shape in made
        if shape.is_array
    )
