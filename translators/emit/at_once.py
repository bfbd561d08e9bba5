"""Loops of which all iterations are emitted at once: they store apart, or only add up."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import prod

from translators.access.delinearize import Position
from translators.access.expression import Lane, leaves
from translators.access.loops import Loop
from translators.access.states import Pointer
from translators.emit.axis_order import lies_outside
from translators.emit.carried import (
    enter_iteration,
    give_followed_results,
    loop_name,
    returns_inside,
    stores,
)
from translators.emit.emission import Emission, Enter, RetryError, Steps, UnsupportedError
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
    dtype,
    literal,
    typed,
)
from translators.graph.graph import Op, Region, Value, users, walk
from translators.graph.types import (
    FloatType,
    IntType,
    element_of,
    shape_of,
)

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


def adds_up(op: Op, carried: Sequence[Value]) -> dict[Value, Total] | None:
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


def at_once(
    e: Emission, op: Op, loop: Loop, carried: list[tuple[int, Value]]
) -> Generator[Enter, list[Emitted], bool]:
    """Emits all iterations as one more batch axis; gives whether that worked out."""
    trips = None if loop.trips is None else loop.trips.value
    region = op.regions[0]
    totals = adds_up(op, [argument for _, argument in carried])
    if trips is None or totals is None or returns_inside(region) or not _independent(e, region):
        return False
    if not carried and not stores(region):
        return False
    if e.blocked and not _is_for_all(e, region, loop):
        return False
    saved = e.buffers.snapshot()
    results: dict[int, Term] = {}
    block: list[Statement] = []
    # What the totals start from has the axes of outside.
    initial = {argument: e.term(op.operands[3 + index]) for index, argument in carried}
    try:
        opened = e.axis_opened(loop_name(op), trips, outside=_lies_outside(e, region, loop))
        with e.writer.nested() as block, e.scope(), opened as axis:
            e.iterations[loop.number] = axis
            enter_iteration(e, op, loop)
            skipped = {each for total in totals.values() for each in total.chain}
            yield from body_alone(e, region, skipped)
            _check_size(e, axis)
            for index, argument in carried:
                results[index] = summed(e, totals[argument], initial[argument], axis)
    except RetryError:
        e.buffers.restore(saved)
        return False
    except UnsupportedError:
        if not e.blocked:
            raise
        e.buffers.restore(saved)
        return False  # one iteration may go to a block where all of them do not
    e.writer.extend(block)
    for index, term in results.items():
        e.put(op.results[index], term)
    give_followed_results(e, op)
    return True


def _is_for_all(e: Emission, region: Region, loop: Loop) -> bool:
    """Whether blocks of all iterations are read and written as one.

    Others are read where they are used, but products want them whole, and so does a loop that
    writes rows of its own.
    """
    if any(each.name == "tt.dot" for each in walk(region)):
        return True
    return stores(region) and all(
        loop.iteration not in leaves(dimension.index)
        or not any(isinstance(each, Lane) for each in leaves(dimension.index))
        for op in walk(region)
        if (access := e.accesses.get(op)) is not None and isinstance(access.position, Position)
        for dimension in access.position.dimensions
    )


def _lies_outside(e: Emission, region: Region, loop: Loop) -> bool:
    """Whether the iterations lie further apart in memory than the programs do."""
    inside = set(walk(region))
    accesses = [each for each in e.analysis.accesses if each.op in inside]
    return lies_outside(accesses, loop.iteration, list(e.programs))


def body_alone(e: Emission, region: Region, skipped: set[Op]) -> Steps:
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
            return not stores(region)
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


def summed(e: Emission, total: Total, start: Term, axis: BatchAxis) -> Term:
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
        others = [each for each in op.operands if not in_chain(each, total)]
        if len(others) != 1:
            raise RetryError
        value = e.term(others[0])
        result = _folded(e, op, value, result, axis)
    return result


def in_chain(value: Value, total: Total) -> bool:
    """Whether a value is the total on its way through the body."""
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
