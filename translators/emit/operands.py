"""Operands of elementwise ops as expressions, and what of their results is known beforehand."""

from translators.access.expression import Symbol, leaves
from translators.access.states import Integer
from translators.emit.affine import affine_term
from translators.emit.emission import Emission
from translators.emit.terms import Term, typed
from translators.graph.graph import Op, Value
from translators.graph.types import shape_of

ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def not_negative(e: Emission, value: Value) -> bool:
    """Whether the analysis proves that an integer is not negative."""
    state = e.analysis.states.get(value)
    return (
        isinstance(state, Integer) and not state.assumptions and state.expression.interval.low >= 0
    )


def operands_of(e: Emission, op: Op) -> list[Term]:
    """The operands, none of which is a pointer."""
    return [e.term(each) for each in op.operands]


def texts(terms: list[Term]) -> list[str]:
    """The operands as expressions; where all are numbers, the first one says its type."""
    if all(each.number is not None for each in terms):
        return [typed(terms[0]), *(f"({each.text})" for each in terms[1:])]
    return [f"({each.text})" if each.number is not None else each.text for each in terms]


def already_known(e: Emission, op: Op) -> bool:
    """Whether the result is a number that is known now, and so needs no text."""
    if e.number(op.result) is not None:
        e.env.pop(op.result, None)
        e.term(op.result)
        return True
    axes = e.analysis.axes
    state = e.analysis.states.get(op.result)
    if axes is None or axes.plain or shape_of(op.result.type) or not isinstance(state, Integer):
        return False
    # In other coordinates than the program ids, what the kernel computes from these is simpler.
    if state.assumptions or any(isinstance(each, Symbol) for each in leaves(state.expression)):
        return False
    e.put(op.result, affine_term(e, state.expression, (), op.result.name))
    return True
