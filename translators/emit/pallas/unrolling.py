"""A loop with several of its iterations laid out in each iteration of another.

What they go through is fetched at once then: blocks that lie one behind another as one block, and
others, which data lead to, each by itself.
"""

from collections.abc import Sequence

from translators.graph.copying import Copier, copied_kernel
from translators.graph.graph import (
    AttributeValue,
    Module,
    Op,
    Region,
    Value,
    make_op,
    make_region,
)
from translators.graph.types import I1, Type
from translators.graph.verifier import verify


def unrolled(module: Module, op: Op, step: int, count: int, *, even: bool) -> Module:
    """The kernel with a loop of which each iteration does several.

    Args:
      module: a verified kernel.
      op: its loop, a `scf.for`.
      step: from one iteration to the next, as a number.
      count: how many iterations are laid out in one.
      even: whether there are always so many.
    """
    made = copied_kernel(module, _Unroller(op, step, count, even=even))
    verify(made)
    return made


class _Unroller(Copier):
    def __init__(self, op: Op, step: int, count: int, *, even: bool) -> None:
        super().__init__()
        self._op = op
        self._step = step
        self._count = count
        self._even = even

    def copies(self, op: Op, region: Region) -> bool:
        """Writes the loop anew; copies the rest."""
        if op is not self._op:
            return True
        lower, upper, _, *initial = (self.values[each] for each in op.operands)
        inside = op.regions[0]
        body = make_region(
            [each.type for each in inside.arguments], [each.name for each in inside.arguments]
        )
        carried: Sequence[Value] = body.arguments[1:]
        for place in range(self._count):
            carried = self._iteration(place, upper, carried, body)
        _made(op, body, "scf.yield", carried)
        step = self._number(self._step * self._count, lower.type, region)
        made = make_op(
            op.name,
            [lower, upper, step, *initial],
            [each.type for each in op.results],
            attributes=op.attributes,
            regions=[body],
            location=op.location,
            result_names=[each.name for each in op.results],
        )
        region.ops.append(made)
        self.values.update(zip(op.results, made.results, strict=True))
        return False

    def _iteration(
        self, place: int, upper: Value, carried: Sequence[Value], body: Region
    ) -> Sequence[Value]:
        """One of the iterations, where there is such; what it leaves."""
        counter = body.arguments[0]
        if place:
            shift = self._number(place * self._step, counter.type, body)
            (counter,) = _made(self._op, body, "arith.addi", (counter, shift), counter.type)
        if self._even or not place:
            return self._copied(counter, carried, body)
        (runs,) = _made(self._op, body, "arith.cmpi", (counter, upper), I1, predicate="slt")
        regions = [make_region(), make_region()]
        _made(self._op, regions[0], "scf.yield", self._copied(counter, carried, regions[0]))
        _made(self._op, regions[1], "scf.yield", carried)
        made = make_op(
            "scf.if",
            [runs],
            [each.type for each in carried],
            regions=regions,
            location=self._op.location,
            result_names=[each.name for each in self._op.results],
        )
        body.ops.append(made)
        return made.results

    def _copied(self, counter: Value, carried: Sequence[Value], target: Region) -> Sequence[Value]:
        inside = self._op.regions[0]
        copier = Copier()
        copier.values.update(self.values)
        copier.values.update(zip(inside.arguments, (counter, *carried), strict=True))
        copier.copy(Region(ops=inside.ops[:-1]), target)
        return [copier.values[each] for each in inside.terminator.operands]

    def _number(self, number: int, type_: Type, region: Region) -> Value:
        (made,) = _made(self._op, region, "arith.constant", (), type_, value=number)
        return made


def _made(
    op: Op,
    region: Region,
    name: str,
    operands: Sequence[Value],
    *types: Type,
    **attributes: AttributeValue,
) -> tuple[Value, ...]:
    made = make_op(name, operands, types, attributes=attributes, location=op.location)
    region.ops.append(made)
    return made.results
