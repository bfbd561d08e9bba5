"""Functions of floats that TPU kernels lack, composed of those that they have.

They are accurate to a few units in the last place where what they are composed of is. None adds a
number and takes it away again: XLA would leave out both.
"""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.externs import RULES as EXTERNS
from translators.emit.externs import SYMBOLS
from translators.emit.integers import RULES as INTEGERS
from translators.emit.operands import operands_of
from translators.emit.terms import typed
from translators.graph.graph import Op

_COMPOSED = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cosh",
    "erfc",
    "expm1",
    "sinh",
)
# What a composed function calls.
_NEEDS: Mapping[str, str] = MappingProxyType({"sinh": "_expm1"})
_MISSING = ("lgamma", "tgamma")


def _compose(e: Emission, op: Op, name: str) -> None:
    terms = operands_of(e, op)
    if name in _NEEDS:
        e.writer.helper(_NEEDS[name])
    e.give(op, f"{e.writer.helper(f'_{name}')}({typed(terms[0])})", terms)


def _function(e: Emission, op: Op) -> None:
    _compose(e, op, op.name.removeprefix("math."))


def _extern(e: Emission, op: Op) -> None:
    symbol = op.text("symbol")
    name = symbol.removeprefix("__nv_").removesuffix("f")
    if symbol in SYMBOLS and name in _COMPOSED:
        _compose(e, op, name)
    elif name in _MISSING:
        raise e.refuse(op, f"calls `{symbol}`, which TPU kernels have not")
    else:
        EXTERNS["tt.extern_elementwise"](e, op)


def _set_bits(e: Emission, op: Op) -> None:
    (term,) = operands_of(e, op)
    if term.array_shape or term.number is not None:
        INTEGERS[op.name](e, op)
        return
    e.give(op, f"{e.writer.helper('_set_bits')}({typed(term)})", [term])


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{f"math.{name}": _function for name in _COMPOSED},
        "math.ctpop": _set_bits,
        "tt.extern_elementwise": _extern,
    }
)

HELPERS: Mapping[str, str] = MappingProxyType(
    {
        "_acos": '''
def _acos(x):
    """The arc cosine."""
    return 2.0 * jnp.arctan2(jnp.sqrt(1.0 - x), jnp.sqrt(1.0 + x))
''',
        "_acosh": '''
def _acosh(x):
    """The inverse of the hyperbolic cosine."""
    more = x - 1.0
    near = jnp.log1p(more + jnp.sqrt(more * (more + 2.0)))
    found = jnp.where(x < 1e9, near, jnp.log(x) + 0.6931472)
    return jnp.where(x < 1.0, jnp.nan, found)
''',
        "_asin": '''
def _asin(x):
    """The arc sine."""
    return 2.0 * jnp.arctan2(x, 1.0 + jnp.sqrt((1.0 - x) * (1.0 + x)))
''',
        "_asinh": '''
def _asinh(x):
    """The inverse of the hyperbolic sine."""
    size = jnp.abs(x)
    near = jnp.log1p(size + size * size / (1.0 + jnp.sqrt(size * size + 1.0)))
    return jnp.copysign(jnp.where(size < 1e9, near, jnp.log(size) + 0.6931472), x)
''',
        "_atan": '''
def _atan(x):
    """The arc tangent."""
    return jnp.arctan2(x, jnp.ones_like(x))
''',
        "_atanh": '''
def _atanh(x):
    """The inverse of the hyperbolic tangent."""
    size = jnp.abs(x)
    return jnp.copysign(0.5 * jnp.log1p(2.0 * size / (1.0 - size)), x)
''',
        "_cbrt": '''
def _cbrt(x):
    """The cube root."""
    size = jnp.abs(x)
    root = jnp.exp2(jnp.log2(size) * 0.33333334)
    root = root - root * ((root * root) * (root / size) - 1.0) * 0.33333334
    return jnp.where((size > 0.0) & (size < jnp.inf), jnp.copysign(root, x), x)
''',
        "_cosh": '''
def _cosh(x):
    """The hyperbolic cosine."""
    half = jnp.exp(0.5 * jnp.abs(x))
    large = 0.5 * half * half
    power = jnp.exp(jnp.abs(x))
    return jnp.where(jnp.abs(x) < 20.0, 0.5 * power + 0.5 / power, large)
''',
        # erfc(x) = t exp(-x^2) P(t) with t = 1 / (1 + x / 2); P fits within 2e-8.
        "_erfc": '''
def _erfc(x):
    """What the error function lacks of one."""
    size = jnp.abs(x)
    t = 1.0 / (1.0 + 0.5 * size)
    fitted = -0.06609205
    for each in (0.21487197, -0.20082794, -0.0071125478, -0.012244385, 0.08388988, 0.17642702):
        fitted = fitted * t + each
    for each in (0.24681976, 0.2820952, 0.28209478):
        fitted = fitted * t + each
    # The upper bits of x, of which the square is exact.
    upper = lax.bitcast_convert_type(size, jnp.int32) & -0x1000
    upper = lax.bitcast_convert_type(upper, jnp.float32)
    # Not side by side: XLA would make one power of the sum, which is rounded.
    tail = jnp.exp(-upper * upper) * (t * fitted) * jnp.exp((upper - size) * (upper + size))
    tail = jnp.where(size < 11.0, tail, 0.0 * t)
    tail = jnp.where(x < 0.0, 2.0 - tail, tail)
    return jnp.where(size < 0.5, 1.0 - lax.erf(x), tail)
''',
        "_expm1": '''
def _expm1(x):
    """A power of e, less 1."""
    series = x / 9.0
    for each in range(8, 1, -1):
        series = (series + 1.0) * (x / each)
    return jnp.where(jnp.abs(x) < 0.5, series * x + x, jnp.exp(x) - 1.0)
''',
        "_set_bits": '''
def _set_bits(x):
    """How many bits of a number are set."""
    x = x.astype(jnp.uint32)
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24).astype(jnp.int32)
''',
        "_sinh": '''
def _sinh(x):
    """The hyperbolic sine."""
    size = jnp.abs(x)
    less = _expm1(size)
    half = jnp.exp(0.5 * size)
    found = jnp.where(size < 20.0, 0.5 * (less + less / (less + 1.0)), 0.5 * half * half)
    return jnp.copysign(found, x)
''',
    }
)
