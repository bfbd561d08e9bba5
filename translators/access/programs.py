"""Finds coordinates of the programs in which positions are sums.

Kernels take their ids apart (`pid // n`, `pid % n`), group tiles for the cache's sake, or count
backwards. `program_axes` finds coordinates that undo this, called digits. That they are a
bijection from the grid to a box, and that a position is a sum of them, is tried on every program
of the grid: it is proved by enumeration.
"""

import re
from collections.abc import Iterable, Iterator
from math import prod

import numpy as np

from translators.access.analysis import Access, Analysis
from translators.access.delinearize import Position
from translators.access.digits import Layout, Pool, best_layout
from translators.access.division import divide
from translators.access.enumeration import laid_out, of_programs
from translators.access.expression import (
    Affine,
    Derivation,
    Digit,
    ProgramId,
    Variable,
    derived_in,
    leaves,
    of,
    total,
)
from translators.access.masks import Mask
from translators.access.program_axes import Block, ProgramAxes
from translators.access.states import Integer, Pointer
from translators.graph.graph import Value

# Where the axes that belong together have more programs, the ids are taken as they are.
MOST_PROGRAMS = 1 << 20
# What other variables are called.
_TAKEN = re.compile(r"(pid|lane|iteration|program)\d+")


def program_axes(analysis: Analysis) -> ProgramAxes:
    """Coordinates in which as many positions as may be are sums, and the fewest of them.

    They are the program ids themselves where nothing else is better. `analyze` takes the result
    to express all that it finds in terms of these coordinates.

    Args:
      analysis: of a kernel in terms of program ids.
    """
    ids = [
        ProgramId(axis=axis, extent=extent)
        for axis, extent in enumerate(analysis.launch.grid)
        if extent > 1
    ]
    needed = list(dict.fromkeys(_parts(_positions(analysis.accesses))))
    wanted = list(dict.fromkeys(_parts(_conditions(analysis))))
    named = _named(analysis)
    blocks: list[Block] = []
    names: list[str] = []
    for group in _together(ids, needed):
        axes = frozenset(each.axis for each in group)
        own = [(each, name) for each, name in named if (_grid_axes(each) or axes) <= axes]
        blocks.append(_block(group, _within(needed, axes), _within(wanted, axes), own, names))
    return ProgramAxes(blocks)


def _positions(accesses: Iterable[Access]) -> Iterator[Affine]:
    for access in accesses:
        if access.never:
            continue
        if isinstance(access.position, Position):
            yield from (each.index for each in access.position.dimensions)
        elif isinstance(access.pointer, Pointer):
            yield access.pointer.offset


def _conditions(analysis: Analysis) -> Iterator[Affine]:
    for access in analysis.accesses:
        for mask in (access.mask or Mask(), access.guard):
            yield from (each.comparison.expression for each in mask.bounds)
            yield from (each.expression for each in mask.predicates)
    for loop in analysis.loops.values():
        yield from (loop.lower, loop.upper)
        if loop.trips is not None:
            yield loop.trips


def _grid_axes(expression: Affine | Variable) -> frozenset[int] | None:
    """The axes of the grid that an expression depends on; `None` if on anything else too."""
    if not isinstance(expression, Affine):
        expression = Affine(terms=((expression, 1),))
    found = set()
    for leaf in leaves(expression):
        if not isinstance(leaf, ProgramId):
            return None
        found.add(leaf.axis)
    return frozenset(found)


def _parts(expressions: Iterable[Affine]) -> Iterator[Affine]:
    """Of each sum the terms that depend on the program alone, also within what is derived."""
    for expression in expressions:
        sums = [expression]
        for derived in derived_in(expression):
            if _grid_axes(derived) is None:
                sums += derived.left, derived.right
        for each in sums:
            part = total(term for term in each.terms if _grid_axes(term[0]) is not None)
            if part.terms:
                yield part


def _named(analysis: Analysis) -> list[tuple[Affine, str]]:
    """What the kernel computes of its ids alone, with its own names."""
    found: list[tuple[Affine, str]] = []
    for value, state in analysis.states.items():
        if isinstance(state, Integer) and _grid_axes(state.expression) is not None:
            found.append((state.expression, _name_of(value)))
    return found


def _name_of(value: Value) -> str:
    name = value.name
    return name if name.isidentifier() and name.isascii() and not _TAKEN.fullmatch(name) else ""


def _together(ids: list[ProgramId], needed: list[Affine]) -> list[list[ProgramId]]:
    """The ids in groups: what is derived of several ids puts them in one."""
    group = {each.axis: {each.axis} for each in ids}
    for expression in needed:
        for derived in derived_in(expression):
            joined = set().union(*(group[axis] for axis in _grid_axes(derived) or ()))
            group.update(dict.fromkeys(joined, joined))
    found: list[list[ProgramId]] = []
    for each in ids:
        if each.axis == min(group[each.axis]):
            found.append([other for other in ids if other.axis in group[each.axis]])
    return found


def _within(parts: Iterable[Affine], axes: frozenset[int]) -> list[Affine]:
    """Of each sum the terms that depend on these axes of the grid alone."""
    found: dict[Affine, None] = {}
    for part in parts:
        own = total(term for term in part.terms if (_grid_axes(term[0]) or frozenset()) <= axes)
        if own.terms:
            found[own] = None
    return list(found)


def _block(
    ids: list[ProgramId],
    needed: list[Affine],
    wanted: list[Affine],
    named: list[tuple[Affine, str]],
    names: list[str],
) -> Block:
    """Lays out the programs of some axes; `names` are those taken, and grows."""
    extents = {each.axis: each.extent for each in ids}
    count = prod(extents.values())
    known = {expression: name for expression, name in reversed(named) if name}
    plain = Layout(
        extents=tuple(extents.values()),
        names=tuple(known.get(of(each), f"pid{each.axis}") for each in ids),
        order=np.arange(min(count, MOST_PROGRAMS)),
    )
    if count > MOST_PROGRAMS:
        digits = _digits(plain, names)
        return Block(ids=tuple(ids), digits=digits, programs=None)
    programs = of_programs(extents)
    layout = plain
    if any(derived_in(each) for each in needed):
        pool = Pool(programs)
        for expression in _candidates(needed):
            pool.add(expression)
        for expression, name in named:
            pool.add(expression, name)
        for each in ids:
            pool.add(of(each), f"pid{each.axis}")
        layout = best_layout(programs, pool.found, plain, needed, wanted)
    digits = _digits(layout, names)
    ordered = laid_out(programs, layout.order, digits)
    return Block(ids=tuple(ids), digits=digits, programs=ordered)


def _candidates(needed: list[Affine]) -> Iterator[Affine]:
    """What may be a digit: sums, what they are derived of, the partners of divisions."""
    for part in needed:
        yield part
        for derived in reversed(derived_in(part)):
            yield of(derived)
            if derived.derivation in (Derivation.FLOOR_DIVIDE, Derivation.REMAINDER):
                pair = divide(derived.left, derived.right)
                yield from pair or ()
            yield derived.left
            yield derived.right


def _digits(layout: Layout, names: list[str]) -> tuple[Digit, ...]:
    digits = []
    for extent, name in zip(layout.extents, layout.names, strict=True):
        axis = len(names)
        base = name or f"program{axis}"
        unique, number = base, 2
        while unique in names:
            unique, number = f"{base}_{number}", number + 1
        names.append(unique)
        digits.append(Digit(axis=axis, extent=extent, name=unique))
    return tuple(digits)
