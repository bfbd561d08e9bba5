"""One op that is copied with held values: what it takes, and how others are made in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from translators.emit.emission import UnsupportedError
from translators.emit.pallas.elements.held_types import held_type
from translators.graph.graph import AttributeValue, Op, Region, Value, make_op
from translators.graph.numerics import to_float
from translators.graph.types import (
    F8E5M2,
    F16,
    F32,
    I1,
    I8,
    I32,
    ElementType,
    FloatType,
    IntType,
    Number,
    Type,
    element_of,
    with_element,
)


@dataclass(slots=True)
class Forms:
    """In which other forms values are there too.

    Attributes:
      narrow: for values of the kernel, what memory holds of them.
      halves: held values that are numbers of `f16`.
      unrounded: ops whose results are rounded later.
    """

    narrow: dict[Value, Value] = field(default_factory=dict)
    halves: set[Value] = field(default_factory=set)
    unrounded: frozenset[Op] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """An op, and the place where what is made of it stands.

    Attributes:
      op: the op as the kernel has it.
      operands: what it takes, as it is held.
      regions: its regions, copied.
      region: where ops are appended.
      result_types: what its results are held as.
      forms: of all values.
    """

    op: Op
    operands: Sequence[Value]
    regions: Sequence[Region]
    region: Region
    result_types: Sequence[Type]
    forms: Forms

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

    # Ops in its place

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

    def cast(self, value: Value, element: ElementType) -> Value:
        """A value as another element type: of one kind, or integers for truth values."""
        source = element_of(value.type)
        if source == element:
            return value
        type_ = with_element(value.type, element)
        owner = value.owner
        if isinstance(owner, Op) and owner.name == "arith.constant" and element != I1:
            number = converted(owner.attributes["value"], element)
            return self.make("arith.constant", (), type_, {"value": number})
        if element == I1:
            return self.compared("ne", self.cast(value, I32), 0)
        if source == I1:
            return self.make("arith.extui", (value,), type_)
        if isinstance(element, IntType):
            assert isinstance(source, IntType)
            name = "arith.extsi" if element.width > source.width else "arith.trunci"
            return self.make(name, (value,), type_)
        assert isinstance(element, FloatType)
        assert isinstance(source, FloatType)
        if element.width == source.width:
            return self.make("tt.fp_to_fp", (value,), type_, {"rounding": "rtne"})
        name = "arith.extf" if element.width > source.width else "arith.truncf"
        return self.make(name, (value,), type_)

    # Results

    def held(self, value: Value, index: int = 0) -> Value:
        """A value that the result's type has, as the result is held."""
        element = element_of(self.result_types[index])
        assert element is not None
        return self.cast(value, element)

    def from_memory(self, value: Value, index: int = 0) -> Value:
        """The same, of a value in the type that memory has."""
        self.forms.narrow[self.op.results[index]] = value
        return self.held(value, index)

    def for_memory(self, index: int, element: ElementType) -> Value:
        """An operand as the element type that memory has."""
        narrow = self.forms.narrow.get(self.op.operands[index])
        if narrow is not None and element_of(narrow.type) == element:
            return narrow
        found = self.cast(self.operands[index], element)
        return self._with_infinities(index, found) if element == F8E5M2 else found

    def _with_infinities(self, index: int, found: Value) -> Value:
        """A cast to the type of 8 bits that has infinities, which casts do not give."""
        value = self.cast(self.operands[index], F32)
        condition = with_element(value.type, I1)
        bits = self.make("tt.bitcast", (found,), with_element(found.type, I8))
        for limit, pattern in ((float("inf"), 0x7C), (-float("inf"), 0x7C - 0x80)):
            infinite = self.make("arith.constant", (), value.type, {"value": limit})
            holds = self.make("arith.cmpf", (value, infinite), condition, {"predicate": "oeq"})
            bits = self.chosen(holds, self.number(pattern, bits), bits)
        return self.make("tt.bitcast", (bits,), found.type)

    def rounded(self, value: Value, index: int = 0, rounding: str = "rtne") -> Value:
        """A value of floats rounded to the result's type, as the result is held."""
        element = self.given(index)
        if self.op in self.forms.unrounded:
            return value
        if element in (F16, F32):
            value = self.cast(value, F32)
        if element == F32 or (element == F16 and value in self.forms.halves):
            return value
        owner = value.owner
        if isinstance(owner, Op) and owner.name == "arith.constant" and rounding == "rtne":
            narrow = self.cast(value, element)
        else:
            type_ = with_element(value.type, element)
            narrow = self.make("tt.fp_to_fp", (value,), type_, {"rounding": rounding})
        return self.held(narrow, index) if element == F16 else self.from_memory(narrow, index)

    def wrapped(self, value: Value, index: int = 0) -> Value:
        """`i32` values wrapped around to the result's type, as the result is held."""
        element = self.given(index)
        assert isinstance(element, IntType)
        if element.width >= 32:
            return value
        if element.width in (8, 16):
            self.forms.narrow[self.op.results[index]] = self.cast(value, element)
        unused = 32 - element.width
        return self.binary("arith.shrsi", self.binary("arith.shli", value, unused), unused)

    def unsigned(self, index: int) -> Value:
        """An operand of integers, read as unsigned."""
        element = self.taken(index)
        value = self.operands[index]
        if not isinstance(element, IntType) or not 1 < element.width < 32:
            return value
        return self.binary("arith.andi", value, (1 << element.width) - 1)

    def typed(self, index: int, element: ElementType) -> Type:
        """The type of a result with other elements."""
        return with_element(self.op.results[index].type, element)


def converted(value: AttributeValue, element: ElementType) -> AttributeValue:
    """Numbers as another type has them, rounded or wrapped around."""
    if isinstance(value, tuple):
        return tuple(_number(each, element) for each in value)
    assert not isinstance(value, str)
    return _number(value, element)


def _number(value: Number, element: ElementType) -> Number:
    if isinstance(element, IntType):
        return element.wrap(int(value))
    assert isinstance(element, FloatType)
    return float(to_float(np.asarray(value, np.float64), element))


def single(type_: Type) -> ElementType:
    """What one element of a type is held as by itself."""
    element = element_of(type_)
    assert element is not None
    found = element_of(held_type(element))
    assert found is not None
    return found
