"""The place of an op in a copy of a kernel: what is made there instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from translators.emit.emission import UnsupportedError
from translators.graph.graph import AttributeValue, Op, Region, Value, make_op
from translators.graph.types import I1, ElementType, Type, element_of, with_element


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An op, and the place where what is made of it stands.

    Attributes:
      op: the op as the kernel has it.
      regions: its regions, copied.
      region: where ops are appended.
    """

    op: Op
    regions: Sequence[Region]
    region: Region

    def taken(self, index: int) -> ElementType:
        """The element type that the kernel's operand has."""
        element = element_of(self.op.operands[index].type)
        assert element is not None
        return element

    def given(self, index: int = 0) -> ElementType:
        """The element type that the kernel's result has."""
        element = element_of(self.op.results[index].type)
        assert element is not None
        return element

    def refused(self, clause: str) -> UnsupportedError:
        """The error that says why the op has no such form."""
        return UnsupportedError(f"`{self.op.name}` {clause}", self.op.location)

    def copy(
        self, operands: Sequence[Value], types: Sequence[Type], **changes: AttributeValue
    ) -> Op:
        """The op itself with other operands and result types."""
        made = make_op(
            self.op.name,
            operands,
            types,
            attributes={**self.op.attributes, **changes},
            regions=self.regions,
            location=self.op.location,
            result_names=[each.name for each in self.op.results],
        )
        self.region.ops.append(made)
        return made

    def make(
        self,
        name: str,
        operands: Sequence[Value],
        type_: Type,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> Value:
        """Another op, with one result."""
        hint = self.op.results[0].name if len(self.op.results) == 1 else ""
        made = make_op(
            name,
            operands,
            (type_,),
            attributes=attributes or {},
            location=self.op.location,
            result_names=(hint,),
        )
        self.region.ops.append(made)
        return made.result

    def number(self, value: int, like: Value) -> Value:
        """An integer, for every element of a value."""
        return self.make("arith.constant", (), like.type, {"value": value})

    def binary(self, name: str, value: Value, number: int) -> Value:
        """An op on integers and a number."""
        return self.make(name, (value, self.number(number, value)), value.type)

    def chosen(self, condition: Value, yes: Value, no: Value) -> Value:
        """One value where a condition holds, the other where not."""
        return self.make("arith.select", (condition, yes, no), yes.type)

    def compared(self, predicate: str, value: Value, number: int) -> Value:
        """Whether integers are to a number as the predicate says."""
        operands = (value, self.number(number, value))
        type_ = with_element(value.type, I1)
        return self.make("arith.cmpi", operands, type_, {"predicate": predicate})
