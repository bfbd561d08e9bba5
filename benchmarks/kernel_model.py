"""A model of how long a compiled TPU program takes, from the schedule that libtpu made of it.

    python benchmarks/kernel_model.py

`model` compiles a function ahead of time for a chip that is not there, reads the schedule of each
kernel, fusion and of the program around them, and replays it: a bundle a cycle, transfers at the
bandwidth of HBM. docs/kernel-model.md says what that leaves out. It is a model, not a measurement.

Run as a script it compares the model with the compiler's own estimates (`estimated_cycles`).

Import this module before jax: libtpu reads where to write schedules when it is loaded.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DUMP = Path(tempfile.mkdtemp(prefix="schedules"))
os.environ.update(
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_ACCELERATOR_TYPE="v5litepod-4",
    TPU_WORKER_HOSTNAMES="localhost",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

from benchmarks.schedules.replay import Engine, Replayed, Spent, replay  # noqa: E402
from benchmarks.schedules.scalar_inputs import scalar_inputs  # noqa: E402
from benchmarks.schedules.text import LABEL, ScheduleError, read_schedules  # noqa: E402
from hlo_tools.hardware import Chip, chip  # noqa: E402
from hlo_tools.hlo.parser import parse_module  # noqa: E402

os.environ["LIBTPU_INIT_ARGS"] = " ".join(
    (
        os.environ.get("LIBTPU_INIT_ARGS", ""),
        f"--xla_jf_dump_to={DUMP}",
        "--xla_jf_dump_llo_text=true",
        f"--xla_jf_dump_llo_pass_label_regex=^{LABEL}",
        # Equal instructions share a schedule, which would be named after one of them alone.
        "--xla_jf_hlo_deduplication_all_unique=true",
    )
).strip()

TOPOLOGIES = {"v5e": "v5e:2x2", "v6e": "v6e:2x2", "7x": "tpu7x:2x2x1"}
WITHOUT_SPARSE_CORE = {
    f"xla_tpu_enable_offloading_{what}_to_sparsecore": "false"
    for what in ("copy", "gather", "reduce", "reshape", "scatter", "slice", "sort")
}
TRANSFER_LATENCY = 0.6e-6
"""Seconds: half of the 1.2 µs that libtpu's `estimated_cycles` gives the smallest fusions, which
read and write once (docs/cost-model.md)."""


@dataclass(frozen=True, slots=True)
class Modelled:
    """What the model says of a program.

    Attributes:
      seconds: from the start of its first HLO instruction to the end of its last.
      compute_seconds: its bundles, at one a cycle.
      memory_seconds: the bytes that it moves in HBM, at the bandwidth of the chip.
      by_instruction: cycles and bytes of each HLO instruction; `TLP` is the program around them.
      text: the compiled HLO, before libtpu has chosen windows and estimated cycles.
    """

    seconds: float
    compute_seconds: float
    memory_seconds: float
    by_instruction: dict[str, Spent]
    text: str

    @property
    def bound(self) -> str:
        """What takes longer: `compute` or `memory`."""
        return "compute" if self.compute_seconds >= self.memory_seconds else "memory"


def engine_of(hardware: Chip) -> Engine:
    """How fast transfers are on a chip, in its cycles."""
    assert hardware.clock_hz is not None
    return Engine(
        bytes_per_cycle=hardware.hbm_bandwidth / hardware.clock_hz,
        latency=TRANSFER_LATENCY * hardware.clock_hz,
    )


def model(function: Callable[..., Any], types: Sequence[Any], generation: str) -> Modelled:
    """Compiles a function for a chip and replays what the compiler made of it.

    Args:
      function: of arrays.
      types: the arrays, or anything that has their shapes and element types; arrays for integers
        that decide what a Pallas kernel does.
      generation: a key of `TOPOLOGIES`.

    Raises:
      ScheduleError: what it does depends on data, or its schedule cannot be read.
      Exception: whatever jax and libtpu raise of a function that does not compile.
    """
    import jax

    with _written_for(generation):
        closed = jax.make_jaxpr(function)(*types)

    def replayed(options: Mapping[str, str]) -> tuple[Replayed, str]:
        compiled(function, types, generation, options)
        # `as_text()` of some programs fails in jaxlib 0.10.2; libtpu's own dump does not.
        text = next(DUMP.glob("*-TLP-hlo.txt")).read_text(encoding="utf-8", errors="replace")
        inputs = scalar_inputs(closed, types, text)
        return replay(read_schedules(DUMP), engine_of(hardware), inputs), text

    hardware = chip(generation)
    assert hardware.clock_hz is not None
    try:
        run, text = replayed({})
    except ScheduleError:
        # XLA may have given work to the SparseCore, whose programs are not read.
        run, text = replayed(WITHOUT_SPARSE_CORE)
    return Modelled(
        seconds=run.cycles / hardware.clock_hz,
        compute_seconds=run.bundles / hardware.clock_hz,
        memory_seconds=run.hbm_bytes / hardware.hbm_bandwidth,
        by_instruction=run.by_instruction,
        text=text,
    )


def compiled(
    function: Callable[..., Any],
    types: Sequence[Any],
    generation: str,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """What jax compiles for one device of the chip; its schedules alone are then in `DUMP`."""
    import jax

    shutil.rmtree(DUMP, ignore_errors=True)
    DUMP.mkdir()
    jax.clear_caches()  # what jax has compiled before would leave no schedules
    sharding = jax.sharding.SingleDeviceSharding(_device(generation))
    placed = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding) for each in types]
    with _written_for(generation):
        return jax.jit(function, keep_unused=True).lower(*placed).compile(dict(options))


def _written_for(generation: str) -> AbstractContextManager[Any]:
    """Tells Pallas, which asks the mesh, which TPU it writes for."""
    import jax

    mesh = jax.sharding.Mesh([_device(generation)], ("x",))
    return jax.sharding.use_abstract_mesh(mesh.abstract_mesh)


@cache
def _device(generation: str) -> Any:
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[generation])
    return topology.devices[0]


def estimates(
    function: Callable[..., Any], types: Sequence[Any], generation: str
) -> Iterator[tuple[str, Spent, float]]:
    """HLO instructions that the compiler estimates: name, what the model says, its cycles."""
    text = compiled(function, types, generation).as_text()
    run = replay(read_schedules(DUMP), engine_of(chip(generation)))
    for instruction in parse_module(text).instructions():
        spent = run.by_instruction.get(instruction.name)
        estimate = re.search(r'"estimated_cycles":"(\d+)"', instruction.attribute_text)
        if spent is not None and spent.calls == 1 and estimate:
            yield instruction.name, spent, float(estimate[1])


def main() -> None:
    """Prints how far the model is from the compiler's estimates."""
    import jax
    import jax.numpy as jnp

    def array(*shape: int, dtype: Any = jnp.bfloat16) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)

    f32 = jnp.float32
    programs: dict[str, tuple[Callable[..., Any], list[Any]]] = {
        "matmul 512x512x512": (jnp.matmul, [array(512, 512), array(512, 512)]),
        "matmul 1024x1024x1024": (jnp.matmul, [array(1024, 1024), array(1024, 1024)]),
        "matmul 4096x4096x1024": (jnp.matmul, [array(4096, 1024), array(1024, 4096)]),
        "matmul 8192x1024x8192": (jnp.matmul, [array(8192, 8192), array(8192, 1024)]),
        "matmul 256x8192x8192": (jnp.matmul, [array(256, 8192), array(8192, 8192)]),
        "add f32 64 MiB": (jnp.add, [array(4096, 4096, dtype=f32)] * 2),
        "tanh f32 64 MiB": (jnp.tanh, [array(4096, 4096, dtype=f32)]),
        "sum of rows f32 64 MiB": (partial(jnp.sum, axis=1), [array(4096, 4096, dtype=f32)]),
        "sum of columns f32 64 MiB": (partial(jnp.sum, axis=0), [array(4096, 4096, dtype=f32)]),
        "transpose f32 64 MiB": (jnp.transpose, [array(4096, 4096, dtype=f32)]),
    }
    print(
        f"{'':28}{'':5}{'instruction':32}{'cycles':>10}{'waiting':>10}{'compiler':>10}{'ratio':>7}"
    )
    for name, (function, types) in programs.items():
        for generation in TOPOLOGIES:
            for instruction, spent, estimate in estimates(function, types, generation):
                print(
                    f"{name:28}{generation:5}{instruction:32}{spent.cycles:10.0f}"
                    f"{spent.waited:10.0f}{estimate:10.0f}{spent.cycles / estimate:7.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
