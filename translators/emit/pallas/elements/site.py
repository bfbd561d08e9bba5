"""One op that is copied with held values: what it takes, and how others are made in its place."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from translators.emit.pallas.elements.held_types import held_type
from translators.emit.pallas.elements.place import Place
from translators.graph.graph import AttributeValue, Op, Value
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
      sums: combinations of such results, which are rounded at the end.
    """

    narrow: dict[Value, Value] = field(default_factory=dict)
    halves: set[Value] = field(default_factory=set)
    unrounded: frozenset[Op] = frozenset()
    sums: frozenset[Op] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(Place):
    """The place of an op whose values are held in other types.

    Attributes:
      operands: what it takes, as it is held.
      result_types: what its results are held as.
      forms: of all values.
    """

    operands: Sequence[Value]
    result_types: Sequence[Type]
    forms: Forms

    def cast(self, value: Value, element: ElementType) -> Value:
        """A value as another element type: of one kind, or integers for truth values."""
        source = element_of(value.type)
        if source == element:
            return value
        type_ = with_element(value.type, element)
        owner = value.owner
        if isinstance(owner, Op) and owner.name == "arith.constant":
            number = converted(owner.attributes["value"], element)
            return self.make("arith.constant", (), type_, {"value": number})
        if element == I1:
            if isinstance(owner, Op) and owner.name == "arith.extui" and _is_condition(owner):
                return owner.operands[0]
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


def _is_condition(op: Op) -> bool:
    """Whether an op takes truth values."""
    return element_of(op.operands[0].type) == I1


def _number(value: Number, element: ElementType) -> Number:
    if element == I1:
        return int(value != 0)
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
