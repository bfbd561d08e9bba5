"""One call of a kernel: its launch, and what comes back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from hlo_tools.errors import InputError
from translators.call.configurations import resolve
from translators.call.operands import (
    Operands,
    Space,
    TracedNumberError,
    constant_argument,
    is_reference,
    leaves_of,
    plain,
)
from translators.call.placement import Placement, place
from translators.call.translations import Compiled, Translations
from translators.graph.printer import print_module
from translators.triton.binding import bind
from translators.triton.driver import stand_in_driver
from translators.triton.kernels import kernel_source, unwrap
from translators.triton.launches import Launch, LaunchError, grid_of_three

Grid: TypeAlias = int | Sequence[int]

TRANSLATIONS = Translations()
"""Those of this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What `triton_call` is given.

    Attributes:
      kernel: the kernel within its autotuners and heuristics.
      args: the arguments by position.
      named: the arguments by name.
      outputs: the outputs in order.
      aliases: the outputs that are inputs: the number of the input, and that of the output.
      zeroed: the outputs that start as zeros, or what gives them for the constants.
      grid: the grid, or what gives it for the constants.
      options: Triton's compile options.
    """

    kernel: Any
    args: Sequence[Any]
    named: Mapping[str, Any]
    outputs: Sequence[Space]
    aliases: Mapping[int, int]
    zeroed: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]
    grid: Grid | Callable[[dict[str, Any]], Grid]
    options: Mapping[str, Any]


def run(call: Call, emit: str, *, debug: bool) -> list[Any]:
    """The outputs of a call, in order; `Ref`s among its arguments are changed.

    Args:
      call: the call.
      emit: how the kernel is run, as `Translations.get` takes it.
      debug: whether to print what the kernel became.

    Raises:
      InputError: the call does not fit the kernel, or part of the kernel has no faithful
        translation; with the kernel's file and line.
    """
    from triton.runtime.jit import JITFunction

    base = unwrap(call.kernel)
    if not isinstance(base, JITFunction):
        raise LaunchError(f"`kernel` is of the type `{type(base).__name__}`, which is no kernel")
    try:
        started = _start(base, call)
        if 0 in started.grid:  # Triton then starts no program
            return [started.initial(name) for name in started.placement.outputs]
        translated = _translated(started, emit)
    except LaunchError as error:
        if error.path is not None:
            raise
        source = kernel_source(base)
        raise LaunchError(error.message, path=source.file, line=source.line) from error
    if debug:
        print(print_module(translated.compiled.translation.module))
        print(translated.compiled.translation.function.source)
    return _outputs(started, translated)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A call whose constants are known.

    Attributes:
      kernel: the jitted function.
      placement: what is for which parameter.
      values: what is given for each parameter that is no constant, or for a member of a tuple.
      constants: the kernel's constants, and what only the grid is told.
      zeroed: the parameters of outputs that start as zeros.
      grid: programs along each axis.
      options: Triton's compile options.
    """

    kernel: Any
    placement: Placement
    values: Mapping[str, Any]
    constants: Mapping[str, Any]
    zeroed: frozenset[str]
    grid: tuple[int, ...]
    options: Mapping[str, Any]

    def initial(self, name: str) -> Any:
        """What the array of a parameter holds before the kernel runs."""
        value = self.values[name]
        if name in self.zeroed or isinstance(value, Space):
            return jnp.zeros(value.shape, value.dtype)
        return value[...] if is_reference(value) else jnp.asarray(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Translated:
    """A launch of a call, and what the kernel became for it."""

    launch: Launch
    operands: Operands
    compiled: Compiled


def _start(kernel: Any, call: Call) -> _Started:
    placement = place(kernel, call.args, call.named, len(call.outputs), call.aliases)
    with stand_in_driver():
        constants, options = resolve(
            call.kernel,
            {name: plain(value) for name, value in placement.operands.items()},
            {name: plain(value) for name, value in placement.metaparams.items()},
            placement.defaults,
        )
        grid = call.grid(dict(constants)) if callable(call.grid) else call.grid
        zeroed = call.zeroed(dict(constants)) if callable(call.zeroed) else call.zeroed
    values = {
        leaf: value
        for name, given in placement.operands.items()
        for leaf, value in leaves_of(name, given)
    }
    for name, space in zip(placement.outputs, call.outputs, strict=True):
        given = values.setdefault(name, space)
        if (tuple(given.shape), given.dtype) != (space.shape, space.dtype):
            raise LaunchError(f"an output is to be the input `{name}`, which is of another type")
    sizes = tuple(int(size) for size in (grid if isinstance(grid, Sequence) else (grid,)))
    return _Started(
        kernel=kernel,
        placement=placement,
        values=values,
        constants=constants,
        zeroed=frozenset(placement.outputs[number] for number in zeroed),
        grid=sizes if 0 in sizes else grid_of_three(sizes),
        options={**call.options, **options},
    )


def _translated(started: _Started, emit: str) -> _Translated:
    """The kernel, translated with arrays without dimensions as memory, or else as numbers."""
    try:
        return _translated_with(started, emit, number=False)
    except InputError as error:
        if all(getattr(value, "shape", None) != () for value in started.values.values()):
            raise
        refused = error
    try:
        return _translated_with(started, emit, number=True)
    except TracedNumberError as error:
        raise error from refused
    except InputError:
        raise refused from None


def _translated_with(started: _Started, emit: str, *, number: bool) -> _Translated:
    placement = started.placement
    operands = Operands()
    arguments = []
    options = dict(started.options)
    given = {**started.values, **placement.operands}
    parameters = {parameter.name: parameter for parameter in started.kernel.params}
    for name, parameter in parameters.items():
        shares = placement.repeated.get(name)
        if name in started.constants:
            arguments.append(constant_argument(parameter, started.constants[name]))
            continue
        if shares is None and name not in given:
            continue  # it has a default
        arguments.append(
            operands.argument(
                parameter,
                given[shares or name],
                shares=shares,
                number=number and name not in placement.outputs and shares is None,
            )
        )
    options |= {name: value for name, value in started.constants.items() if name not in parameters}
    launch = bind(started.kernel, arguments, grid=grid_of_three(started.grid), options=options)
    return _Translated(
        launch=launch,
        operands=operands,
        compiled=TRANSLATIONS.get(started.kernel, launch, emit),
    )


def _outputs(started: _Started, translated: _Translated) -> list[Any]:
    launch = translated.launch
    function = translated.compiled.translation.function
    _require_types(started, translated)
    first: dict[int, str] = {}
    canonical = {array.name: first.setdefault(array.buffer, array.name) for array in launch.arrays}
    owners = {canonical[name]: name for name in started.values if name in canonical}
    arrays = [started.initial(owners[name]) for name in function.parameters]
    scalars = {name: translated.operands.scalars[name] for name in function.scalars}
    given = translated.compiled.function(*arrays, **scalars)
    changed = given if len(function.results) != 1 else (given,)
    new = dict(zip(function.results, changed, strict=True))
    for name, value in started.values.items():
        if is_reference(value) and canonical[name] in new:
            value[...] = new[canonical[name]]
    return [
        new[canonical[name]] if canonical[name] in new else started.initial(name)
        for name in started.placement.outputs
    ]


def _require_types(started: _Started, translated: _Translated) -> None:
    """Refuses 64-bit types where JAX would make 32-bit ones of them."""
    if jax.config.jax_enable_x64:
        return
    source = translated.launch.kernel
    arrays = translated.launch.arrays
    wide = next((array.name for array in arrays if array.dtype.endswith("64")), None)
    if wide is None and not translated.compiled.translation.function.wide:
        return
    what = f"the array `{wide}` holds" if wide is not None else "it computes with"
    raise LaunchError(
        f"`{source.function}` needs 64-bit types, as {what} some: enable them with "
        '`jax.config.update("jax_enable_x64", True)` or the variable `JAX_ENABLE_X64=1`',
        path=source.file,
        line=source.line,
    )
