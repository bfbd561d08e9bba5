"""Programs whose intermediate values do not fit into VMEM, of the kinds that people train."""

_SETUP = """
bf, f32 = "bfloat16", "float32"

def layer(x, w):
    return jnp.tanh(x @ w)

def chain(x, w):
    for _ in range(3):
        x = layer(x, w)
        x = x - jnp.max(x, 0)[None]
        x = x / jnp.sum(x * x, 1)[:, None]
    return x

def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32) / 8
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1).astype(v.dtype), v)

def scan(w, x):
    return jax.lax.scan(lambda c, w: (layer(c, w), None), x, w)[0]

def scan_grad(w, x):
    return jax.grad(lambda w: scan(w, x).astype(jnp.float32).sum())(w)

def scan_remat_grad(w, x):
    body = jax.checkpoint(lambda c, w: (layer(c, w), None))
    return jax.grad(lambda w: jax.lax.scan(body, x, w)[0].astype(jnp.float32).sum())(w)

def adam(p, m, v, x):
    def loss(p):
        y = x
        for w in p:
            y = jax.nn.gelu(y @ w)
        return (y.astype(jnp.float32) ** 2).mean()
    g = jax.grad(loss)(p)
    m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
    v = [0.99 * a + 0.01 * b * b for a, b in zip(v, g)]
    return [a - 0.1 * b / (jnp.sqrt(c) + 1e-8) for a, b, c in zip(p, m, v)], m, v

def conv(x, w, stride):
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def conv_net(x, a, b):
    return jax.nn.relu(conv(jax.nn.relu(conv(x, a, 1)), b, 2)).mean((1, 2))

def conv_net_grad(x, a, b):
    return jax.grad(lambda a, b: conv_net(x, a, b).astype(jnp.float32).sum(), (0, 1))(a, b)

def branches(x, i):
    return jax.lax.cond(i > 0, lambda x: (x @ x).sum(0), lambda x: jnp.cumsum(x, 0)[-1], x)

def newton(x):
    return jax.lax.fori_loop(0, 10, lambda i, y: 2 * y - y @ (x @ y), x)

def nested(w, x):
    def outer(c, w):
        return jax.lax.fori_loop(0, 4, lambda i, y: layer(y, w) + c, c), c.sum()
    return jax.lax.scan(outer, x, w)

def layer_norm(x, w):
    mean = x.mean(-1, keepdims=True)
    scaled = (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-6)
    return (scaled @ w).astype(jnp.bfloat16).T
"""

QUICK = (
    _SETUP
    + """
emit("chain", chain, array(f32, 8192, 8192), array(f32, 8192, 8192))
emit("scan_grad", scan_grad, array(bf, 4, 2048, 2048), array(bf, 16384, 2048))
"""
)
"""Seconds to compile."""

VARIED = (
    QUICK
    + """
emit("attention", attention, *(array(bf, 4, 16, 2048, 64) for _ in range(3)))
emit("scan", scan, array(bf, 4, 4096, 4096), array(bf, 32768, 4096))
emit("scan_remat_grad", scan_remat_grad, array(bf, 4, 2048, 2048), array(bf, 32768, 2048))
emit("adam", adam, *([array(f32, 4096, 4096)] * 3 for _ in range(3)), array(f32, 16384, 4096))
emit("adam_donated", adam, *([array(f32, 4096, 4096)] * 3 for _ in range(3)),
     array(f32, 16384, 4096), donate_argnums=(0, 1, 2))
emit("conv_net", conv_net, array(bf, 64, 128, 128, 32), array(bf, 3, 3, 32, 64),
     array(bf, 3, 3, 64, 64))
emit("conv_net_grad", conv_net_grad, array(bf, 64, 128, 128, 32), array(bf, 3, 3, 32, 64),
     array(bf, 3, 3, 64, 64))
emit("branches", branches, array(bf, 16384, 16384), array("int32"))
emit("newton", newton, array(f32, 8192, 8192))
emit("nested", nested, array(bf, 3, 2048, 2048), array(bf, 32768, 2048))
emit("layer_norm", layer_norm, array(f32, 65536, 2048), array(f32, 2048, 2048))
"""
)
"""Minutes to compile."""
