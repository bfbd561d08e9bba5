"""Index expressions as text."""

from collections.abc import Iterable

from translators.access.expression import (
    Affine,
    Derivation,
    Digit,
    Interval,
    Iteration,
    Lane,
    ProgramId,
    Symbol,
    Variable,
    derived_in,
)
from translators.emit.emission import Emission, UnsupportedError
from translators.emit.terms import (
    BatchAxis,
    PointerTerm,
    Term,
    common_batch,
    common_dims,
    constant,
    typed,
)
from translators.graph.types import I32, I64

# Programs that a table of program ids may list.
_LONGEST_TABLE = 4096
_I32 = Interval(I32.smallest, I32.largest)


class TableError(Exception):
    """The programs would have to be listed one by one, and there are too many."""


def affine_term(
    e: Emission,
    expression: Affine,
    shape: tuple[int, ...] = (),
    hint: str = "",
    *,
    low: bool = False,
) -> Term:
    """The integer that an expression is in each lane of a tensor of that shape.

    Args:
      e: the emission.
      expression: over program ids, lanes, open loops and values that are emitted.
      shape: that of the tensor whose lanes it speaks of.
      hint: what to call it.
      low: whether only the low 32 bits matter.
    """
    parts: dict[Variable, Term] = {}
    for derived in derived_in(expression):
        left = _sum(e, derived.left, shape, parts, low=False)
        right = _sum(e, derived.right, shape, parts, low=False)
        one, other = left.text, f"({right.text})"
        match derived.derivation:
            case Derivation.FLOOR_DIVIDE:
                text = f"{typed(left)} // {other}"
            case Derivation.REMAINDER:
                text = f"{typed(left)} % {other}"
            case Derivation.MINIMUM:
                text = f"jnp.minimum({one}, {other})"
            case Derivation.MAXIMUM:
                text = f"jnp.maximum({one}, {other})"
        parts[derived] = _combined(e, text, (left, right), shape)
    return _sum(e, expression, shape, parts, hint=hint, low=low)


def _combined(e: Emission, text: str, terms: Iterable[Term], shape: tuple[int, ...]) -> Term:
    given = list(terms)
    wide = any(each.element == I64 for each in given)
    return Term(
        text=e.writer.assign(text),
        element=I64 if wide else I32,
        shape=shape,
        dims=common_dims(given) if shape else (),
        batch=common_batch(given),
    )


def _sum(
    e: Emission,
    expression: Affine,
    shape: tuple[int, ...],
    parts: dict[Variable, Term],
    *,
    hint: str = "",
    low: bool,
) -> Term:
    # What a step of a grid counts are places in arrays, and TPUs have no integers of 64 bits.
    element = I32 if low or e.blocked or expression.interval.within(_I32) else I64
    if not expression.terms:
        return constant(expression.offset, element, shape)
    text, terms = "", []
    for variable, factor in expression.terms:
        term = parts.get(variable) or leaf_term(e, variable, shape)
        if term.element == I64 and element == I32:
            term = e.bind(f"{typed(term)}.astype(jnp.int32)", term, element=I32)
        elif term.element != element and element == I64:
            term = e.bind(f"{typed(term)}.astype(jnp.int64)", term, element=I64)
        terms.append(term)
        word = term.text if abs(factor) == 1 else f"{term.text} * {abs(factor)}"
        if text:
            text += f" - {word}" if factor < 0 else f" + {word}"
        else:
            text = f"-{word}" if factor < 0 else word
    if expression.offset:
        text += f" + {expression.offset}" if expression.offset > 0 else f" - {-expression.offset}"
    elif len(terms) == 1 and expression.terms[0][1] == 1:
        return terms[0]
    return Term(
        text=e.writer.assign(text, hint),
        element=element,
        shape=shape,
        dims=common_dims(terms) if shape else (),
        batch=common_batch(terms),
    )


