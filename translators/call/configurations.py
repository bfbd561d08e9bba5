"""Autotuners and heuristics of a kernel, resolved without running it."""

from collections.abc import Mapping
from typing import Any

from translators.triton.launches import LaunchError


def resolve(
    kernel: Any,
    operands: Mapping[str, Any],
    metaparams: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """All constants, with those that the kernel's decorators add, and compile options.

    An autotuner takes its first configuration that agrees with the constants given and that it
    does not rule out itself: which is fastest on a GPU says nothing here.

    Args:
      kernel: the jitted function within its autotuners and heuristics.
      operands: what is given for the kernel's other parameters, by name.
      metaparams: the constants given, by name.
      defaults: the constants that have a default, by name.

    Raises:
      LaunchError: no configuration is left, or one changes the arguments before a launch.
    """
    from triton.runtime.autotuner import Autotuner, Heuristics

    resolved = dict(metaparams)
    options: dict[str, Any] = {}
    while isinstance(kernel, Autotuner | Heuristics):
        if isinstance(kernel, Heuristics):
            for name, heuristic in kernel.values.items():
                resolved[name] = heuristic({**operands, **defaults, **resolved})
        else:
            config = _configuration(kernel, operands, resolved)
            resolved |= config.kwargs
            options = {
                name: value
                for name, value in config.all_kwargs().items()
                if name not in config.kwargs
            }
        kernel = kernel.fn
    return {**defaults, **resolved}, options


def _configuration(tuner: Any, operands: Mapping[str, Any], metaparams: Mapping[str, Any]) -> Any:
    configs = [
        config
        for config in tuner.configs
        if all(metaparams.get(name, value) == value for name, value in config.kwargs.items())
    ]
    if tuner.early_config_prune is not None and configs:
        configs = tuner.early_config_prune(configs, dict(operands), **metaparams)
    if not configs:
        raise LaunchError("none of the autotuner's configurations agrees with the constants given")
    config = configs[0]
    if config.pre_hook is not None:
        raise LaunchError(
            "the autotuner's configuration has a `pre_hook`, which would change the arguments"
        )
    return config
