"""Float arithmetic and comparison, and choices, element by element."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.operands import ORDERED, operands_of, texts
from translators.emit.terms import PointerTerm, Term, dtype, typed
from translators.graph.graph import Op
from translators.graph.types import element_of

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


_OPPOSITE = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}


def _float(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    e.give(op, _FLOAT[op.name].format(*texts(terms)), terms)


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
            text = f"{left} {ORDERED[predicate[1:]]} {right}"
        case _ if predicate[0] == "o":
            text = f"{left} {ORDERED[predicate[1:]]} {right}"
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


def _sine_and_cosine(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    for result, name in enumerate(("sin", "cos")):
        e.give(op, f"jnp.{name}({typed(terms[0])})", terms, result=result)


def _integer_power(e: Emission, op: Op) -> None:
    terms = operands_of(e, op)
    base, exponent = (typed(each) for each in terms)
    e.give(op, f"jnp.power({base}, {exponent}.astype({dtype(terms[0].element)}))", terms)


_TABLE: dict[str, Callable[[Emission, Op], None]] = {
    **dict.fromkeys(_FLOAT, _float),
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "tt.clampf": _clamp,
    "math.sincos": _sine_and_cosine,
    "math.fpowi": _integer_power,
}

RULES: Mapping[str, Rule] = MappingProxyType(_TABLE)
