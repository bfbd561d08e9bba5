"""Loops: all iterations at once where they only add up, one after another otherwise."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from translators.access.loops import Loop
from translators.access.states import Integer, Pointer
from translators.emit.affine import affine_term
from translators.emit.axis_order import lies_outside
from translators.emit.cycles import Body, Counted, WhileAny, chosen_emitted, cycle
from translators.emit.emission import Emission, Enter, RetryError, Rule, Steps
from translators.emit.products import added, product
from translators.emit.reductions import greatest
from translators.emit.statements import Statement
from translators.emit.terms import (
    BatchAxis,
    Emitted,
    PointerTerm,
    Term,
    common_batch,
    common_dims,
    constant,
    dtype,
    literal,
    typed,
)
from translators.graph.graph import Op, Region, Value, users, walk
from translators.graph.types import (
    I1,
    I8,
    I32,
    FloatType,
    IntType,
    PointerType,
    Type,
    element_of,
    shape_of,
)

# Ops that the iterations of a loop that are laid out may have together.
_LAID_OUT = 1024
_NUMBERS_ONLY = ("jnp.nanmax", "jnp.nanmin")
# Combinations whose order does not matter, and what sums them up along an axis.
_COMBINED = {
    "arith.addf": "jnp.sum",
    "arith.addi": "jnp.sum",
    "arith.maximumf": "jnp.max",
    "arith.minimumf": "jnp.min",
    "arith.maxnumf": "jnp.nanmax",
    "arith.minnumf": "jnp.nanmin",
    "arith.maxsi": "jnp.max",
    "arith.minsi": "jnp.min",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A carried value to which each iteration adds something that it does not look at.

    Attributes:
      argument: the value in the body.
      chain: the ops through which it goes, in their order; all of one kind.
    """

    argument: Value
    chain: tuple[Op, ...]


def _followed(e: Emission, value: Value) -> bool:
    """Whether the analysis says what a carried value is in each iteration."""
    state = e.analysis.states.get(value)
    if isinstance(state, Integer):
        return not state.assumptions and _says_more(value, state.expression.terms)
    return isinstance(state, Pointer) and _says_more(value, state.offset.terms)


def _says_more(value: Value, terms: Sequence[tuple[object, int]]) -> bool:
    return not any(getattr(variable, "value", None) is value for variable, _ in terms)


def _totals(op: Op, carried: Sequence[Value]) -> dict[Value, Total] | None:
    """How each of the carried values adds up; `None` if one does not."""
    region = op.regions[0]
    uses = users(region)
    ends = dict(zip(region.arguments[1:], region.terminator.operands, strict=True))
    found: dict[Value, Total] = {}
    for argument in carried:
        element = element_of(argument.type)
        if isinstance(element, FloatType) and element.width < 32:
            return None
        chain: list[Op] = []
        value = argument
        while value is not ends[argument]:
            users_of = uses.get(value, [])
            if len(users_of) != 1:
                return None
            user, index = users_of[0]
            if user not in region.ops:
                return None
            adds = user.name in _COMBINED or (user.name == "tt.dot" and index == 2)
            kind = "arith.addf" if user.name == "tt.dot" else user.name
            same = not chain or kind == (
                "arith.addf" if chain[0].name == "tt.dot" else chain[0].name
            )
            if not adds or not same or user.operands.count(value) != 1:
                return None
            chain.append(user)
            value = user.result
        if len(uses.get(value, [])) != 1 or (not chain and value is not argument):
            return None
        found[argument] = Total(argument=argument, chain=tuple(chain))
    return found


def _stores(region: Region) -> bool:
    return any(
        op.name in ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_store")
        or op.name.startswith("tt.descriptor_")
        for op in walk(region)
    )


def _returns(region: Region) -> bool:
    return any(op.name == "tt.return" for op in walk(region))


def _for(e: Emission, op: Op) -> Steps:
    number_ = e.loop_numbers[op]
    loop = e.analysis.loops.get(number_)
    region = op.regions[0]
    carried = [
        (index, argument)
        for index, argument in enumerate(region.arguments[1:])
        if not (loop is not None and _followed(e, argument))
    ]
    if loop is not None and loop.trips is not None and loop.trips.value == 0:
        for operand, result in zip(op.operands[3:], op.results, strict=True):
            e.put(result, _entered(e, operand))
        return
    once = loop is not None and loop.trips is not None and loop.trips.value == 1
    if loop is not None and once and region.terminator.name == "scf.yield":
        yield from _just_once(e, op, loop, carried)
        return
    if loop is not None and (yield from _at_once(e, op, loop, carried)):
        return
    yield from _one_by_one(e, op, loop, carried)


