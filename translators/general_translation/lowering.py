"""Whether a kernel in Pallas has a form for TPUs, as far as jax alone can say."""

from collections.abc import Callable
from typing import Any

from hlo_tools.errors import InputError
from translators.emit.jax import JaxFunction
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.host_code import HostCode
from translators.triton.launches import Launch

# What blocks may be does not depend on it.
_KIND = "TPU v5 lite"


def lowering_problem(function: JaxFunction, call: Callable[..., Any], launch: Launch) -> str:
    """Why jax writes no kernel for a TPU, as a clause; empty if it does.

    What is written is not compiled: no libtpu is needed.

    Args:
      function: what is known of the function.
      call: the function itself.
      launch: how the kernel is launched.
    """
    import jax

    arrays = {each.name: each for each in launch.arrays}
    types = [
        jax.ShapeDtypeStruct(arrays[name].shape, NUMPY_DTYPES[arrays[name].dtype])
        for name in function.parameters
    ]
    device = jax.sharding.AbstractDevice(device_kind=_KIND, num_cores=1, platform="tpu")
    mesh = jax.sharding.AbstractMesh((1,), ("x",), abstract_device=device)
    try:
        with HostCode(None, "it has no form for a TPU"), jax.sharding.use_abstract_mesh(mesh):
            jax.jit(call).trace(*types).lower(lowering_platforms=("tpu",))
    except InputError as error:
        return error.message.splitlines()[0]
    return ""
