"""Calls of functions, whose bodies are emitted where they are called."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.cycles import chosen_emitted
from translators.emit.emission import Emission, Enter, Rule, Steps
from translators.emit.library import library_call
from translators.emit.terms import PointerTerm
from translators.graph.graph import Op, Region, walk

_LOOPS = ("scf.for", "scf.while")


def _call(e: Emission, op: Op) -> Steps | None:
    return None if library_call(e, op) else _inlined(e, op)


def _inlined(e: Emission, op: Op) -> Steps:
    callee = e.module.functions[op.text("callee")]
    if _returns_from_loop(callee.body):
        raise e.refuse(op, "calls a function that returns from inside of a loop")
    arguments = [
        found if isinstance(found := e.found(each), PointerTerm) else e.term(each)
        for each in op.operands
    ]
    for parameter, argument in zip(callee.arguments, arguments, strict=True):
        e.put(parameter, argument)
    location, active, alive, returned = e.writer.location, e.active, e.alive, e.returned
    # What the function returns from is itself, not the kernel.
    e.active, e.alive, e.returned = e.come_here(), None, []
    given = yield Enter(callee.body)
    early = e.returned
    e.writer.location, e.active, e.alive, e.returned = location, active, alive, returned
    for index, result in enumerate(op.results):
        value = given[index]
        for condition, values in reversed(early):
            value = chosen_emitted(e, op, condition, values[index], value)
        e.put(result, value)


def _returns_from_loop(body: Region) -> bool:
    return any(
        inner.name == "tt.return"
        for op in walk(body)
        if op.name in _LOOPS
        for region in op.regions
        for inner in walk(region)
    )


RULES: Mapping[str, Rule] = MappingProxyType({"tt.call": _call})
