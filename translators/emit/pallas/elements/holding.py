"""The kernel with values that a TPU does not compute with held in wider types.

What was exact stays so. Where the kernel rounds, a cast to the narrow type and back says it: of
`+ - * /` and the square root the result is the same as if the narrow type computed, as `f32` has
more than twice the bits of `f16` and two more (Figueroa, "When is double rounding innocuous?",
SIGNUM 1995). Functions are rounded once from `f32`, products plus a third once from what their
`f32` sum is. Integers wrap around by shifts.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from translators.emit.emission import UnsupportedError
from translators.emit.pallas.elements.checking import verify_complete
from translators.emit.pallas.elements.held_types import held_type, is_absent, is_narrow
from translators.emit.pallas.elements.rules import apply
from translators.emit.pallas.elements.site import Forms, Site
from translators.emit.reductions import single_op
from translators.graph.copying import Copier
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
from translators.graph.types import F16, I1, I32, ElementType, Type, element_of, with_element

_LOOPS = ("scf.for", "scf.while")
# Combinations of truth values that are known as such.
_OF_BITS = ("arith.andi", "arith.ori", "arith.xori", "arith.addi")


def held(module: Module, unread: frozenset[Op] = frozenset()) -> Module:
    """The module with every value held in a type that a TPU computes with.

    Functions whose bodies have no such form are left out.

    Args:
      module: the kernel, and what it calls.
      unread: ops of which all that becomes is written to arrays of `f16` that the kernel does not
        read: it is rounded where it leaves as `f16`.

    Raises:
      UnsupportedError: an op of the kernel has no such form; at its line.
    """
    if not any(_changes(each) for each in module.functions.values()):
        return module
    functions = [_held(module.kernel, unread)]
    for each in module.functions.values():
        if each is module.kernel:
            continue
        with suppress(UnsupportedError):
            functions.append(_held(each, frozenset()))
    made = make_module(functions, module.entry)
    verify_complete(made)
    return made


def _changes(function: Function) -> bool:
    values = [*function.arguments]
    for op in walk(function.body):
        values += op.results
        values += (each for region in op.regions for each in region.arguments)
    return any(held_type(each.type) != each.type or _is_special(each) for each in values)


def _is_special(value: Value) -> bool:
    """Whether a value is looked at though its type stays."""
    element = element_of(value.type)
    if isinstance(value.owner, Op) and value.owner.name == "tt.dot":
        return True
    return is_absent(element) or is_narrow(element) or element == I1


def _held(function: Function, unread: frozenset[Op]) -> Function:
    copier = _Holder(function, unread)
    body = make_region(
        [copier.type_of(each) for each in function.arguments],
        [each.name for each in function.arguments],
    )
    copier.values.update(zip(function.arguments, body.arguments, strict=True))
    copier.copy(function.body, body)
    return replace(function, body=body, result_types=tuple(map(held_type, function.result_types)))


class _Holder(Copier):
    """Copies with held types."""

    def __init__(self, function: Function, unread: frozenset[Op]) -> None:
        super().__init__()
        ops = list(walk(function.body))
        self._owners = {region: op for op in ops for region in op.regions}
        self._ends = {region.terminator: op for region, op in self._owners.items()}
        # Sums of rounded numbers are rounded once at the end, as XLA does it.
        sums = [
            op for op in ops if op.name == "tt.reduce" and single_op(op.regions[0]) == "arith.addf"
        ]
        addends = (op.regions[0].ops[0] for op in sums)
        self._forms = Forms(unrounded=unread.union(addends), sums=frozenset(sums))

    def type_of(self, value: Value) -> Type:
        """What the value is held as; truth values that are carried around, as integers."""
        if element_of(value.type) == I1 and self._is_carried(value):
            return with_element(value.type, I32)
        return held_type(value.type)

    def _is_carried(self, value: Value) -> bool:
        owner = value.owner
        op = self._owners.get(owner) if isinstance(owner, Region) else owner
        if op is None:
            return False
        if op.name == "tt.reduce":
            return len(op.operands) > 1 or single_op(op.regions[0]) not in _OF_BITS
        return op.name in (*_LOOPS, "tt.scan")

    def opened(self, inner: Region) -> Region:
        """A region that is entered with held values."""
        copied = super().opened(inner)
        for old, new in zip(inner.arguments, copied.arguments, strict=True):
            self._hold(old, new)
        return copied

    def copied(self, op: Op, regions: Sequence[Region], region: Region) -> Sequence[Value]:
        """What becomes of an op's results where it works on held values."""
        absent = next(
            (each for each in (*op.operands, *op.results) if is_absent(element_of(each.type))), None
        )
        site = Site(
            op=op,
            operands=[self.values[each] for each in op.operands],
            regions=regions,
            region=region,
            result_types=[self.type_of(each) for each in op.results],
            forms=self._forms,
        )
        if absent is not None:
            raise site.refused(f"has numbers of `{element_of(absent.type)}`, which TPUs have not")
        operands = [
            each if element is None else site.cast(each, element)
            for each, element in zip(site.operands, self._wanted(op), strict=True)
        ]
        results = apply(replace(site, operands=operands))
        if op not in self._forms.unrounded:
            for old, new in zip(op.results, results, strict=True):
                self._hold(old, new)
        return results

    def _wanted(self, op: Op) -> list[ElementType | None]:
        """What the operands of an op have to hold; `None` for descriptors."""
        found = [element_of(held_type(each.type)) for each in op.operands]
        owner = self._ends.get(op)
        if op.name == "scf.for":
            found[3:] = self._elements(op.regions[0].arguments[1:])
        elif op.name == "scf.while":
            found = self._elements(op.regions[0].arguments)
        elif owner is None or op.name == "tt.return":
            return found
        elif op.name == "scf.condition":
            found[1:] = self._elements(owner.results)
        elif owner.name == "scf.while":
            found = self._elements(owner.regions[0].arguments)
        elif owner.name in ("tt.reduce", "tt.scan"):
            found = self._elements(owner.regions[0].arguments[: len(found)])
        elif owner.name != "tt.map_elementwise":
            found = self._elements(owner.results)
        return found

    def _elements(self, values: Sequence[Value]) -> list[ElementType | None]:
        return [element_of(self.type_of(each)) for each in values]

    def _hold(self, old: Value, new: Value) -> None:
        if element_of(old.type) == F16:
            self._forms.halves.add(new)
