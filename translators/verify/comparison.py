"""Whether two arrays hold the same, up to the rounding that their element type makes unavoidable.

Integers and booleans must be equal; where a kernel makes them of floats, an element may be what
it becomes in one of the disturbed runs described below. Of floats, NaN and infinities must stand in
the same places, and infinities have the same signs, except in as many elements (`NOISE_FACTOR`
times that) as one of those runs has them otherwise. Finite floats agree if one of these holds:

1. Each element is within `close` units in the last place of its counterpart, or differs by less
   than the least normal number, as XLA's CPU backend may flush subnormal numbers to zero.
2. What is found is as good as can be expected: both the greatest and the root mean square of its
   errors are at most `NOISE_FACTOR` times what is noise, plus `slack` units in the last place of
   the greatest element of the array. Errors are measured against the same kernel evaluated in
   `f64`, or against the evaluator where there is no such kernel. Noise is the greater of two: the
   error of the evaluator, which computes in the kernel's own types, and the change in its result
   when everything that it rounds is disturbed by a unit in the last place (`disturbance.py`). It is
   large where a kernel subtracts like numbers, or rounds to `bf16` on the way.

The numbers of units are `Limits`: a few for `f32` and `f64`, in which functions such as `exp` are
computed to a few units, and one for narrower types, to which results computed in `f32` are rounded.

The first rule comes before the reference because rounding may turn a comparison: the evaluator
and what is checked then take the same branch, and the reference another one.

A `tolerance` takes the place of the second rule: each element may then differ by that fraction of
the greatest element of the array.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from translators.graph.numerics import Array, dtype_of
from translators.graph.types import F16, FLOAT_TYPES, FloatType
from translators.verify.memory import is_float

NOISE_FACTOR = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many units in the last place floats may differ by, whatever they are.

    Attributes:
      close: each element, in its own units.
      slack: what is allowed besides noise, in units of the greatest element.
    """

    close: float
    slack: float


WIDE_LIMITS = Limits(close=4.0, slack=8.0)
NARROW_LIMITS = Limits(close=1.0, slack=1.0)

_FORMATS: dict[np.dtype[Any], FloatType] = {
    dtype_of(type_): type_ for type_ in FLOAT_TYPES.values()
}


def _nothing() -> Array | None:
    return None


def _no_runs() -> Sequence[Array]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What is known of the rounding of an array; each is computed only where it is asked for.

    Attributes:
      exact: gives the array computed in `f64`, or `None` where there is no such kernel.
      disturbed: gives what it becomes in several disturbed runs.
    """

    exact: Callable[[], Array | None] = _nothing
    disturbed: Callable[[], Sequence[Array]] = _no_runs


UNKNOWN = Noise()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How two arrays compare.

    Attributes:
      agrees: whether they are accepted as the same.
      reason: by which rule, or what is wrong, as a clause.
      ulps: the greatest difference in units in the last place: of the element itself under the
        first rule, of the greatest element of the array under the others; infinite where elements
        differ that no rounding explains; `None` if nothing differs.
      index: where that is, in the array.
      expected: the element there that was expected.
      found: the element there that was found.
    """

    agrees: bool
    reason: str
    ulps: float | None = None
    index: tuple[int, ...] = ()
    expected: str = ""
    found: str = ""


def compare(
    found: Array,
    expected: Array,
    *,
    noise: Noise = UNKNOWN,
    tolerance: float | None = None,
    noise_factor: float = NOISE_FACTOR,
) -> Comparison:
    """Compares what was found with what the evaluator gives.

    Args:
      found: any array.
      expected: an array of the same type and shape.
      noise: how much of it is rounding.
      tolerance: a fraction of the greatest element, instead of the second rule above.
      noise_factor: how many times the noise is allowed.
    """
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return Comparison(
            agrees=False,
            reason=f"is {found.dtype} of shape {found.shape}, "
            f"not {expected.dtype} of shape {expected.shape}",
            ulps=np.inf,
        )
    if not is_float(expected.dtype):
        return _exact(found, expected, noise)
    misplaced = _misplaced(found, expected, noise, noise_factor)
    if misplaced is not None:
        return misplaced
    type_ = _FORMATS[expected.dtype]
    limits = WIDE_LIMITS if type_.precision > F16.precision else NARROW_LIMITS
    distance = ulps(found, expected)
    worst = float(distance.max(initial=0.0))
    if worst == 0:
        return Comparison(agrees=True, reason="bit for bit")
    if worst <= limits.close:
        reason = f"within {limits.close:g} ulp{'' if limits.close == 1 else 's'}"
        return _at(True, reason, found, expected, distance)
    unit = float(_unit(np.array(_finite_greatest(expected.astype(np.float64))), type_))
    apart = _apart(found, expected) / unit
    if tolerance is not None:
        limit = tolerance * 2.0 ** (type_.precision - 1)
        agrees = bool(np.max(apart) <= limit)
        reason = f"{'within' if agrees else 'not within'} {tolerance:g} of the greatest element"
        return _at(agrees, reason, found, expected, apart)
    agrees, reason = _as_good(found, expected, noise, noise_factor, limits.slack * unit)
    return _at(agrees, reason, found, expected, apart)


