"""What a kernel is compared on: a Triton kernel to translate, Pallas by hand, and plain JAX."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from translators.translation import Target, Translation, translate
from translators.triton.binding import bind
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_argument, parse_constant
from translators.triton.launches import grid_of_three
from translators.triton.loading import load_file

Function = Callable[..., Any]
TRITON = Path(__file__).resolve().parent / "triton"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch of a Triton kernel.

    Attributes:
      file: the kernel's file below `triton`.
      kernel: its name.
      arrays: type and shape of each array, as `parse_argument` reads them, by parameter.
      scalars: the other arguments, by parameter.
      constants: its constants, by parameter; strings with their quotes.
      grid: programs along each axis.
    """

    file: str
    kernel: str
    arrays: Mapping[str, str]
    grid: tuple[int, ...]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)

    def translation(self, emit: Target) -> Translation:
        """The kernel, translated for this launch.

        Raises:
          InputError: it has no faithful translation.
        """
        kernel = find_kernel(load_file(TRITON / self.file), self.kernel)
        given = {**self.arrays, **self.scalars}
        arguments = [
            parse_argument(f"{name}={value}", buffer=index)
            for index, (name, value) in enumerate(given.items())
        ]
        arguments += [parse_constant(f"{name}={value}") for name, value in self.constants.items()]
        launch = bind(kernel, arguments, grid=grid_of_three(self.grid))
        # The benchmark compares what comes out with what it is to compute.
        return translate(kernel, launch, emit, enlarge=True)


@dataclass(frozen=True, slots=True)
class Translated:
    """A kernel as a function of its arrays by name.

    Attributes:
      pallas: whether it became a Pallas kernel.
      why: what decided that it did not.
    """

    translation: Translation
    whole: Function
    pallas: bool
    why: str

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {array.name: array.shape for array in self.translation.launch.arrays}

    @property
    def types(self) -> dict[str, Any]:
        names = {"fp32": jnp.float32, "bf16": jnp.bfloat16, "i32": jnp.int32, "i8": jnp.int8}
        return {array.name: names[array.dtype] for array in self.translation.launch.arrays}

    def __call__(self, interpret: bool = False, **arrays: Any) -> dict[str, Any]:
        """The new contents of the arrays that the kernel writes, by name.

        Where it is not known that a kernel writes all of an array, it takes that, too.
        """
        function = self.translation.function
        given = [
            arrays[name] if name in arrays else jnp.zeros(self.shapes[name], self.types[name])
            for name in function.parameters
        ]
        out = self.whole(*given, **({"interpret": interpret} if self.pallas else {}))
        results = out if len(function.results) > 1 else (out,)
        return dict(zip(function.results, results, strict=True))


def translated(launch: Launch, emit: Target) -> Translated:
    """A launch as a function.

    Raises:
      InputError: the kernel has no faithful translation.
    """
    translation = launch.translation(emit)
    notes = [note for note in translation.function.notes if "Pallas" in note.text]
    return Translated(
        translation=translation,
        whole=translation.load(),
        pallas=translation.function.pallas,
        why=f"{launch.kernel}:{notes[0].line}: {notes[0].text}" if notes else "",
    )


Emitted = Callable[[Mapping[str, Translated], bool], Function]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kernel and what it is compared with. All functions take the same arrays.

    Attributes:
      name: what the table calls it.
      arguments: types of the arrays; arrays of integers where they decide what a kernel does.
      launches: the Triton kernels of it, by a name.
      emitted: from the translated launches, and whether to interpret, the function that calls them
        as the kernel's host code does.
      by_hand: Pallas by hand, each with a name that says what is chosen.
      plain: the same in plain JAX.
      target: what ratio to the best of the others the translation should have.
      tolerance: how far results may lie apart, as a share of the largest element.
      small: the same case at a size that an interpreter can run, for comparing numbers.
    """

    name: str
    arguments: Sequence[Any]
    launches: Mapping[str, Launch]
    emitted: Emitted
    by_hand: Mapping[str, Function]
    plain: Function
    target: float
    tolerance: float = 1e-5
    small: "Case | None" = None


def array(*shape: int, dtype: Any) -> jax.ShapeDtypeStruct:
    """The type of an array."""
    return jax.ShapeDtypeStruct(shape, dtype)


def text_of(each: Any) -> str:
    """The type of an array as launches name it: `bf16[1024,64]`."""
    short = {"float32": "f32", "bfloat16": "bf16", "int32": "i32", "int8": "i8", "uint8": "u8"}
    return f"{short[np.dtype(each.dtype).name]}[{','.join(map(str, each.shape))}]"


def one(name: str, results: Sequence[str], parameters: Sequence[str]) -> Emitted:
    """The function of a case that is one kernel: parameters in order in, results in order out."""

    def make(kernels: Mapping[str, Translated], interpret: bool) -> Function:
        def function(*arrays: Any) -> Any:
            given = dict(zip(parameters, arrays, strict=True))
            out = kernels[name](interpret, **given)
            found = tuple(out[each] for each in results)
            return found if len(found) > 1 else found[0]

        return function

    return make
