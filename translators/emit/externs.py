"""Functions of libdevice, and single PTX instructions, as functions of JAX."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.operands import operands_of, texts
from translators.emit.terms import dtype, typed
from translators.graph.graph import Op
from translators.graph.types import IntType

_REAL = {
    "acos": "jnp.arccos({0})",
    "acosh": "jnp.arccosh({0})",
    "asin": "jnp.arcsin({0})",
    "asinh": "jnp.arcsinh({0})",
    "atan": "jnp.arctan({0})",
    "atan2": "jnp.arctan2({0}, {1})",
    "atanh": "jnp.arctanh({0})",
    "cbrt": "jnp.cbrt({0})",
    "ceil": "jnp.ceil({0})",
    "copysign": "jnp.copysign({0}, {1})",
    "cos": "jnp.cos({0})",
    "cosh": "jnp.cosh({0})",
    "erf": "jax.scipy.special.erf({0})",
    "erfc": "jax.scipy.special.erfc({0})",
    "exp": "jnp.exp({0})",
    "exp10": "jnp.power(10.0, {0})",
    "exp2": "jnp.exp2({0})",
    "expm1": "jnp.expm1({0})",
    "fabs": "jnp.abs({0})",
    "fdim": "jnp.where({0} <= {1}, 0.0, {0} - {1})",
    "floor": "jnp.floor({0})",
    "fmax": "jnp.fmax({0}, {1})",
    "fmin": "jnp.fmin({0}, {1})",
    "fmod": "jnp.fmod({0}, {1})",
    "hypot": "jnp.hypot({0}, {1})",
    "lgamma": "jax.scipy.special.gammaln({0})",
    "log": "jnp.log({0})",
    "log10": "jnp.log10({0})",
    "log1p": "jnp.log1p({0})",
    "log2": "jnp.log2({0})",
    "nearbyint": "jnp.round({0})",
    "pow": "jnp.power({0}, {1})",
    "rint": "jnp.round({0})",
    "round": "lax.round({0}, lax.RoundingMethod.AWAY_FROM_ZERO)",
    "rsqrt": "lax.rsqrt({0})",
    "sin": "jnp.sin({0})",
    "sinh": "jnp.sinh({0})",
    "sqrt": "jnp.sqrt({0})",
    "tan": "jnp.tan({0})",
    "tanh": "jnp.tanh({0})",
    "tgamma": "jax.scipy.special.gamma({0})",
    "trunc": "jnp.trunc({0})",
}
_ROUNDED = {
    "rn": "jnp.round({0})",
    "rz": "jnp.trunc({0})",
    "rd": "jnp.floor({0})",
    "ru": "jnp.ceil({0})",
}
_OTHERS = {
    "__nv_powi": "jnp.power({0}, {1}.astype(jnp.float64))",
    "__nv_powif": "jnp.power({0}, {1}.astype(jnp.float32))",
    "__nv_fast_fdividef": "{0} / {1}",
    "__nv_fdiv_rn": "{0} / {1}",
    "__nv_ddiv_rn": "{0} / {1}",
    "__nv_fsqrt_rn": "jnp.sqrt({0})",
    "__nv_dsqrt_rn": "jnp.sqrt({0})",
    "__nv_llrint": "jnp.round({0})",
    "__nv_llrintf": "jnp.round({0})",
    "__nv_llround": "lax.round({0}, lax.RoundingMethod.AWAY_FROM_ZERO)",
    "__nv_llroundf": "lax.round({0}, lax.RoundingMethod.AWAY_FROM_ZERO)",
    "__nv_popc": "lax.population_count({0})",
    "__nv_popcll": "lax.population_count({0})",
    "__nv_finitef": "jnp.isfinite({0})",
    "__nv_isfinited": "jnp.isfinite({0})",
}
_TESTS = {"isinf": "jnp.isinf({0})", "isnan": "jnp.isnan({0})", "signbit": "jnp.signbit({0})"}

# PTX, without what flushes subnormals: those are no part of what is compared.
_INSTRUCTIONS = {
    "abs": "jnp.abs({0})",
    "add": "{0} + {1}",
    "cos": "jnp.cos({0})",
    "div": "{0} / {1}",
    "ex2": "jnp.exp2({0})",
    "fma": "{0} * {1} + {2}",
    "lg2": "jnp.log2({0})",
    "max": "jnp.fmax({0}, {1})",
    "min": "jnp.fmin({0}, {1})",
    "mul": "{0} * {1}",
    "neg": "-{0}",
    "rcp": "1.0 / {0}",
    "rsqrt": "lax.rsqrt({0})",
    "sin": "jnp.sin({0})",
    "sqrt": "jnp.sqrt({0})",
    "sub": "{0} - {1}",
    "tanh": "jnp.tanh({0})",
}


def _symbols() -> Mapping[str, str]:
    found = dict(_OTHERS)
    for name, template in _REAL.items():
        found[f"__nv_{name}"] = template
        found[f"__nv_{name}f"] = template
        found[f"__nv_fast_{name}f"] = template
    for name, template in _TESTS.items():
        found[f"__nv_{name}f"] = template
        found[f"__nv_{name}d"] = template
    for suffix, template in _ROUNDED.items():
        for start in ("float2int", "float2ll", "double2int", "double2ll"):
            found[f"__nv_{start}_{suffix}"] = template
    return MappingProxyType(found)


SYMBOLS = _symbols()


def _extern(e: Emission, op: Op) -> None:
    template = SYMBOLS.get(op.text("symbol"))
    if template is None:
        raise e.refuse(op, f"calls `{op.text('symbol')}`, which has no form in JAX yet")
    terms = operands_of(e, op)
    typing = len(terms) == 1 or ".astype" in template
    parts = [typed(each) for each in terms] if typing else texts(terms)
    text = template.format(*parts)
    target = e.element(op.result)
    if isinstance(target, IntType):
        text = f"({text}).astype({dtype(target)})"
    e.give(op, text, terms)


def _assembly(e: Emission, op: Op) -> None:
    opcode = re.split(r"[.\s]", op.text("asm_string").strip(), maxsplit=1)[0]
    template = _INSTRUCTIONS.get(opcode)
    if template is None:
        raise e.refuse(op, f"of `{opcode}` has no form in JAX yet")
    terms = operands_of(e, op)
    e.give(op, template.format(*texts(terms)), terms)


RULES: Mapping[str, Rule] = MappingProxyType(
    {"tt.extern_elementwise": _extern, "tt.elementwise_inline_asm": _assembly}
)
