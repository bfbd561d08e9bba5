"""Emitted functions run on the CPU whatever XLA makes of their products."""

import numpy as np
import pytest

pytest.importorskip("jax")

from translators.verify.on_cpu import call_on_cpu


def turned(x, y):
    """A product with a turned operand, which XLA takes for one along other dimensions."""
    import jax.numpy as jnp

    where = jnp.arange(64)[:, None] < 32
    left = jnp.where(where, x[:16, :64].transpose(1, 0), 0.0)
    first = jnp.dot(left, y, preferred_element_type=jnp.float32)
    again = first.astype(jnp.bfloat16)
    return jnp.dot(x[:, :64], again, preferred_element_type=jnp.float32)


@pytest.mark.parametrize("without", [(), ("algsimp",)])
def test_turned_products_of_bf16(without):
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(-2, 3, (16, 128)), jnp.bfloat16)
    y = jnp.asarray(rng.integers(-2, 3, (16, 32)), jnp.bfloat16)
    (found,) = call_on_cpu(turned, [x, y], {}, {}, without=without)
    left = np.where(np.arange(64)[:, None] < 32, np.asarray(x, np.float64)[:, :64].T, 0)
    expected = np.asarray(x, np.float64)[:, :64] @ (left @ np.asarray(y, np.float64))
    assert np.array_equal(np.asarray(found, np.float64), expected)


def test_what_a_function_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        call_on_cpu(lambda x: x + 1 // 0, [np.ones(2)], {}, {})
