"""Loops whose iterations follow one another."""

from translators.access.loops import Loop
from translators.emit.affine import affine_term
from translators.emit.carried import (
    enter_iteration,
    entered,
    give_followed_results,
    loop_name,
    returns_inside,
)
from translators.emit.cycles import Body, Counted, WhileAny, chosen_emitted, cycle
from translators.emit.emission import Emission, Enter, Steps
from translators.emit.terms import (
    Emitted,
    PointerTerm,
    Term,
    common_batch,
    constant,
)
from translators.graph.graph import Op, Region, Value, walk
from translators.graph.types import (
    I1,
    I8,
    I32,
    FloatType,
    PointerType,
    Type,
    element_of,
    shape_of,
)

# Ops that the iterations of a loop that are laid out may have together.
_LAID_OUT = 1024


def one_by_one(e: Emission, op: Op, loop: Loop | None, carried: list[tuple[int, Value]]) -> Steps:
    """Emits the loop as a loop."""
    region = op.regions[0]
    number_ = e.loop_numbers[op]
    initial = [entered(e, op.operands[3 + index]) for index, _ in carried]
    trips = _trips(e, op, loop)
    last = trips.text
    varies = bool(trips.batch)
    if varies and loop is not None and loop.iteration.fixed:
        last = str(loop.iteration.extent)
    elif varies:
        last = e.writer.assign(f"jnp.max({trips.text})")

    def body(params: list[Emitted], counter: Term) -> Body:
        e.iterations[number_] = counter
        if loop is not None:
            enter_iteration(e, op, loop)
        else:
            e.put(region.arguments[0], _own_counter(e, op, counter))
        for (_, argument), param in zip(carried, params, strict=True):
            e.put(argument, param)
        if not varies:
            ends = yield Enter(region)
            return [ends[index] for index, _ in carried]
        runs = Term(
            text=e.writer.assign(f"{counter.text} < {trips.text}"), element=I1, batch=trips.batch
        )
        with e.only_where(runs):
            ends = yield Enter(region)
        kept = []
        for (index, _), param in zip(carried, params, strict=True):
            kept.append(chosen_emitted(e, op, runs, ends[index], param))
        return kept

    results = yield from cycle(
        e,
        initial,
        hints=[argument.name or result.name for (_, argument), result in _named(op, carried)],
        body=body,
        header=Counted(first="0", last=last, name=loop_name(op), unroll=_unroll(region, last)),
        returns=returns_inside(region),
    )
    e.iterations.pop(number_, None)
    for (index, _), value in zip(carried, results, strict=True):
        e.put(op.results[index], value)
    if loop is not None:
        give_followed_results(e, op)


def _unroll(region: Region, last: str) -> int:
    """How many iterations to lay out, so that the whole stays of a size that compiles quickly."""
    if not last.isdecimal():
        return 1
    return max(1, min(int(last), _LAID_OUT // sum(1 for _ in walk(region))))


def _named(op: Op, carried: list[tuple[int, Value]]) -> list[tuple[tuple[int, Value], Value]]:
    return [(each, op.results[each[0]]) for each in carried]


def _trips(e: Emission, op: Op, loop: Loop | None) -> Term:
    """How many iterations each program has."""
    if loop is not None and loop.trips is not None:
        return affine_term(e, loop.trips)
    lower, upper, step = (e.term(each) for each in op.operands[:3])
    terms = (lower, upper, step)
    if op.flag("unsignedCmp"):
        raise e.refuse(op, "compares its bounds as unsigned, which has no form in JAX yet")
    text = f"({upper.text} - {lower.text} + {step.text} - 1) // {step.text}"
    return Term(text=e.writer.assign(text), element=lower.element, batch=common_batch(terms))


def _own_counter(e: Emission, op: Op, counter: Term) -> Term:
    lower, step = e.term(op.operands[0]), e.term(op.operands[2])
    text = f"{lower.text} + {counter.text} * {step.text}"
    return Term(
        text=e.writer.assign(text), element=lower.element, batch=common_batch((lower, step))
    )


def while_loop(e: Emission, op: Op) -> Steps:
    """Runs for as long as one program goes on; the others keep what they have."""
    before, after = op.regions
    initial = [entered(e, each) for each in op.operands]
    entry = e.come_here() or constant(1, I1)
    blanks: list[Emitted] = [_zero(each.type) for each in op.results]
    count, given = len(initial), len(blanks)

    def body(params: list[Emitted], counter: Term) -> Body:
        running = params[-1]
        assert isinstance(running, Term)
        for argument, param in zip(before.arguments, params[:count], strict=True):
            e.put(argument, param)
        outer, e.active = e.active, running
        ends = yield Enter(before)
        goes, passed = ends[0], ends[1:]
        assert isinstance(goes, Term)
        for argument, value in zip(after.arguments, passed, strict=True):
            e.put(argument, value)
        onward = e.both(running, goes) or constant(1, I1)
        e.active = onward
        nexts = yield Enter(after)
        e.active = outer
        kept = [
            chosen_emitted(e, op, onward, value, param)
            for value, param in zip(nexts, params[:count], strict=True)
        ]
        # What the condition passes on when a program stops is the loop's result for it.
        results = [
            chosen_emitted(e, op, running, value, param)
            for value, param in zip(passed, params[count : count + given], strict=True)
        ]
        return [*kept, *results, onward]

    final = yield from cycle(
        e,
        [*initial, *blanks, entry],
        hints=[
            *(each.name for each in before.arguments),
            *(each.name for each in op.results),
            "running",
        ],
        body=body,
        header=WhileAny(),
        returns=returns_inside(before) or returns_inside(after),
    )
    for result, value in zip(op.results, final[count : count + given], strict=True):
        e.put(result, value)


def _zero(type_: Type) -> Emitted:
    element = element_of(type_)
    if element is None or isinstance(element, PointerType):
        return PointerTerm(buffer=-1, offset=constant(0, I32, shape_of(type_)), pointee=I8)
    zero = 0.0 if isinstance(element, FloatType) else 0
    return constant(zero, element, shape_of(type_))
