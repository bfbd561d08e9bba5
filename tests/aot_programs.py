"""Programs whose buffers cover what decides the size of a buffer on a TPU.

Element types and sizes beside tile boundaries, in HBM and in VMEM, in every layout XLA picks.
"""

_FUNCTIONS = """
SHAPES = [(), (1,), (3,), (127,), (128,), (129,), (1000,), (5000,), (1, 1), (2, 3), (7, 129),
          (8, 128), (9, 1), (1, 300), (300, 1), (257, 255), (1000, 256), (256, 1000), (4, 250, 513),
          (2, 3, 5), (16, 1, 128), (3, 1, 1, 7), (2, 2, 2, 2, 130), (33, 17, 9, 5), (513, 4, 2)]

def changed(x):
    if x.dtype == jnp.bool_:
        return ~x
    if x.dtype.itemsize == 1 and jnp.issubdtype(x.dtype, jnp.floating):
        return (x.astype(jnp.float32) * 3).astype(x.dtype)
    return x * 3 if jnp.issubdtype(x.dtype, jnp.inexact) else x + x

def elementwise(*arrays):
    return [changed(x) for x in arrays]

def turned(*arrays):
    return [changed(x).T for x in arrays if x.ndim > 1]

def reduced(*arrays):
    return [jnp.max(x, axis=-1) for x in arrays if x.ndim > 1]

def product(x, y):
    return jnp.tanh(x @ y) @ y.T

def loop(x, y):
    def step(carry, row):
        carry = jnp.tanh(carry @ y) + row
        return carry, carry.sum(axis=1)
    return jax.lax.scan(step, x[0], x)

def sharper(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")

"""

QUICK_SIZES = (
    _FUNCTIONS
    + """
DTYPES = ("bool", "int4", "int8", "bfloat16", "float32", "float8_e5m2")
emit("elementwise", elementwise, *(array(d, *s) for d in DTYPES for s in SHAPES))
emit("turned", turned, *(array(d, *s) for d in DTYPES for s in SHAPES[8:]))
emit("reduced", reduced, *(array("bfloat16", *s) for s in SHAPES))
emit("loop", loop, array("float32", 5, 100, 70), array("float32", 70, 70))
"""
)
"""Seconds to compile."""

PADDED_SIZES = (
    _FUNCTIONS
    + """
for dtype in ("bool", "int4", "uint4", "int8", "uint8", "int16", "int32", "uint32", "int64",
              "bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
              "complex64"):
    arrays = [array(dtype, *shape) for shape in SHAPES]
    emit("elementwise_" + dtype, elementwise, *arrays)
    emit("turned_" + dtype, turned, *arrays)
    if dtype in ("int8", "int32", "bfloat16", "float32", "float64"):
        emit("reduced_" + dtype, reduced, *arrays)
    if dtype in ("int8", "bfloat16", "float32", "float8_e4m3fn"):
        emit("product_" + dtype, lambda x, y: (x.astype(jnp.float32) @ y.astype(jnp.float32)),
             array(dtype, 250, 513), array(dtype, 513, 7))
    if dtype in ("bfloat16", "float32"):
        emit("loop_" + dtype, loop, array(dtype, 5, 100, 70), array(dtype, 70, 70))
        emit("twice_" + dtype, product, array(dtype, 1000, 300), array(dtype, 300, 200))
        emit("conv_" + dtype, sharper, array(dtype, 3, 5, 30, 31), array(dtype, 9, 5, 3, 3))

emit("sort", lambda x: jax.lax.top_k(jnp.sort(x), 5), array("float32", 7, 1001))
emit("scatter", lambda x, i: x.at[i].add(1), array("float32", 1001, 65), array("int32", 33))
emit("mask", lambda x: jnp.where(x > 0, x, 0) + (x > 1).any(axis=0), array("float32", 99, 300))
"""
)
"""A minute or more to compile."""
