"""Whether all blocks of an emitted kernel begin in their arrays.

Interpreters move a block that begins behind the end of its array back into it, where a TPU reads or
writes what lies there.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any
from unittest import mock

# Steps of a grid that are looked at; of a longer one the first and the last along each axis.
_MOST_STEPS = 1 << 10


def block_outside(
    call: Callable[..., Any], arrays: Sequence[Any], scalars: Mapping[str, float]
) -> str:
    """The first block that begins behind the end of its array, as a clause; empty if none does.

    Blocks that numbers in memory choose are not looked at.

    Args:
      call: the emitted function.
      arrays: what it is called with; their shapes and types matter alone.
      scalars: numbers that it takes by name.
    """
    import jax
    from jax.experimental import pallas as pl

    seen: list[tuple[tuple[int, ...], Any, tuple[int, ...]]] = []

    def recorded(kernel: Any, **options: Any) -> Callable[..., Any]:
        shapes, grid = options["out_shape"], options.get("grid")
        several = isinstance(shapes, list)

        def run(*operands: Any) -> Any:
            if grid is not None:
                outputs = options["out_specs"] if several else [options["out_specs"]]
                results = shapes if several else [shapes]
                specs = [*options["in_specs"], *outputs]
                for spec, array in zip(specs, [*operands, *results], strict=True):
                    seen.append((grid, spec, array.shape))
            zeros = [jax.numpy.zeros(each.shape, each.dtype) for each in jax.tree.leaves(shapes)]
            return zeros if several else zeros[0]

        return run

    with mock.patch.object(pl, "pallas_call", recorded):
        jax.eval_shape(lambda *given: call(*given, **scalars), *arrays)
    for grid, spec, shape in seen:
        if spec.block_shape is None:
            continue
        for step in _steps(grid):
            index = spec.index_map(*step)
            for place, block, size in zip(index, spec.block_shape, shape, strict=True):
                if int(place) * (block or 1) >= max(size, 1):
                    return f"step {step} of the grid has block {tuple(map(int, index))} of {shape}"
    return ""


def _steps(grid: Sequence[int]) -> Sequence[tuple[int, ...]]:
    if prod(grid) <= _MOST_STEPS:
        return list(product(*map(range, grid)))
    return list(product(*((0, each - 1) for each in grid)))
