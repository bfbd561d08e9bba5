"""Elements in another order, which TPU kernels bring about by rolls and choices."""

from collections.abc import Mapping
from types import MappingProxyType

# What stands for functions of JAX that kernels cannot call.
FUNCTIONS: Mapping[str, str] = MappingProxyType({"jnp.flip": "_flip", "jnp.sort": "_sort"})

HELPERS: Mapping[str, str] = MappingProxyType(
    {
        # Of 2**k elements, the one at the opposite end differs in all bits of its place.
        "_flip": '''
def _flip(x, axis):
    """The elements along an axis, or several, in the opposite order."""
    if x.dtype.itemsize < 4:
        wide = jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else jnp.int32
        return _flip(x.astype(wide), axis).astype(x.dtype)
    for each in axis if isinstance(axis, tuple) else (axis,):
        each %= x.ndim
        size = x.shape[each]
        whole = 1 << (size - 1).bit_length()
        if whole > size:
            x = jnp.pad(x, [(0, whole - size) if each == one else (0, 0) for one in range(x.ndim)])
        place = lax.broadcasted_iota(jnp.int32, x.shape, each)
        step = 1
        while step < whole:
            x = jnp.where(place & step == 0, jnp.roll(x, -step, each), jnp.roll(x, step, each))
            step *= 2
        x = lax.slice_in_dim(x, whole - size, whole, axis=each)
    return x
''',
        # What a comparison with NaN, or of zeros, leaves of both sides is what it leaves in Triton.
        "_sort": '''
def _sort(x, axis, descending=False):
    """The elements along the last axis, 2**k of them, in order, by a bitonic network."""
    if x.dtype == jnp.bfloat16:
        return _sort(x.astype(jnp.float32), axis, descending).astype(x.dtype)
    size = x.shape[axis]
    place = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    length = 2
    while length <= size:
        # The last runs all rise, or fall; those before do both by turns.
        falls = place & length != 0 if length < size else descending
        step = length // 2
        while step:
            right = place & step != 0
            other = jnp.where(right, jnp.roll(x, step, axis), jnp.roll(x, -step, axis))
            x = jnp.where((x > other) ^ (right ^ falls), other, x)
            step //= 2
        length *= 2
    return x
''',
    }
)
