"""Blocks that begin behind the end of their array are seen, though interpreters hide them."""

import numpy as np
import pytest

pytest.importorskip("jax")

from translators.general_translation.blocks_inside import block_outside

STEPS = 2
ROWS = 512


def doubled(x, *, interpret=False):
    """Two steps of 512 rows, however many rows there are."""
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref, y_ref):
        y_ref[...] = x_ref[...] * 2

    return pl.pallas_call(
        kernel,
        grid=(STEPS,),
        in_specs=[pl.BlockSpec((ROWS, 8), lambda row: (row, 0))],
        out_specs=pl.BlockSpec((ROWS, 8), lambda row: (row, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x)


@pytest.mark.parametrize("rows", [1, 300, ROWS])
def test_a_block_behind_the_end(rows):
    x = np.ones((rows, 8), np.float32)
    assert np.array_equal(doubled(x, interpret=True), 2 * x)
    outside = block_outside(doubled, [x], {})
    assert outside == f"step (1,) of the grid has block (1, 0) of ({rows}, 8)"


@pytest.mark.parametrize("rows", [ROWS + 1, 2 * ROWS])
def test_blocks_that_begin_in_the_array(rows):
    assert not block_outside(doubled, [np.ones((rows, 8), np.float32)], {})
