"""Compiles programs for TPUs that are not there, and hands on everything the compiler dumps.

libtpu compiles ahead of time for a named topology on a machine without an accelerator. Each program
is compiled in a process of its own, because libtpu reads its settings once.
"""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

AVAILABLE = all(importlib.util.find_spec(name) for name in ("jax", "libtpu"))

TOPOLOGIES = {
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "7x": "tpu7x:2x2x1",
}
"""A small topology of each generation."""

_TIMEOUT_SECONDS = 600

_HARNESS = '''
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)
topology = topologies.get_topology_desc(platform="tpu", topology_name=sys.argv[1])
device = topology.devices[0]
sharding = jax.sharding.SingleDeviceSharding(device)

def array(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=sharding)

def emit(name, function, *arguments, **options):
    """Compiles `function`; a program that this generation cannot run is left out."""
    function.__name__ = name
    try:
        compiled = jax.jit(function, **options).lower(*arguments).compile()
    except Exception as error:
        print(name, "refused:", str(error).splitlines()[0], file=sys.stderr)
        return
    try:
        text = compiled.as_text()
    except jax.errors.JaxRuntimeError:
        text = ""  # made by a libtpu that is newer than this jaxlib; the dump has it
    with open(sys.argv[2] + "/" + name + ".txt", "w") as out:
        out.write(text)

exec(compile(sys.stdin.read(), "program.py", "exec"))
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One program of a source text, compiled.

    Attributes:
      name: as given to `emit`.
      text: the optimised module.
      files: what `--xla_dump_to` gave for it, suffix -> text, for example `buffer-assignment.txt`.
    """

    name: str
    text: str
    files: dict[str, str]


@functools.cache
def compile_for(generation: str, source: str) -> tuple[Compiled, ...]:
    """Compiles every program that `source` emits for one chip of a TPU generation.

    `source` is Python; it calls `emit(name, function, *arguments)` with arguments made by
    `array(dtype, *dimensions)`, and finds `jax`, `jnp` and `np`.
    """
    with tempfile.TemporaryDirectory() as directory:
        dumps, texts = Path(directory, "dumps"), Path(directory, "texts")
        texts.mkdir()
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "TPU_SKIP_MDS_QUERY": "1",
            "TPU_ACCELERATOR_TYPE": "v5litepod-4",
            "TPU_WORKER_HOSTNAMES": "localhost",
            "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
            "XLA_FLAGS": f"--xla_dump_to={dumps} --xla_dump_hlo_as_text",
        }
        done = subprocess.run(
            [sys.executable, "-c", _HARNESS, TOPOLOGIES[generation], str(texts)],
            input=source, env=environment, capture_output=True, text=True, check=False,
            timeout=_TIMEOUT_SECONDS,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"compiling for {generation} failed:\n{done.stderr[-4000:]}")
        found: dict[str, dict[str, str]] = {}
        for path in sorted(dumps.iterdir()) if dumps.is_dir() else []:
            name = re.match(r"module_\d+\.jit_(\w+)\.(.*)", path.name)
            if name and path.suffix == ".txt":
                suffix = re.sub(r"^cl_\d+\.", "", name[2].rpartition("after_optimizations-")[2])
                found.setdefault(name[1], {})[suffix] = path.read_text()
        programs = []
        for path in sorted(texts.iterdir()):
            files = found.get(path.stem, {})
            text = path.read_text() or files["after_optimizations.txt"]
            programs.append(Compiled(name=path.stem, text=text, files=files))
        return tuple(programs)
