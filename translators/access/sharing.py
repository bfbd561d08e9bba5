"""Whether programs touch what other programs write.

A kernel's programs may run in any order, or all at once op by op, only if none of them reads or
writes an element that another one writes. That is found out by listing the elements that each
program touches; atomic additions do not count against one another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from translators.access.analysis import Access, Analysis
from translators.access.expression import (
    Affine,
    Derivation,
    Derived,
    Digit,
    Iteration,
    Lane,
    Leaf,
    ProgramId,
    Symbol,
    derived_in,
    leaves,
)
from translators.access.masks import Mask
from translators.access.states import Pointer
from translators.graph.graph import Op

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_READS = frozenset(
    (
        *("tt.load", "tt.atomic_load", "tt.atomic_poll"),
        *("tt.descriptor_load", "tt.descriptor_gather"),
    )
)
# Elements that an access may have to list; of larger launches some programs are looked at.
_MOST = 1 << 22
_SOME = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two ops with which different programs touch one element, or may.

    Attributes:
      write: the op that writes.
      other: the op that reads or writes it too.
      buffer: the index of the array's argument.
      known: whether that was found, rather than not ruled out.
    """

    write: Op
    other: Op
    buffer: int
    known: bool


def conflict_between_programs(
    analysis: Analysis, aliases: Mapping[int, int] | None = None
) -> Conflict | None:
    """A pair of ops that makes the order of programs matter; `None` if there is none.

    That one op writes an element twice is no such pair: the later program's write counts. A pair
    of which that is known comes before those of which data decide it.

    Args:
      analysis: of a kernel in terms of program ids.
      aliases: arguments that are the same array as another one, with that one.
    """
    by_buffer: dict[int, list[Access]] = {}
    for access in analysis.accesses:
        if access.never:
            continue
        if not isinstance(access.pointer, Pointer):
            continue  # of pointers into one array or another, each is looked at where it is made
        buffer = (aliases or {}).get(access.pointer.argument, access.pointer.argument)
        by_buffer.setdefault(buffer, []).append(access)
    open_question = None
    for buffer, accesses in by_buffer.items():
        found = _conflict(analysis, buffer, accesses)
        if found is not None and found.known:
            return found
        open_question = open_question or found
    return open_question


def _conflict(analysis: Analysis, buffer: int, accesses: Sequence[Access]) -> Conflict | None:
    writes = [each for each in accesses if each.op.name not in _READS]
    if not writes or len(accesses) == 1 or all(map(_adds, accesses)):
        return None
    if max(analysis.launch.grid) == 1:
        return None
    open_question = None
    listed: dict[int, tuple[Array, Array, Array] | None] = {}
    for write in writes:
        for other in accesses:
            if other is write or (_adds(write) and _adds(other)):
                continue
            for each in (write, other):
                if each.number not in listed:
                    listed[each.number] = _touched(analysis, each)
            one, two = listed[write.number], listed[other.number]
            found = Conflict(
                write=write.op,
                other=other.op,
                buffer=buffer,
                known=one is not None and two is not None,
            )
            if one is None or two is None:
                open_question = open_question or found
            elif _meet(one, two):
                return found
    return open_question


def _adds(access: Access) -> bool:
    op = access.op
    if op.name == "tt.atomic_rmw":
        return op.text("atomic_rmw_op") in ("add", "fadd")
    return op.name == "tt.descriptor_reduce" and op.text("kind") == "add"


def _meet(one: tuple[Array, Array, Array], two: tuple[Array, Array, Array]) -> bool:
    """Whether an element is touched by two programs, through one op and the other."""
    elements, left, right = np.intersect1d(one[0], two[0], return_indices=True)
    lowest = np.minimum(one[1][left], two[1][right])
    highest = np.maximum(one[2][left], two[2][right])
    return bool(elements.size and (lowest != highest).any())


