"""What Pallas kernels written by hand have in common."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

MIB = 1 << 20


def parameters(*semantics: str, vmem: int | None = None) -> pltpu.CompilerParams:
    """Which axes of the grid may run in any order, and bytes of vector memory to use."""
    return pltpu.CompilerParams(dimension_semantics=semantics, vmem_limit_bytes=vmem)


def along(
    body: Callable[..., Any],
    step: int,
    outs: Sequence[jax.ShapeDtypeStruct],
    *,
    axis: int = 0,
    whole: int = 0,
    vmem: int | None = None,
) -> Callable[..., Any]:
    """A kernel that goes along one axis of matrices, `step` rows or columns at a time.

    Args:
      body: of the values of a step; gives what the step writes.
      step: how many rows (axis 0) or columns (axis 1) a step takes.
      outs: types of the results.
      axis: that the steps go along.
      whole: how many of the last arrays every step sees as a whole.
      vmem: bytes of vector memory.
    """

    def window(shape: tuple[int, ...]) -> pl.BlockSpec:
        if axis == 0:
            return pl.BlockSpec((step, *shape[1:]), lambda i: (i,) + (0,) * (len(shape) - 1))
        return pl.BlockSpec((shape[0], step), lambda i: (0, i))

    def all_of(shape: tuple[int, ...]) -> pl.BlockSpec:
        return pl.BlockSpec(shape, lambda _: (0,) * len(shape))

    def call(*arrays: Any) -> Any:
        moving = len(arrays) - whole

        def kernel(*refs: Any) -> None:
            results = body(*(ref[...] for ref in refs[: len(arrays)]))
            results = results if isinstance(results, tuple) else (results,)
            for ref, result in zip(refs[len(arrays) :], results, strict=True):
                ref[...] = result.astype(ref.dtype)

        found = pl.pallas_call(
            kernel,
            grid=(pl.cdiv(arrays[0].shape[axis], step),),
            in_specs=[
                window(each.shape) if index < moving else all_of(each.shape)
                for index, each in enumerate(arrays)
            ],
            out_specs=tuple(window(each.shape) for each in outs),
            out_shape=tuple(outs),
            compiler_params=parameters("parallel", vmem=vmem),
        )(*arrays)
        return found if len(outs) > 1 else found[0]

    return call
