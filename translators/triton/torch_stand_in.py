"""torch on a machine without a GPU: CPU tensors pass for CUDA ones.

Host code asks for `device="cuda"`, calls `.cuda()`, and looks at `torch.cuda` before it launches.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

_MEMORY_BYTES = 80 << 30
_NOTHING_TO_DO = (
    "_lazy_init",
    "empty_cache",
    "init",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "synchronize",
)
_NO_BYTES = (
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
)
_GUARDS = (
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "Stream",
    "_DeviceGuard",
    "device",
    "device_of",
    "graph",
    "stream",
)
_COMPARISONS = (("testing", "assert_close"), ("", "allclose"), ("", "equal"))


@contextmanager
def torch_on_cpu() -> Iterator[None]:
    """Within it, torch says that it has one GPU, and makes every tensor on the CPU."""
    torch = import_module("torch")
    with ExitStack() as stack:

        def replace(owner: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(owner, name, value, create=True))

        _replace_cuda(torch, replace)
        _replace_tensors(torch, replace)
        for owner, name in _COMPARISONS:
            result = None if name == "assert_close" else True
            replace(getattr(torch, owner) if owner else torch, name, _answer(result))
        stack.enter_context(_mode_on_cpu(torch))
        yield


class _Guard:
    """Stands for streams, events and device guards: usable, and without effect."""

    cuda_stream = 0
    stream_id = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> "_Guard":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _answer(None)

    def elapsed_time(self, other: Any) -> float:
        """Every interval takes one millisecond."""
        return 1.0


def _not_compiled(function: Any = None, **options: Any) -> Any:
    """`torch.compile` and `@torch.compile(...)`, which leave the function as it is."""
    return (lambda each: each) if function is None else function


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _replace_cuda(torch: Any, replace: Callable[[Any, str, Any], None]) -> None:
    from translators.triton.driver import CAPABILITY, WARP_SIZE

    properties = SimpleNamespace(
        name="NVIDIA H100 80GB HBM3",
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=_MEMORY_BYTES,
        multi_processor_count=132,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472,
        warp_size=WARP_SIZE,
        L2_cache_size=50 << 20,
        gcnArchName="",
    )
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": CAPABILITY,
        "get_device_name": properties.name,
        "get_device_properties": properties,
        "is_bf16_supported": True,
        "mem_get_info": (_MEMORY_BYTES, _MEMORY_BYTES),
        "current_stream": _Guard(),
        "default_stream": _Guard(),
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
        **dict.fromkeys(_NOTHING_TO_DO, None),
        **dict.fromkeys(_NO_BYTES, 0),
    }
    for name, value in answers.items():
        replace(torch.cuda, name, _answer(value))
    for name in _GUARDS:
        replace(torch.cuda, name, _Guard)
    replace(torch.cuda, "_initialized", True)
    replace(torch.version, "cuda", "12.8")
    replace(torch._C, "_cuda_getCurrentRawStream", _answer(0))
    replace(torch._C, "_cuda_getDeviceCount", _answer(1))


def _replace_tensors(torch: Any, replace: Callable[[Any, str, Any], None]) -> None:
    tensor = torch.Tensor
    replace(tensor, "is_cuda", property(_answer(True)))
    replace(tensor, "device", property(_answer(torch.device("cuda", 0))))
    replace(tensor, "get_device", _answer(0))
    for name in ("cuda", "pin_memory"):
        replace(tensor, name, lambda self, *args, **kwargs: self)
    replace(torch.nn.Module, "cuda", lambda self, *args, **kwargs: self)
    replace(tensor, "record_stream", _answer(None))
    replace(tensor, "new_tensor", _with_device_on_cpu(torch, tensor.new_tensor))
    for name in ("tensor", "as_tensor", "asarray"):
        replace(torch, name, _with_device_on_cpu(torch, getattr(torch, name)))
    replace(torch, "set_default_device", _answer(None))
    replace(torch, "Generator", _generator_on_cpu(torch.Generator))
    replace(torch, "compile", _not_compiled)


def _on_cpu(torch: Any, device: Any) -> Any:
    """The CPU in place of a GPU; the `meta` device, which has no memory, stays."""
    return device if torch.device(device).type == "meta" else torch.device("cpu")


def _with_device_on_cpu(torch: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs["device"] = _on_cpu(torch, kwargs["device"])
        return function(*args, **kwargs)

    return call


def _generator_on_cpu(generator: type) -> type:
    """`torch.Generator`, still a type to annotate and to ask about, made on the CPU."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, generator)

    class Generator(metaclass=Meta):
        def __new__(cls, device: Any = None) -> Any:
            return generator()

    return Generator


def _mode_on_cpu(torch: Any) -> Any:
    mode: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode

    class OnCpu(mode):  # type: ignore[misc]  # a type known only when it runs
        def __torch_dispatch__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if kwargs.get("device") is not None:
                kwargs["device"] = _on_cpu(torch, kwargs["device"])
            kwargs.pop("pin_memory", None)
            args = tuple(
                _on_cpu(torch, each) if isinstance(each, torch.device) else each for each in args
            )
            return function(*args, **kwargs)

    return OnCpu()