def _touched(analysis: Analysis, access: Access) -> tuple[Array, Array, Array] | None:
    """The elements that an access touches, with the first and the last program that does.

    Returns:
      `None` where data decide.
    """
    assert isinstance(access.pointer, Pointer)
    grid = analysis.launch.grid
    conditions = [*_conditions(access.guard)]
    if access.mask is not None:
        conditions += _conditions(access.mask)
    conditions += _within_loops(analysis, access)
    expressions = [access.pointer.offset, *conditions]
    if any(isinstance(leaf, Symbol) for leaf in leaves(access.pointer.offset)):
        return None
    # A condition on data may hold: it is taken to.
    expressions = [
        each
        for each in expressions
        if not any(isinstance(leaf, Symbol | Digit) for leaf in leaves(each))
    ]
    counters = _counters(expressions, access)
    lanes = int(np.prod([_extent(each) for each in counters if isinstance(each, Lane)], dtype=int))
    rounds = int(
        np.prod([_extent(each) for each in counters if isinstance(each, Iteration)], dtype=int)
    )
    programs = [_chosen(size, grid, lanes * rounds) for size in grid]
    shape = [len(each) for each in programs]
    rank = 3 + len(counters)
    known: dict[Leaf, Array] = {}
    for axis, numbers in enumerate(programs):
        known[ProgramId(axis=axis, extent=grid[axis])] = _along(numbers, axis, rank)
    for place, counter in enumerate(counters):
        known[counter] = _along(np.arange(_extent(counter)), 3 + place, rank)
        shape.append(_extent(counter))
    offset = np.broadcast_to(_value(expressions[0], known), shape)
    inside = np.ones((), np.bool_)
    for condition in expressions[1:]:
        inside = inside & (_value(condition, known) >= 0)
    inside = np.broadcast_to(inside, shape)
    number = np.zeros((), np.int64)
    for axis in range(3):
        number = number * grid[axis] + known[ProgramId(axis=axis, extent=grid[axis])]
    program = np.broadcast_to(number, shape)
    return _by_element(offset[inside], program[inside])


def _by_element(elements: Array, programs: Array) -> tuple[Array, Array, Array]:
    order = np.lexsort((programs, elements))
    elements, programs = elements[order], programs[order]
    found, first = np.unique(elements, return_index=True)
    last = np.append(first[1:], elements.size) - 1
    return found, programs[first], programs[last]


def _chosen(size: int, grid: tuple[int, int, int], each: int) -> Array:
    """The ids along an axis to look at: all, or those at both ends where there are too many."""
    if int(np.prod(grid, dtype=int)) * each <= _MOST or size <= 2 * _SOME:
        return np.arange(size)
    return np.concatenate([np.arange(_SOME), np.arange(size - _SOME, size)])


def _conditions(mask: Mask) -> Iterator[Affine]:
    for bound in mask.bounds:
        yield bound.comparison.expression
    for predicate in mask.predicates:
        yield predicate.expression


def _within_loops(analysis: Analysis, access: Access) -> Iterator[Affine]:
    """What is at least zero in the iterations that the loops around an access have."""
    assert isinstance(access.pointer, Pointer)
    moving = set(leaves(access.pointer.offset))
    for number in access.loops:
        loop = analysis.loops.get(number)
        if loop is None:
            continue
        last = loop.upper.plus(-1)
        # Of a loop that does not move the access only matters whether it is come to.
        yield last - (loop.counter if loop.iteration in moving else loop.lower)


def _counters(expressions: Iterable[Affine], access: Access) -> list[Lane | Iteration]:
    """What counts besides programs: the lanes, and the iterations that move the access."""
    found: dict[Lane | Iteration, None] = {}
    for expression in expressions:
        for leaf in leaves(expression):
            if isinstance(leaf, Lane | Iteration):
                found[leaf] = None
    return list(found)


def _extent(counter: Lane | Iteration) -> int:
    return counter.extent


def _along(numbers: Array, axis: int, rank: int) -> Array:
    shape = [1] * rank
    shape[axis] = len(numbers)
    return np.asarray(numbers, np.int64).reshape(shape)


def _value(expression: Affine, known: Mapping[Leaf, Array]) -> Array:
    """The expression for all counters at once."""
    parts: dict[Derived, Array] = {}

    def total(each: Affine) -> Array:
        result: Array = np.asarray(each.offset, np.int64)
        for variable, factor in each.terms:
            here = parts[variable] if isinstance(variable, Derived) else known[variable]
            result = result + factor * here
        return result

    for derived in derived_in(expression):
        left, right = total(derived.left), total(derived.right)
        match derived.derivation:
            case Derivation.FLOOR_DIVIDE:
                parts[derived] = left // right
            case Derivation.REMAINDER:
                parts[derived] = left % right
            case Derivation.MINIMUM:
                parts[derived] = np.minimum(left, right)
            case Derivation.MAXIMUM:
                parts[derived] = np.maximum(left, right)
    return total(expression)
