"""Loops: all iterations at once where they only add up, one after another otherwise."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.access.loops import Loop
from translators.emit.at_once import at_once
from translators.emit.carried import (
    element_of_counter,
    enter_iteration,
    entered,
    give_followed_results,
    is_followed,
)
from translators.emit.emission import Emission, Enter, Rule, Steps
from translators.emit.one_by_one import one_by_one, while_loop
from translators.emit.terms import (
    constant,
)
from translators.graph.graph import Op, Value


def _for(e: Emission, op: Op) -> Steps:
    number_ = e.loop_numbers[op]
    loop = e.analysis.loops.get(number_)
    region = op.regions[0]
    carried = [
        (index, argument)
        for index, argument in enumerate(region.arguments[1:])
        if not (loop is not None and is_followed(e, argument))
    ]
    if loop is not None and loop.trips is not None and loop.trips.value == 0:
        for operand, result in zip(op.operands[3:], op.results, strict=True):
            e.put(result, entered(e, operand))
        return
    once = loop is not None and loop.trips is not None and loop.trips.value == 1
    if loop is not None and once and region.terminator.name == "scf.yield":
        yield from _just_once(e, op, loop, carried)
        return
    if loop is not None and (yield from at_once(e, op, loop, carried)):
        return
    yield from one_by_one(e, op, loop, carried)


def _just_once(e: Emission, op: Op, loop: Loop, carried: list[tuple[int, Value]]) -> Steps:
    """Emits the body alone."""
    e.iterations[loop.number] = constant(0, element_of_counter(op))
    try:
        with e.scope():
            enter_iteration(e, op, loop)
            for index, argument in carried:
                e.put(argument, entered(e, op.operands[3 + index]))
            ends = yield Enter(op.regions[0])
    finally:
        e.iterations.pop(loop.number, None)
    for index, _ in carried:
        e.put(op.results[index], ends[index])
    give_followed_results(e, op)


RULES: Mapping[str, Rule] = MappingProxyType({"scf.for": _for, "scf.while": while_loop})
