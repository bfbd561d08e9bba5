"""A kernel of fewer programs does what the kernel of many does, or is left alone."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from launching import explicit

from translators.access.analysis import analyze
from translators.access.programs import program_axes
from translators.emit.merging import merge_programs
from translators.emit.unsharing import unshared
from translators.graph.evaluator import evaluate
from translators.graph.graph import walk
from translators.graph.types import shape_of
from translators.specializing import specialization
from translators.translation import translate
from translators.triton.kernel_graph import kernel_graph, kernel_parameters
from translators.triton.launches import ArrayArgument

MATMUL = [
    *("a_ptr=f32[40,35]", "b_ptr=f32[35,50]", "c_ptr=f32[40,50]", "M=40", "N=50", "K=35"),
    *("stride_am=35", "stride_ak=1", "stride_bk=50", "stride_bn=1", "stride_cm=50", "stride_cn=1"),
]
BLOCKS = ["BLOCK_M=16", "BLOCK_N=16", "BLOCK_K=16", "ACTIVATION=relu"]


def merged(name, arguments, constants, grid):
    """A kernel, its launch, and the kernel of fewer programs."""
    kernel, launch = explicit(name, arguments, constants, grid)
    module = unshared(kernel_graph(kernel, launch))
    analysis = analyze(module, specialization(module, launch))
    placed = analyze(module, analysis.launch, program_axes(analysis))
    return launch, module, merge_programs(module, placed)


def assert_same(launch, module, found):
    rng = np.random.default_rng(3)
    values = [
        rng.standard_normal(each.shape).astype(np.float32)
        if isinstance(each, ArrayArgument)
        else each.value
        for each in kernel_parameters(launch)
    ]
    before = evaluate(module, values, launch.grid).arrays
    after = evaluate(found.module, values, found.grid).arrays
    for one, other in zip(before, after, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, 1e-6, 1e-6)


def ranges(module):
    return sorted(
        shape_of(op.result.type)[0] for op in walk(module.kernel.body) if op.name == "tt.make_range"
    )


def test_blocks_of_a_vector_become_the_vector():
    arrays = ["x_ptr=f32[1000]", "y_ptr=f32[1000]", "out_ptr=f32[1000]", "n=1000"]
    launch, module, found = merged("vector_add", arrays, ["BLOCK=256"], "4")
    assert found is not None
    assert found.grid == (1, 1, 1)
    assert set(ranges(found.module)) == {1000}, "lanes that the mask leaves out are left out"
    assert_same(launch, module, found)


def test_a_mask_that_ends_before_the_array_cuts_there():
    arrays = ["x_ptr=f32[1000]", "y_ptr=f32[1000]", "out_ptr=f32[1000]", "n=700"]
    launch, module, found = merged("vector_add", arrays, ["BLOCK=256"], "4")
    assert found is not None
    assert set(ranges(found.module)) == {700}
    assert_same(launch, module, found)


def test_rows_and_columns_of_a_product_are_merged_and_the_inner_loop_is_not():
    launch, module, found = merged("matmul", MATMUL, BLOCKS, "3,4")
    assert found is not None
    assert found.grid == (1, 1, 1)
    assert set(ranges(found.module)) == {16, 40, 50}
    assert_same(launch, module, found)


def test_rows_that_are_reduced_stay_programs():
    arrays = ["out_ptr=f32[5,37]", "x_ptr=f32[5,37]", "out_stride=37", "x_stride=37", "columns=37"]
    _, _, found = merged("softmax", arrays, ["BLOCK=64"], "5")
    assert found is None


def test_a_block_whose_programs_differ_otherwise_stays():
    arrays = ["x_ptr=f32[640]", "out_ptr=f32[640]", "limit=4"]
    _, _, found = merged("early_returns", arrays, ["BLOCK=64"], "10")
    assert found is None


def test_one_range_for_rows_and_columns_does_not_tie_them():
    """The front end makes one range of all that are equally long; blocks of 16 share it."""
    kernel, launch = explicit("matmul", MATMUL, BLOCKS, "3,4")
    source = translate(kernel, launch).function.source
    assert "jnp.dot(" in source
    assert "reshape" not in source


def test_a_merged_kernel_has_no_more_programs_than_its_grid_says():
    _, module, found = merged("matmul", MATMUL, BLOCKS, "3,4")
    assert found is not None
    assert not any(op.name == "tt.get_program_id" for op in walk(found.module.kernel.body))
    assert replace(found, grid=(1, 1, 1)) == found
    assert any(op.name == "tt.get_program_id" for op in walk(module.kernel.body))
