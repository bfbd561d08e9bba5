"""Reductions, scans and maps, whose region says how elements combine."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from translators.emit.emission import Emission, Enter, Rule, Steps
from translators.emit.shaping import aligned
from translators.emit.terms import Term, constant, dtype, typed
from translators.graph.graph import Op, Region
from translators.graph.types import I1, FloatType, IntType, element_of, shape_of

# Of regions with a single op, what JAX calls the reduction.
_REDUCTIONS = {
    "arith.addf": "jnp.sum",
    "arith.addi": "jnp.sum",
    "arith.mulf": "jnp.prod",
    "arith.muli": "jnp.prod",
    "arith.maximumf": "jnp.max",
    "arith.minimumf": "jnp.min",
    "arith.maxnumf": "jnp.nanmax",
    "arith.minnumf": "jnp.nanmin",
    "arith.maxsi": "jnp.max",
    "arith.minsi": "jnp.min",
}
_BITWISE = {
    "arith.andi": "lax.reduce_and",
    "arith.ori": "lax.reduce_or",
    "arith.xori": "lax.reduce_xor",
}
_SCANS = {
    "arith.addf": "jnp.cumsum",
    "arith.addi": "jnp.cumsum",
    "arith.mulf": "jnp.cumprod",
    "arith.muli": "jnp.cumprod",
}
_CUMULATIVE = {"arith.maxsi": "lax.cummax", "arith.minsi": "lax.cummin"}


def single_op(region: Region) -> str:
    """The op that a region consists of, if it takes the two arguments; else nothing."""
    if len(region.ops) != 2 or len(region.arguments) != 2:
        return ""
    op, end = region.ops
    whole = set(op.operands) == set(region.arguments) and end.operands == op.results
    return op.name if whole else ""


def _summing(e: Emission, op: Op) -> str:
    """Integers keep their type, which `jnp.sum` would widen."""
    element = e.element(op.result)
    return f", dtype={dtype(element)}" if isinstance(element, IntType) else ""


def _reduce(e: Emission, op: Op) -> Steps | None:
    if len(op.operands) == 1:
        single = single_op(op.regions[0])
        element = element_of(op.operands[0].type)
        if single in _REDUCTIONS and element != I1:
            _reduce_by(e, op, _REDUCTIONS[single])
            return None
        if single in _BITWISE or (element == I1 and single in ("arith.addi",)):
            _reduce_bits(e, op, _BITWISE.get(single, "lax.reduce_xor"))
            return None
    return combined(e, op)


def reduced(e: Emission, op: Op, result: int, text: str, term: Term) -> None:
    """Takes down a result that lacks the axis."""
    axis = op.integer("axis")
    value = op.results[result]
    dims = (*term.dims[:axis], *term.dims[axis + 1 :])
    made = Term(
        text="",
        element=e.element(value),
        shape=shape_of(value.type),
        dims=dims,
        batch=term.batch,
    )
    along = term.rank + _along(op)
    left = tuple(size for place, size in enumerate(term.array_shape) if place != along)
    if left != made.array_shape:
        # Of a tensor of one column, whose array has no more of it than the rows, nothing is left.
        text = f"({text}).reshape({made.array_shape})"
    e.put(value, made.like(e.writer.assign(text, value.name)))


def _along(op: Op) -> int:
    return op.integer("axis") - len(shape_of(op.operands[0].type))


def _reduce_by(e: Emission, op: Op, function: str) -> None:
    term = e.spread(e.term(op.operands[0]))
    if function in ("jnp.nanmax", "jnp.nanmin"):
        reduced(e, op, 0, greatest(e, function, term, term.rank + _along(op)), term)
        return
    sums = function in ("jnp.sum", "jnp.prod")
    text = f"{function}({term.text}, axis={_along(op)}{_summing(e, op) if sums else ''})"
    if not sums and e.element(op.result) != term.element:
        text = f"{text}.astype({dtype(e.element(op.result))})"
    reduced(e, op, 0, text, term)


def greatest(e: Emission, function: str, term: Term, axis: int) -> str:
    """The greatest or least number along an axis of the array; NaN only where all are.

    `jnp.nanmax` says the same, but goes through the array twice.
    """
    helper = e.writer.helper("_greatest" if function == "jnp.nanmax" else "_least")
    return f"{helper}({term.text}, {axis})"


def _reduce_bits(e: Emission, op: Op, function: str) -> None:
    term = e.spread(e.term(op.operands[0]))
    axis = term.rank + _along(op)
    if element_of(op.operands[0].type) == I1 and function != "lax.reduce_xor":
        name = "jnp.all" if function == "lax.reduce_and" else "jnp.any"
        reduced(e, op, 0, f"{name}({term.text}, axis={_along(op)})", term)
        return
    if function == "lax.reduce_xor" and element_of(op.operands[0].type) == I1:
        reduced(
            e, op, 0, f"jnp.sum({term.text}, axis={_along(op)}, dtype=jnp.int32) % 2 != 0", term
        )
        return
    reduced(e, op, 0, f"{function}({term.text}, axes=({axis},))", term)


def _operands(e: Emission, op: Op) -> list[Term]:
    whole, _ = aligned(e, [e.term(each) for each in op.operands])
    return whole


def _scalars(region: Region, names: Sequence[str], e: Emission) -> None:
    """Names the elements that a region combines."""
    for argument, name in zip(region.arguments, names, strict=True):
        e.put(argument, Term(text=name, element=e.element(argument)))


def _combiner(e: Emission, op: Op, hint: str) -> Steps:
    """Emits the region as a nested function, whose name is then the memo's `combiner` of `op`."""
    region = op.regions[0]
    name = e.writer.fresh(hint)
    names = [e.writer.fresh(each.name or "v") for each in region.arguments]
    with e.scope(), e.writer.nested() as body:
        _scalars(region, names, e)
        ends = yield Enter(region)
        given = []
        for end, value in zip(ends, region.terminator.operands, strict=True):
            assert isinstance(end, Term)
            given.append(_like_argument(end, names[0]) if end.number is not None else end.text)
            assert value is not None
    e.writer.define(name, ", ".join(names), body, f"({', '.join(given)},)")
    e.memo[("combiner", op)] = Term(text=name, element=I1)


