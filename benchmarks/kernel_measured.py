"""How far the kernel model is from times that were measured on TPUs, by others.

    python benchmarks/kernel_measured.py

tokamax (`pip install tokamax`) comes with the times that its autotuner measured on TPU v5e: of
products by group, for shapes, groups and tiles that it names. The same kernels are compiled here
and modelled; printed is the kernel alone, without the XLA operations that prepare its groups,
which the measured times do not seem to hold either: where they take long by the model, the whole
is far above the measured time and the kernel close to it.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import kernel_model  # noqa: E402, I001  (before jax)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

MEASURED = "data/autotuning/tpu_v5_lite/pallas_mosaic_tpu_ragged_dot.json"
FORWARD = [[[1], [1]], [[], []]]
"""Dimensions that are multiplied, as its keys write them for the product of the forward pass."""
LARGEST = 1 << 40
"""Multiplications of those that are compared: larger ones take long to compile."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A product by group: sizes, rows of each group, tiles, buffers of the rows, and seconds."""

    rows: int
    inner: int
    columns: int
    groups: tuple[int, ...]
    tiles: tuple[int, int, int]
    buffers: int
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.columns}x{self.inner}, {len(self.groups)} groups, {self.tiles}"


def measured() -> Iterator[Measured]:
    """What tokamax has measured of its kernel in the forward pass."""
    stored = json.loads(files("tokamax").joinpath(MEASURED).read_text(encoding="utf-8"))
    for key, found in stored.items():
        product = json.loads(key)
        dimensions = product["ragged_dot_dimension_numbers"]["dot_dimension_numbers"]
        if dimensions != FORWARD or product["return_residuals"]:
            continue
        rows, inner = json.loads(product["lhs"].removeprefix("bf16"))
        columns = json.loads(product["rhs"].removeprefix("bf16"))[-1]
        if rows * inner * columns > LARGEST:
            continue
        for config, times in found.items():
            chosen = json.loads(config)
            yield Measured(
                rows=rows,
                inner=inner,
                columns=columns,
                groups=tuple(product["group_sizes"]),
                tiles=(chosen["tile_m"], chosen["tile_k"], chosen["tile_n"]),
                buffers=chosen["input_buffer_count"],
                seconds=min(times["evaluation_times_ms"]) / 1e3,
            )


def modelled(product: Measured) -> tuple[float, float]:
    """Seconds of the kernel, and of the whole program."""
    from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as kernels

    def function(x: Any, w: Any, groups: Any) -> Any:
        return kernels.gmm(
            x,
            w,
            groups,
            precision=(jax.lax.Precision.DEFAULT,) * 2,
            out_dtype=jnp.bfloat16,
            tiling=product.tiles,
            input_buffer_count=product.buffers,
        )

    sizes = (product.rows, product.inner), (len(product.groups), product.inner, product.columns)
    arguments = [
        *(jax.ShapeDtypeStruct(size, jnp.bfloat16) for size in sizes),
        np.asarray(product.groups, np.int32),
    ]
    found = kernel_model.model(function, arguments, "v5e")
    kernel = sum(spent.cycles for name, spent in found.by_instruction.items() if "gmm" in name)
    clock = kernel_model.chip("v5e").clock_hz
    assert clock is not None
    return kernel / clock, found.seconds


def main() -> None:
    print(f"{'v5e, milliseconds':64}{'measured':>9}{'kernel':>9}{'ratio':>7}{'whole':>9}")
    for product in measured():
        kernel, whole = modelled(product)
        print(
            f"{product.name:64}{1e3 * product.seconds:9.3f}{1e3 * kernel:9.3f}"
            f"{kernel / product.seconds:7.2f}{1e3 * whole:9.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
