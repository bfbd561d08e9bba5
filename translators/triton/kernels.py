"""The kernels that a module defines."""

from types import ModuleType
from typing import Any

from translators.triton.launches import KernelSource, LaunchError


def find_kernels(module: ModuleType) -> dict[str, Any]:
    """The jitted functions that a module defines itself, without their autotuners, by name."""
    from triton.runtime.jit import JITFunction

    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        kernel = unwrap(value)
        if isinstance(kernel, JITFunction) and kernel.__module__ == module.__name__:
            found[name] = kernel
    return found


def find_kernel(module: ModuleType, name: str) -> Any:
    """The jitted function of that name.

    Raises:
      LaunchError: the module has none; the message lists those it has.
    """
    kernels = find_kernels(module)
    if name not in kernels:
        known = ", ".join(f"`{each}`" for each in kernels) or "none"
        raise LaunchError(f"there is no kernel `{name}`; found: {known}", path=module.__file__)
    return kernels[name]


def unwrap(value: Any) -> Any:
    """The jitted function inside autotuners and heuristics."""
    from triton.runtime.autotuner import Autotuner, Heuristics

    while isinstance(value, Autotuner | Heuristics):
        value = value.fn
    return value


def kernel_source(kernel: Any) -> KernelSource:
    """Where a jitted function is defined."""
    return KernelSource(
        function=kernel.fn.__qualname__,
        file=kernel.fn.__code__.co_filename,
        line=kernel.def_file_line_number,
    )
