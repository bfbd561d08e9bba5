"""Masks of loads that keep out only what is never written.

Where no op looks at more than one position of a dimension, what a load finds beyond the edge goes
nowhere if every write is masked by the same edge: the mask of the load may as well not be there.
"""

from collections.abc import Iterator

from translators.access.analysis import Access, Analysis
from translators.access.expression import Affine, Lane, leaves
from translators.access.states import Comparison
from translators.emit.classes import Classes, Place
from translators.graph.graph import Op
from translators.graph.types import shape_of

_READS = ("tt.load", "tt.atomic_load")


def needless_bounds(analysis: Analysis, classes: Classes) -> dict[Op, frozenset[Affine]]:
    """For each load the parts of its mask that need not be asked for, as `expression >= 0`.

    Args:
      analysis: of the kernel.
      classes: which of its dimensions are one and the same.
    """
    writes = [each for each in analysis.accesses if each.op.name not in _READS]
    common: dict[Place, set[object] | None] = {}
    for access in writes:
        own: dict[Place, set[object]] = {}
        for place, comparison in _parts(access, classes):
            own.setdefault(place, set()).add(_alike(comparison.expression))
        for place in _places(access, classes):
            parts = own.get(place, set())
            before = common.get(place)
            common[place] = parts if before is None else before & parts
    found: dict[Op, frozenset[Affine]] = {}
    for access in analysis.accesses:
        if access.op.name != "tt.load":
            continue
        needless = {
            comparison.expression
            for place, comparison in _parts(access, classes)
            if classes.is_free(place)
            and _alike(comparison.expression) in (common.get(place) or set())
        }
        found[access.op] = frozenset(needless)
    return found


def _places(access: Access, classes: Classes) -> Iterator[Place]:
    pointers = access.op.operands[0]
    for axis, size in enumerate(shape_of(pointers.type)):
        if size > 1:
            yield classes.of((pointers, axis))


def _parts(access: Access, classes: Classes) -> Iterator[tuple[Place, Comparison]]:
    """The comparisons of a mask along one dimension each, with that dimension's class."""
    if access.mask is None:
        return
    pointers = access.op.operands[0]
    comparisons = [each.comparison for each in access.mask.bounds]
    for comparison in (*comparisons, *access.mask.predicates):
        lanes = {each for each in leaves(comparison.expression) if isinstance(each, Lane)}
        if len(lanes) == 1:
            yield classes.of((pointers, lanes.pop().axis)), comparison


def _alike(expression: Affine) -> object:
    """Equal for comparisons that are the same but for the axis that the lanes are along."""
    terms = tuple(
        (("lane", variable.extent) if isinstance(variable, Lane) else variable, factor)
        for variable, factor in expression.terms
    )
    return (frozenset(terms), expression.offset)