def ulps(found: Array, expected: Array) -> Array:
    """The difference of two float arrays in units in the last place, element by element.

    The unit is that of the greater magnitude of the two. Differences below the least normal number
    count as none, except in the narrow formats whose subnormal numbers no processor flushes.
    Elements that are not finite count as equal.
    """
    type_ = _FORMATS[expected.dtype]
    magnitude = np.maximum(np.abs(found.astype(np.float64)), np.abs(expected.astype(np.float64)))
    difference = _apart(found, expected)
    distance = difference / _unit(np.where(np.isfinite(magnitude), magnitude, 0.0), type_)
    if type_.smallest_exponent < F16.smallest_exponent:
        distance = np.where(difference < 2.0**type_.smallest_exponent, 0.0, distance)
    return np.asarray(distance)


def _apart(found: Array, expected: Array) -> Array:
    """How far elements are apart; 0 where they are not finite."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    return np.where(np.isfinite(difference), difference, 0.0)


def _unit(magnitude: Array, type_: FloatType) -> Array:
    """The unit in the last place of numbers of that magnitude."""
    _, exponent = np.frexp(magnitude)
    exponent = np.maximum(exponent - 1, type_.smallest_exponent) - (type_.precision - 1)
    return np.asarray(np.ldexp(1.0, exponent))


def _exact(found: Array, expected: Array, noise: Noise) -> Comparison:
    differs = found != expected
    if not differs.any():
        return Comparison(agrees=True, reason="bit for bit")
    explained = np.zeros(differs.shape, np.bool_)
    for run in noise.disturbed():
        explained |= run == found
    wrong = differs & ~explained
    agrees = not wrong.any()
    index = _first(differs if agrees else wrong)
    steps = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    reason = f"{int(differs.sum())} of {differs.size} elements differ"
    if agrees:
        reason += ", where rounding decides between them"
    return Comparison(
        agrees=agrees,
        reason=reason,
        ulps=float(steps.max()) if agrees else np.inf,
        index=index,
        expected=_shown(expected, index),
        found=_shown(found, index),
    )


def _misplaced(
    found: Array, expected: Array, noise: Noise, noise_factor: float
) -> Comparison | None:
    """NaN or an infinity that only one of the two has; `None` if that is noise, or nowhere so."""
    wrong = _special_differs(found, expected)
    count = int(wrong.sum())
    if not count:
        return None
    turned = (int(_special_differs(run, expected).sum()) for run in noise.disturbed())
    if count <= noise_factor * max(turned, default=0):
        return None
    index = _first(wrong)
    pair = (found[index], expected[index])
    what = "NaN" if any(np.isnan(np.float64(each)) for each in pair) else "an infinity"
    return Comparison(
        agrees=False,
        reason=f"{what} stands in only one of the two, in {count} of {wrong.size} elements",
        ulps=np.inf,
        index=index,
        expected=_shown(expected, index),
        found=_shown(found, index),
    )


def _special_differs(found: Array, expected: Array) -> Array:
    """Where one of the two is NaN or infinite and the other is not the same."""
    left, right = found.astype(np.float64), expected.astype(np.float64)
    special = ~(np.isfinite(left) & np.isfinite(right))
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray(special & ~same)


def _finite_greatest(values: Array) -> float:
    magnitude = np.abs(values)
    return float(magnitude[np.isfinite(magnitude)].max(initial=0.0))


def _as_good(
    found: Array, expected: Array, noise: Noise, noise_factor: float, slack: float
) -> tuple[bool, str]:
    """Whether what is found is about as close to the truth as noise lets it be."""
    left, right = found.astype(np.float64), expected.astype(np.float64)
    exact = noise.exact()
    # Where rounding decides whether a result is finite, the reference says nothing of it.
    truth = right if exact is None else np.where(np.isfinite(exact), exact, right)
    finite = np.isfinite(left) & np.isfinite(right)
    errors, own = (np.abs(each[finite] - truth[finite]) for each in (left, right))
    against = "the evaluator" if exact is None else "f64"
    for name, measure in (("greatest", np.max), ("mean", _root_mean_square)):
        error, allowed = float(measure(errors)), float(measure(own))
        if error > noise_factor * allowed + slack:
            changes = (_apart(run, expected)[finite] for run in noise.disturbed())
            allowed = max([allowed, *(float(measure(change)) for change in changes)])
        if error > noise_factor * allowed + slack:
            return False, (
                f"its {name} error against {against} is {error:.3g}, where {allowed:.3g} is noise"
            )
    return True, f"as close to {against} as rounding lets it be"


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _at(agrees: bool, reason: str, found: Array, expected: Array, distance: Array) -> Comparison:
    index = tuple(int(each) for each in np.unravel_index(int(np.argmax(distance)), distance.shape))
    return Comparison(
        agrees=agrees,
        reason=reason,
        ulps=float(distance[index]),
        index=index,
        expected=_shown(expected, index),
        found=_shown(found, index),
    )


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(each) for each in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def _shown(values: Array, index: tuple[int, ...]) -> str:
    element = values[index]
    return f"{float(element):.9g}" if is_float(values.dtype) else str(element)
