"""Small programs, for the tests of the kernel model, and what it says of them.

    python tests/benchmarks/schedule_programs.py --dump DIRECTORY

writes the schedules of `triangle` for v5e, as `tests/benchmarks/triangle_v5e` holds them. Without
arguments it prints what the tests ask for, as JSON.
"""

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import kernel_model  # noqa: E402, I001  (before jax)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

F32 = jnp.float32


def array(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def triangle(x):
    """Step i of the grid goes i + 1 times through a loop."""

    def kernel(x_ref, out_ref):
        def trip(_, carry):
            return jnp.tanh(carry)

        out_ref[...] = lax.fori_loop(0, pl.program_id(0) + 1, trip, x_ref[...])

    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=x,
    )(x)


def scaled(x):
    """As much work in each step of the grid."""

    def kernel(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2.0

    block = pl.BlockSpec((256, 1024), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(x.shape[0] // 256,), in_specs=[block], out_specs=block, out_shape=x
    )(x)


def chosen(counts, x):
    """Each step of the grid goes through its loop as often as an integer operand says."""

    def kernel(counts_ref, x_ref, out_ref):
        out_ref[...] = lax.fori_loop(
            0, counts_ref[pl.program_id(0)], lambda _, carry: jnp.tanh(carry), x_ref[...]
        )

    block = pl.BlockSpec((8, 128), lambda i, counts: (i, 0))
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(x.shape[0] // 8,), in_specs=[block], out_specs=block
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=x)(counts, x)


def repeated(x):
    """A loop of XLA's around a product."""
    return lax.fori_loop(0, 10, lambda _, carry: jnp.tanh(carry @ x), x)


def facts(function, types, generation):
    """What the model says, by name."""
    found = kernel_model.model(function, types, generation)
    return {
        "seconds": found.seconds,
        "compute_seconds": found.compute_seconds,
        "memory_seconds": found.memory_seconds,
        "bytes": {name: spent.hbm_bytes for name, spent in found.by_instruction.items()},
        "bundles": {name: spent.bundles for name, spent in found.by_instruction.items()},
        "calls": {name: spent.calls for name, spent in found.by_instruction.items()},
        "transfers": {name: spent.transfers for name, spent in found.by_instruction.items()},
    }


def everything():
    """By generation and program."""
    results = {}
    for generation in kernel_model.TOPOLOGIES:
        results[generation] = {
            "triangle 8": facts(triangle, [array(64, 128)], generation),
            "triangle 16": facts(triangle, [array(128, 128)], generation),
            "scaled 8": facts(scaled, [array(8 * 256, 1024)], generation),
            "scaled 16": facts(scaled, [array(16 * 256, 1024)], generation),
            "chosen 1": facts(
                chosen, [np.array([1, 1, 1, 1], np.int32), array(32, 128)], generation
            ),
            "chosen 4": facts(
                chosen, [np.array([4, 1, 2, 6], np.int32), array(32, 128)], generation
            ),
            "repeated": facts(repeated, [array(256, 256, dtype=jnp.bfloat16)], generation),
        }
    return results


def estimated():
    """Cycles of a product's fusion in the model and in the compiler, by generation."""
    types = [array(4096, 1024, dtype=jnp.bfloat16), array(1024, 4096, dtype=jnp.bfloat16)]
    results = {}
    for generation in kernel_model.TOPOLOGIES:
        pairs = list(kernel_model.estimates(jnp.matmul, types, generation))
        results[generation] = max((spent.cycles, estimate) for _, spent, estimate in pairs)
    return results


def main():
    if sys.argv[1:2] == ["--dump"]:
        directory = Path(sys.argv[2])
        directory.mkdir(parents=True, exist_ok=True)
        kernel_model.compiled(triangle, [array(64, 128)], "v5e")
        for path in kernel_model.DUMP.iterdir():
            if re.fullmatch(rf"\d+-[\w.]+-\d+-{kernel_model.LABEL}\.txt", path.name):
                shutil.copy(path, directory / path.name)
        return
    json.dump({"programs": everything(), "estimated": estimated()}, sys.stdout)


if __name__ == "__main__":
    main()
