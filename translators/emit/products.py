"""Products of matrices."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from translators.emit.emission import Emission, RetryError, Rule
from translators.emit.terms import BatchAxis, Term, common_batch, dtype
from translators.emit.whole_products import whole_operands
from translators.graph.graph import Op
from translators.graph.types import BF16, F32, F64, ElementType, FloatType, element_of, shape_of


def product(
    e: Emission,
    op: Op,
    *,
    summed: BatchAxis | None = None,
    outside: Mapping[BatchAxis, BatchAxis] | None = None,
    hint: str = "",
) -> Term:
    """The product of the first two operands.

    Args:
      e: the emission.
      op: the product.
      summed: a batch axis along which the products are summed.
      outside: for the other batch axes what they are in the result, if not themselves.
      hint: what to call it.
    """
    left, right = e.term(op.operands[0]), e.term(op.operands[1])
    left, right = _exact(e, left), _exact(e, right)
    element = element_of(op.result.type)
    assert element is not None
    rank = len(left.shape)
    axes = _ordered(left.batch | right.batch)
    letters = {axis: "pqrstuvwxyz"[index] for index, axis in enumerate(axes)}
    stacked = "abc"[: rank - 2]
    kept = [axis for axis in axes if axis is not summed]
    out = "".join(letters[axis] for axis in kept)
    whole = whole_operands(e, (left, right), summed, letters)
    if whole is None and summed is not None and e.blocked:
        # The blocks of one product after another are less than all of them set apart.
        raise RetryError
    if whole is not None:
        operands = [(each.text, each.letters) for each in whole]
    else:
        ends = (f"{stacked}mk", f"{stacked}kn")
        operands = [
            _named(e, e.spread(each), letters, end)
            for each, end in zip((left, right), ends, strict=True)
        ]
    shared = [each for each in letters.values() if all(each in named for _, named in operands)]
    shared = [each for each in shared if each in out]
    operands = [_stacked_first(e, *each, shared + list(stacked)) for each in operands]
    result = _result_element(element)
    options = f"{_precision(e, op)}preferred_element_type={dtype(result)}"
    (one, first), (other, second) = operands
    form = f"{first},{second}->{out}{stacked}mn"
    helper = e.product_helper(op)
    if helper:
        text = f'{helper}("{form}", {one}, {other})'
    elif form == "mk,kn->mn":
        text = f"jnp.dot({one}, {other}, {options})"
    else:
        text = f'jnp.einsum("{form}", {one}, {other}, {options})'
    batch = frozenset((outside or {}).get(axis, axis) for axis in kept)
    made = Term(
        text=e.writer.assign(text, hint),
        element=result,
        shape=shape_of(op.result.type),
        dims=(True,) * rank,
        batch=batch,
    )
    if _missing_places(batch):
        # einsum gives only the axes named; others of size 1 keep the places of the outer ones.
        made = made.like(e.writer.assign(f"{made.text}.reshape{made.array_shape}"))
    return made


def _named(e: Emission, term: Term, letters: Mapping[BatchAxis, str], end: str) -> tuple[str, str]:
    """The array without dimensions that it does not move along, and what the others are."""
    named = "".join(letters[axis] for axis in _ordered(term.batch))
    return _squeezed(e, term), f"{named}{end}"


def _stacked_first(e: Emission, text: str, letters: str, shared: Sequence[str]) -> tuple[str, str]:
    """The operand with what both have in front, as a stack of matrices lies on every backend."""
    front = [each for each in shared if each in letters]
    order = [*front, *(each for each in letters if each not in front)]
    if "".join(order) == letters:
        return text, letters
    axes = ", ".join(str(letters.index(each)) for each in order)
    return e.writer.assign(f"{text}.transpose({axes})"), "".join(order)


def _result_element(element: ElementType) -> ElementType:
    if isinstance(element, FloatType) and element.width < 32:
        return F32
    return element


def _precision(e: Emission, op: Op) -> str:
    operands = [element_of(each.type) for each in op.operands[:2]]
    if F32 not in operands and F64 not in operands:
        return ""
    wanted = e.PRECISIONS.get(op.text("inputPrecision", "ieee"), "HIGHEST")
    return f"precision=lax.Precision.{wanted}, "


def _exact(e: Emission, term: Term) -> Term:
    """An operand in a type that every backend multiplies, and that holds the same numbers."""
    if isinstance(term.element, FloatType) and term.element.width == 8:
        return e.bind(f"{_text(term)}.astype(jnp.bfloat16)", term, element=BF16)
    return term


def _text(term: Term) -> str:
    return term.text if term.number is None else f"{dtype(term.element)}({term.text})"


def _ordered(batch: frozenset[BatchAxis]) -> list[BatchAxis]:
    return sorted(batch, key=lambda each: -each.place)


def _missing_places(batch: frozenset[BatchAxis]) -> bool:
    places = {each.place for each in batch}
    return bool(places) and len(places) != max(places) + 1


def _squeezed(e: Emission, term: Term) -> str:
    """The array without the dimensions of 1 that stand for axes which it does not have."""
    places = {each.place for each in term.batch}
    lead = term.lead
    missing = [lead - 1 - place for place in range(lead) if place not in places]
    if not missing:
        return term.text
    index = ", ".join("0" if axis in missing else ":" for axis in range(lead))
    return e.writer.assign(f"{term.text}[{index}]")


def added(e: Emission, op: Op, total: Term, addend: Term) -> Term:
    """The product plus the third operand, in the element type of the result."""
    element = element_of(op.result.type)
    assert element is not None
    parts = [total]
    text = total.text
    if addend.number != 0:
        parts.append(addend)
        text = f"{text} + {addend.text}"
    if total.element != element:
        text = f"({text}).astype({dtype(element)})"
    if len(parts) == 1 and total.element == element:
        return total
    return Term(
        text=e.writer.assign(text, op.result.name),
        element=element,
        shape=total.shape,
        dims=total.dims,
        batch=common_batch(parts),
    )


def _dot(e: Emission, op: Op) -> None:
    addend = e.term(op.operands[2])
    hint = op.result.name if addend.number == 0 else ""
    e.put(op.result, added(e, op, product(e, op, hint=hint), addend))


RULES: Mapping[str, Rule] = MappingProxyType({"tt.dot": _dot})
