"""How large sizes may get before a kernel is translated to another text."""

import math
from collections.abc import Collection

from translators.emit.general.formula import Sizes
from translators.general_translation.fitted import Fitted
from translators.general_translation.resized import (
    AnotherTextError,
    RefusedError,
    require_as_good,
)
from translators.resize.choosing import LARGEST, large_sizes, primes_from

# All steps of a grid are looked at.
_MOST_STEPS = 1 << 17
# To find how large a size may get, and what that is rounded down to.
_HALVINGS = 5
_SUBLANES, _LANES = 8, 128


def reach(fitted: Fitted, names: Collection[str]) -> None:
    """Makes sure of large sizes, and bounds those of which the largest have another text.

    Args:
      fitted: the function, whose bounds are set.
      names: the sizes; those that have a bound are left out.

    Raises:
      UnlikeError: all large ones have.
    """
    for name in names:
        if fitted.bounds[name].most is None:
            _reach(fitted, name)


def _reach(fitted: Fitted, name: str) -> None:
    pallas = fitted.template.is_pallas
    choices = large_sizes(
        fitted.family,
        fitted.bounds,
        name,
        fitted.scale,
        fitted.above,
        fitted.launches[0] if pallas else {},
        _MOST_STEPS if pallas else LARGEST,
    )
    other: Sizes | None = None
    for sizes in choices:
        if fitted.same_text(sizes):
            if other is not None:
                fitted.reached[name] = _rounded(fitted, name, sizes[name])
            return
        if pallas:
            _require_as_good(fitted, sizes)
        other = sizes
    if other is None or not pallas:
        raise AnotherTextError(f"a launch with a large `{name}` is translated to another text")
    # What a step needs of vector memory grows with sizes that do not go in blocks.
    step = fitted.bounds[name].step
    low, high = fitted.launches[0][name], other[name]
    for _ in range(_HALVINGS):
        middle = step * next(primes_from(math.isqrt(low * high) // step))
        if middle >= high:
            break
        if fitted.same_text({**other, name: middle}):
            low = middle
        else:
            high = middle
    fitted.reached[name] = _rounded(fitted, name, low)


def _rounded(fitted: Fitted, name: str, size: int) -> int:
    """A round number below a size of a kernel in Pallas, but not below that of the launch."""
    if not fitted.template.is_pallas:
        return size
    unit = max(fitted.bounds[name].step, _LANES if size > _LANES * _SUBLANES else _SUBLANES)
    return max(size - size % unit, min(size, fitted.family.sizes[name]))


def _require_as_good(fitted: Fitted, sizes: Sizes) -> None:
    """Makes sure that a launch goes through its arrays likewise, if it is translated at all.

    Raises:
      UnlikeError: it does not.
    """
    try:
        translation = fitted.resized.translated(sizes)
    except RefusedError:
        return
    require_as_good(fitted.resized.base, translation)
