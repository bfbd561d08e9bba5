"""The part of a loop of products that one step of the grid does.

A total in vector memory begins in the first step, and what follows the loop is done in the last.
"""

from translators.emit.at_once import Total, adds_up, body_alone, in_chain, summed
from translators.emit.carried import enter_iteration, give_followed_results, is_followed
from translators.emit.driving import drive, run
from translators.emit.emission import RetryError, Steps
from translators.emit.pallas.emission import StepEmission
from translators.emit.pallas.parts import Parts
from translators.emit.products import product
from translators.emit.statements import Statement
from translators.emit.terms import Term, Tiled, common_batch, common_dims, constant
from translators.graph.graph import Region, Value
from translators.graph.types import element_of, shape_of

_ADDING = ("arith.addf", "arith.addi", "tt.dot")


def run_in_parts(e: StepEmission, body: Region, parts: Parts) -> None:
    """Emits a kernel of which each step does a part of a loop.

    Args:
      e: the emission.
      body: the kernel's ops.
      parts: the loop, which is one of them.

    Raises:
      UnsupportedError: the loop does more than add up, or an op has no form.
    """
    place = body.ops.index(parts.op)
    run(e, Region(body.arguments, [*body.ops[:place], body.terminator]))
    drive(e, _loop(e, parts))
    with e.writer.nested() as block:
        for value, (reference, total) in e.totals.items():
            e.put(value, total.like(e.writer.assign(f"{reference}[...]", value.name)))
        run(e, Region(body.arguments, body.ops[place + 1 :]))
    _only_at(e, parts, parts.count - 1, "finish", block)


def _loop(e: StepEmission, parts: Parts) -> Steps:
    op, region = parts.op, parts.op.regions[0]
    carried = [
        (index, argument)
        for index, argument in enumerate(region.arguments[1:])
        if not is_followed(e, argument)
    ]
    totals = adds_up(op, [argument for _, argument in carried])
    if totals is None or not all(_is_sum(each) for each in totals.values()):
        raise e.refuse(op, "does more than add up")
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
    for index, _ in carried:
        _add(e, parts, op.results[index], found[index], e.term(op.operands[3 + index]))
    e.iterations[parts.loop.number] = constant(
        parts.count * parts.iterations, e.element(region.arguments[0])
    )
    give_followed_results(e, op)


def _is_sum(total: Total) -> bool:
    return bool(total.chain) and all(op.name in _ADDING for op in total.chain)


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


def _add(e: StepEmission, parts: Parts, result: Value, found: Term, start: Term) -> None:
    """Adds what a step brings to a total in vector memory."""
    shape = shape_of(result.type)
    found = e.spread(e.lifted(found, shape))
    reference = e.total(result, found)
    with e.writer.nested() as block:
        first = e.spread(e.lifted(start, shape))
        e.writer.effect(f"{reference}[...] = {first.text}")
    _only_at(e, parts, 0, "begin", block)
    e.writer.effect(f"{reference}[...] += {found.text}")


def _only_at(e: StepEmission, parts: Parts, step: int, name: str, block: list[Statement]) -> None:
    """What is done in one of the steps alone."""
    counter = e.programs[parts.variable]
    assert isinstance(counter, Term)
    made = Statement(
        (e.writer.fresh(name),),
        "",
        guard=True,
        body=block,
        decorator=f"pl.when({counter.text} == {step})",
    )
    e.writer.extend([made])
