"""Casts of floats in a kernel: to `f16`, which stays held as `f32`, and toward zero."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.operands import operands_of
from translators.emit.terms import dtype, literal, typed
from translators.graph.graph import Op
from translators.graph.types import F16, FloatType


def _cast(e: Emission, op: Op) -> None:
    (term,) = operands_of(e, op)
    source, target = term.element, e.element(op.result)
    assert isinstance(source, FloatType)
    assert isinstance(target, FloatType)
    # What is given by `arith.truncf` has that type already.
    if source == F16 or (target == F16 and op.name == "arith.truncf"):
        e.put(op.result, term.like(term.text, element=target))
        return
    text = typed(term)
    toward_zero = op.text("rounding", "rtne") == "rtz" and target.width < source.width
    if target.width == 8 and source.width > 8:
        # Beyond the greatest value the cast of JAX gives NaN, or infinity; Triton's saturates.
        limit = literal(target.largest, source)
        text = f"jnp.clip({text}, -{limit}, {limit})"
    if target == F16:
        helper = "_toward_float16" if toward_zero else "_to_float16"
        text = f"{e.writer.helper(helper)}({text})"
    elif toward_zero:
        text = f"{e.writer.helper('_toward_zero')}({text}, {dtype(target)})"
    else:
        text = f"{text}.astype({dtype(target)})"
    e.give(op, text, [term])


RULES: Mapping[str, Rule] = MappingProxyType(
    dict.fromkeys(("arith.extf", "arith.truncf", "tt.fp_to_fp"), _cast)
)

# The exponents of `float16` begin at -14, its significands have 11 bits: it lacks the last 13 of
# those of `float32`, and below 2**-14 it counts units of 2**-24.
HELPERS: Mapping[str, str] = MappingProxyType(
    {
        # Half of the last of 13 bits is added that are then cut off, or less where that makes an
        # even one. Up to 2**-14, adding 0.5 leaves units of 2**-24, which are counted by its bits.
        "_to_float16": '''
def _to_float16(x):
    """The numbers of `float16` nearest to those of `float32`, of two the even one."""
    bits = lax.bitcast_convert_type(x, jnp.int32)
    size = jnp.abs(x)
    units = lax.bitcast_convert_type(size + 0.5, jnp.int32) - 0x3F000000
    small = lax.bitcast_convert_type(units.astype(jnp.float32) * 2.0**-24, jnp.int32)
    rounded = (bits + ((bits >> 13) & 1) + 0xFFF) & -0x2000
    rounded = jnp.where(size < 2.0**-14, small | (bits & -0x80000000), rounded)
    rounded = lax.bitcast_convert_type(rounded, jnp.float32)
    return jnp.where(size < 65520.0, rounded, x * jnp.inf)
''',
        # Of two parts, the 8 upper bits and the 3 others, all products are exact.
        "_dot_of_float16": '''
def _dot_of_float16(form, a, b):
    """A product of numbers of `float16`, held as `float32`, in four of their parts."""

    def multiply(a, b):
        return jnp.einsum(form, a, b, preferred_element_type=jnp.float32)

    a_high, b_high = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    a_low = (a - a_high.astype(jnp.float32)).astype(jnp.bfloat16)
    b_low = (b - b_high.astype(jnp.float32)).astype(jnp.bfloat16)
    rest = multiply(a_low, b_low) + multiply(a_high, b_low) + multiply(a_low, b_high)
    # An infinity times a part that is zero says nothing of the product.
    return multiply(a_high, b_high) + jnp.where(jnp.isnan(rest), 0.0, rest)
''',
        "_toward_float16": '''
def _toward_float16(x):
    """The numbers of `float16` next to those of `float32`, toward zero."""
    bits = lax.bitcast_convert_type(x, jnp.int32)
    magnitude = bits & 0x7FFFFFFF
    cut = jnp.where(magnitude < 0x47800000, magnitude & -0x2000, 0x477FE000)
    cut = lax.bitcast_convert_type(cut | (bits & -0x80000000), jnp.float32)
    small = jnp.trunc(x * 2.0**24) * 2.0**-24
    cut = jnp.where(magnitude < 0x38800000, small, cut)
    return jnp.where(magnitude >= 0x7F800000, x, cut)
''',
        "_toward_zero": '''
def _toward_zero(x, dtype):
    """`x` in a narrower type of floats, rounded toward zero."""
    nearest = x.astype(dtype)
    above = jnp.abs(nearest.astype(jnp.float32)) > jnp.abs(x.astype(jnp.float32))
    whole = jnp.int16 if dtype == jnp.bfloat16 else jnp.int8
    bits = lax.bitcast_convert_type(nearest, whole).astype(jnp.int32)
    return lax.bitcast_convert_type((bits - above.astype(jnp.int32)).astype(whole), dtype)
''',
    }
)
