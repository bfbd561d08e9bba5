"""Compiling a function for a TPU on a machine that has none."""

import functools
import os

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
TOPOLOGY = "v5e:2x2"


def use_environment():
    """Sets what libtpu reads; before jax is imported."""
    os.environ.update(ENVIRONMENT)


@functools.cache
def _sharding():
    import jax
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY)
    return jax.sharding.SingleDeviceSharding(topology.devices[0])


def compile_for_tpu(function, arrays):
    """Compiles a function of arrays of these shapes and types; raises what XLA raises."""
    import jax

    shapes = [
        jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=_sharding()) for array in arrays
    ]
    # Where the results are is said too: a function of no arrays would be compiled for the CPU.
    jax.jit(function, out_shardings=_sharding()).lower(*shapes).compile()
