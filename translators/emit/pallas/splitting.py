"""Loops in two: iterations in which a mask keeps out nothing, and those in which it may.

A causal mask matters only where a block of rows meets its own columns. Of the iterations before it,
or behind it, nothing is masked: they are a loop of their own, which does not compare.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from translators.access.analysis import Analysis
from translators.access.division import divide
from translators.access.expression import Affine, Lane, ProgramId, constant, total
from translators.access.loops import Loop
from translators.access.states import Comparison, Condition
from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    AttributeValue,
    Module,
    Op,
    Region,
    Value,
    make_op,
    make_region,
    walk,
)
from translators.graph.types import I32
from translators.graph.verifier import verify


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a loop is cut.

    Attributes:
      iteration: the first one of the second part.
      free: which part it is in which nothing is masked, 0 or 1.
    """

    iteration: Affine
    free: int


def split(module: Module, analysis: Analysis) -> Module | None:
    """The kernel with loops in two parts, one of which does not mask; `None` where none has.

    Only loops are cut that take another number of iterations in every program, as others may be
    computed at once, or unrolled, and that write nothing.

    Args:
      module: a verified kernel.
      analysis: its accesses, in terms of program ids.
    """
    kernel = module.kernel
    loops = (op for op in walk(kernel.body) if op.name in ("scf.for", "scf.while"))
    numbers = {op: number for number, op in enumerate(loops)}
    found: dict[Op, tuple[Loop, _Cut, frozenset[Op]]] = {}
    writing = {each.op for each in analysis.accesses if each.op.name != "tt.load"}
    for op in kernel.body.ops:
        loop = analysis.loops.get(numbers.get(op, -1))
        if loop is None or op.operands[0].type != I32:
            continue
        if writing.intersection(walk(op.regions[0])):
            continue
        cuts = {each: cut for each in op.regions[0].ops if (cut := _cut(each, loop, analysis))}
        if cuts:
            chosen = next(iter(cuts.values()))
            free = frozenset(each for each, cut in cuts.items() if cut == chosen)
            found[op] = loop, chosen, free
    if not found:
        return None
    made = copied_kernel(module, _Splitter(found))
    verify(made)
    return made


def _cut(op: Op, loop: Loop, analysis: Analysis) -> _Cut | None:
    """Where a choice begins, or ceases, to be the same for all lanes; `None` where nowhere."""
    if op.name != "arith.select" or loop.trips is None or loop.trips.value is not None:
        return None
    condition = analysis.states.get(op.operands[0])
    if not isinstance(condition, Condition) or condition.leftovers or condition.assumptions:
        return None
    cuts = {_cut_of(each, loop) for each in condition.comparisons}
    cut = cuts.pop() if len(cuts) == 1 else None
    if cut is None or not _of_programs(cut.iteration) or not _of_programs(loop.lower):
        return None
    left = loop.trips - cut.iteration
    inside = cut.iteration.interval.low >= 0 and left.interval.low >= 0
    most = (cut.iteration, left)[cut.free].interval.high
    return cut if inside and most > 0 else None


def _cut_of(comparison: Comparison, loop: Loop) -> _Cut | None:
    """From which iteration on a comparison holds for all lanes, or up to which one."""
    expression = comparison.expression
    least = sum(
        min(0, factor * (leaf.extent - 1))
        for leaf, factor in expression.terms
        if isinstance(leaf, Lane)
    )
    factor = expression.coefficient(loop.iteration)
    rest = total(
        (
            (leaf, by)
            for leaf, by in expression.terms
            if not isinstance(leaf, Lane) and leaf != loop.iteration
        ),
        expression.offset + least,
    )
    if factor == 0:
        return None
    # It holds where `rest + factor * iteration >= 0`.
    quotient = divide(rest, constant(abs(factor)))
    if quotient is None:
        return None
    last, _ = quotient
    return _Cut(last.plus(1), 0) if factor < 0 else _Cut(last.times(-1), 1)


def _of_programs(expression: Affine) -> bool:
    return all(isinstance(leaf, ProgramId) for leaf, _ in expression.terms)


class _Splitter(Copier):
    """Writes loops in two parts; copies the rest."""

    def __init__(self, loops: Mapping[Op, tuple[Loop, _Cut, frozenset[Op]]]) -> None:
        super().__init__()
        self._loops = loops

    def copies(self, op: Op, region: Region) -> bool:
        """Writes the two parts of a loop that is cut."""
        if op not in self._loops:
            return True
        loop, cut, free = self._loops[op]
        lower, upper, step, *carried = (self.values[each] for each in op.operands)
        middle = _written(loop.lower + cut.iteration.times(loop.step), op, region)
        for part, (begin, end) in enumerate(((lower, middle), (middle, upper))):
            inner = op.regions[0]
            body = make_region(
                [each.type for each in inner.arguments], [each.name for each in inner.arguments]
            )
            copier = _Part(free if part == cut.free else frozenset())
            copier.values.update(self.values)
            copier.values.update(zip(inner.arguments, body.arguments, strict=True))
            copier.copy(inner, body)
            made = make_op(
                op.name,
                (begin, end, step, *carried),
                [each.type for each in op.results],
                attributes=op.attributes,
                regions=[body],
                location=op.location,
                result_names=[each.name for each in op.results],
            )
            region.ops.append(made)
            carried = list(made.results)
        self.values.update(zip(op.results, carried, strict=True))
        return False


class _Part(Copier):
    """Copies iterations in which some choices are known."""

    def __init__(self, free: frozenset[Op]) -> None:
        super().__init__()
        self._free = free

    def copies(self, op: Op, region: Region) -> bool:
        """Puts what is chosen in the place of a choice; copies the rest."""
        if op not in self._free:
            return True
        self.values[op.result] = self.values[op.operands[1]]
        return False


def _written(expression: Affine, op: Op, region: Region) -> Value:
    """Ops that compute an expression of program ids."""
    made = _made(op, region, "arith.constant", (), value=expression.offset)
    for leaf, factor in expression.terms:
        assert isinstance(leaf, ProgramId)
        part = _made(op, region, "tt.get_program_id", (), axis=leaf.axis)
        by = _made(op, region, "arith.constant", (), value=factor)
        made = _made(op, region, "arith.addi", (made, _made(op, region, "arith.muli", (part, by))))
    return made


def _made(
    op: Op, region: Region, name: str, operands: tuple[Value, ...], **attributes: AttributeValue
) -> Value:
    made = make_op(name, operands, (I32,), attributes=attributes, location=op.location)
    region.ops.append(made)
    return made.result