def _counter(e: Emission, op: Op, loop: Loop) -> None:
    """The loop's own counter, and what the analysis follows, in each iteration."""
    region = op.regions[0]
    e.put(region.arguments[0], _state_term(e, region.arguments[0]))
    for argument in region.arguments[1:]:
        if _followed(e, argument):
            e.put(argument, _state_term(e, argument))


def _state_term(e: Emission, value: Value) -> Emitted:
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


def _followed_results(e: Emission, op: Op) -> None:
    for argument, result in zip(op.regions[0].arguments[1:], op.results, strict=True):
        if _followed(e, argument):
            if not _followed(e, result):
                raise e.refuse(op, "carries an index that is not known after the loop")
            e.put(result, _state_term(e, result))


def _just_once(e: Emission, op: Op, loop: Loop, carried: list[tuple[int, Value]]) -> Steps:
    """Emits the body alone."""
    e.iterations[loop.number] = constant(0, element_of_counter(op))
    try:
        with e.scope():
            _counter(e, op, loop)
            for index, argument in carried:
                e.put(argument, _entered(e, op.operands[3 + index]))
            ends = yield Enter(op.regions[0])
    finally:
        e.iterations.pop(loop.number, None)
    for index, _ in carried:
        e.put(op.results[index], ends[index])
    _followed_results(e, op)


def _at_once(
    e: Emission, op: Op, loop: Loop, carried: list[tuple[int, Value]]
) -> Generator[Enter, list[Emitted], bool]:
    """Emits all iterations as one more batch axis; gives whether that worked out."""
    trips = None if loop.trips is None else loop.trips.value
    region = op.regions[0]
    totals = _totals(op, [argument for _, argument in carried])
    if trips is None or totals is None or _returns(region) or not _independent(e, region):
        return False
    if not carried and not _stores(region):
        return False
    saved = e.buffers.snapshot()
    results: dict[int, Term] = {}
    block: list[Statement] = []
    # What the totals start from has the axes of outside.
    initial = {argument: e.term(op.operands[3 + index]) for index, argument in carried}
    try:
        opened = e.axis_opened(_name(op), trips, outside=_lies_outside(e, region, loop))
        with e.writer.nested() as block, e.scope(), opened as axis:
            e.iterations[loop.number] = axis
            _counter(e, op, loop)
            skipped = {each for total in totals.values() for each in total.chain}
            yield from _body(e, region, skipped)
            _check_size(e, axis)
            for index, argument in carried:
                results[index] = _summed(e, totals[argument], initial[argument], axis)
    except RetryError:
        e.buffers.restore(saved)
        return False
    e.writer.extend(block)
    for index, term in results.items():
        e.put(op.results[index], term)
    _followed_results(e, op)
    return True


def _lies_outside(e: Emission, region: Region, loop: Loop) -> bool:
    """Whether the iterations lie further apart in memory than the programs do."""
    inside = set(walk(region))
    accesses = [each for each in e.analysis.accesses if each.op in inside]
    return lies_outside(accesses, loop.iteration, list(e.programs))


def element_of_counter(op: Op) -> IntType:
    """The type of a loop's counter."""
    element = element_of(op.operands[0].type)
    assert isinstance(element, IntType)
    return element


def _body(e: Emission, region: Region, skipped: set[Op]) -> Steps:
    """The region without the ops that only add to a total."""
    part = Region(region.arguments, [each for each in region.ops if each not in skipped])
    part.ops[-1] = _bare_end(region)
    yield Enter(part)


def _bare_end(region: Region) -> Op:
    end = region.terminator
    return Op(end.name, (), (), end.attributes, (), end.location)


def _independent(e: Emission, region: Region) -> bool:
    """Whether no iteration reads or writes what another one writes."""
    touched: dict[int, set[object]] = {}
    written: set[int] = set()
    for op in walk(region):
        access = e.accesses.get(op)
        if access is None:
            continue
        if not isinstance(access.pointer, Pointer):
            return not _stores(region)
        buffer = e.aliases.get(access.pointer.argument, access.pointer.argument)
        touched.setdefault(buffer, set()).add(access.pointer.offset)
        if op.name != "tt.load":
            written.add(buffer)
        if e.serial and op.name in ("tt.atomic_cas", "tt.atomic_rmw"):
            return False
    return all(len(touched[each]) == 1 for each in written)


def _check_size(e: Emission, axis: BatchAxis) -> None:
    """Gives up where an array of all iterations would be far larger than what is computed on."""
    for emitted in e.env.maps[0].values():
        term = emitted.offset if isinstance(emitted, PointerTerm) else emitted
        if axis in term.batch and prod(term.array_shape) > e.largest:
            raise RetryError


