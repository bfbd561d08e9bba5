"""Ops that compute each element of their results from the same element of their operands."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from translators.access.expression import Symbol, leaves
from translators.access.states import Integer
from translators.emit.affine import affine_term
from translators.emit.emission import Emission, Rule
from translators.emit.terms import PointerTerm, Term, constant, dtype, literal, typed, unsigned
from translators.graph.graph import Op, Value
from translators.graph.types import I1, I32, I64, FloatType, IntType, element_of, shape_of

_FLOAT = {
    "arith.addf": "{0} + {1}",
    "arith.subf": "{0} - {1}",
    "arith.mulf": "{0} * {1}",
    "arith.divf": "{0} / {1}",
    "tt.approx_divf": "{0} / {1}",
    "tt.precise_divf": "{0} / {1}",
    "arith.remf": "jnp.fmod({0}, {1})",
    "arith.negf": "-{0}",
    "arith.maximumf": "jnp.maximum({0}, {1})",
    "arith.minimumf": "jnp.minimum({0}, {1})",
    "arith.maxnumf": "jnp.fmax({0}, {1})",
    "arith.minnumf": "jnp.fmin({0}, {1})",
    "tt.precise_sqrt": "jnp.sqrt({0})",
    "math.absf": "jnp.abs({0})",
    "math.acos": "jnp.arccos({0})",
    "math.acosh": "jnp.arccosh({0})",
    "math.asin": "jnp.arcsin({0})",
    "math.asinh": "jnp.arcsinh({0})",
    "math.atan": "jnp.arctan({0})",
    "math.atan2": "jnp.arctan2({0}, {1})",
    "math.atanh": "jnp.arctanh({0})",
    "math.cbrt": "jnp.cbrt({0})",
    "math.ceil": "jnp.ceil({0})",
    "math.copysign": "jnp.copysign({0}, {1})",
    "math.cos": "jnp.cos({0})",
    "math.cosh": "jnp.cosh({0})",
    "math.erf": "jax.scipy.special.erf({0})",
    "math.erfc": "jax.scipy.special.erfc({0})",
    "math.exp": "jnp.exp({0})",
    "math.exp2": "jnp.exp2({0})",
    "math.expm1": "jnp.expm1({0})",
    "math.floor": "jnp.floor({0})",
    "math.fma": "{0} * {1} + {2}",
    "math.log": "jnp.log({0})",
    "math.log10": "jnp.log10({0})",
    "math.log1p": "jnp.log1p({0})",
    "math.log2": "jnp.log2({0})",
    "math.powf": "jnp.power({0}, {1})",
    "math.round": "lax.round({0}, lax.RoundingMethod.AWAY_FROM_ZERO)",
    "math.roundeven": "jnp.round({0})",
    "math.rsqrt": "lax.rsqrt({0})",
    "math.sin": "jnp.sin({0})",
    "math.sinh": "jnp.sinh({0})",
    "math.sqrt": "jnp.sqrt({0})",
    "math.tan": "jnp.tan({0})",
    "math.tanh": "jnp.tanh({0})",
    "math.trunc": "jnp.trunc({0})",
    "math.isfinite": "jnp.isfinite({0})",
    "math.isinf": "jnp.isinf({0})",
    "math.isnan": "jnp.isnan({0})",
}

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

_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}


def not_negative(e: Emission, value: Value) -> bool:
    """Whether the analysis proves that an integer is not negative."""
    state = e.analysis.states.get(value)
    return (
        isinstance(state, Integer) and not state.assumptions and state.expression.interval.low >= 0
    )


def operands_of(e: Emission, op: Op) -> list[Term]:
    """The operands, none of which is a pointer."""
    return [e.term(each) for each in op.operands]


def texts(terms: list[Term]) -> list[str]:
    """The operands as expressions; where all are numbers, the first one says its type."""
    if all(each.number is not None for each in terms):
        return [typed(terms[0]), *(f"({each.text})" for each in terms[1:])]
    return [f"({each.text})" if each.number is not None else each.text for each in terms]


def _float(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    e.give(op, _FLOAT[op.name].format(*texts(terms)), terms)


def _folded(e: Emission, op: Op) -> bool:
    """Whether the result is a number that is known now, and so needs no text."""
    if e.number(op.result) is not None:
        e.env.pop(op.result, None)
        e.term(op.result)
        return True
    axes = e.analysis.axes
    state = e.analysis.states.get(op.result)
    if axes is None or axes.plain or shape_of(op.result.type) or not isinstance(state, Integer):
        return False
    # In other coordinates than the program ids, what the kernel computes from these is simpler.
    if state.assumptions or any(isinstance(each, Symbol) for each in leaves(state.expression)):
        return False
    e.put(op.result, affine_term(e, state.expression, (), op.result.name))
    return True


def _integer(e: Emission, op: Op) -> None:
    if _folded(e, op):
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
    if _folded(e, op):
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
    if _folded(e, op):
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
    if _folded(e, op) or _asks_for_array(e, op):
        return
    terms = e.alike(operands_of(e, op))
    predicate = op.text("predicate")
    sign = _ORDERED[predicate[-2:]]
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


def _compare_floats(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    left, right = texts(terms)
    predicate = op.text("predicate")
    either = f"jnp.isnan({left}) | jnp.isnan({right})"
    match predicate:
        case "true" | "false":
            text = f"jnp.bool_({predicate == 'true'})"
        case "ord":
            text = f"~({either})"
        case "uno":
            text = either
        case "one":
            text = f"({left} < {right}) | ({left} > {right})"
        case "ueq":
            text = f"~(({left} < {right}) | ({left} > {right}))"
        case "oeq" | "une":
            text = f"{left} {_ORDERED[predicate[1:]]} {right}"
        case _ if predicate[0] == "o":
            text = f"{left} {_ORDERED[predicate[1:]]} {right}"
        case _:
            text = f"~({left} {_OPPOSITE[predicate[1:]]} {right})"
    e.give(op, text, terms)


def _select(e: Emission, op: Op) -> None:
    condition = e.term(op.operands[0])
    if element_of(op.operands[1].type) is not None and e.number(op.result) is not None:
        e.term(op.result)
        return
    yes, no = e.found(op.operands[1]), e.found(op.operands[2])
    if condition.number is not None:
        chosen = op.operands[1 if condition.number else 2]
        found = e.found(chosen)
        e.put(op.result, found if isinstance(found, PointerTerm) else e.term(chosen))
        return
    if isinstance(yes, PointerTerm) or isinstance(no, PointerTerm):
        _select_pointers(e, op, condition)
        return
    first, second = e.alike([e.term(each) for each in op.operands[1:]])
    e.put(op.result, e.chosen(condition, first, second, op.result.name))


def _select_pointers(e: Emission, op: Op, condition: Term) -> None:
    first, second = (e.pointer(each, op) for each in op.operands[1:])
    e.put(op.result, e.chosen_pointer(condition, first, second))


def _clamp(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    value, low, high = texts(terms)
    text = f"jnp.fmin(jnp.fmax({value}, {low}), {high})"
    if op.text("propagateNan") == "all":
        text = f"jnp.where(jnp.isnan({value}), {value}, {text})"
    e.give(op, text, terms)


def _absolute(e: Emission, op: Op) -> None:
    _integer(e, op)


def _cast(e: Emission, op: Op) -> None:
    if op.name in ("arith.extsi", "arith.extui", "arith.trunci") and _folded(e, op):
        return
    (term,) = operands_of(e, op)
    source, target = term.element, e.element(op.result)
    text = typed(term)
    match op.name:
        case "arith.extsi" if source == I1:
            text = f"-({text}.astype({dtype(target)}))"
        case "arith.sitofp" | "arith.uitofp" if source == I1:
            # A product with a converted condition XLA takes for a choice, which forgets of NaN.
            one = "-1.0" if op.name == "arith.sitofp" else "1.0"
            text = f"jnp.where({text}, {dtype(target)}({one}), 0.0)"
        case "arith.extui" if source != I1 and not not_negative(e, op.operands[0]):
            if source != target:
                text = f"{text}.astype({unsigned(source)}).astype({dtype(target)})"
        case "arith.uitofp" if source != I1 and not not_negative(e, op.operands[0]):
            text = f"{text}.astype({unsigned(source)}).astype({dtype(target)})"
        case "arith.trunci" if target == I1:
            text = f"({text} & 1) != 0"
        case "arith.fptosi":
            text = f"{text}.astype({dtype(target)})"
        case "arith.fptoui":
            assert isinstance(target, IntType)
            text = f"{text}.astype({unsigned(target)}).astype({dtype(target)})"
        case "arith.truncf" | "tt.fp_to_fp":
            text = _rounded(e, op, text, source, target)
        case _ if source == target:
            e.put(op.result, term)
            return
        case _:
            text = f"{text}.astype({dtype(target)})"
    if op.name == "arith.extui" and source == target and source != I1:
        e.put(op.result, term)
        return
    e.give(op, text, [term])


def _rounded(e: Emission, op: Op, text: str, source: object, target: object) -> str:
    assert isinstance(source, FloatType)
    assert isinstance(target, FloatType)
    if op.text("rounding", "rtne") == "rtz" and target.width < source.width:
        return f"{e.writer.helper('_toward_zero')}({text}, {dtype(target)})"
    if target.width == 8 and source.width > 8:
        # The cast of JAX gives NaN, or infinity, beyond the greatest value; Triton's saturates.
        limit = literal(target.largest, source)
        text = f"jnp.clip({text}, -{limit}, {limit})"
    return f"{text}.astype({dtype(target)})"


def _bitcast(e: Emission, op: Op) -> None:
    emitted = e.found(op.operands[0])
    if isinstance(emitted, PointerTerm):
        _bitcast_pointer(e, op, emitted)
        return
    term = e.term(op.operands[0])
    target = e.element(op.result)
    if term.element == target:
        e.put(op.result, term)
    elif I1 in (term.element, target):
        text = f"({typed(term)} != 0)" if target == I1 else f"{typed(term)}.astype(jnp.int8)"
        e.give(op, text, [term])
    else:
        e.give(op, f"lax.bitcast_convert_type({typed(term)}, {dtype(target)})", [term])


def _bitcast_pointer(e: Emission, op: Op, pointer: PointerTerm) -> None:
    from translators.emit.pointers import pointee_of, same_width

    pointee = pointee_of(op.result.type)
    if not same_width(pointee, pointer.pointee):
        raise e.refuse(op, "reads an array as elements of another width")
    e.put(op.result, pointer.each(lambda each: replace(each, pointee=pointee)))


def _high_product(e: Emission, op: Op) -> None:
    e.give(op, *_upper_half(e, op, e.element(op.result)))


def _trailing_zeros(e: Emission, op: Op) -> None:
    (term,) = operands_of(e, op)
    text = typed(term)
    e.give(op, f"lax.population_count(~{text} & ({text} - {typed(term.like('1'))}))", [term])


def _sine_and_cosine(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    for result, name in enumerate(("sin", "cos")):
        e.give(op, f"jnp.{name}({typed(terms[0])})", terms, result=result)


def _integer_power(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    base, exponent = (typed(each) for each in terms)
    e.give(op, f"jnp.power({base}, {exponent}.astype({dtype(terms[0].element)}))", terms)


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
    **dict.fromkeys(_FLOAT, _float),
    **dict.fromkeys(_INTEGER, _integer),
    **dict.fromkeys(_UNSIGNED, _unsigned),
    **dict.fromkeys(_SIGNED_DIVISION, _division),
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "tt.clampf": _clamp,
    **dict.fromkeys(
        (
            *("arith.extsi", "arith.extui", "arith.trunci", "arith.extf", "arith.truncf"),
            *("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "tt.fp_to_fp"),
        ),
        _cast,
    ),
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "tt.mulhiui": _high_product,
    "arith.mului_extended": _full_product,
    "math.cttz": _trailing_zeros,
    "math.sincos": _sine_and_cosine,
    "math.fpowi": _integer_power,
}

RULES: Mapping[str, Rule] = MappingProxyType(_TABLE)
