"""What launches are run on: contents of memory, drawn at random or recorded.

Kernels have preconditions that nobody wrote down: an index must be within an array, offsets must
rise, the rows that are written must differ. So integers that host code gave are kept as they are.
Where it gave none, or the same number everywhere as an example array does, several kinds of
integers are tried, and the first kind is taken for which the kernel stays inside its arrays and
leaves the same whichever of its programs runs first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from translators.graph.errors import EvaluationError
from translators.graph.graph import Module
from translators.graph.numerics import Array
from translators.triton.launches import ScalarArgument
from translators.verify.evaluation import Case, Clock, Outcome, run
from translators.verify.memory import Layout, Storage, Storages, is_float

Draw: TypeAlias = Callable[[Storage, np.random.Generator], Array]

_GREATEST_DATA = 100
_ZERO_SHARE, _NEGATIVE_ZERO_SHARE, _SPECIAL_SHARE = 0.03, 0.01, 0.02
# Elements of a wide draw are multiplied by powers of two from 2**-4 to 2**4.
_WIDEST = 4
_SPECIALS = (np.nan, np.inf, -np.inf)
_FEW = 8
_SCALAR_FACTOR = 0.75
_SCALAR_STEP = 12345
# Where more than this comes out as NaN, a kernel may want positive numbers, as a logarithm does.
_MUCH_NAN = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A case with what the evaluator leaves of it.

    Attributes:
      case: what was in memory.
      outcome: what is there after the run.
    """

    case: Case
    outcome: Outcome


AnyOrder: TypeAlias = Callable[[Trial], bool]
"""Whether the programs of a trial may run in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where inputs come from.

    Attributes:
      module: the kernel's graph.
      layout: that of the launch.
      recorded: what host code had in memory, where known.
      any_order: says of integers that are tried whether programs may run in any order.
      rng: random numbers.
    """

    module: Module
    layout: Layout
    recorded: Storages | None
    any_order: AnyOrder
    rng: np.random.Generator


def trials(source: Source, clock: Clock, count: int) -> Iterator[Trial]:
    """Evaluates the kernel on several inputs; the first is what was recorded, if anything was.

    Args:
      source: where they come from.
      clock: how long all of it may take.
      count: how many inputs.

    Raises:
      EvaluationError: the kernel leaves its arrays, whatever integers it is given.
      TooSlowError: there was no time for the next one.
    """
    if source.recorded is not None:
        yield _tried(source, clock, Case(title="as recorded", storages=source.recorded))
        count -= 1
    if count < 1:
        return
    kind, integers, first = _integers(source, clock)
    yield first
    draws: tuple[tuple[str, Draw], ...] = (("wide range", _wide), ("normal", _normal))
    if share_of_nan(source.layout, first) > _MUCH_NAN:
        draws = (("positive", _positive), ("wide range", _wide))
    for index in range(1, count):
        name, floats = draws[(index - 1) % len(draws)]
        case = _case(source, f"{name}{kind}", floats, integers)
        yield _tried(source, clock, case)


def share_of_nan(layout: Layout, trial: Trial) -> float:
    """How much of what the kernel wrote is NaN; 0 if it wrote nothing."""
    written = [
        trial.outcome.storages[buffer][trial.outcome.written[buffer]] for buffer in layout.storages
    ]
    nan = sum(int(np.isnan(each).sum()) for each in written if is_float(each.dtype))
    total = sum(each.size for each in written)
    return nan / total if total else 0.0


def with_specials(case: Case, rng: np.random.Generator) -> Case:
    """The case with NaN and infinities among its floats."""
    changed = dict(case.storages)
    for buffer, array in case.storages.items():
        # A few numbers alone would leave nothing but NaN of all that is computed from them.
        if is_float(array.dtype) and array.size >= _FEW:
            count = max(len(_SPECIALS), int(_SPECIAL_SHARE * array.size))
            places = rng.permutation(array.size)[:count]
            changed[buffer] = array.copy()
            changed[buffer][places] = np.resize(_SPECIALS, count).astype(array.dtype)
    return replace(case, title="with NaN and infinities", storages=changed)


def with_scalars(case: Case, layout: Layout, names: tuple[str, ...]) -> Case:
    """The case with other values of the scalars named; finite floats shrink, integers grow."""
    scalars = {
        each.name: each.value * _SCALAR_FACTOR
        if isinstance(each.value, float)
        else (int(each.value) + _SCALAR_STEP) % (1 << 31)
        for each in layout.launch.singles
        if isinstance(each, ScalarArgument) and each.name in names
    }
    return replace(case, title="other scalars", scalars=scalars)


