"""Records the launches that a person's own host code makes, without running them.

Within `recording()`, every `kernel[grid](...)` becomes a `Launch`. Autotuners take one
configuration, the first that they would try unless another is asked for, and heuristics are
resolved by Triton itself. Kernels are not run: what host code reads back is what was there before.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from translators.triton.binding import Memories, bind, describe
from translators.triton.call_text import parse_call
from translators.triton.driver import stand_in_driver
from translators.triton.host_code import HostCode
from translators.triton.launches import (
    Launch,
    LaunchError,
    grid_of_three,
)

# The recordings that are open, the innermost last: a kernel that was compiled in an earlier one is
# launched in that one.
_OPEN: "list[list[RecordedLaunch]]" = []


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLaunch:
    """A launch with what it was made from.

    Attributes:
      launch: the launch as plain values.
      kernel: the jitted function.
      values: what the host code passed for each parameter; arrays are its own.
    """

    launch: Launch
    kernel: Any
    values: Mapping[str, Any]


@contextmanager
def recording(configuration: int = 0) -> Iterator[list[RecordedLaunch]]:
    """Records launches into the list that it gives.

    Args:
      configuration: which of an autotuner's configurations to take, counted from zero after those
        that it rules out itself.

    Raises:
      LaunchError: an autotuner has no such configuration, or a launch cannot be described.
    """
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    recorded: list[RecordedLaunch] = []

    def launch(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        for hook in kernel.pre_run_hooks:
            hook(*args, **kwargs)
        if not warmup:
            recorded.extend(_record(kernel, args, kwargs, grid))
        return _CompiledKernel(kernel, kwargs)

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        config = _choose(tuner, kwargs, configuration)
        chosen = {**kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **chosen})
        tuner.best_config = config
        result = tuner.fn.run(*args, **chosen)
        tuner.nargs = None
        return result

    make_tuner = Autotuner.__init__

    def init(
        tuner: Any, fn: Any, arg_names: Any, configs: Any, key: Any, *rest: Any, **kw: Any
    ) -> None:
        """Older programs name in `key` what is no argument, which Triton 3.9 refuses."""
        known = [name for name in key or () if name in arg_names]
        make_tuner(tuner, fn, arg_names, configs, known, *rest, **kw)

    with ExitStack() as stack:
        stack.enter_context(stand_in_driver())
        stack.enter_context(mock.patch.object(JITFunction, "run", launch))
        stack.enter_context(mock.patch.object(Autotuner, "run", tune))
        stack.enter_context(mock.patch.object(Autotuner, "__init__", init))
        _OPEN.append(recorded)
        stack.callback(_OPEN.pop)
        yield recorded


def record_call(module: ModuleType, text: str, configuration: int = 0) -> list[RecordedLaunch]:
    """The launches that a call such as `add(f32[98432], f32[98432], 0.5)` makes.

    Arguments are as `parse_call` reads them; each array is an example array of its own. They may be
    named, as in `softmax(x=f32[64,781])`.

    Raises:
      LaunchError: the text is no call, the module has no such function, or nothing was launched.
      InputError: the function raised.
    """
    call = parse_call(text, np.random.default_rng(0))
    function = _function(module, call.function)
    with recording(configuration) as recorded, HostCode(module.__file__, f"`{text}` fails"):
        function(*call.positional, **call.named)
    if not recorded:
        raise LaunchError(f"`{text}` launches no kernel", path=module.__file__)
    return recorded


class _CompiledKernel:
    """What a launch or `kernel.warmup(...)` gives: launched again, it records.

    Asked for what the GPU would need, it says something that leaves room for several programs.
    """

    n_regs = 32
    n_spills = 0
    n_max_threads = 1024
    asm: Mapping[str, str] = MappingProxyType({})

    def __init__(self, kernel: Any, kwargs: dict[str, Any]) -> None:
        self._kernel = kernel
        self._kwargs = {
            name: value
            for name, value in kwargs.items()
            if name not in kernel.arg_names or _is_constant(kernel, name)
        }
        self.name = kernel.__name__
        options = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, **kwargs}
        self.metadata = SimpleNamespace(**options, shared=1024)

    def _init_handles(self) -> None:
        """Nothing to load."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            given = dict(zip(self._kernel.arg_names, args, strict=False))
            if _OPEN:
                _OPEN[-1].extend(_record(self._kernel, (), {**self._kwargs, **given}, grid))

        return launch


def _is_constant(kernel: Any, name: str) -> bool:
    return any(each.name == name and each.is_constexpr for each in kernel.params)


def _record(
    kernel: Any, args: Any, kwargs: Mapping[str, Any], grid: Any
) -> Iterator[RecordedLaunch]:
    """The launch; none where the grid is empty, as Triton then starts no program."""
    names = set(kernel.arg_names)
    values = dict(zip(kernel.arg_names, args, strict=False))
    values |= {name: value for name, value in kwargs.items() if name in names}
    options = {name: value for name, value in kwargs.items() if name not in names}
    values = {
        parameter.name: values.get(parameter.name, parameter.default)
        for parameter in kernel.params
        if parameter.name in values or parameter.has_default
    }
    sizes = grid(values) if callable(grid) else grid
    sizes = tuple(int(size) for size in (sizes if isinstance(sizes, tuple | list) else (sizes,)))
    if 0 in sizes:
        return
    memories = Memories()
    arguments = [
        describe(parameter, values[parameter.name], memories)
        for parameter in kernel.params
        if parameter.name in values
    ]
    launch = bind(kernel, arguments, grid=grid_of_three(sizes), options=options)
    yield RecordedLaunch(launch=launch, kernel=kernel, values=values)


def _choose(tuner: Any, kwargs: dict[str, Any], configuration: int) -> Any:
    configs = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
    if configuration >= len(configs):
        raise LaunchError(
            f"the autotuner of `{tuner.base_fn.__name__}` has {len(configs)} configurations, "
            f"so there is no number {configuration}"
        )
    return list(configs)[configuration]


def _function(module: ModuleType, name: str) -> Callable[..., Any]:
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise LaunchError(f"there is no function `{name}`", path=module.__file__)
    return value  # type: ignore[no-any-return]  # callable, and nothing more is known
