"""Numbers that are known before a step begins, as what is to be fetched depends on them.

They follow from where the step is in the grid and from numbers in memory, by the same ops as in the
kernel itself.
"""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass

from translators.access.expression import Affine, Symbol, Variable, leaves
from translators.emit.affine import affine_term
from translators.emit.emission import UnsupportedError
from translators.emit.pallas.emission import StepEmission
from translators.emit.pallas.windows import Window
from translators.emit.statements import Statement, names_in
from translators.emit.terms import Emitted, PointerTerm, Term
from translators.graph.graph import Op, Value, walk
from translators.graph.types import I32


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A function of the step's place in the grid and of arrays of single numbers.

    Attributes:
      body: its statements.
      text: what it gives.
      places: the variables of the grid that it takes.
      windows: the arrays that it takes after them.
    """

    body: list[Statement]
    text: str
    places: tuple[Variable, ...]
    windows: tuple[Window, ...]


def known_ahead(e: StepEmission, expression: Affine, places: Mapping[Variable, str]) -> Ahead:
    """How an expression follows from what is known before a step begins.

    Args:
      e: the emission, in which the arrays that it reads get windows.
      expression: over variables of the grid and values of the kernel.
      places: what the variables of the grid are called in the function.

    Raises:
      UnsupportedError: it does not follow from that, or does so by ops with regions.
    """
    ops = _behind(e, expression)
    saved = (e.env, e.memo, e.programs, e.active, e.alive, dict(e.steering))
    given: dict[Value, Emitted] = {
        argument: emitted
        for argument in e.module.kernel.arguments
        if (emitted := e.env.get(argument)) is not None
        and (isinstance(emitted, PointerTerm) or emitted.number is not None)
    }
    e.env, e.memo, e.active, e.alive = ChainMap(given), ChainMap(), None, None
    e.programs = {each: Term(text=name, element=I32) for each, name in places.items()}
    try:
        with e.writer.nested() as body:
            for op in ops:
                e.writer.location = op.location or e.writer.location
                if e.rules[op.name](e, op) is not None:
                    raise e.refuse(op, "says how often a loop runs, and has no form ahead of it")
            term = affine_term(e, expression)
    finally:
        e.env, e.memo, e.programs, e.active, e.alive, e.steering = saved
    used = names_in(term.text).union(*(names_in(each.text) for each in body))
    return Ahead(
        body=body,
        text=term.text,
        places=tuple(each for each, name in places.items() if name in used),
        windows=tuple(each for each in e.windows.values() if each.reference in used),
    )


def _behind(e: StepEmission, expression: Affine) -> list[Op]:
    """The ops that an expression follows from, in their order."""
    pending = [each.value for each in leaves(expression) if isinstance(each, Symbol)]
    found: set[Op] = set()
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Op):
            if owner is not e.module.kernel.body:
                raise UnsupportedError(
                    "how often a loop runs follows from what another loop carries",
                    e.writer.location,
                )
            continue
        if owner in found:
            continue
        if owner.regions or owner.name not in e.rules:
            raise e.refuse(owner, "says how often a loop runs, and has no form ahead of it")
        found.add(owner)
        pending += owner.operands
    return [op for op in walk(e.module.kernel.body) if op in found]
