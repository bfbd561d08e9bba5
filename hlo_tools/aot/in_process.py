"""Compiling a function that this process has, such as one that a test defines."""

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hlo_tools.aot.compiling import require_compiler
from hlo_tools.aot.program import compile_program, flatten, topology_devices
from hlo_tools.aot.subjects import dump_subjects, renamed
from hlo_tools.aot.targets import parse_topology
from hlo_tools.errors import InputError
from hlo_tools.run import Subject

KEPT_PROGRAMS = 16
"""Compiled programs whose texts are kept for the next test."""


def devices_of(topology: str) -> tuple[Any, ...]:
    """The devices of a topology, to make a mesh of.

    Raises:
      InputError: there is no such topology, or no compiler.
    """
    require_compiler()
    return topology_devices(parse_topology(topology).name)


def compiled_function(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], topology: str
) -> tuple[Subject, ...]:
    """Compiles a function for a topology, as what is linted.

    The same function with the same arguments is compiled once, as `jax.jit` traces it once.

    Args:
      function: as `compile_program` takes it.
      args: what it takes by position.
      kwargs: what it takes by name.
      topology: the TPUs, `v5e:4x4`.

    Raises:
      InputError: there is no such topology or no compiler, or an argument is sharded over other
        devices. What JAX or the compiler object to is raised as they raise it.
    """
    __tracebackhide__ = True
    require_compiler()
    leaves, structure = flatten(args, kwargs)
    try:
        hash((function, leaves, structure))
    except TypeError:
        return _compiled.__wrapped__(function, leaves, structure, topology)
    return _compiled(function, leaves, structure, topology)


@functools.lru_cache(maxsize=KEPT_PROGRAMS)
def _compiled(
    function: Any, leaves: tuple[Any, ...], structure: Any, topology: str
) -> tuple[Subject, ...]:
    __tracebackhide__ = True
    args, kwargs = structure.unflatten(leaves)
    devices = devices_of(topology)
    name = f"{getattr(function, '__name__', type(function).__name__)}@{topology}"
    with tempfile.TemporaryDirectory(prefix="hlo-lint-") as folder:
        refusal = compile_program(function, args, kwargs, devices, Path(folder))
        found = list(dump_subjects(Path(folder), parse_topology(topology).chip, refusal))
    for item in found:
        if isinstance(item, InputError):
            raise item
    return tuple(renamed(item, name) for item in found if isinstance(item, Subject))
