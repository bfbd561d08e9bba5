"""Conditions: both regions for all programs, and of their values the one that counts."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Enter, Rule, Steps
from translators.emit.terms import Emitted, PointerTerm, Term, constant
from translators.graph.graph import Op
from translators.graph.types import I1


def _if(e: Emission, op: Op) -> Steps:
    condition = e.term(op.operands[0])
    if condition.number is not None:
        yield from _only(e, op, 0 if condition.number else 1)
        return
    ends: list[list[Emitted]] = []
    alive = e.alive
    left: list[Term | None] = []
    for index, region in enumerate(op.regions):
        holds = condition if index == 0 else e.negated(condition)
        e.alive = alive
        with e.only_where(holds):
            given = yield Enter(region)
            if region.terminator.name == "tt.return":
                e.returned.append((e.come_here() or holds, given))
                left.append(e.both(alive, e.negated(holds)))
            else:
                ends.append(given)
                # What returned on the way is dead; what did not come here is as before.
                left.append(_kept(e, holds, e.alive, alive))
    e.alive = alive
    for each in left:
        e.alive = e.both(e.alive, each)
    for index, result in enumerate(op.results):
        choices = [each[index] for each in ends]
        e.put(result, _merged(e, condition, choices, result.name))


def _kept(e: Emission, holds: Term, inside: Term | None, before: Term | None) -> Term | None:
    if inside is before or inside is None:
        return None
    return e.either(inside, e.negated(holds))


def _only(e: Emission, op: Op, which: int) -> Steps:
    if which == len(op.regions):
        return
    region = op.regions[which]
    given = yield Enter(region)
    if region.terminator.name == "tt.return":
        e.returned.append((e.come_here() or constant(1, I1), given))
        e.alive = constant(0, I1) if e.active is None else e.both(e.alive, e.negated(e.active))
        return
    for result, value in zip(op.results, given, strict=True):
        e.put(result, value)


def _merged(e: Emission, condition: Term, choices: list[Emitted], hint: str) -> Emitted:
    first = choices[0]
    if len(choices) == 1 or choices[1] == first:
        return first
    second = choices[1]
    if isinstance(first, PointerTerm) and isinstance(second, PointerTerm):
        return e.chosen_pointer(condition, first, second, hint)
    assert isinstance(first, Term)
    assert isinstance(second, Term)
    return e.chosen(condition, first, second, hint)


RULES: Mapping[str, Rule] = MappingProxyType({"scf.if": _if})