def _like_argument(end: Term, argument: str) -> str:
    return f"jnp.full(jnp.shape({argument}), {typed(end)})"


def combined(e: Emission, op: Op) -> Steps:
    """Any combination, over a tree of neighbours."""
    yield from _combiner(e, op, "combine")
    combine = e.memo["combiner", op].text
    terms = _operands(e, op)
    helper = e.writer.helper("_reduce")
    values = ", ".join(each.text for each in terms)
    text = f"{helper}({combine}, ({values},), {_along(op)})"
    names = e.writer.unpack(text, [each.name or "t" for each in op.results])
    _unpacked(e, op, names, terms[0], reduces=True)


def _unpacked(e: Emission, op: Op, names: Sequence[str], first: Term, *, reduces: bool) -> None:
    axis = op.integer("axis")
    dims = (*first.dims[:axis], *first.dims[axis + 1 :]) if reduces else first.dims
    for name, result in zip(names, op.results, strict=True):
        made = Term(
            text=f"{name}",
            element=e.element(result),
            shape=shape_of(result.type),
            dims=dims,
            batch=first.batch,
        )
        e.put(result, made)


def _scan(e: Emission, op: Op) -> Steps | None:
    single = single_op(op.regions[0]) if len(op.operands) == 1 else ""
    element = element_of(op.operands[0].type)
    # Sums of narrow floats are rounded at every step, as the kernel's are.
    narrow = isinstance(element, FloatType) and element.width < 32
    if single in (*_SCANS, *_CUMULATIVE) and element != I1 and not narrow:
        _scan_by(e, op, single)
        return None
    return scan_any(e, op)


def _scan_by(e: Emission, op: Op, combined: str) -> None:
    term = e.spread(e.term(op.operands[0]))
    axis, reverse = _along(op), op.flag("reverse")
    text = term.text
    if combined in _CUMULATIVE:
        place = term.rank + axis
        text = f"{_CUMULATIVE[combined]}({text}, axis={place}, reverse={reverse})"
    else:
        if reverse:
            text = f"jnp.flip({text}, axis={axis})"
        text = f"{_SCANS[combined]}({text}, axis={axis}{_summing(e, op)})"
        if reverse:
            text = f"jnp.flip({text}, axis={axis})"
    e.put(op.result, e.bind(text, term, op.result.name))


def scan_any(e: Emission, op: Op) -> Steps:
    """Any combination of each element with those before it."""
    yield from _combiner(e, op, "combine")
    combine = e.memo["combiner", op].text
    terms = _operands(e, op)
    helper = e.writer.helper("_scan")
    values = ", ".join(each.text for each in terms)
    axis = terms[0].rank + _along(op)
    text = f"{helper}({combine}, ({values},), {axis}, {op.flag('reverse')})"
    names = e.writer.unpack(text, [each.name or "t" for each in op.results])
    _unpacked(e, op, names, terms[0], reduces=False)


def _map(e: Emission, op: Op) -> Steps:
    """The region on whole tensors: its ops work element by element."""
    region = op.regions[0]
    if any(inner.regions for inner in region.ops):
        raise e.refuse(op, "branches or loops for each element, which has no form in JAX yet")
    terms = _operands(e, op)
    for argument, term in zip(region.arguments, terms, strict=True):
        e.put(argument, Term(text=term.text, element=term.element))
    ends = yield Enter(region)
    for end, result in zip(ends, op.results, strict=True):
        assert isinstance(end, Term)
        if end.number is not None:
            e.put(result, constant(end.number, end.element, shape_of(result.type)))
        else:
            e.put(result, terms[0].like(end.text, element=end.element))


RULES: Mapping[str, Rule] = MappingProxyType(
    {"tt.reduce": _reduce, "tt.scan": _scan, "tt.map_elementwise": _map}
)
