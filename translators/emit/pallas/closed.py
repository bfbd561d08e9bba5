"""Masks of loads that keep out only what is never written.

Where no op looks at more than one position of a dimension, what a load finds beyond the edge goes
nowhere if every write is masked by the same edge: the mask of the load may as well not be there.
An edge that moves with a loop is another one in the next iteration, into which values are carried.
"""

from collections.abc import Iterator

from translators.access.analysis import Access, Analysis
from translators.access.expression import Affine, Iteration, Lane, Leaf, Symbol, leaves
from translators.access.states import Comparison
from translators.emit.classes import Classes, Place
from translators.graph.graph import Op, Region, walk
from translators.graph.types import shape_of

_READS = ("tt.load", "tt.atomic_load")


def common_bounds(analysis: Analysis, classes: Classes) -> dict[Place, set[object]]:
    """For each class of dimensions the comparisons, as `alike` gives them, that mask every write.

    Args:
      analysis: of the kernel.
      classes: which of its dimensions are one and the same.
    """
    common: dict[Place, set[object]] = {}
    for access in analysis.accesses:
        if access.op.name in _READS:
            continue
        own: dict[int, set[object]] = {}
        for axis, comparison in _parts(access):
            own.setdefault(axis, set()).add(alike(comparison.expression))
        for axis, place in _places(access, classes):
            parts = own.get(axis, set())
            common[place] = common[place] & parts if place in common else parts
    return common


def needless_bounds(analysis: Analysis, classes: Classes) -> dict[Op, frozenset[Affine]]:
    """For each load the parts of its mask that need not be asked for, as `expression >= 0`.

    Args:
      analysis: of the kernel.
      classes: which of its dimensions are one and the same.
    """
    looped = _looped(analysis)
    common = common_bounds(analysis, classes)
    found: dict[Op, frozenset[Affine]] = {}
    for access in analysis.accesses:
        if access.op.name != "tt.load":
            continue
        places = dict(_places(access, classes))
        needless = {
            comparison.expression
            for axis, comparison in _parts(access)
            if axis in places
            and classes.is_free(places[axis])
            and not any(_moves_in_loops(each, looped) for each in leaves(comparison.expression))
            and alike(comparison.expression) in common.get(places[axis], ())
        }
        found[access.op] = frozenset(needless)
    return found


def _looped(analysis: Analysis) -> set[Op | Region]:
    """The ops inside of loops, and the regions of loops."""
    loops = (op for op in walk(analysis.kernel.body) if op.name in ("scf.for", "scf.while"))
    regions = [region for op in loops for region in op.regions]
    return {*regions, *(inner for region in regions for inner in walk(region))}


def _moves_in_loops(leaf: Leaf, looped: set[Op | Region]) -> bool:
    """Whether a variable may be another one where a value is written than where it was read."""
    return isinstance(leaf, Iteration) or (isinstance(leaf, Symbol) and leaf.value.owner in looped)


def _places(access: Access, classes: Classes) -> Iterator[tuple[int, Place]]:
    """The axes of the lanes with the classes of their dimensions, of which two may be one."""
    pointers = access.op.operands[0]
    for axis, size in enumerate(shape_of(pointers.type)):
        if size > 1:
            yield axis, classes.of((pointers, axis))


def _parts(access: Access) -> Iterator[tuple[int, Comparison]]:
    """The comparisons of a mask along one axis of the lanes each, with that axis."""
    if access.mask is None:
        return
    comparisons = [each.comparison for each in access.mask.bounds]
    for comparison in (*comparisons, *access.mask.predicates):
        lanes = {each for each in leaves(comparison.expression) if isinstance(each, Lane)}
        if len(lanes) == 1:
            yield lanes.pop().axis, comparison


def alike(expression: Affine) -> object:
    """Equal for comparisons that are the same but for the axis that the lanes are along."""
    terms = tuple(
        (("lane", variable.extent) if isinstance(variable, Lane) else variable, factor)
        for variable, factor in expression.terms
    )
    return (frozenset(terms), expression.offset)