def _summed(e: Emission, total: Total, start: Term, axis: BatchAxis) -> Term:
    """A total after the loop."""
    result = start
    for op in total.chain:
        e.writer.location = op.location or e.writer.location
        if op.name == "tt.dot":
            left, right = e.term(op.operands[0]), e.term(op.operands[1])
            if axis not in left.batch | right.batch:
                raise RetryError
            found = product(e, op, summed=axis, outside=_outside(e))
            result = added(e, op, found, result)
            continue
        others = [each for each in op.operands if not _in_chain(each, total)]
        if len(others) != 1:
            raise RetryError
        value = e.term(others[0])
        result = _folded(e, op, value, result, axis)
    return result


def _in_chain(value: Value, total: Total) -> bool:
    return value is total.argument or any(value in op.results for op in total.chain)


def _outside(e: Emission) -> dict[BatchAxis, BatchAxis]:
    """For the axes inside of the innermost loop, what they are outside."""
    return {inside: outside for outside, inside in e.shifts[-1].items()}


def _folded(e: Emission, op: Op, value: Term, start: Term, axis: BatchAxis) -> Term:
    """A value of all iterations, combined, with what the total starts from."""
    shape = shape_of(op.result.type)
    value, start = e.lifted(value, shape), e.lifted(start, shape)
    function = _COMBINED[op.name]
    back = _outside(e)
    made = Term(
        text="",
        element=value.element,
        shape=shape,
        dims=value.dims,
        batch=frozenset(back[each] for each in value.batch - {axis}),
    )
    at = value.lead - 1 - axis.place
    if axis in value.batch:
        exact = isinstance(value.element, IntType)
        kept = f", dtype={dtype(value.element)}" if exact and function == "jnp.sum" else ""
        text = f"{function}({value.text}, axis={at}{kept})"
        if function in _NUMBERS_ONLY:
            text = greatest(e, function, value, at)
        rest = [size for place, size in enumerate(value.array_shape) if place != at]
    else:
        trips = literal(axis.extent, value.element)
        text = f"{typed(value)} * {trips}" if function == "jnp.sum" else typed(value)
        rest = list(value.array_shape)
    if tuple(rest) != made.array_shape:
        text = f"({text}).reshape{made.array_shape}"
    folded = made.like(e.writer.assign(text))
    neutral = (
        (function == "jnp.sum" and start.number == 0)
        or (op.name in ("arith.maximumf", "arith.maxnumf") and start.number == float("-inf"))
        or (op.name in ("arith.minimumf", "arith.minnumf") and start.number == float("inf"))
    )
    if neutral:
        return folded
    combined = {
        "jnp.sum": "{0} + {1}",
        "jnp.max": "jnp.maximum({0}, {1})",
        "jnp.min": "jnp.minimum({0}, {1})",
        "jnp.nanmax": "jnp.fmax({0}, {1})",
        "jnp.nanmin": "jnp.fmin({0}, {1})",
    }[function]
    terms = (start, folded)
    return Term(
        text=e.writer.assign(combined.format(f"({start.text})", folded.text), op.result.name),
        element=folded.element,
        shape=shape,
        dims=common_dims(terms),
        batch=common_batch(terms),
    )


def _name(op: Op) -> str:
    return op.regions[0].arguments[0].name or "step"


def _one_by_one(e: Emission, op: Op, loop: Loop | None, carried: list[tuple[int, Value]]) -> Steps:
    """Emits the loop as a loop."""
    region = op.regions[0]
    number_ = e.loop_numbers[op]
    initial = [_entered(e, op.operands[3 + index]) for index, _ in carried]
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
            _counter(e, op, loop)
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
        header=Counted(first="0", last=last, name=_name(op), unroll=_unroll(region, last)),
        returns=_returns(region),
    )
    e.iterations.pop(number_, None)
    for (index, _), value in zip(carried, results, strict=True):
        e.put(op.results[index], value)
    if loop is not None:
        _followed_results(e, op)


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


def _entered(e: Emission, value: Value) -> Emitted:
    found = e.found(value)
    return found if isinstance(found, PointerTerm) else e.term(value)


def _while(e: Emission, op: Op) -> Steps:
    """Runs for as long as one program goes on; the others keep what they have."""
    before, after = op.regions
    initial = [_entered(e, each) for each in op.operands]
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
        returns=_returns(before) or _returns(after),
    )
    for result, value in zip(op.results, final[count : count + given], strict=True):
        e.put(result, value)


def _zero(type_: Type) -> Emitted:
    element = element_of(type_)
    if element is None or isinstance(element, PointerType):
        return PointerTerm(buffer=-1, offset=constant(0, I32, shape_of(type_)), pointee=I8)
    zero = 0.0 if isinstance(element, FloatType) else 0
    return constant(zero, element, shape_of(type_))


RULES: Mapping[str, Rule] = MappingProxyType({"scf.for": _for, "scf.while": _while})
