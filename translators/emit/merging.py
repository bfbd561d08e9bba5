"""Programs merged into one with longer tensors, where blocks are no more than a way to divide.

A Triton kernel divides an array into blocks, one for each program: `pid * BLOCK + arange(BLOCK)`.
Where no op sees more than one element along such a block at a time, the blocks can as well be one:
`arange(N)`. What comes out is again a kernel, of fewer programs, that does the same; written as
JAX it speaks of whole arrays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from translators.access.analysis import Access, Analysis
from translators.access.delinearize import Position
from translators.access.expression import Affine, Digit, Lane, leaves, total
from translators.access.states import Integer
from translators.emit.classes import Classes, Place, classes_of
from translators.emit.merged_writer import MergedWriter, Root
from translators.graph.graph import (
    Function,
    Module,
    Op,
    Region,
    Value,
    make_module,
    make_region,
    walk,
)
from translators.graph.ops.catalog import OPS
from translators.graph.ops.definition import Effect
from translators.graph.types import I1, IntType, shape_of
from translators.graph.verifier import verify

_MEMORY = (Effect.READ, Effect.WRITE, Effect.READ_WRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A kernel of fewer programs.

    Attributes:
      module: the kernel, verified.
      grid: its programs.
      names: what the axes of the grid count.
      steps: how many of them, the last ones, count blocks of merged dimensions.
    """

    module: Module
    grid: tuple[int, int, int]
    names: tuple[str, ...]
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Programs that divide a dimension into blocks.

    Attributes:
      digit: what counts them.
      block: how long a block is.
      whole: how long all of them are together, as far as anything is written.
      bounded: whether masks keep out what lies behind.
      minor: whether the dimension lies in memory without gaps.
    """

    digit: Digit
    block: int
    whole: int
    bounded: bool
    minor: bool


Chooser: TypeAlias = Callable[[Sequence[Blocks]], Mapping[Digit, int]]


def merge_programs(
    module: Module, analysis: Analysis, choose: Chooser | None = None
) -> Merged | None:
    """Merges the programs along as many coordinates as can be; `None` if that is none.

    Args:
      module: a verified kernel.
      analysis: its accesses, in terms of `ProgramAxes`.
      choose: how long the new blocks are to be, multiples of the old ones or the whole; all
        programs along a coordinate become one where it is not given.

    Raises:
      GraphError: never for a right kernel; the result is verified.
    """
    if analysis.axes is None:
        return None
    classes = classes_of(module.kernel)
    roots = list(_roots(module.kernel, analysis))
    digits = _mergeable(module.kernel, classes, roots)
    while digits:
        merger = _Merger(module, analysis, classes, roots, digits, choose)
        blamed = merger.blamed()
        if not blamed:
            return merger.merged()
        digits = [each for each in digits if each not in blamed]
    return None


def _roots(kernel: Function, analysis: Analysis) -> Iterator[Root]:
    for op in walk(kernel.body):
        for value in op.results:
            root = _root(value, analysis)
            if root is not None:
                yield root


def _root(value: Value, analysis: Analysis) -> Root | None:
    state = analysis.states.get(value)
    shape = shape_of(value.type)
    if len(shape) != 1 or not isinstance(state, Integer) or state.assumptions:
        return None
    lanes = [each for each in state.expression.terms if isinstance(each[0], Lane)]
    if len(lanes) != 1 or lanes[0][1] <= 0:
        return None
    scale = lanes[0][1]
    digits = {each: by for each, by in state.expression.terms if isinstance(each, Digit)}
    if len(digits) + 1 != len(state.expression.terms):
        return None
    counting = [each for each, by in digits.items() if by == scale * shape[0]]
    if len(counting) != 1:
        return None
    digit = counting[0]
    rest = total((each, by) for each, by in digits.items() if each is not digit)
    start = rest.plus(state.expression.offset)
    return Root(value=value, digit=digit, scale=scale, start=start)


def _mergeable(kernel: Function, classes: Classes, roots: list[Root]) -> list[Digit]:
    """The coordinates whose blocks are free dimensions, of one coordinate each."""
    owners: dict[Place, set[Digit]] = {}
    lengths: dict[Digit, set[int]] = {}
    spoilt: set[Digit] = set()
    for root in roots:
        place = classes.of((root.value, 0))
        owners.setdefault(place, set()).add(root.digit)
        lengths.setdefault(root.digit, set()).update(shape_of(root.value.type))
        spoilt.update(each for each in leaves(root.start) if isinstance(each, Digit))
        if not classes.is_free(place):
            spoilt.add(root.digit)
    for digits in owners.values():
        if len(digits) > 1:
            spoilt |= digits
    known = {root.value for root in roots}
    for value in _counting(kernel, known):
        spoilt |= owners.get(classes.of((value, 0)), set())
    found = list(dict.fromkeys(root.digit for root in roots))
    return [each for each in found if each not in spoilt and len(lengths[each]) == 1]


def _counting(kernel: Function, roots: set[Value]) -> Iterator[Value]:
    """Ranges that are used for more than the roots."""
    users: dict[Value, list[Op]] = {}
    ops = list(walk(kernel.body))
    for op in ops:
        for operand in op.operands:
            users.setdefault(operand, []).append(op)
    for op in ops:
        if op.name != "tt.make_range":
            continue
        pending = [op.result]
        while pending:
            for user in users.get(pending.pop(), []):
                if all(each in roots for each in user.results) and user.results:
                    continue
                if user.name in ("arith.extsi", "arith.extui"):
                    pending.append(user.result)
                else:
                    yield op.result
                    pending.clear()
                    break


class _Merger:
    """One attempt, with a set of coordinates."""

    def __init__(
        self,
        module: Module,
        analysis: Analysis,
        classes: Classes,
        roots: list[Root],
        digits: list[Digit],
        choose: Chooser | None,
    ) -> None:
        self._module = module
        self._analysis = analysis
        self._classes = classes
        self._digits = digits
        self._roots = {each.value: each for each in roots if each.digit in digits}
        assert analysis.axes is not None
        self._kept = [each for each in analysis.axes.axes if each not in digits]
        self._parents = _parents(module.kernel.body)
        self._live = self._needed()
        self._blocks = self._merged_blocks()
        chosen = {} if choose is None else choose(list(self._blocks.values()))
        self._steps = {
            place: -(-each.whole // chosen[each.digit])
            for place, each in self._blocks.items()
            if chosen.get(each.digit, each.whole) < each.whole
        }
        self._lengths = {
            place: min(each.whole, chosen.get(each.digit, each.whole))
            for place, each in self._blocks.items()
        }

    def blamed(self) -> set[Digit]:
        """The coordinates that something else needs than where blocks start; all if unknown."""
        if len(self._kept) + len(self._stepping()) > 3:
            return set(self._digits)
        for op in self._live:
            if op.name == "tt.get_program_id":
                return self._who_needs_programs() or set(self._digits)
        return set()

    def _who_needs_programs(self) -> set[Digit]:
        """Coordinates in what is computed from program ids and is no start of a block."""
        found: set[Digit] = set()
        for op in self._live:
            for value in op.results:
                if value in self._roots or shape_of(value.type):
                    continue
                state = self._analysis.states.get(value)
                if isinstance(state, Integer):
                    found |= {
                        each
                        for each in leaves(state.expression)
                        if isinstance(each, Digit) and each in self._digits
                    }
        return found

    def _needed(self) -> list[Op]:
        """The ops that memory depends on, where roots and what follows from them are given."""
        needed: set[Op] = set()
        pending = [
            op
            for op in walk(self._module.kernel.body)
            if OPS[op.name].effect in (Effect.WRITE, Effect.READ_WRITE) or op.name == "tt.return"
        ]
        while pending:
            op = pending.pop()
            if op in needed:
                continue
            needed.add(op)
            parent = self._parents.get(op)
            if parent is not None:
                pending.append(parent)
            pending += [region.terminator for region in op.regions]
            if op.name in ("tt.reduce", "tt.scan", "tt.map_elementwise"):
                pending += [inner for region in op.regions for inner in region.ops]
            for operand in op.operands:
                if operand in self._roots or self._restated(operand) is not None:
                    continue
                owner = operand.owner
                if isinstance(owner, Op):
                    pending.append(owner)
        return [op for op in walk(self._module.kernel.body) if op in needed]

    def _restated(self, value: Value) -> Affine | None:
        """A scalar in terms of the coordinates that stay; `None` where it is computed."""
        element = value.type
        state = self._analysis.states.get(value)
        if not isinstance(element, IntType) or element == I1 or not isinstance(state, Integer):
            return None
        if state.assumptions or isinstance(value.owner, Region):
            return None
        terms = state.expression.terms
        if all(isinstance(each, Digit) and each in self._kept for each, _ in terms):
            return state.expression
        return None

    def _merged_blocks(self) -> dict[Place, Blocks]:
        """The merged dimensions, by class."""
        found: dict[Place, Blocks] = {}
        for root in self._roots.values():
            place = self._classes.of((root.value, 0))
            block = shape_of(root.value.type)[0]
            whole = block * root.digit.extent
            reached = self._reached(place, root.digit, block)
            found[place] = Blocks(
                digit=root.digit,
                block=block,
                whole=min(whole, reached or whole),
                bounded=reached is not None,
                minor=self._is_minor(place),
            )
        return found

    def _stepping(self) -> list[Digit]:
        """The coordinates along which several programs are left."""
        found = dict.fromkeys(self._blocks[place].digit for place in self._steps)
        return list(found)

    def _is_minor(self, place: Place) -> bool:
        """Whether some access goes through neighbours in memory along a dimension."""
        for access in self._analysis.accesses:
            pointers = access.op.operands[0]
            if not isinstance(access.position, Position) or not shape_of(pointers.type):
                continue
            for dimension in access.position.dimensions:
                if abs(dimension.stride) != 1:
                    continue
                for variable, factor in dimension.index.terms:
                    if (
                        isinstance(variable, Lane)
                        and factor == 1
                        and self._classes.of((pointers, variable.axis)) == place
                    ):
                        return True
        return False

    def _reached(self, place: Place, digit: Digit, block: int) -> int | None:
        """Beyond which position nothing is written; `None` if that is not known."""
        reached: int | None = None
        for access in self._analysis.accesses:
            if access.op.name == "tt.load":
                continue
            pointers = access.op.operands[0]
            for axis, size in enumerate(shape_of(pointers.type)):
                if size == 1 or self._classes.of((pointers, axis)) != place:
                    continue
                bound = _bound(access, digit, axis, block)
                if bound is None:
                    return None
                reached = max(reached or 0, bound)
        return reached or None

    def merged(self) -> Merged:
        """The kernel of fewer programs."""
        kernel = self._module.kernel
        body = make_region(
            [each.type for each in kernel.arguments], [each.name for each in kernel.arguments]
        )
        writer = MergedWriter(
            classes=self._classes,
            roots=self._roots,
            restated={
                value: expression
                for op in walk(kernel.body)
                for value in op.results
                if (expression := self._restated(value)) is not None
            },
            kept=self._kept,
            steps=self._stepping(),
            lengths=self._lengths,
            live=set(self._live),
        )
        writer.values.update(zip(kernel.arguments, body.arguments, strict=True))
        writer.copy(kernel.body, body)
        function = Function(
            name=kernel.name,
            body=body,
            result_types=kernel.result_types,
            hints=kernel.hints,
            location=kernel.location,
        )
        others = [each for each in self._module.functions.values() if each is not kernel]
        module = make_module([function, *others], kernel.name)
        verify(module)
        counts = {self._blocks[place].digit: count for place, count in self._steps.items()}
        extents = [*(each.extent for each in self._kept), *counts.values(), 1, 1, 1]
        names = tuple(each.name for each in (*self._kept, *counts))
        grid = (extents[0], extents[1], extents[2])
        return Merged(module=module, grid=grid, names=names, steps=len(counts))


def _parents(body: Region) -> Mapping[Op, Op]:
    """For each op inside of another, that one."""
    found: dict[Op, Op] = {}
    for op in walk(body):
        for region in op.regions:
            found.update(dict.fromkeys(region.ops, op))
    return found


def _bound(access: Access, digit: Digit, axis: int, block: int) -> int | None:
    """How far the mask of an access lets a position go; `None` if it does not say."""
    if access.mask is None:
        return None
    bounds = [each.comparison.expression for each in access.mask.bounds]
    bounds += [each.expression for each in access.mask.predicates]
    found: int | None = None
    for expression in bounds:
        factors = {
            variable: factor
            for variable, factor in expression.terms
            if isinstance(variable, Digit | Lane)
        }
        lane = Lane(axis=axis, extent=block)
        factor = -factors.get(lane, 0)
        alone = len(expression.terms) == 2 and factors.get(digit) == -factor * block
        if factor > 0 and alone:
            limit = expression.offset // factor + 1
            found = limit if found is None else min(found, limit)
    return found
