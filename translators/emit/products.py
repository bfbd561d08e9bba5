"""Products of matrices."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.terms import BatchAxis, Term, common_batch, dtype
from translators.emit.whole_products import whole_operands
from translators.graph.graph import Op
from translators.graph.types import BF16, F32, F64, ElementType, FloatType, element_of, shape_of

# What keeps at least the bits that Triton promises: `tf32` has 11, three passes of bf16 about 16.
_PRECISION = {"tf32": "HIGH", "bf16x3": "HIGH", "ieee": "HIGHEST", "tf32x3": "HIGHEST"}


def product(e: Emission, op: Op, *, summed: BatchAxis | None = None, hint: str = "") -> Term:
    """The product of the first two operands, summed over a batch axis where one is named."""
    left, right = e.term(op.operands[0]), e.term(op.operands[1])
    left, right = _exact(e, left), _exact(e, right)
    element = element_of(op.result.type)
    assert element is not None
    rank = len(left.shape)
    shape = shape_of(op.result.type)
    batch = (left.batch | right.batch) - {summed}
    letters = _letters(sorted(left.batch | right.batch, key=lambda each: -each.place))
    stacked = "abc"[: rank - 2]
    out = "".join(letters[axis] for axis in _ordered_axes(batch))
    whole = whole_operands(e, (left, right), summed, letters)
    if whole is not None:
        inputs = ",".join(each.letters for each in whole)
        operands = [each.text for each in whole]
    else:
        left, right = e.spread(left), e.spread(right)
        axes = ["".join(letters[axis] for axis in _ordered(each)) for each in (left, right)]
        inputs = f"{axes[0]}{stacked}mk,{axes[1]}{stacked}kn"
        operands = [_squeezed(e, each) for each in (left, right)]
    result = _result_element(element)
    options = f"{_precision(op)}preferred_element_type={dtype(result)}"
    if inputs == "mk,kn" and not out:
        text = f"jnp.dot({operands[0]}, {operands[1]}, {options})"
    else:
        formula = f"{inputs}->{out}{stacked}mn"
        text = f'jnp.einsum("{formula}", {operands[0]}, {operands[1]}, {options})'
    name = e.writer.assign(text, hint)
    made = Term(text=name, element=result, shape=shape, dims=(True,) * rank, batch=batch)
    missing = _missing_places(batch)
    if missing:
        # einsum gives only the axes named; others of size 1 keep the places of the outer ones.
        name = e.writer.assign(f"{made.text}.reshape{made.array_shape}")
        made = made.like(name)
    return made


def _result_element(element: ElementType) -> ElementType:
    if isinstance(element, FloatType) and element.width < 32:
        return F32
    return element


def _precision(op: Op) -> str:
    operands = [element_of(each.type) for each in op.operands[:2]]
    if F32 not in operands and F64 not in operands:
        return ""
    wanted = _PRECISION.get(op.text("inputPrecision", "ieee"), "HIGHEST")
    return f"precision=lax.Precision.{wanted}, "


def _exact(e: Emission, term: Term) -> Term:
    """An operand in a type that every backend multiplies, and that holds the same numbers."""
    if isinstance(term.element, FloatType) and term.element.width == 8:
        return e.bind(f"{_text(term)}.astype(jnp.bfloat16)", term, element=BF16)
    return term


def _text(term: Term) -> str:
    return term.text if term.number is None else f"{dtype(term.element)}({term.text})"


def _ordered(term: Term) -> list[BatchAxis]:
    return _ordered_axes(term.batch)


def _ordered_axes(batch: frozenset[BatchAxis]) -> list[BatchAxis]:
    return sorted(batch, key=lambda each: -each.place)


def _letters(axes: list[BatchAxis]) -> dict[BatchAxis, str]:
    return {axis: "pqrstuvwxyz"[index] for index, axis in enumerate(axes)}


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
