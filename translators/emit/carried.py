"""What loops carry, as far as the analysis of accesses follows it."""

import re
from collections.abc import Sequence

from translators.access.analysis import Analysis
from translators.access.loops import Loop
from translators.access.states import Integer, Pointer
from translators.emit.affine import affine_term
from translators.emit.emission import Emission
from translators.emit.terms import (
    Emitted,
    PointerTerm,
)
from translators.graph.graph import Op, Region, Value, walk
from translators.graph.types import (
    IntType,
    PointerType,
    element_of,
    shape_of,
)

# The head of a loop in Python.
_COUNTING = re.compile(r"\s*for\s+([A-Za-z]\w*)\s+in\b")


def is_followed(e: Emission, value: Value) -> bool:
    """Whether the analysis says what a carried value is in each iteration."""
    return follows(e.analysis, value)


def follows(analysis: Analysis, value: Value) -> bool:
    """Whether an analysis says what a carried value is in each iteration."""
    state = analysis.states.get(value)
    if isinstance(state, Integer):
        return not state.assumptions and _says_more(value, state.expression.terms)
    return isinstance(state, Pointer) and _says_more(value, state.offset.terms)


def _says_more(value: Value, terms: Sequence[tuple[object, int]]) -> bool:
    return not any(getattr(variable, "value", None) is value for variable, _ in terms)


def stores(region: Region) -> bool:
    """Whether something inside writes to memory."""
    return any(
        op.name in ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_store")
        or op.name.startswith("tt.descriptor_")
        for op in walk(region)
    )


def returns_inside(region: Region) -> bool:
    """Whether a program may leave the kernel inside."""
    return any(op.name == "tt.return" for op in walk(region))


def enter_iteration(e: Emission, op: Op, loop: Loop) -> None:
    """The loop's own counter, and what the analysis follows, in each iteration."""
    region = op.regions[0]
    e.put(region.arguments[0], state_term(e, region.arguments[0]))
    for argument in region.arguments[1:]:
        if is_followed(e, argument):
            e.put(argument, state_term(e, argument))


def state_term(e: Emission, value: Value) -> Emitted:
    """An index or pointer, written from what the analysis knows of it."""
    state = e.analysis.states[value]
    shape = shape_of(value.type)
    if isinstance(state, Pointer):
        element = element_of(value.type)
        assert isinstance(element, PointerType)
        offset = affine_term(e, state.offset, shape, low=True)
        buffer = e.buffers.states.get(state.argument)
        key = state.argument if buffer is not None else e.aliases[state.argument]
        return PointerTerm(buffer=key, offset=offset, pointee=element.pointee)
    assert isinstance(state, Integer)
    low = e.element(value) != element_of(value.type)
    return affine_term(e, state.expression, shape, value.name, low=low)


def give_followed_results(e: Emission, op: Op) -> None:
    """Writes what the loop leaves of the indices and pointers that it carries.

    Raises:
      UnsupportedError: that of one is not known.
    """
    for argument, result in zip(op.regions[0].arguments[1:], op.results, strict=True):
        if is_followed(e, argument):
            if not is_followed(e, result):
                raise e.refuse(op, "carries an index that is not known after the loop")
            e.put(result, state_term(e, result))


def element_of_counter(op: Op) -> IntType:
    """The type of a loop's counter."""
    element = element_of(op.operands[0].type)
    assert isinstance(element, IntType)
    return element


def loop_name(op: Op) -> str:
    """What the kernel calls the loop's counter, which its line says where the IR does not."""
    text = op.location.text if op.location is not None else ""
    written = _COUNTING.match(text)
    return op.regions[0].arguments[0].name or (written[1] if written else "step")


def entered(e: Emission, value: Value) -> Emitted:
    """A value or pointer that a loop is entered with."""
    found = e.found(value)
    return found if isinstance(found, PointerTerm) else e.term(value)
