"""Conversions between integers and floats of which one is wider than `f32` has bits."""

from translators.emit.pallas.elements import words as arithmetic
from translators.emit.pallas.elements.place import Place
from translators.emit.pallas.elements.words import BITS, Words
from translators.graph.graph import Value
from translators.graph.types import F32, I1, I32, with_element

# Of integers of 32 bits, 24 fit into the significand of `f32`, and 8 do not.
_EXACT_BITS, _LOST_BITS = 24, 8
_EXPONENT_BITS, _BIAS = 23, 127


def odd(place: Place, value: Value, *, signed: bool) -> Value:
    """Integers of 32 bits as such that `f32` has, and that narrower floats round to the same.

    What is dropped of long ones sets the last bit that is kept (Boldo and Melquiond, 2008).
    """
    rest = place.binary("arith.andi", value, (1 << _LOST_BITS) - 1)
    kept = place.binary("arith.andi", value, -(1 << _LOST_BITS))
    some = place.binary("arith.ori", kept, 1 << _LOST_BITS)
    found = place.chosen(place.compared("ne", rest, 0), some, kept)
    limit, moved = 1 << _EXACT_BITS, value
    if signed:
        moved, limit = place.binary("arith.addi", value, limit), 2 * limit
    return place.chosen(place.compared("ult", moved, limit), value, found)


def from_words(place: Place, value: Words, *, signed: bool, narrow: bool) -> Value:
    """Integers of 64 bits as `f32`.

    Args:
      place: where the ops go.
      value: the integers.
      signed: whether the upper word has a sign.
      narrow: whether what is made is rounded once more, to fewer bits, and has to be such that
        this gives the nearest number; it is that itself if not.
    """
    negative = place.compared("slt", value.high, 0)
    if signed:
        zero = place.number(0, value.low)
        minus = arithmetic.subtracted(place, Words(zero, zero), value)
        value = arithmetic.chosen(place, negative, minus, value)
    high, low = value.high, value.low
    zeros = place.make("math.ctlz", (high,), high.type)
    rest = _op(place, "arith.subi", place.number(BITS - 1, high), zeros)
    # The 32 bits from the highest one on, of which the last says whether others follow.
    tail = _op(place, "arith.shrui", place.binary("arith.shrui", low, 1), rest)
    top = _op(place, "arith.ori", _op(place, "arith.shli", high, zeros), tail)
    lost = place.compared("ne", _op(place, "arith.shli", low, zeros), 0)
    top = _op(place, "arith.ori", top, place.make("arith.extui", (lost,), top.type))
    real = with_element(high.type, F32)
    if narrow:
        top, low = odd(place, top, signed=False), odd(place, low, signed=False)
    long = place.make("arith.uitofp", (top,), real)
    exponent = place.binary("arith.addi", rest, 1 + _BIAS)
    scale = place.make("tt.bitcast", (place.binary("arith.shli", exponent, _EXPONENT_BITS),), real)
    long = _op(place, "arith.mulf", long, scale)
    short = place.make("arith.uitofp", (low,), real)
    found = place.chosen(place.compared("eq", high, 0), short, long)
    return place.chosen(negative, _op(place, "arith.negf", found), found) if signed else found


def to_words(place: Place, value: Value, *, signed: bool) -> Words:
    """Numbers of `f32` as integers of 64 bits: cut toward zero, held to their range; NaN is 0."""
    whole = with_element(value.type, I32)
    magnitude = _op(place, "math.trunc", _op(place, "math.absf", value))
    scaled = _op(place, "arith.mulf", magnitude, _real(place, 2.0**-BITS, value))
    upper = _op(place, "math.floor", scaled)
    lower = _op(place, "arith.mulf", upper, _real(place, 2.0**BITS, value))
    lower = _op(place, "arith.subf", magnitude, lower)
    found = Words(
        place.make("arith.fptoui", (lower,), whole), place.make("arith.fptoui", (upper,), whole)
    )
    zero = place.number(0, found.low)
    zeros = Words(zero, zero)
    negative = _compared(place, "olt", value, 0.0)
    if signed:
        minus = arithmetic.subtracted(place, zeros, found)
        found = arithmetic.chosen(place, negative, minus, found)
        most = Words(place.number(-1, zero), place.number(I32.largest, zero))
        least = Words(zero, place.number(I32.smallest, zero))
        found = arithmetic.chosen(place, _compared(place, "ole", value, -(2.0**63)), least, found)
        return arithmetic.chosen(place, _compared(place, "oge", value, 2.0**63), most, found)
    ones = place.number(-1, zero)
    found = arithmetic.chosen(place, negative, zeros, found)
    return arithmetic.chosen(
        place, _compared(place, "oge", value, 2.0**64), Words(ones, ones), found
    )


def _op(place: Place, name: str, *operands: Value) -> Value:
    return place.make(name, operands, operands[0].type)


def _real(place: Place, number: float, like: Value) -> Value:
    return place.make("arith.constant", (), like.type, {"value": number})


def _compared(place: Place, predicate: str, value: Value, number: float) -> Value:
    operands = (value, _real(place, number, value))
    return place.make(
        "arith.cmpf", operands, with_element(value.type, I1), {"predicate": predicate}
    )