def leaf_term(e: Emission, variable: Variable, shape: tuple[int, ...]) -> Term:
    """A variable that is not derived, in each lane of a tensor of that shape."""
    match variable:
        case ProgramId() | Digit():
            counted = e.programs.get(variable)
            if counted is None:
                return e.lifted(tabulated(e, variable), shape)
            return e.lifted(e.counted(counted), shape)
        case Iteration(loop=loop):
            return e.lifted(e.counted(e.iterations[loop]), shape)
        case Lane(axis=axis, extent=extent):
            return e.range(extent, axis, len(shape))
        case Symbol():
            return _symbol_term(e, variable, shape)
    raise AssertionError(variable)


def tabulated(e: Emission, program_id: Variable) -> Term:
    """A program id that is no sum of the coordinates, from a table.

    Raises:
      TableError: the table would be too long to be read.
      UnsupportedError: there can be no table, as a step of a grid sees its own program alone.
    """
    if e.blocked:
        raise UnsupportedError(
            f"`{program_id}` follows from the step of the grid by a table alone", e.writer.location
        )
    axes = e.analysis.axes
    assert axes is not None
    assert isinstance(program_id, ProgramId)
    key = ("table", program_id, *e.axes)
    if key not in e.memo:
        table = axes.table[..., program_id.axis]
        if table.size > _LONGEST_TABLE:
            raise TableError
        counted = [e.programs[each] for each in axes.axes]
        places = [each.place for each in counted if isinstance(each, BatchAxis)]
        # The dimensions of the table in the order of those of the array.
        order = sorted(range(table.ndim), key=lambda each: -places[each])
        table = table.transpose(order)
        moving = []
        for place, axis in enumerate(order):
            if (table != table.take([0], axis=place)).any():
                moving.append(counted[axis])
            else:
                table = table.take([0], axis=place)
        batch = frozenset(each for each in moving if isinstance(each, BatchAxis))
        made = Term(text="", element=I32, batch=batch)
        numbers = ", ".join(map(str, table.reshape(-1).tolist()))
        text = f"jnp.array([{numbers}], jnp.int32).reshape({made.array_shape})"
        e.memo[key] = made.like(e.writer.assign(text, str(program_id)))
    return e.memo[key]


def _symbol_term(e: Emission, symbol: Symbol, shape: tuple[int, ...]) -> Term:
    emitted = e.found(symbol.value)
    term = emitted.offset if isinstance(emitted, PointerTerm) else e.term(symbol.value)
    rank = len(shape)
    if term.bare or not term.shape:
        scalar = Term(text=term.text, element=term.element, batch=term.batch, number=term.number)
        return e.lifted(scalar, shape)
    # A dimension that the term has may still hold the same all along: the analysis may know more.
    kept = [real and axis is not None for axis, real in zip(symbol.lanes, term.dims, strict=True)]
    places = [
        axis for axis, keep in zip(symbol.lanes, kept, strict=True) if keep and axis is not None
    ]
    lead = term.lead
    text = term.text
    # The dimensions that matter, in the order in which the other tensor has them.
    if not all(kept):
        front = term.rank - len(term.dims)
        index = [":"] * max(0, front)
        shown = kept if front >= 0 else kept[-term.rank :]
        index += [":" if keep else "0" for keep in shown]
        text = e.writer.assign(f"{text}[{', '.join(index)}]")
    if places != sorted(places):
        order = sorted(range(len(places)), key=lambda each: places[each])
        axes = (*range(lead), *(lead + each for each in order))
        text = e.writer.assign(f"{text}.transpose({', '.join(map(str, axes))})")
        places.sort()
    if places != list(range(rank - len(places), rank)) or (lead and len(places) != rank):
        index = [":"] * lead + [":" if axis in places else "None" for axis in range(rank)]
        text = e.writer.assign(f"{text}[{', '.join(index)}]")
    dims = tuple(axis in places for axis in range(rank))
    return Term(text=text, element=term.element, shape=shape, dims=dims, batch=term.batch)
