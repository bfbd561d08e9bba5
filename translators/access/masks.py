"""Masks as bounds of an array's dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from translators.access.delinearize import Dimension
from translators.access.division import divide
from translators.access.expression import Affine, axes, constant
from translators.access.parts import parts_of
from translators.access.ranges import holds_under
from translators.access.states import Comparison, Condition, Leftover


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A part of a mask that says how far an index may go.

    Attributes:
      dimension: which of the position's dimensions.
      upper: whether it says `index < limit`; otherwise `index >= limit`.
      limit: the same in all lanes.
      edge: whether that is the end of the dimension itself.
      comparison: what it was made of.
    """

    dimension: int
    upper: bool
    limit: Affine
    edge: bool
    comparison: Comparison

    def __str__(self) -> str:
        sign = "<" if self.upper else ">="
        return f"index {self.dimension} {sign} {self.limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Which lanes take part: those for which all parts hold.

    Attributes:
      bounds: parts that bound a dimension.
      predicates: comparisons that do not.
      leftovers: conditions that are no comparisons.
      never: whether no lane takes part.
    """

    bounds: tuple[Bound, ...] = ()
    predicates: tuple[Comparison, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    never: bool = False

    @property
    def always(self) -> bool:
        """Whether every lane takes part, for the sizes at hand."""
        return not (self.bounds or self.predicates or self.leftovers or self.never)

    @property
    def exact_edges(self) -> bool:
        """Whether it lets through just what lies within the array."""
        return not (self.predicates or self.leftovers or self.never) and all(
            each.edge for each in self.bounds
        )


def mask_of(condition: Condition, dimensions: Sequence[Dimension], facts: Sequence[Affine]) -> Mask:
    """The condition as bounds where it has them.

    Args:
      condition: the mask.
      dimensions: of the array; empty if the offset was not taken apart.
      facts: what is at least zero wherever the access is come to.
    """
    bounds: list[Bound] = []
    predicates: list[Comparison] = []
    comparisons = (
        replace(each, expression=part)
        for each in condition.comparisons
        for part in parts_of(each.expression)
    )
    for comparison in comparisons:
        if holds_under(comparison.expression, facts):
            continue
        if not holds_nowhere(comparison.expression, facts):
            bound = _bound(comparison, dimensions)
            if bound is None:
                predicates.append(comparison)
            else:
                bounds.append(bound)
            continue
        return Mask(never=True)
    return Mask(
        bounds=tuple(bounds),
        predicates=tuple(predicates),
        leftovers=condition.leftovers,
        never=condition.never,
    )


def holds_nowhere(expression: Affine, facts: Sequence[Affine]) -> bool:
    """Whether `expression < 0` wherever each fact is at least zero."""
    return holds_under(expression.times(-1).plus(-1), facts)


def _bound(comparison: Comparison, dimensions: Sequence[Dimension]) -> Bound | None:
    expression = comparison.expression
    for number, dimension in enumerate(dimensions):
        index = dimension.index
        moving = axes(index)
        for variable, inside in index.terms:
            outside = expression.coefficient(variable)
            if not outside or outside % inside or (moving and not axes(variable)):
                continue
            factor = outside // inside
            # expression == factor * index + rest
            rest = expression - index.times(factor)
            if axes(rest) or (not moving and rest.value is None):
                continue
            pair = divide(rest, constant(abs(factor)))
            if pair is None:
                continue
            upper = factor < 0
            limit = pair[0].plus(1) if upper else pair[0].times(-1)
            edge = limit.value == (dimension.size if upper else 0)
            return Bound(
                dimension=number, upper=upper, limit=limit, edge=edge, comparison=comparison
            )
    return None
