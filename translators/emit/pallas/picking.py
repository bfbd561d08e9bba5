"""Elements at positions of their own along one dimension, picked out of all of it.

A vector unit has no way to look up an element for each row. Where the block has all of the
dimension, each position is compared with the one that is wanted instead.
"""

from dataclasses import dataclass, replace
from math import prod

from translators.access.delinearize import Position
from translators.access.expression import Affine, constant
from translators.emit.affine import affine_term
from translators.emit.pallas.emission import StepEmission, TooLargeError
from translators.emit.terms import PointerTerm, Term, common_batch, dtype
from translators.emit.terms import constant as number
from translators.emit.tiling import Digit, Span, span_of
from translators.graph.graph import Op
from translators.graph.types import I1, FloatType

# Elements that are compared for one access.
_MOST = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """An access that goes to one position of a dimension in each of its lanes.

    Attributes:
      spans: what it touches, where it is taken to go to all of the dimension along a last axis of
        its own.
      shape: that of its lanes with this axis.
      index: the position, in each lane.
    """

    spans: tuple[Span, ...]
    shape: tuple[int, ...]
    index: Affine


def pick_of(e: StepEmission, op: Op, pointer: PointerTerm, shape: tuple[int, ...]) -> Pick | None:
    """The access as a pick along one dimension; `None` where it is none.

    Where all dimensions count, and the access is of a single element, it picks along the last.

    Raises:
      TooLargeError: it compares too much.
    """
    access = e.accesses.get(op)
    if access is None or not isinstance(access.position, Position) or pointer.alternatives:
        return None
    state = e.buffers.states[pointer.buffer]
    if pointer.pointee != state.element:
        return None
    dimensions = access.position.dimensions
    spans = [span_of(e, each) for each in dimensions]
    missing = [place for place, span in enumerate(spans) if span is None]
    if not missing and not any(span.digits for span in spans if span is not None):
        missing = [len(spans) - 1]
    if len(missing) != 1:
        return None
    (place,) = missing
    dimension = dimensions[place]
    digit = Digit(axis=len(shape), unit=1, extent=dimension.size)
    spans[place] = Span(
        dimension=replace(dimension, index=constant(0)),
        start=constant(0),
        interval=constant(0).interval,
        digits=(digit,) if dimension.size > 1 else (),
        length=dimension.size,
    )
    wider = (*shape, dimension.size)
    rows = prod(axis.extent for axis in e.axes)
    found = tuple(span for span in spans if span is not None)
    taken = [(digit.axis, digit.unit) for span in found for digit in span.digits]
    if len(set(taken)) != len(taken):
        return None
    if prod(wider) * rows > _MOST:
        raise TooLargeError(
            f"`{op.name}` compares {prod(wider) * rows} positions with those that it goes to in "
            f"`{state.fact.name}`",
            op.location,
        )
    return Pick(spans=found, shape=wider, index=dimension.index)


def picks(e: StepEmission, pick: Pick) -> Term:
    """For each lane and position whether it is the one that is wanted."""
    shape = pick.shape[:-1]
    index = affine_term(e, pick.index, shape)
    index = e.lifted(index, shape) if not index.shape else index
    wanted = replace(index, shape=pick.shape, dims=(*index.dims, False))
    if not index.bare:
        wanted = wanted.like(e.writer.assign(f"{index.text}[..., None]"))
    places = e.range(pick.shape[-1], len(shape), len(pick.shape))
    return Term(
        text=e.writer.assign(f"{places.text} == {wanted.text}"),
        element=I1,
        shape=pick.shape,
        dims=(*wanted.dims[:-1], True),
        batch=common_batch((wanted,)),
    )


def picked(e: StepEmission, pick: Pick, whole: Term, hint: str) -> Term:
    """What stands at the position that is wanted.

    Args:
      e: the emission.
      pick: the access.
      whole: all of the dimension, of shape `pick.shape`.
      hint: what to call it.
    """
    zero = 0.0 if isinstance(whole.element, FloatType) else 0
    chosen = e.chosen(picks(e, pick), whole, number(zero, whole.element, pick.shape))
    chosen = e.spread(chosen)
    text = f"jnp.sum({chosen.text}, axis=-1, dtype={dtype(chosen.element)})"
    return chosen.like(e.writer.assign(text, hint), shape=pick.shape[:-1], dims=chosen.dims[:-1])
