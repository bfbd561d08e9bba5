"""A GPU driver for Triton on a machine without a GPU.

Programs ask the driver for its target, device, stream and sizes before they launch anything. The
stand-in answers as an H100 does: the front end then keeps tensor descriptors as they are, which it
rewrites into plain pointers for older GPUs.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest import mock

from translators.triton.launches import LaunchError

# NVIDIA H100 SXM5: compute capability 9.0; sizes as its driver reports them to Triton.
CAPABILITY = (9, 0)
WARP_SIZE = 32
_PROPERTIES = {
    "max_shared_mem": 232448,
    "max_num_regs": 65536,
    "multiprocessor_count": 132,
    "warpSize": WARP_SIZE,
    "sm_clock_rate": 1980000,
    "mem_clock_rate": 2619000,
    "mem_bus_width": 5120,
}


def target() -> Any:
    """The GPU target that kernels are taken through the front end for."""
    from triton.backends.compiler import GPUTarget

    return GPUTarget("cuda", CAPABILITY[0] * 10 + CAPABILITY[1], WARP_SIZE)


@contextmanager
def stand_in_driver() -> Iterator[None]:
    """Makes the stand-in Triton's active driver, and torch's CPU tensors pass for CUDA ones.

    Comparisons and benchmarks that a file makes of its own results are passed over: nothing that
    it launches is run. All is as before on the way out.

    Raises:
      LaunchError: `TRITON_INTERPRET` is set, under which Triton has no front end.
    """
    import triton.testing
    from triton import knobs
    from triton._C.libtriton import nvidia
    from triton.runtime import driver

    if knobs.runtime.interpret:
        raise LaunchError("kernels cannot be translated while `TRITON_INTERPRET` is set")
    if isinstance(driver._active, StandInDriver):
        yield
        return
    active = StandInDriver()
    with ExitStack() as stack:
        for owner, name, value in (
            (driver, "_active", active),
            (driver, "_default", active),
            (triton.testing, "do_bench", _benchmark),
            (triton.testing, "do_bench_cudagraph", _benchmark),
            (triton.testing.Mark, "run", lambda *args, **kwargs: None),
            (nvidia.cublas, "CublasLt", lambda *args, **kwargs: None),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        if find_spec("torch") is not None:
            from translators.triton.torch_stand_in import torch_on_cpu

            stack.enter_context(torch_on_cpu())
        yield


class StandInDriver:
    """Answers what programs and Triton itself ask a driver."""

    def __init__(self) -> None:
        self.utils = _Utilities()

    def get_current_target(self) -> Any:
        """The target that `target` names."""
        return target()

    def get_current_device(self) -> int:
        """The only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability of the target."""
        return CAPABILITY

    def get_active_torch_device(self) -> Any:
        """What programs make their tensors on."""
        if find_spec("torch") is None:
            return "cuda:0"
        return import_module("torch").device("cuda", 0)

    def get_device_interface(self) -> Any:
        """`torch.cuda`, where torch is installed."""
        if find_spec("torch") is None:
            return SimpleNamespace(synchronize=lambda *args: None, current_device=lambda: 0)
        return import_module("torch").cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        """A benchmark for which everything takes as long."""
        return _benchmark

    def map_python_to_cpp_type(self, name: str) -> str:
        """Nothing is compiled to C++: any name does."""
        return name

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no cache to clear."""

    def clear_cache(self, cache: object) -> None:
        """There is no cache to clear."""

    def is_active(self) -> bool:
        """Always."""
        return True


class _Utilities:
    """The driver's own functions: sizes of the device; all others do nothing."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return dict(_PROPERTIES)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def _benchmark(
    function: Callable[[], Any],
    *args: Any,
    quantiles: list[float] | None = None,
    **kwargs: Any,
) -> float | list[float]:
    """Calls once, and says one millisecond."""
    function()
    return [1.0] * len(quantiles) if quantiles is not None else 1.0