def _tried(source: Source, clock: Clock, case: Case) -> Trial:
    return Trial(case=case, outcome=run(source.module, source.layout, case, clock))


def _kept(source: Source) -> dict[int, Array]:
    """Integers that host code gave and that say something, by buffer."""
    return {
        buffer: array
        for buffer, array in (source.recorded or {}).items()
        if array.dtype.kind in "iu" and array.size and (array != array[0]).any()
    }


def _case(source: Source, title: str, floats: Draw, integers: Draw) -> Case:
    kept = _kept(source)
    storages = {}
    for buffer, storage in source.layout.storages.items():
        if buffer in kept:
            storages[buffer] = kept[buffer]
        elif storage.dtype == np.bool_:
            storages[buffer] = source.rng.random(storage.size) < 0.5
        elif is_float(storage.dtype):
            storages[buffer] = floats(storage, source.rng)
        else:
            storages[buffer] = integers(storage, source.rng).astype(storage.dtype)
    return Case(title=title, storages=storages)


def _integers(source: Source, clock: Clock) -> tuple[str, Draw, Trial]:
    """The kind of integers to draw, as a part of a title, and a first trial with such."""
    kept = _kept(source)
    free = any(
        storage.dtype.kind in "iu" and buffer not in kept
        for buffer, storage in source.layout.storages.items()
    )
    if not free:
        return "", _zeros, _tried(source, clock, _case(source, "normal", _normal, _zeros))
    smallest = _smallest_dimension(source.layout)
    kinds: tuple[tuple[str, Draw], ...] = (
        ("any integers", _data),
        ("small integers", lambda storage, rng: rng.integers(0, smallest, storage.size)),
        ("distinct integers", lambda storage, rng: rng.permutation(storage.size)),
        ("rising integers", lambda storage, rng: _rising(storage, rng, smallest)),
    )
    found: tuple[str, Draw, Trial] | None = None
    least = 1.0
    for kind, draw in kinds:
        case = _case(source, f"normal, {kind}", _normal, draw)
        try:
            trial = _tried(source, clock, case)
            suits = source.any_order(trial)
        except EvaluationError:
            continue  # what no kernel may do: these integers break a precondition
        nan = share_of_nan(source.layout, trial)
        if suits and (found is None or nan < least):
            found, least = (f", {kind}", draw, trial), nan
        if suits and nan <= _MUCH_NAN:
            break  # with others the kernel may do more than to divide nothing by nothing
    if found is not None:
        return found
    case = _case(source, "normal, integers all zero", _normal, _zeros)
    return ", integers all zero", _zeros, _tried(source, clock, case)


def _smallest_dimension(layout: Layout) -> int:
    """The least dimension of any array that is not 1, below which indices mostly are valid."""
    sizes = [size for view in layout.views.values() for size in view.array.shape if size > 1]
    return min(sizes, default=1)


def _zeros(storage: Storage, rng: np.random.Generator) -> Array:
    return np.zeros(storage.size, storage.dtype)


def _data(storage: Storage, rng: np.random.Generator) -> Array:
    least = 0 if storage.dtype.kind == "u" else -_GREATEST_DATA
    return rng.integers(least, _GREATEST_DATA, storage.size)


def _rising(storage: Storage, rng: np.random.Generator, limit: int) -> Array:
    drawn = np.sort(rng.integers(0, limit + 1, storage.size))
    drawn[:1] = 0
    return drawn


def _normal(storage: Storage, rng: np.random.Generator) -> Array:
    return _with_zeros(rng.standard_normal(storage.size), rng).astype(storage.dtype)


def _positive(storage: Storage, rng: np.random.Generator) -> Array:
    return np.abs(rng.standard_normal(storage.size)).astype(storage.dtype)


def _wide(storage: Storage, rng: np.random.Generator) -> Array:
    powers = rng.integers(-_WIDEST, _WIDEST + 1, storage.size)
    drawn = np.ldexp(rng.standard_normal(storage.size), powers)
    return _with_zeros(drawn, rng).astype(storage.dtype)


def _with_zeros(drawn: Array, rng: np.random.Generator) -> Array:
    share = rng.random(drawn.size)
    drawn[share < _ZERO_SHARE + _NEGATIVE_ZERO_SHARE] = 0.0
    drawn[share < _NEGATIVE_ZERO_SHARE] = -0.0
    return drawn
