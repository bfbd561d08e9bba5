"""How many iterations loops have at most, as the arrays that they go through say.

Where data decide how often a loop runs, its accesses still have to stay in their arrays: an access
that each iteration makes, and that moves on with the iterations, leaves its dimension where there
are too many of them. It is as true as that the kernel does not leave its arrays.
"""

from collections.abc import Mapping

from translators.access.analysis import Access, Analysis, analyze
from translators.access.delinearize import Dimension, Position
from translators.access.expression import Affine, Lane, leaves, of, total
from translators.access.launch import Specialization
from translators.access.loops import Loop
from translators.access.program_axes import ProgramAxes
from translators.graph.graph import Module


def analyze_within_arrays(
    module: Module, launch: Specialization, axes: ProgramAxes | None = None
) -> Analysis:
    """Like `analyze`, with loops that have no more iterations than fit into the arrays."""
    analysis = analyze(module, launch, axes)
    most = most_iterations(analysis)
    return analyze(module, launch, axes, most) if most else analysis


def most_iterations(analysis: Analysis) -> Mapping[int, int]:
    """For loops with as many iterations as data say how many there are at most, by number."""
    found: dict[int, int] = {}
    for access in analysis.accesses:
        if len(access.loops) != 1 or not access.guard.always:
            continue
        (number,) = access.loops
        loop = analysis.loops.get(number)
        if loop is None or loop.iteration.fixed or not isinstance(access.position, Position):
            continue
        for dimension in access.position.dimensions:
            most = _most(access, dimension, loop)
            if most is not None:
                found[number] = min(most, found.get(number, most))
    return found


def _most(access: Access, dimension: Dimension, loop: Loop) -> int | None:
    """How many iterations an access stays in a dimension for; `None` where that is not known."""
    step = dimension.index.coefficient(loop.iteration)
    others = dimension.index - of(loop.iteration).times(step)
    if step <= 0 or loop.iteration in leaves(others):
        return None
    # The lane that goes furthest of those of which it is known that they take part.
    everyone = access.mask is None or access.mask.always
    if not everyone and not _first_takes_part(access, loop):
        return None
    lanes = total((each, factor) for each, factor in others.terms if isinstance(each, Lane))
    furthest = lanes.interval.high if everyone else 0
    rest = _at_first_lane(others)
    if any(isinstance(each, Lane) for each in leaves(rest)):
        return None
    return max(0, (dimension.size - 1 - furthest - rest.interval.low) // step + 1)


def _first_takes_part(access: Access, loop: Loop) -> bool:
    """Whether the mask lets the first lane through in every iteration that there is."""
    mask = access.mask
    if mask is None or mask.leftovers or mask.never:
        return mask is None
    going_on = (loop.upper - loop.counter).plus(-1)
    for comparison in (*(each.comparison for each in mask.bounds), *mask.predicates):
        first = _at_first_lane(comparison.expression)
        if any(isinstance(each, Lane) for each in leaves(first)):
            return False
        if max(first.interval.low, (first - going_on).interval.low) < 0:
            return False
    return True


def _at_first_lane(expression: Affine) -> Affine:
    """What it is in the lane of which all positions are 0."""
    kept = ((each, factor) for each, factor in expression.terms if not isinstance(each, Lane))
    return total(kept, expression.offset)
