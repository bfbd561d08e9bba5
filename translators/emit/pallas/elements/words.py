"""Integers of 64 bits as two words of 32: arithmetic in ops on the words."""

from collections.abc import Sequence
from dataclasses import dataclass

from translators.emit.pallas.elements.place import Place
from translators.graph.graph import AttributeValue, Value
from translators.graph.types import I1, I32, Type, with_element

BITS = 32


@dataclass(frozen=True, slots=True)
class Words:
    """A value of 64 bits.

    Attributes:
      low: the lower half.
      high: the upper half, with the sign.
    """

    low: Value
    high: Value


def constant(place: Place, number: AttributeValue, type_: Type) -> Words:
    """A number, or one for each element, of a type of 64-bit integers."""
    numbers = number if isinstance(number, tuple) else (number,)
    assert not isinstance(number, str)
    type_ = with_element(type_, I32)

    def word(shift: int) -> Value:
        found = tuple(I32.wrap(int(each) >> shift) for each in numbers if not isinstance(each, str))
        value = found if isinstance(number, tuple) else found[0]
        return place.make("arith.constant", (), type_, {"value": value})

    return Words(word(0), word(BITS))


def signed(place: Place, value: Value) -> Words:
    """An integer of 32 bits, with its sign."""
    return Words(value, place.binary("arith.shrsi", value, BITS - 1))


def unsigned(place: Place, value: Value) -> Words:
    """An integer of 32 bits, read as unsigned."""
    return Words(value, place.number(0, value))


def added(place: Place, a: Words, b: Words) -> Words:
    """The sum, wrapping around."""
    low = _op(place, "arith.addi", a.low, b.low)
    carry = _as_number(place, _compared(place, "ult", low, a.low))
    high = _op(place, "arith.addi", a.high, b.high)
    return Words(low, _op(place, "arith.addi", high, carry))


def subtracted(place: Place, a: Words, b: Words) -> Words:
    """The difference, wrapping around."""
    low = _op(place, "arith.subi", a.low, b.low)
    borrow = _as_number(place, _compared(place, "ult", a.low, b.low))
    high = _op(place, "arith.subi", a.high, b.high)
    return Words(low, _op(place, "arith.subi", high, borrow))


def multiplied(place: Place, a: Words, b: Words) -> Words:
    """The product, wrapping around."""
    low = _op(place, "arith.muli", a.low, b.low)
    high = _op(place, "tt.mulhiui", a.low, b.low)
    for one, other in ((a.low, b.high), (a.high, b.low)):
        high = _op(place, "arith.addi", high, _op(place, "arith.muli", one, other))
    return Words(low, high)


def compared(place: Place, predicate: str, a: Words, b: Words) -> Value:
    """Whether they compare as the predicate of `arith.cmpi` says."""
    same = _compared(place, "eq", a.high, b.high)
    if predicate in ("eq", "ne"):
        low = _compared(place, predicate, a.low, b.low)
        high = same if predicate == "eq" else _compared(place, "ne", a.high, b.high)
        return _op(place, "arith.andi" if predicate == "eq" else "arith.ori", low, high)
    strict = predicate.replace("e", "t")
    low = _compared(place, f"u{predicate[1:]}", a.low, b.low)
    high = _compared(place, strict, a.high, b.high)
    return _op(place, "arith.ori", high, _op(place, "arith.andi", same, low))


def chosen(place: Place, condition: Value, yes: Words, no: Words) -> Words:
    """One where a condition holds, the other where not."""
    return Words(
        place.chosen(condition, yes.low, no.low), place.chosen(condition, yes.high, no.high)
    )


def shifted_left(place: Place, a: Words, count: int) -> Words:
    """Shifted by a number of bits."""
    if count == 0:
        return a
    zero = place.number(0, a.low)
    if count >= 2 * BITS:
        return Words(zero, zero)
    if count >= BITS:
        return Words(zero, _shift(place, "arith.shli", a.low, count - BITS))
    carried = place.binary("arith.shrui", a.low, BITS - count)
    high = place.binary("arith.shli", a.high, count)
    return Words(place.binary("arith.shli", a.low, count), _op(place, "arith.ori", high, carried))


def shifted_right(place: Place, name: str, a: Words, count: int) -> Words:
    """Shifted by a number of bits, by `arith.shrsi` or `arith.shrui`."""
    if count == 0:
        return a
    if name == "arith.shrsi":
        rest = place.binary("arith.shrsi", a.high, BITS - 1)
    else:
        rest = place.number(0, a.high)
    if count >= 2 * BITS:
        return Words(rest, rest)
    if count >= BITS:
        return Words(_shift(place, name, a.high, count - BITS), rest)
    carried = place.binary("arith.shli", a.high, BITS - count)
    low = place.binary("arith.shrui", a.low, count)
    return Words(_op(place, "arith.ori", low, carried), place.binary(name, a.high, count))


def _shift(place: Place, name: str, value: Value, count: int) -> Value:
    return place.binary(name, value, count) if count else value


def _op(place: Place, name: str, *operands: Value) -> Value:
    return place.make(name, operands, operands[0].type)


def _compared(place: Place, predicate: str, a: Value, b: Value) -> Value:
    return place.make("arith.cmpi", (a, b), with_element(a.type, I1), {"predicate": predicate})


def _as_number(place: Place, condition: Value) -> Value:
    return place.make("arith.extui", (condition,), with_element(condition.type, I32))


def word_types(type_: Type) -> Sequence[Type]:
    """What the two words of a type of 64-bit integers are."""
    return (with_element(type_, I32),) * 2
