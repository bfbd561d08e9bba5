"""How often a `while` runs its body.

Where the compiler wrote no `known_trip_count`, the count follows from the condition: a comparison
of two numbers each of which is a constant or a carried element that the body changes by a
constant. `xla/hlo/analysis/while_loop_analysis.cc` does the same inside XLA.
"""

import re
from dataclasses import dataclass

from hlo_tools.hlo.module import Computation, Instruction, parameter_number

MAX_TRIPS = 1 << 53
"""A higher count is hostile text, or a loop that was never meant to end."""

MAX_STEPS = 256
"""How many instructions one scalar may be followed through."""

_KNOWN = re.compile(r'known_trip_count\\?"\s*:\s*\{\s*\\?"n\\?"\s*:\s*\\?"?(\d{1,17})\b')
_INTEGER = re.compile(r"[+-]?\d{1,19}")

_FORWARDING = frozenset(
    {
        "bitcast", "broadcast", "convert", "copy", "copy-done", "copy-start",
        "optimization-barrier", "reshape",
    }
)  # fmt: skip
"""Opcodes whose scalar result equals their first operand."""

_WHOLE = -1
"""The index of the loop's state where it is no tuple."""


@dataclass(frozen=True, slots=True, eq=False)
class _Inside:
    """The call (a fusion or `call`) whose computation is being read, and the one around that."""

    call: Instruction
    outer: "_Inside | None"


_Node = tuple[Instruction, _Inside | None, int | None]
"""An instruction, where it stands, and which element of its tuple is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """A carried element (or none) plus a constant, plus what is still to be read."""

    index: int | None = None
    offset: int = 0
    terms: tuple[tuple[_Node, int], ...] = ()


def trip_count(loop: Instruction) -> int | None:
    """How often the body of a `while` runs each time the loop is reached; `None` if unknown."""
    config = loop.attribute("backend_config")
    known = _KNOWN.search(config) if config else None
    if known:
        return int(known[1])
    condition, body = loop.called("condition"), loop.called("body")
    if condition is None or body is None or not loop.operands:
        return None
    compared = _comparison(condition)
    if compared is None:
        return None
    direction, left, right = compared
    first, second = _course(left, loop, body), _course(right, loop, body)
    if first is None or second is None:
        return None
    count = _trips(direction, first[0] - second[0], first[1] - second[1])
    return count if count is not None and count <= MAX_TRIPS else None


def _trips(direction: str | None, start: int, step: int) -> int | None:
    """The first `t` at which `start + t * step` no longer compares to 0 as `direction` says."""
    if direction in ("GT", "GE"):
        start, step = -start, -step
    if direction in ("LT", "GT"):
        return 0 if start >= 0 else None if step <= 0 else -(start // step)
    if direction in ("LE", "GE"):
        return 0 if start > 0 else None if step <= 0 else -start // step + 1
    if direction == "NE":
        if start == 0:
            return 0
        reached = step != 0 and start % step == 0 and -start // step > 0
        return -start // step if reached else None
    if direction == "EQ":
        return 0 if start != 0 else 1 if step != 0 else None
    return None


def _comparison(condition: Computation) -> tuple[str | None, _Node, _Node] | None:
    """The comparison that decides on the next trip: its direction and both sides."""
    node: _Node = (condition.root, None, None)
    for _ in range(MAX_STEPS):
        instruction, inside, _element = node
        if instruction.opcode == "compare" and len(instruction.operands) == 2:
            left, right = instruction.operands
            return instruction.attribute("direction"), (left, inside, None), (right, inside, None)
        step = _expand(node)
        if step is None or len(step.terms) != 1:
            return None
        node = step.terms[0][0]
    return None


def _course(node: _Node, loop: Instruction, body: Computation) -> tuple[int, int] | None:
    """The value of a scalar of the condition before the first trip, and its change per trip."""
    value = _evaluate(node)
    if value is None:
        return None
    if value.index is None:
        return value.offset, 0
    element = None if value.index == _WHOLE else value.index
    after = _evaluate((body.root, None, element))
    initial = _evaluate((loop.operands[0], None, element))
    if after is None or after.index != value.index or initial is None or initial.index is not None:
        return None
    return initial.offset + value.offset, after.offset


def _evaluate(root: _Node) -> _Sum | None:
    """The scalar as a sum without terms; `None` where it is none."""
    steps: dict[_Node, _Sum] = {}
    values: dict[_Node, _Sum] = {}
    stack = [root]
    for _ in range(MAX_STEPS):
        node = stack[-1]
        step = steps.get(node) or _expand(node)
        if step is None:
            return None
        steps[node] = step
        pending = [term for term, _ in step.terms if term not in values]
        if pending:
            stack.extend(pending)
            continue
        index, offset = step.index, step.offset
        for term, sign in step.terms:
            value = values[term]
            offset += sign * value.offset
            if value.index is not None:
                if index is not None or sign < 0:
                    return None
                index = value.index
        values[node] = _Sum(index=index, offset=offset)
        stack.pop()
        if not stack:
            return values[root]
    return None


def _expand(node: _Node) -> _Sum | None:
    """One step back from a scalar to what it is made of; `None` where that is not understood."""
    instruction, inside, element = node
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "parameter":
        if inside is None:
            return _Sum(index=_WHOLE if element is None else element)
        number = parameter_number(instruction)
        if not 0 <= number < len(inside.call.operands):
            return None
        return _only((inside.call.operands[number], inside.outer, element))
    if opcode in ("fusion", "call"):
        called = instruction.called_computations
        if len(called) != 1:
            return None
        return _only((called[0].root, _Inside(instruction, inside), element))
    if opcode in _FORWARDING and operands:
        return _only((operands[0], inside, element))
    if element is not None:
        if opcode == "tuple" and element < len(operands):
            return _only((operands[element], inside, None))
        return None
    if opcode == "get-tuple-element" and operands:
        index = instruction.attribute("index") or ""
        return _only((operands[0], inside, int(index))) if _INTEGER.fullmatch(index) else None
    if opcode == "constant":
        text = instruction.argument_text.strip() or instruction.attribute("literal") or ""
        return _Sum(offset=int(text)) if _INTEGER.fullmatch(text) else None
    if opcode in ("add", "subtract") and len(operands) == 2:
        sign = 1 if opcode == "add" else -1
        return _Sum(terms=(((operands[0], inside, None), 1), ((operands[1], inside, None), sign)))
    return None


def _only(node: _Node) -> _Sum:
    return _Sum(terms=((node, 1),))
