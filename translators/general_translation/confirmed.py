"""Whether a function that was fitted is right where no text proves it: by running it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

from translators.emit.general.formula import Formula, Sizes
from translators.emit.jax import JaxFunction
from translators.general_translation.blocks_inside import block_outside
from translators.general_translation.confirming import UnknownError, problem
from translators.general_translation.fitted import Fitted
from translators.general_translation.lowering import lowering_problem
from translators.general_translation.resized import (
    AmbiguousError,
    UnlikeError,
    require_as_good,
    template,
)
from translators.resize.choosing import FEW, ONES, programs_alone, unusual_sizes
from translators.translation import load
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.launches import Launch

# A scalar up to this may have the value of a size by chance.
_LIKELY_BY_CHANCE = 64
_MOST_LEAST = 3
# A launch with more is left to whoever verifies it.
_MOST_PROGRAMS = 4096
_MOST_ELEMENTS = 1 << 22


def tell_apart(fitted: Fitted) -> None:
    """Makes sure that small scalars are sizes, and do not have the value of one by chance.

    Raises:
      AmbiguousError: the kernel would do as well if a scalar were a number of its own.
    """
    sizes = fitted.sizes()[0]
    tied = fitted.resized.translated(sizes)
    strides = {each for array in fitted.family.arrays.values() for each in array.strides}
    for name, formula in fitted.family.scalars.items():
        size = formula.single
        if size not in fitted.bounds or formula in strides:
            continue
        if fitted.family.sizes[size] > _LIKELY_BY_CHANCE:
            continue
        apart = fitted.family.keeping([name]).resized(sizes)
        try:
            other = fitted.resized.launched(apart)
            require_as_good(tied, other)
        except UnlikeError:
            continue
        one, two = template(other.function), template(tied.function)
        if (one.key, one.numbers) != (two.key, two.numbers):
            value = fitted.family.sizes[size]
            message = f"`{name}` may be the size {value}, or always {value}"
            raise AmbiguousError(message, size)


class Confirmation:
    """Trials of a fitted function on sizes that are unusual.

    Args:
      fitted: the function; bounds of its sizes are set that turn out to be needed.
    """

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted

    def confirm(self) -> None:
        """Tries the function on sizes that are unusual.

        Raises:
          UnlikeError: it is wrong for some of them, or nobody knows.
        """
        above = self._fitted.above
        if self._lowers:
            function, reached = self._fitted.function(), self._fitted.reached
            large = self._fitted.sizes()[0]
            sizes: Sizes = {
                name: min(each, reached.get(name, each)) for name, each in large.items()
            }
            wrong = lowering_problem(function, load(function), self._fitted.family.resized(sizes))
            if wrong:
                raise UnlikeError(f"for larger sizes {wrong}")
        for sizes in self._fitted.others:
            if all(sizes[name] <= most for name, most in self._fitted.reached.items()):
                # Of what goes in blocks a few are enough.
                few = {name: min(FEW, each) for name, each in sizes.items() if name in above}
                self._require("single other sizes", {**sizes, **few})
        least = self._least()
        if least:
            self._fitted.bounds[least[0]] = replace(self._fitted.bounds[least[0]], least=least[1])
        for what, sizes in self._unusual():
            wrong = self._wrong(sizes)
            if wrong and what == ONES:
                # The next case has no size below this.
                self._fitted.bounds = {
                    name: replace(each, least=max(each.least, FEW))
                    for name, each in self._fitted.bounds.items()
                }
            elif wrong:
                raise UnlikeError(f"for {what} it is not shown to be right: {wrong}")
        self._confirm_own()

    def _unusual(self) -> Iterator[tuple[str, dict[str, int]]]:
        fitted = self._fitted
        lengths = fitted.resized.blocks.values()
        # Arrays of blocks as long as vector memory allows take long to be evaluated.
        formulas = [
            each
            for each in fitted.written
            if isinstance(each, Formula)
            and not any(factor.divisor in lengths for factor in each.factors)
        ]
        return unusual_sizes(fitted.family, fitted.bounds, [*formulas, *fitted.family.grid])

    def _least(self) -> tuple[str, int] | None:
        """A size with what it must be at least, where small sizes are wrong and that helps."""
        _, small = next(self._unusual())
        # What is in front of the text is proved by no comparison of texts.
        if not self._wrong(small, run=True):
            return None
        literals = sorted({each for each in self._fitted.written if isinstance(each, int)})
        for name, value in small.items():
            own = self._fitted.family.sizes[name]
            choices = [each for each in literals if value < each < own][:_MOST_LEAST]
            for least in (*choices, own):
                if self._fitted.bounds[name].step == 1 and not self._wrong({**small, name: least}):
                    return name, least
        return None

    def _require(self, what: str, sizes: Sizes) -> None:
        wrong = self._wrong(sizes)
        if wrong:
            raise UnlikeError(f"for {what} it is not shown to be right: {wrong}")

    def _wrong(self, sizes: Sizes, *, run: bool = False) -> str:
        """Why a launch of these sizes is not shown to be right; empty if it is.

        Args:
          sizes: of the launch.
          run: whether to run the function although its text is right.
        """
        same = self._fitted.same_text(sizes)
        if same and not run:
            return ""
        try:
            return self._problem(sizes)
        except UnknownError as error:
            return "" if same else str(error)

    def _confirm_own(self) -> None:
        alone = programs_alone(self._fitted.family)
        own = {name: self._fitted.family.sizes[name] for name in self._fitted.bounds}
        for name, most in self._fitted.reached.items():
            if own[name] > most:
                raise UnlikeError(
                    f"it holds for at most {most} `{name}`, not for the launch itself"
                )
        # Of what programs do alike a few are enough.
        fewer = {name: min(FEW, each) if name in alone else each for name, each in own.items()}
        if self._fitted.same_text(own) or self._too_large(fewer):
            return
        try:
            wrong = self._problem(fewer)
        except UnknownError:
            return
        if wrong:
            raise UnlikeError(f"for the launch itself it is not shown to be right: {wrong}")

    def _too_large(self, sizes: Sizes) -> bool:
        """Whether a launch of these sizes takes too long to be run."""
        launch = self._fitted.family.resized(sizes)
        elements = sum(prod(array.shape) for array in launch.arrays)
        return prod(launch.grid) > _MOST_PROGRAMS or elements > _MOST_ELEMENTS

    def _problem(self, sizes: Sizes) -> str:
        """What is wrong with the function for a launch of these sizes; empty if nothing is."""
        function, launch = self._fitted.function(), self._fitted.family.resized(sizes)
        call = load(function)
        wrong = problem(function, call, self._fitted.resized.base.module, launch)
        if not wrong and function.pallas:
            wrong = _outside(function, call, launch)
        return wrong or (lowering_problem(function, call, launch) if self._lowers else "")

    @cached_property
    def _lowers(self) -> bool:
        """Whether the launch's own function is a kernel that jax writes for a TPU."""
        base = self._fitted.resized.base
        return base.function.pallas and not lowering_problem(
            base.function, base.load(), base.launch
        )


def _outside(function: JaxFunction, call: Callable[..., Any], launch: Launch) -> str:
    """What is wrong with the blocks of a kernel for a launch; empty if nothing is."""
    import jax

    shapes = {each.name: (each.shape, NUMPY_DTYPES[each.dtype]) for each in launch.arrays}
    arrays = [jax.ShapeDtypeStruct(*shapes[name]) for name in function.parameters]
    with jax.enable_x64(function.wide):
        return block_outside(call, arrays, {})
