"""Functions that an emitted file brings along where it needs them."""

from collections.abc import Mapping
from types import MappingProxyType

# What a function of the preamble calls.
NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({"_philox": ("_upper_product",)})
HELPERS: Mapping[str, str] = MappingProxyType(
    {
        "_upper_product": '''
def _upper_product(a, b, half):
    """The upper half of the product of unsigned integers of twice `half` bits."""
    low = (1 << half) - 1
    a_low, a_high = a & low, a >> half
    b_low, b_high = b & low, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    carried = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (carried >> half)
''',
        "_philox": '''
def _philox(key_0, key_1, c0, c1, c2, c3, rounds):
    """Four arrays of random `uint32` for a key and a counter: Philox 4x32, as Triton runs it."""
    for _ in range(rounds):
        high_2, high_0 = (
            _upper_product(jnp.uint32(0xCD9E8D57), c2, 16),
            _upper_product(jnp.uint32(0xD2511F53), c0, 16),
        )
        c1, c3, c0, c2 = (
            jnp.uint32(0xCD9E8D57) * c2,
            jnp.uint32(0xD2511F53) * c0,
            high_2 ^ c1 ^ key_0,
            high_0 ^ c3 ^ key_1,
        )
        key_0, key_1 = key_0 + jnp.uint32(0x9E3779B9), key_1 + jnp.uint32(0xBB67AE85)
    return c0, c1, c2, c3
''',
        "_toward_zero": '''
def _toward_zero(x, dtype):
    """`x` in a narrower type of floats, rounded toward zero."""
    nearest = x.astype(dtype)
    above = jnp.abs(nearest.astype(x.dtype)) > jnp.abs(x)
    return jnp.where(above, jnp.nextafter(nearest, jnp.zeros_like(nearest)), nearest)
''',
        "_greatest": '''
def _greatest(x, axis):
    """The greatest number along `axis`; NaN only where all elements are."""
    return lax.reduce(x, jnp.array(jnp.nan, x.dtype), jnp.fmax, (axis,))
''',
        # The greatest of the negated: XLA:CPU of jax 0.12 never ends compiling a reduction
        # by `fmin` of bfloat16 widened to float32 and narrowed after; by `fmax` it does.
        "_least": '''
def _least(x, axis):
    """The least number along `axis`; NaN only where all elements are."""
    return -lax.reduce(-x, jnp.array(jnp.nan, x.dtype), jnp.fmax, (axis,))
''',
        "_reduce": '''
def _reduce(combine, values, axis):
    """Combines neighbours along `axis` until one element is left; keeps their order."""
    values = tuple(jnp.moveaxis(each, axis, 0) for each in values)
    while values[0].shape[0] > 1:
        even, odd = [each[0::2] for each in values], [each[1::2] for each in values]
        values = combine(*even, *odd)
    return tuple(each[0] for each in values)
''',
        "_scan": '''
def _scan(combine, values, axis, reverse):
    """Combines each element along `axis` with all before it, or after it."""

    def pair(earlier, later):
        return combine(*earlier, *later)

    return lax.associative_scan(pair, tuple(values), reverse=reverse, axis=axis)
''',
        "_replaced": '''
def _replaced(old, new):
    """An exchange."""
    return new
''',
        "_swapped": '''
def _swapped(old, expected, new):
    """A comparison and a swap where it holds."""
    return jnp.where(old == expected, new, old)
''',
        "_update_in_order": '''
def _update_in_order(flat, index, values, change):
    """Changes elements one after another; gives the array, and what was there before each."""

    def step(flat, one):
        place, *new = one
        old = jnp.take(flat, place, mode="clip")
        return flat.at[place].set(change(old, *new), mode="drop"), old

    flat, old = lax.scan(step, flat, (index.reshape(-1), *(each.reshape(-1) for each in values)))
    return flat, old.reshape(index.shape)
''',
        "_last_writer": '''
def _last_writer(index, size):
    """`index`, put out of range where a later element has the same one."""
    order = jnp.arange(index.size, dtype=jnp.int32).reshape(index.shape)
    last = jnp.full((size,), -1, jnp.int32).at[index].max(order, mode="drop")
    return jnp.where(jnp.take(last, index, mode="clip") == order, index, size)
''',
    }
)
