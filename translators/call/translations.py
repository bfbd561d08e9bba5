"""Translations that are kept, so that a kernel is translated once for each kind of launch."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp

from translators.emit.stablehlo import ValueType, emit_stablehlo, load_stablehlo
from translators.translation import Translation, translate
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.launches import (
    Argument,
    ConstantArgument,
    Launch,
    LaunchError,
    ScalarArgument,
    TupleArgument,
)

_CAPACITY = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A translated kernel, ready to be called.

    Attributes:
      translation: what the kernel became.
      function: takes the arrays that `translation.function` names, and its scalars by name.
    """

    translation: Translation
    function: Callable[..., Any]


class Translations:
    """The translations of a process, the longest unused dropped first.

    Launches that differ in floating-point numbers alone share one: emitted functions take those.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._known: OrderedDict[object, Compiled] = OrderedDict()
        self._lock = Lock()

    def get(self, kernel: Any, launch: Launch, emit: str) -> Compiled:
        """The kernel translated for the launch.

        Args:
          kernel: the jitted function.
          launch: what it is called with.
          emit: `jax`, or `stablehlo` for the same program as a StableHLO module.

        Raises:
          InputError: part of the kernel has no faithful translation; at the kernel's line.
        """
        _require_same_globals(kernel)
        key = (kernel, emit, *_key(launch))
        with self._lock:  # Triton's front end is not made for several threads
            known = self._known.get(key)
            if known is None:
                known = _compiled(translate(kernel, launch), emit)
                self._known[key] = known
                if len(self._known) > self._capacity:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
        return known


def _require_same_globals(kernel: Any) -> None:
    """Refuses a kernel whose global constants changed after it was read, as Triton does."""
    hash(kernel)  # reads the kernel, with the globals that it uses
    for (name, _), (value, owner) in kernel.used_global_vals.items():
        if owner.get(name) != value:
            raise LaunchError(
                f"`{name}`, which `{kernel.fn.__qualname__}` uses, has changed since the kernel "
                "was first called"
            )


def _key(launch: Launch) -> Iterator[object]:
    """What a translation depends on: as text, in which `1`, `1.0` and `True` differ."""
    same = tuple(map(_without_value, launch.arguments))
    yield repr(replace(launch, arguments=same))
    for argument in launch.singles:
        if isinstance(argument, ConstantArgument) and callable(argument.value):
            yield argument.value


def _without_value(argument: Argument) -> Argument:
    if isinstance(argument, TupleArgument):
        return argument
    if isinstance(argument, ScalarArgument) and isinstance(argument.value, float):
        return replace(argument, value=0.0)
    return argument


def _compiled(translation: Translation, emit: str) -> Compiled:
    function = jax.jit(translation.load())
    if emit == "stablehlo":
        function = _as_stablehlo(function, translation)
    return Compiled(translation=translation, function=function)


def _as_stablehlo(function: Any, translation: Translation) -> Callable[..., Any]:
    """The function by way of its StableHLO module; its derivatives are those of the function."""
    emitted = translation.function
    types = _types(translation.launch)
    text = emit_stablehlo(emitted, function, types, translation.module.kernel.location)
    exported = load_stablehlo(text)

    @jax.custom_vjp  # type: ignore[untyped-decorator]  # jax is not followed
    def run(*values: Any) -> Any:
        return exported.call(*values)

    def forward(*values: Any) -> tuple[Any, tuple[Any, ...]]:
        return run(*values), values

    def backward(values: tuple[Any, ...], cotangents: Any) -> Any:
        return jax.vjp(flat, *values)[1](cotangents)

    def flat(*values: Any) -> Any:
        arrays = values[: len(emitted.parameters)]
        scalars = values[len(emitted.parameters) :]
        return function(*arrays, **dict(zip(emitted.scalars, scalars, strict=True)))

    run.defvjp(forward, backward)

    def call(*arrays: Any, **scalars: Any) -> Any:
        numbers = [jnp.asarray(scalars[name], types[name].dtype) for name in emitted.scalars]
        return run(*arrays, *numbers)

    return call


def _types(launch: Launch) -> dict[str, ValueType]:
    """What the arrays and numbers of a launch hold, by name."""
    types = {
        array.name: ValueType(dtype=NUMPY_DTYPES[array.dtype].name, shape=array.shape)
        for array in launch.arrays
    }
    for argument in launch.singles:
        if isinstance(argument, ScalarArgument):
            dtype = NUMPY_DTYPES[argument.dtype].name
            types[argument.name] = ValueType(dtype=dtype, shape=())
    return types
