"""From a Triton kernel to the classes of its accesses: both halves on one real graph."""

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from launching import explicit

from translators.access.analysis import analyze
from translators.access.classify import AccessClass
from translators.access.explain import explain
from translators.access.launch import Buffer, Specialization
from translators.triton.kernel_graph import kernel_graph, kernel_parameters
from translators.triton.launches import ArrayArgument, ScalarArgument


def analysed(name, arguments, constants, grid):
    """The analysis of a kernel of `kernels.py` at one launch."""
    kernel, launch = explicit(name, arguments, constants, grid)
    buffers, scalars = {}, {}
    for index, parameter in enumerate(kernel_parameters(launch)):
        if isinstance(parameter, ArrayArgument):
            buffers[index] = Buffer(
                name=parameter.name, shape=parameter.shape, strides=parameter.strides
            )
        elif isinstance(parameter, ScalarArgument) and isinstance(parameter.value, int):
            scalars[index] = parameter.value
    module = kernel_graph(kernel, launch, library_calls=())
    return analyze(module, Specialization(grid=launch.grid, buffers=buffers, scalars=scalars))


ADD = (
    "vector_add",
    ["x_ptr=f32[1000]", "y_ptr=f32[1000]", "out_ptr=f32[1000]", "n=1000"],
    ["BLOCK=256"],
    "4",
)
MATMUL = (
    "matmul",
    [
        *("a_ptr=f32[96,64]", "b_ptr=f32[64,128]", "c_ptr=f32[96,128]", "M=96", "N=128", "K=64"),
        *("stride_am=64", "stride_ak=1", "stride_bk=128", "stride_bn=1"),
        *("stride_cm=128", "stride_cn=1"),
    ],
    ["BLOCK_M=32", "BLOCK_N=32", "BLOCK_K=16", "ACTIVATION=none"],
    "3,4",
)
SOFTMAX = (
    "softmax",
    ["out_ptr=f32[5,37]", "x_ptr=f32[5,37]", "out_stride=37", "x_stride=37", "columns=37"],
    ["BLOCK=64"],
    "5",
)


@pytest.mark.parametrize(("case", "dimensions"), [(MATMUL, [2, 2, 2]), (SOFTMAX, [2, 2])])
def test_addresses_become_indices_of_the_arrays(case, dimensions) -> None:
    """Pointer arithmetic, carried through the K loop too, is tiles of two-dimensional arrays."""
    accesses = analysed(*case).accesses
    assert [access.kind for access in accesses] == [AccessClass.BLOCK] * len(dimensions)
    assert [len(access.buffer.shape) for access in accesses] == dimensions


def test_a_masked_tail_is_still_a_block() -> None:
    """Every access of an elementwise kernel is a tile of its array, cut at the array's end."""
    analysis = analysed(*ADD)
    assert [access.kind for access in analysis.accesses] == [AccessClass.BLOCK] * 3


def test_the_table_names_the_kernels_own_lines() -> None:
    """`explain` leads back to the file that the kernel was written in."""
    text = explain(analysed(*ADD))
    assert "kernels.py:" in text
    assert "tl.load(x_ptr" in text
