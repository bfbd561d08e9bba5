"""Compiles functions for TPUs that are not there; a process of its own.

    python -m translators.verify.compiler_worker

It serves `compiler.py`, which starts it.
"""

import functools
import json
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hlo_tools.cli import main as hlo_lint
from hlo_tools.errors import InputError
from translators.triton.host_code import HostCode
from translators.verify.compiler import Compilation, Compiled
from translators.verify.generations import TOPOLOGIES
from translators.verify.processes import Channel
from translators.verify.program import ArrayType
from translators.verify.report import Finding


def main() -> None:
    """Serves requests until there are no more."""
    channel = Channel()
    import_module("jax.experimental.topologies")  # before it says that it is ready
    channel.serve(compiled)


def compiled(request: Compilation) -> Compiled:
    """What becomes of a function."""
    import jax

    try:
        with HostCode(None, "libtpu"):
            device = _device(request.generation)
    except InputError as error:
        return Compiled(absent=error.message.splitlines()[0])
    try:
        with HostCode(None, ""):
            types = [*request.arrays, *(_number(each) for each in request.program.numbers)]
            sharding = jax.sharding.SingleDeviceSharding(device)
            shapes = [
                jax.ShapeDtypeStruct(each.shape, jax.numpy.dtype(each.dtype), sharding=sharding)
                for each in types
            ]
            # Pallas asks the mesh which TPU it writes for.
            mesh = jax.sharding.Mesh([device], ("x",)).abstract_mesh
            with jax.enable_x64(request.program.wide), jax.sharding.use_abstract_mesh(mesh):
                executable = (
                    jax.jit(request.program.load(), out_shardings=sharding).lower(*shapes).compile()
                )
    except InputError as error:
        assert error.__cause__ is not None
        return Compiled(problem=_first_line(error.__cause__))
    try:
        with HostCode(None, "the compiled program has no text"):
            text = executable.as_text()
    except InputError as error:
        return Compiled(unlinted=error.message.splitlines()[0])
    return linted(text, request.generation)


def linted(text: str, generation: str) -> Compiled:
    """A compiled program with what `hlo-lint` warns of in it.

    Args:
      text: the optimised HLO.
      generation: what it is compiled for.
    """
    report = StringIO()
    with TemporaryDirectory() as directory:
        path = Path(directory, "compiled.hlo.txt")
        path.write_text(text, encoding="utf-8")
        with redirect_stdout(report):
            hlo_lint(["--format", "json", "--chip", generation, str(path)])
    if not report.getvalue():
        return Compiled(unlinted="its settings cannot be read")
    told = json.loads(report.getvalue())
    if told["problems"]:
        return Compiled(unlinted=told["problems"][0]["message"])
    return Compiled(
        findings=tuple(
            Finding(
                code=each["id"],
                rule=each["rule"],
                severity=each["severity"],
                message=each["message"],
            )
            for each in told["findings"]
            if each["severity"] != "note" and each["suppressed"] is None
        )
    )


@functools.cache
def _device(generation: str) -> Any:
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[generation])
    return topology.devices[0]


def _number(dtype: str) -> ArrayType:
    return ArrayType(dtype=dtype, shape=())


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    main()
