"""Runs of the emitted JAX function."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from translators.graph.numerics import Array
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.host_code import HostCode
from translators.triton.launches import Launch, ScalarArgument
from translators.verify.errors import VerificationError
from translators.verify.evaluation import Case
from translators.verify.memory import Layout, View
from translators.verify.on_cpu import call_on_cpu
from translators.verify.program import Program


class Signature(Protocol):
    """What is known of a function that was emitted; `JaxFunction` is one."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the kernel's arrays that it takes, in order."""

    @property
    def scalars(self) -> tuple[str, ...]:
        """Names of the kernel's float scalars that it takes by keyword."""

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the kernel's arrays whose new contents it gives, in order."""

    @property
    def wide(self) -> bool:
        """Whether 64-bit values live in it."""

    @property
    def pallas(self) -> bool:
        """Whether it is a kernel in Pallas, and takes `interpret` as `pallas_call` does."""

    @property
    def reblocked(self) -> bool:
        """Whether it goes in blocks of another length than the kernel as it was launched."""


_SIMPLIFYING = ("algsimp",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A function that is to be proved equal to a kernel.

    Attributes:
      signature: what it takes and gives.
      call: the function itself.
      program: its text, which other processes load; `None` if nobody has it.
    """

    signature: Signature
    call: Callable[..., Any]
    program: Program | None = None

    @property
    def mode(self) -> dict[str, bool]:
        """What it has to be told besides, by keyword, to run on a CPU."""
        return {"interpret": True} if self.signature.pallas else {}


def takes(emitted: Emitted, launch: Launch) -> bool:
    """Whether the function takes the arrays of a launch, rather than refusing their sizes."""
    import jax

    arrays = {each.name: each for each in launch.arrays}
    if not set(emitted.signature.parameters) <= arrays.keys():
        return False
    given = [
        jax.ShapeDtypeStruct(arrays[name].shape, NUMPY_DTYPES[arrays[name].dtype])
        for name in emitted.signature.parameters
    ]
    try:
        with precision(emitted.signature.wide):
            jax.eval_shape(partial(emitted.call, **emitted.mode), *given)
    except (TypeError, ValueError):
        return False
    return True


def for_launch(emitted: Emitted, launch: Launch) -> Emitted:
    """The function with the numbers of a launch in place of its own defaults."""
    own = {
        each.name: each.value
        for each in launch.singles
        if isinstance(each, ScalarArgument) and each.name in emitted.signature.scalars
    }

    def call(*arrays: Any, **scalars: Any) -> Any:
        return emitted.call(*arrays, **{**own, **scalars})

    program = emitted.program
    return replace(
        emitted,
        call=call,
        program=None if program is None else replace(program, defaults=own),
    )


def run_emitted(
    emitted: Emitted, layout: Layout, case: Case, *, simplify: bool = True
) -> dict[str, Array]:
    """What every array of a launch holds after the emitted function has run, by name.

    Arrays that the function does not give hold what they held before.

    Args:
      emitted: the function.
      layout: that of the launch.
      case: what is in memory.
      simplify: whether XLA may simplify algebra, as `call` takes it.

    Raises:
      VerificationError: it gives something of another number, shape or type.
      InputError: it raises.
    """
    with HostCode(None, "the emitted function fails"):
        given = call(
            emitted, arguments(emitted, layout, case), dict(case.scalars), simplify=simplify
        )
    return left_behind(emitted, layout, case, given)


def arguments(emitted: Emitted, layout: Layout, case: Case) -> list[Array]:
    """The arrays that the function is called with."""
    arrays = layout.arrays(case.storages)
    return [arrays[name] for name in emitted.signature.parameters]


def left_behind(
    emitted: Emitted, layout: Layout, case: Case, given: Sequence[Array]
) -> dict[str, Array]:
    """What every array of a launch holds after the emitted function gave these, by name.

    Raises:
      VerificationError: they are of another number, shape or type than the arrays.
    """
    arrays = layout.arrays(case.storages)
    signature = emitted.signature
    if len(given) != len(signature.results):
        raise VerificationError(
            f"the emitted function gives {len(given)} arrays, not {len(signature.results)}"
        )
    found = dict(zip(signature.results, given, strict=True))
    for name, array in found.items():
        wanted = arrays[name]
        if array.dtype != wanted.dtype or array.shape != wanted.shape:
            raise VerificationError(
                f"the emitted function gives {array.dtype} of shape {array.shape} for `{name}`, "
                f"not {wanted.dtype} of shape {wanted.shape}"
            )
    places = {_place(layout.views[name]): array for name, array in found.items()}
    return {name: places.get(_place(view), arrays[name]) for name, view in layout.views.items()}


def call(
    emitted: Emitted,
    arrays: list[Array],
    scalars: Mapping[str, float],
    *,
    simplify: bool = True,
) -> list[Array]:
    """Calls the function on the CPU, compiled; gives its results as NumPy arrays.

    Args:
      emitted: the function.
      arrays: one for each of its parameters.
      scalars: values of its scalars, by name; others keep their defaults.
      simplify: whether XLA may simplify algebra. It then takes a product with a truth value for a
        choice, which makes zero of NaN times zero.
    """
    import jax

    with precision(emitted.signature.wide), jax.default_device(jax.devices("cpu")[0]):
        given = [jax.numpy.asarray(each) for each in arrays]
        without = () if simplify else _SIMPLIFYING
        many = call_on_cpu(emitted.call, given, scalars, emitted.mode, without=without)
        return [np.asarray(each) for each in many]


@contextmanager
def precision(wide: bool) -> Iterator[None]:
    """Within it, JAX has 64-bit types, or has not."""
    import jax

    with jax.enable_x64(wide):
        yield


def _place(view: View) -> tuple[object, ...]:
    """Where an array lies: arrays that are one have one place."""
    array = view.array
    return (array.buffer, view.offset, array.shape, array.strides)
