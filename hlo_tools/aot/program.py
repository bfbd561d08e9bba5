"""One function, compiled for a topology; the only module of the linter that imports jax.

It runs in the process that has the function: a worker's own, or that of a test.
"""

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hlo_tools.analysis.memory_refusal import MemoryRefusal, memory_refusal
from hlo_tools.errors import InputError

_ENVIRONMENT = {
    # Else libtpu asks Cloud's metadata server, which is not there, what machine this is.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    # Else a second process dies on the lock file of the first.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
}

MAX_FRAMES = 100
"""Frames to note for each op; JAX's own limit of 10 ends inside of the library of a deep model."""


@functools.cache
def topology_devices(topology: str) -> tuple[Any, ...]:
    """The devices of a topology, as `jax.devices()` would give them there; always the same ones.

    Raises:
      InputError: libtpu knows no such topology.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import jax
    from jax.experimental import topologies

    try:
        description = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    except jax.errors.JaxRuntimeError as error:
        reason = str(error).partition(": ")[2] or str(error)
        raise InputError(f"libtpu has no topology `{topology}`: {reason}") from error
    return tuple(description.devices)


def compile_program(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    devices: Sequence[Any],
    dump_to: Path,
) -> MemoryRefusal | None:
    """Compiles a function ahead of time and leaves XLA's dump of it in a folder.

    Args:
      function: a function, or one that `jax.jit` or `flax.nnx.jit` made, whose donation,
        shardings and static arguments are then its own.
      args: what it takes by position: anything with a shape and a dtype stands for an array.
      kwargs: what it takes by name.
      devices: those of the topology; what has no sharding goes to the first.
      dump_to: an existing folder.

    Returns:
      What the compiler says, if the program does not fit into device memory; the dump is there all
      the same. Whatever else JAX or the compiler object to is raised as they raise it.

    Raises:
      InputError: an argument is sharded over other devices.
    """
    __tracebackhide__ = True
    import jax

    leaves, structure = flatten(args, kwargs)
    arguments, named = structure.unflatten(leaves)
    mesh = _mesh(arguments, named, devices)
    jitted = function if hasattr(function, "lower") else _jitted(function, arguments, named)
    options = {"xla_dump_to": str(dump_to), "xla_dump_hlo_as_text": True}
    with ExitStack() as stack:
        stack.enter_context(_deep_locations())
        if mesh is not None:
            stack.enter_context(jax.set_mesh(mesh))
        traced = jitted.trace(*arguments, **named)
        # Only now: what is computed while tracing has to run here.
        stack.enter_context(jax.default_device(devices[0]))
        lowered = traced.lower()
        try:
            lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            refusal = memory_refusal(str(error))
            if refusal is None:
                raise
            return refusal
    return None


def flatten(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """The leaves of arguments, arrays as their types alone, and the structure that they are in."""
    import jax

    leaves, structure = jax.tree.flatten((tuple(args), dict(kwargs)))
    return tuple(_abstract(leaf) for leaf in leaves), structure


@contextmanager
def _deep_locations() -> Iterator[None]:
    """Within it, ops know the whole stack that they come from, if the person has set no limit."""
    import jax

    option = "jax_traceback_in_locations_limit"
    limit = getattr(jax.config, option)
    if option.upper() not in os.environ:
        jax.config.update(option, MAX_FRAMES)
    try:
        yield
    finally:
        jax.config.update(option, limit)


def _abstract(leaf: Any) -> Any:
    """An array by its type alone, on whatever device the program puts it; else the leaf itself."""
    import jax
    import numpy

    if isinstance(leaf, jax.Array | numpy.ndarray):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return leaf


def _mesh(args: Any, kwargs: Any, devices: Sequence[Any]) -> Any:
    """The mesh over which the arguments are sharded; `None` without one, or with several."""
    import jax

    known = set(devices)
    meshes = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path((args, kwargs)):
        sharding = getattr(leaf, "sharding", None)
        if not isinstance(sharding, jax.sharding.Sharding):
            continue
        if not known.issuperset(sharding.device_set):
            others = sorted({device.device_kind for device in sharding.device_set - known})
            raise InputError(
                f"argument `{_argument(path)}` is sharded over other devices ({', '.join(others)}) "
                "than those of the topology: make the mesh of the devices that the function of "
                "the example arguments is given"
            )
        if isinstance(sharding, jax.sharding.NamedSharding):
            meshes[sharding.mesh] = sharding.mesh
    return meshes.popitem()[1] if len(meshes) == 1 else None


def _argument(path: tuple[Any, ...]) -> str:
    """How an argument is written: `args[0]['w']`, or `kwargs['state'].params`."""
    import jax

    rest: str = jax.tree_util.keystr(path[1:])
    return ("args", "kwargs")[path[0].idx] + rest


def _jitted(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A plain function, jitted; what holds no array is static, as far as it can be."""
    import jax

    return jax.jit(
        function,
        static_argnums=tuple(i for i, value in enumerate(args) if _is_static(value)),
        static_argnames=tuple(name for name, value in kwargs.items() if _is_static(value)),
    )


def _is_static(value: Any) -> bool:
    import jax

    if any(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in jax.tree.leaves(value)):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
