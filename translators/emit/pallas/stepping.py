"""The part of a loop that one step of the grid does.

What the loop carries lies in memory from step to step: it begins in the first step, and what
follows the loop is done in the last.
"""

from collections.abc import Mapping

from translators.emit.affine import affine_term
from translators.emit.at_once import Total, body_alone, in_chain, summed
from translators.emit.carried import enter_iteration, give_followed_results, is_followed
from translators.emit.driving import drive, run
from translators.emit.emission import Enter, RetryError, Steps
from translators.emit.pallas.emission import StepEmission
from translators.emit.pallas.parts import Parts
from translators.emit.products import product
from translators.emit.statements import Statement
from translators.emit.terms import (
    PointerTerm,
    Term,
    Tiled,
    common_batch,
    common_dims,
    constant,
    typed,
)
from translators.graph.graph import Region, Value
from translators.graph.types import element_of, shape_of


def run_in_parts(e: StepEmission, body: Region, parts: Parts) -> None:
    """Emits a kernel of which each step does a part of a loop.

    Args:
      e: the emission.
      body: the kernel's ops.
      parts: the loop, which is one of them.

    Raises:
      UnsupportedError: what the loop carries cannot lie in memory, or an op has no form.
    """
    place = body.ops.index(parts.op)
    run(e, Region(body.arguments, [*body.ops[:place], body.terminator]))
    drive(e, _carrying(e, parts) if parts.totals is None else _adding(e, parts, parts.totals))
    with e.writer.nested() as block:
        for value in e.totals:
            e.put(value, _held(e, value))
        run(e, Region(body.arguments, body.ops[place + 1 :]))
    _only_at(e, parts, parts.count - 1, "finish", block)


def _carried(e: StepEmission, parts: Parts) -> list[tuple[int, Value]]:
    """The carried values that only the loop says, and which of them each is."""
    arguments = parts.op.regions[0].arguments[1:]
    return [(index, each) for index, each in enumerate(arguments) if not is_followed(e, each)]


def _adding(e: StepEmission, parts: Parts, totals: Mapping[Value, Total]) -> Steps:
    """Iterations of a loop that only adds up, all at once where there are several."""
    op, region = parts.op, parts.op.regions[0]
    carried = _carried(e, parts)
    skipped = {each for total in totals.values() for each in total.chain}
    found: dict[int, Term] = {}
    counter = e.programs[parts.variable]
    assert isinstance(counter, Term)
    try:
        if parts.iterations == 1:
            e.iterations[parts.loop.number] = counter
            with e.writer.nested() as block, e.scope():
                enter_iteration(e, op, parts.loop)
                yield from body_alone(e, region, skipped)
                for index, argument in carried:
                    found[index] = _one(e, totals[argument])
        else:
            opened = e.axis_opened(parts.name, parts.iterations, outside=False)
            with e.writer.nested() as block, e.scope(), opened as axis:
                e.iterations[parts.loop.number] = Tiled(step=parts.variable, axis=axis)
                enter_iteration(e, op, parts.loop)
                yield from body_alone(e, region, skipped)
                for index, argument in carried:
                    found[index] = summed(e, totals[argument], _zero(argument), axis)
    except RetryError:
        raise e.refuse(op, "multiplies what is no block of an array") from None
    e.writer.extend(block)
    sums = {op.results[index]: found[index] for index, _ in carried}
    added = {each: e.spread(e.lifted(sums[each], shape_of(each.type))) for each in sums}
    _begin(e, parts, {op.results[index]: op.operands[3 + index] for index, _ in carried})
    for result, term in added.items():
        e.writer.effect(f"{e.totals[result].place} += {term.text}")
    e.iterations[parts.loop.number] = constant(
        parts.count * parts.iterations, e.element(region.arguments[0])
    )
    give_followed_results(e, op)


def _carrying(e: StepEmission, parts: Parts) -> Steps:
    """An iteration of a loop that goes on with what the one before left."""
    op, region = parts.op, parts.op.regions[0]
    carried = _carried(e, parts)
    _begin(e, parts, {op.results[index]: op.operands[3 + index] for index, _ in carried})
    counter = e.programs[parts.variable]
    assert isinstance(counter, Term)
    runs = _runs(e, parts, counter)
    e.iterations[parts.loop.number] = counter
    with e.writer.nested() as block, e.scope():
        enter_iteration(e, op, parts.loop)
        for index, argument in carried:
            e.put(argument, _held(e, op.results[index]))
        ends = yield Enter(region)
        for index, _ in carried:
            end = ends[index]
            assert isinstance(end, Term)
            _hold(e, op.results[index], end)
    if runs:
        _only_where(e, runs, "iterate", block)
    else:
        e.writer.extend(block)
    e.iterations.pop(parts.loop.number)
    give_followed_results(e, op)


def _runs(e: StepEmission, parts: Parts, counter: Term) -> str:
    """When a step has an iteration to do; empty where every one has."""
    if not parts.varies:
        return ""
    e.iterations[parts.loop.number] = counter
    count, end = (affine_term(e, each) for each in (parts.loop.counter, parts.loop.upper))
    if count.batch or end.batch:
        raise e.refuse(parts.op, "has other iterations in each program of a step")
    return f"{count.text} < {end.text}"


def _zero(value: Value) -> Term:
    element = element_of(value.type)
    assert element is not None
    return constant(0, element, shape_of(value.type))


def _one(e: StepEmission, total: Total) -> Term:
    """What one iteration adds."""
    parts = []
    for op in total.chain:
        e.writer.location = op.location or e.writer.location
        if op.name == "tt.dot":
            parts.append(product(e, op))
        else:
            parts += [e.term(each) for each in op.operands if not in_chain(each, total)]
    first = parts[0]
    if len(parts) == 1:
        return first
    text = " + ".join(each.text for each in parts)
    return first.like(e.writer.assign(text), dims=common_dims(parts), batch=common_batch(parts))


def _begin(e: StepEmission, parts: Parts, starts: Mapping[Value, Value]) -> None:
    """Gives carried values places in memory, and puts there what they begin as."""
    with e.writer.nested() as block, e.scope():
        for result, start in starts.items():
            if isinstance(e.found(start), PointerTerm):
                raise e.refuse(parts.op, "carries pointers from step to step")
            e.hold(parts.op, result)
            _hold(e, result, e.term(start))
    if block:
        _only_at(e, parts, 0, "begin", block)


def _held(e: StepEmission, result: Value) -> Term:
    """What a carried value is, of which the step before left it so."""
    held = e.totals[result]
    return held.term.like(e.writer.assign(held.place, result.name, pinned=True))


def _hold(e: StepEmission, result: Value, term: Term) -> None:
    """Leaves a carried value to the next step."""
    held = e.totals[result]
    if not held.term.shape:
        e.writer.effect(f"{held.place} = {typed(term)}")
        return
    spread = e.spread(e.lifted(term, held.term.shape))
    e.writer.effect(f"{held.place} = {spread.text}")


def _only_at(e: StepEmission, parts: Parts, step: int, name: str, block: list[Statement]) -> None:
    """What is done in one of the steps alone."""
    counter = e.programs[parts.variable]
    assert isinstance(counter, Term)
    _only_where(e, f"{counter.text} == {step}", name, block)


def _only_where(e: StepEmission, condition: str, name: str, block: list[Statement]) -> None:
    """What is done in the steps for which a condition holds."""
    made = Statement(
        (e.writer.fresh(name),), "", guard=True, body=block, decorator=f"pl.when({condition})"
    )
    e.writer.extend([made])
