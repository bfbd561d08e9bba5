"""What packages ask of torch beyond what the product's stand-in answers.

Some register their kernels for CUDA's dispatch key, some ask `torch.accelerator`, and some read the
state of CUDA's random generators. Nothing here touches a kernel.
"""

from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from translators.triton.driver import stand_in_driver

_CPU = torch.device("cpu")
_CUDA = torch.device("cuda")
_UNFILLED = frozenset(
    {
        torch.ops.aten.empty.memory_format,
        torch.ops.aten.empty_like.default,
        torch.ops.aten.empty_strided.default,
        torch.ops.aten.new_empty.default,
        torch.ops.aten.new_empty_strided.default,
    }
)
_FACTORIES = (
    *("arange", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace"),
    *("ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like", "randperm"),
    *("tensor", "zeros", "zeros_like"),
)
_ACCELERATOR = {
    "is_available": True,
    "device_count": 1,
    "current_accelerator": _CUDA,
    "current_device_index": 0,
    "set_device_index": None,
    "synchronize": None,
    "empty_cache": None,
}


@contextmanager
def pretended_gpu():
    """Within it, packages find a GPU, and memory that torch does not fill is zero."""
    with ExitStack() as stack:
        stack.enter_context(stand_in_driver())

        def replace(owner, name, value):
            stack.enter_context(mock.patch.object(owner, name, value, create=True))

        # torch looks devices up before any mode sees the call.
        replace(torch.Tensor, "to", _moved_to_cpu(torch.Tensor.to))
        for name in _FACTORIES:
            replace(torch, name, _made_on_cpu(getattr(torch, name)))
        replace(torch.cuda, "default_generators", (_Generator(),))
        replace(torch.cuda, "get_rng_state", lambda *args: torch.get_rng_state())
        replace(torch._C, "_accelerator_getAccelerator", _answer(_CUDA))
        for name, value in _ACCELERATOR.items():
            replace(torch.accelerator, name, _answer(value))
        replace(torch.library.Library, "impl", _registered_for_cpu(torch.library.Library.impl))
        stack.enter_context(_OnCpu())
        yield


class _Generator:
    """The seed and offset that packages read before they draw random numbers in a kernel."""

    def __init__(self):
        self._state = torch.zeros(16, dtype=torch.uint8)

    def get_state(self):
        return self._state

    def set_state(self, state):
        self._state = state

    def initial_seed(self):
        return 0


class _OnCpu(TorchDispatchMode):
    """Makes tensors on the CPU, and those that are not filled zero, so that runs agree."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs["device"] = _on_cpu(kwargs["device"])
        kwargs.pop("pin_memory", None)
        args = tuple(_on_cpu(each) if isinstance(each, torch.device) else each for each in args)
        result = function(*args, **kwargs)
        if function in _UNFILLED and not result.is_meta:
            result.zero_()
        return result


def _on_cpu(device):
    return device if str(device) == "meta" else _CPU


def _moved_to_cpu(move):
    def to(self, *args, **kwargs):
        args = [_on_cpu(each) if isinstance(each, torch.device | str) else each for each in args]
        if kwargs.get("device") is not None:
            kwargs["device"] = _on_cpu(kwargs["device"])
        return move(self, *args, **kwargs)

    return to


def _made_on_cpu(make):
    def made(*args, **kwargs):
        if kwargs.get("device") is not None:
            kwargs["device"] = _on_cpu(kwargs["device"])
        return make(*args, **kwargs)

    return made


def _registered_for_cpu(register):
    """`Library.impl` that registers for the CPU what is meant for CUDA."""

    def impl(self, name, function, dispatch_key="", **options):
        if dispatch_key != "CUDA" or not callable(function):
            return register(self, name, function, dispatch_key, **options)

        def again(*args, **kwargs):  # a mode is off within what it dispatches to
            with _OnCpu():
                return function(*args, **kwargs)

        return register(self, name, again, "CPU", **options)

    return impl


def _answer(value):
    return lambda *args, **kwargs: value
