"""Integer arithmetic and comparison, element by element."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.operands import ORDERED, already_known, not_negative, operands_of, texts
from translators.emit.terms import Term, constant, dtype, typed, unsigned
from translators.graph.graph import Op
from translators.graph.types import I1, I32, I64, IntType, element_of

_INTEGER = {
    "arith.addi": "{0} + {1}",
    "arith.subi": "{0} - {1}",
    "arith.muli": "{0} * {1}",
    "arith.andi": "{0} & {1}",
    "arith.ori": "{0} | {1}",
    "arith.xori": "{0} ^ {1}",
    "arith.maxsi": "jnp.maximum({0}, {1})",
    "arith.minsi": "jnp.minimum({0}, {1})",
    "arith.shli": "{0} << {1}",
    "arith.shrsi": "{0} >> {1}",
    "math.absi": "jnp.abs({0})",
    "math.ctpop": "lax.population_count({0})",
    "math.ctlz": "lax.clz({0})",
}


# Whose low bits depend on low bits alone.
_RING = frozenset(
    ("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori")
)


# Of one bit, in which addition wraps around at 2 and the set bit is negative.
_BIT = {
    **_INTEGER,
    "arith.addi": "{0} ^ {1}",
    "arith.subi": "{0} ^ {1}",
    "arith.muli": "{0} & {1}",
    "arith.maxsi": "{0} & {1}",
    "arith.minsi": "{0} | {1}",
    "arith.maxui": "{0} | {1}",
    "arith.minui": "{0} & {1}",
}


# On the same bits read as unsigned.
_UNSIGNED = {
    "arith.divui": "{0} // {1}",
    "arith.remui": "{0} % {1}",
    "arith.shrui": "{0} >> {1}",
    "arith.maxui": "jnp.maximum({0}, {1})",
    "arith.minui": "jnp.minimum({0}, {1})",
    "arith.ceildivui": "{0} // {1} + ({0} % {1} != 0)",
}


# For operands that are not negative.
_DIVISION = {"arith.divsi": "{0} // {1}", "arith.remsi": "{0} % {1}"}


_SIGNED_DIVISION = {
    "arith.divsi": "({0} - jnp.fmod({0}, {1})) // {1}",
    "arith.remsi": "jnp.fmod({0}, {1})",
    "arith.floordivsi": "{0} // {1}",
    "arith.ceildivsi": "-(-{0} // {1})",
}


def _integer(e: Emission, op: Op) -> None:
    if already_known(e, op):
        return
    terms = _integers(e, op)
    bits = element_of(op.operands[0].type) == I1
    if op.name in ("arith.andi", "arith.ori") and bits and _neutral(e, op, terms):
        return
    if op.name in ("arith.addi", "arith.subi", "arith.muli") and _identity(e, op, terms):
        return
    text = (_BIT if bits else _INTEGER)[op.name].format(*texts(terms))
    _give_integer(e, op, text, terms)


def _integers(e: Emission, op: Op) -> list[Term]:
    """The operands; where the result is wide, as wide as it."""
    terms = operands_of(e, op)
    element = e.element(op.result)
    if element == I64:
        return e.alike(terms, I64)
    return e.alike(terms, I32) if op.name in _RING and element == I32 else e.alike(terms)


def _neutral(e: Emission, op: Op, terms: list[Term]) -> bool:
    """Whether one condition decides alone."""
    neutral = 1 if op.name == "arith.andi" else 0
    for one, other in (terms, terms[::-1]):
        if one.number == neutral:
            e.put(op.result, other)
            return True
    return False


def _identity(e: Emission, op: Op, terms: list[Term]) -> bool:
    """Whether nothing is added, or something multiplied with one."""
    neutral = 1 if op.name == "arith.muli" else 0
    one, other = terms
    if other.number == neutral:
        e.put(op.result, one)
        return True
    if one.number == neutral and op.name != "arith.subi":
        e.put(op.result, other)
        return True
    return False


def _give_integer(e: Emission, op: Op, text: str, terms: list[Term]) -> None:
    """The result; cut to `i32` where it fits though an operand does not."""
    element = e.element(op.result)
    if element == I32 and any(each.element not in (I32, I1) for each in terms):
        text = f"({text}).astype(jnp.int32)"
    e.give(op, text, terms)


def _unsigned(e: Emission, op: Op) -> None:
    if already_known(e, op):
        return
    terms = _integers(e, op)
    if element_of(op.operands[0].type) == I1:
        if op.name not in _BIT:
            raise e.refuse(op, "of single bits has no form in JAX yet")
        e.give(op, _BIT[op.name].format(*texts(terms)), terms)
        return
    template = _UNSIGNED[op.name]
    if all(not_negative(e, each) for each in op.operands):
        _give_integer(e, op, template.format(*texts(terms)), terms)
        return
    parts = [_as_unsigned(each) for each in terms]
    e.give(op, f"({template.format(*parts)}).astype({dtype(e.element(op.result))})", terms)


def _as_unsigned(term: Term) -> str:
    if term.number is not None:
        assert isinstance(term.element, IntType)
        return f"{unsigned(term.element)}({int(term.number) % (1 << term.element.width)})"
    return f"{term.text}.astype({unsigned(term.element)})"


def _division(e: Emission, op: Op) -> None:
    if already_known(e, op):
        return
    terms = _integers(e, op)
    plain = op.name in _DIVISION and all(not_negative(e, each) for each in op.operands)
    template = (_DIVISION if plain else _SIGNED_DIVISION)[op.name]
    if op.name == "arith.divsi" and terms[1].number == 1:
        e.put(op.result, terms[0])
        return
    if not plain and any(each.number is not None for each in terms):
        parts = [typed(each) for each in terms]
    else:
        parts = texts(terms)
    _give_integer(e, op, template.format(*parts), terms)


def _compare_integers(e: Emission, op: Op) -> None:
    if already_known(e, op) or _asks_for_array(e, op):
        return
    terms = e.alike(operands_of(e, op))
    predicate = op.text("predicate")
    sign = ORDERED[predicate[-2:]]
    element = element_of(op.operands[0].type)
    if element == I1 and predicate not in ("eq", "ne"):
        # Read as signed the set bit is -1, below 0.
        order = terms[::-1] if predicate[0] == "s" else terms
        parts = [f"{typed(each)}.astype(jnp.int32)" for each in order]
        e.give(op, f"{parts[0]} {sign} {parts[1]}", terms)
        return
    if predicate[0] == "u" and not all(not_negative(e, each) for each in op.operands):
        parts = [_as_unsigned(each) for each in terms]
    else:
        parts = texts(terms)
    e.give(op, f"{parts[0]} {sign} {parts[1]}", terms)


def _asks_for_array(e: Emission, op: Op) -> bool:
    """Whether an address is compared with zero, which it is not."""
    predicate = op.text("predicate")
    for value, other in (op.operands, op.operands[::-1]):
        alone = value in e.addresses and other not in e.addresses
        if alone and predicate in ("eq", "ne") and e.term(other).number == 0:
            e.put(op.result, constant(int(predicate == "ne"), I1))
            return True
    return False


def _high_product(e: Emission, op: Op) -> None:
    e.give(op, *_upper_half(e, op, e.element(op.result)))


def _trailing_zeros(e: Emission, op: Op) -> None:
    (term,) = operands_of(e, op)
    text = typed(term)
    e.give(op, f"lax.population_count(~{text} & ({text} - {typed(term.like('1'))}))", [term])


def _upper_half(e: Emission, op: Op, element: object) -> tuple[str, list[Term]]:
    wide = element_of(op.operands[0].type)
    if wide not in (I32, I64):
        raise e.refuse(op, f"of `{wide}` has no form in JAX yet")
    terms = e.alike(operands_of(e, op), wide)
    helper = e.writer.helper("_upper_product")
    parts = ", ".join(_as_unsigned(each) for each in terms)
    half = 16 if wide == I32 else 32
    kept = I32 if element == I32 else wide
    return f"{helper}({parts}, {half}).astype({dtype(kept)})", terms


def _full_product(e: Emission, op: Op) -> None:
    """Lower and upper half of an unsigned product."""
    lower, upper = (e.element(each) for each in op.results)
    terms = e.alike(operands_of(e, op), element_of(op.operands[0].type))
    parts = [_as_unsigned(each) for each in terms]
    text, _ = _upper_half(e, op, upper)
    e.give(op, f"({parts[0]} * {parts[1]}).astype({dtype(lower)})", terms)
    e.give(op, text, terms, result=1)


_TABLE: dict[str, Callable[[Emission, Op], None]] = {
    **dict.fromkeys(_INTEGER, _integer),
    **dict.fromkeys(_UNSIGNED, _unsigned),
    **dict.fromkeys(_SIGNED_DIVISION, _division),
    "arith.cmpi": _compare_integers,
    "tt.mulhiui": _high_product,
    "arith.mului_extended": _full_product,
    "math.cttz": _trailing_zeros,
}

RULES: Mapping[str, Rule] = MappingProxyType(_TABLE)
