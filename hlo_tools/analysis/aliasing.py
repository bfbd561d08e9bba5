"""Which results of an instruction lie in the buffers of its operands.

The rules are those of `HloDataflowAnalysis` (`xla/hlo/analysis/hlo_dataflow_analysis.cc`): what
only names a value shares its buffer, in-place operations must, and attributes may say so.
Results and operands are arrays; those of a tuple are numbered depth first, as leaves.
"""

import re
from collections.abc import Container

from hlo_tools.analysis.flops import ELEMENTWISE, TRANSCENDENTAL
from hlo_tools.hlo.module import Computation, Instruction, parameter_number
from hlo_tools.hlo.shape import Shape

FORWARDING = frozenset({"bitcast", "opt-barrier", "optimization-barrier", "domain", "while"})
"""Opcodes whose result is their first operand, leaf by leaf. Copies inserted before a `while` make
its initial value, its state and its result one set of buffers."""

UPDATING = frozenset({"dynamic-update-slice", "scatter"})
"""Opcodes that write into their first operand."""

_HOLDS_UPDATES = UPDATING | {"fusion"}
_ALIASING = re.compile(r"output_to_operand_aliasing=\{((?:[^{}]|\{[^{}]*\})*)\}")
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}\)")
MAX_NESTED_FUSIONS = 64
"""How deep fusions within fusions are followed from a result to the update that made it."""

Place = tuple[int, int]
"""The number of an operand and that of a leaf in it."""


def leaf_number(shape: Shape, index: tuple[int, ...]) -> int | None:
    """The number of the first leaf at a shape index such as `{1,0}`; `None` if there is none."""
    number = 0
    for step in index:
        if not shape.is_tuple or step >= len(shape.elements):
            return None
        number += sum([leaf_count(element) for element in shape.elements[:step]])
        shape = shape.elements[step]
    return number


def leaf_count(shape: Shape) -> int:
    """How many leaves a shape has."""
    return sum(1 for _ in shape.leaves()) if shape.is_tuple else 1


def in_place_results(instruction: Instruction, wanted: Container[int]) -> dict[int, Place]:
    """The leaves of a fusion's, update's or custom call's result that lie in an operand's buffer.

    Only leaves in `wanted` are looked at.
    """
    opcode = instruction.opcode
    if opcode in UPDATING:
        count = max(1, (len(instruction.operands) - 1) // 2) if opcode == "scatter" else 1
        return {leaf: (leaf, 0) for leaf in range(count) if leaf in wanted}
    if opcode not in ("fusion", "custom-call"):
        return {}
    text = instruction.attribute_text
    places: dict[int, Place] = {}
    if "output_to_operand_aliasing" in text:
        places = _declared(instruction, text, wanted)
    if opcode == "fusion":
        updated = _updated(instruction, text)
        places.update({leaf: place for leaf, place in updated.items() if leaf in wanted})
    return places


def _declared(instruction: Instruction, text: str, wanted: Container[int]) -> dict[int, Place]:
    match = _ALIASING.search(text)
    places: dict[int, Place] = {}
    flat = not any(element.is_tuple for element in instruction.shape.elements)
    for result, operand, index in _ALIAS.findall(match[1]) if match else ():
        simple = flat and result.isdecimal()
        to = int(result) if simple else leaf_number(instruction.shape, _index(result))
        if to is None or to not in wanted:
            continue
        number = int(operand)
        if number >= len(instruction.operands):
            continue
        of = leaf_number(instruction.operands[number].shape, _index(index)) if index else 0
        if of is not None:
            places[to] = (number, of)
    return places


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _updated(instruction: Instruction, text: str) -> dict[int, Place]:
    """Leaves that the fusion's body makes by updating a parameter."""
    body = instruction.fused_computation
    if body is None:
        return {}
    root = body.root
    if _HOLDS_UPDATES.isdisjoint([i.opcode for i in body.instructions]):
        return {}
    results = root.operands if root.opcode == "tuple" else (root,)
    places: dict[int, Place] = {}
    for leaf, result in enumerate(results):
        parameter = _updated_parameter(result)
        if parameter is not None and 0 <= parameter < len(instruction.operands):
            places[leaf] = (parameter, 0)
    return places


def _updated_parameter(result: Instruction) -> int | None:
    """The number of the parameter that `result` is an updated form of."""
    node, found = result, False
    outer: list[Instruction] = []
    while True:
        if node.opcode == "bitcast" and node.operands:
            node = node.operands[0]
        elif node.opcode in UPDATING and node.operands:
            node, found = node.operands[0], True
        elif node.opcode == "fusion" and len(outer) < MAX_NESTED_FUSIONS and not found:
            called = node.called_computations
            if not called or called[0].root.opcode == "tuple":
                return None
            outer.append(node)
            node = called[0].root
        elif node.opcode == "parameter" and found:
            text = node.argument_text.strip()
            number = int(text) if text.isdecimal() else -1
            if not outer:
                return number
            fusion = outer.pop()
            if not 0 <= number < len(fusion.operands):
                return None
            node = fusion.operands[number]
        else:
            return None


SHARING = ELEMENTWISE | TRANSCENDENTAL | {"all-reduce", "fusion"}
"""Opcodes whose result may take the buffer of an operand that nothing else needs any more."""
_IS_LOOP = re.compile(r"\bkind=kLoop\b")
_KEEPS_PLACE = ELEMENTWISE | TRANSCENDENTAL | {"bitcast", "copy"}
_KEEPS_VALUE = _KEEPS_PLACE - {"compare", "is-finite"}
"""Those that a fusion around a dot may apply to an operand whose place its result takes: the TPU
compiler does not let a mask made of an operand overwrite it."""


def shareable_operands(instruction: Instruction) -> tuple[int, ...]:
    """The operands whose buffer the result may take, if this is their last use.

    Each element must be read before the one in its place is written: elementwise operations, an
    operand of a fusion that only such operations lead from (`CanShareOperandBufferWithUser` in
    `xla/hlo/analysis/hlo_dataflow_analysis.cc`), and all-reduces.
    """
    opcode = instruction.opcode
    count = len(instruction.operands)
    if opcode != "fusion":
        return tuple(range(count)) if opcode in SHARING else ()
    text = instruction.attribute_text
    body = instruction.fused_computation
    if body is None:
        return ()
    keeping = _KEEPS_PLACE if _IS_LOOP.search(text) else _KEEPS_VALUE
    displaced = _displaced_parameters(body, keeping)
    return tuple(number for number in range(count) if number not in displaced)


def _displaced_parameters(body: Computation, keeping: Container[str]) -> set[int]:
    """Parameters of which some use may read an element at another place than it writes."""
    reached: dict[Instruction, set[int]] = {}
    displaced: set[int] = set()
    for i in body.instructions:
        if i.opcode == "parameter":
            reached[i] = {parameter_number(i)}
            continue
        come_from: set[int] = set()
        for operand in i.operands:
            come_from |= reached.get(operand, set())
        if come_from and i.opcode not in keeping and i.opcode != "tuple":
            displaced |= come_from
        reached[i] = come_from
    return displaced
