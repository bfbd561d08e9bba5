"""The gradient of an emitted function against finite differences in `f64`.

The emitted function is differentiated by JAX, in its own types; what it is held against is the
kernel itself, widened to `f64` and evaluated in NumPy. Both are made a scalar function by a random
linear functional of all floats that the launch gives. For each array of floats, the slope along a
random direction is the gradient's product with it on one side, and a central difference on the
other. Two step sizes that disagree show a point where the kernel is not smooth, of which nothing
can be said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_tools.errors import InputError
from translators.graph.errors import EvaluationError
from translators.graph.graph import Module, walk
from translators.graph.numerics import Array
from translators.graph.types import F32, FloatType, element_of
from translators.triton.host_code import HostCode
from translators.verify.emitted import Emitted, precision
from translators.verify.errors import TooSlowError
from translators.verify.evaluation import Case, Clock, in_f64, run
from translators.verify.memory import Layout, is_float
from translators.verify.report import Rung, Status
from translators.verify.subject import Subject
from translators.verify.widened import NoReferenceError, widened

GRADIENTS = "jax.grad against finite differences"

# So small that a kink between the two points is unlikely, so large that rounding of `f64` leaves
# eight digits of the difference.
_STEP = 2.0**-22
_ROUNDING = 1e-8
_DIRECTIONS = 2
# Larger elements of recorded memory were never written to.
_GREATEST = 1e6
_FINEST_TOLERANCE = 2.0**-18


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """What is differentiated.

    Attributes:
      emitted: the function.
      wide: the kernel, in `f64`.
      layout: that of the launch.
      case: where.
      functional: factors of the elements of each result, by name.
      gradient: what JAX says, by parameter.
      clock: how long it may take.
      tolerance: how far slopes may differ, as a fraction of the gradient's length.
    """

    emitted: Emitted
    wide: Module
    layout: Layout
    case: Case
    functional: Mapping[str, Array]
    gradient: Mapping[str, Array]
    clock: Clock
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slope:
    """The slope along one direction.

    Attributes:
      array: the array that changes.
      found: the product of JAX's gradient with the direction.
      expected: the finite difference.
      smooth: whether two step sizes agree.
      error: the difference, as a fraction of the gradient's length.
    """

    array: str
    found: float
    expected: float
    smooth: bool
    error: float


def gradient_rung(
    subject: Subject, layout: Layout, case: Case, clock: Clock, rng: np.random.Generator
) -> Rung:
    """Compares the gradient of an emitted function with finite differences.

    Args:
      subject: the kernel and the function.
      layout: that of the launch.
      case: an input on which the two agree.
      clock: how long it may take.
      rng: draws the functional and the directions.
    """
    case = _without_zeros(case, rng)
    signature = subject.emitted.signature
    names, results = (
        [name for name in each if is_float(layout.views[name].dtype)]
        for each in (signature.parameters, signature.results)
    )
    if not names or not results:
        return _rung(Status.SKIPPED, "the emitted function takes or gives no floats")
    # Eighths are exact in every type.
    functional = {
        name: rng.integers(-8, 9, layout.views[name].array.shape) / 8.0 for name in results
    }
    try:
        wide = widened(subject.module)
    except NoReferenceError as error:
        return _rung(Status.SKIPPED, f"there is no such kernel of `f64`: {error.message}")
    try:
        gradient = differentiate(subject.emitted, layout.arrays(case.storages), names, functional)
    except InputError as error:
        return _rung(Status.FAILED, error.message)
    for name, array in gradient.items():
        wrong = ~np.isfinite(array.astype(np.float64))
        if wrong.any():
            return _not_finite(name, array, wrong)
    problem = _Problem(
        emitted=subject.emitted,
        wide=wide,
        layout=layout,
        case=in_f64(case),
        functional=functional,
        gradient=gradient,
        clock=clock,
        tolerance=_tolerance(subject.module),
    )
    try:
        slopes = [_slope(problem, name, rng) for name in names for _ in range(_DIRECTIONS)]
    except (EvaluationError, TooSlowError) as error:
        return _rung(Status.SKIPPED, error.message)
    return _judged(slopes, problem.tolerance)


def differentiate(
    emitted: Emitted,
    arrays: Mapping[str, Array],
    names: list[str],
    functional: Mapping[str, Array],
) -> dict[str, Array]:
    """JAX's gradient of a linear functional of an emitted function's results.

    Args:
      emitted: the function.
      arrays: what it is called with, by parameter.
      names: the parameters to differentiate by.
      functional: factors of the elements of results, by name; other results do not count.

    Raises:
      InputError: JAX cannot differentiate the function.
    """
    import jax
    import jax.numpy as jnp

    signature = emitted.signature

    def scalar(changing: dict[str, Any]) -> Any:
        taken = ({**arrays, **changing}[name] for name in signature.parameters)
        given = emitted.call(*taken, **emitted.mode)
        outputs = given if isinstance(given, tuple | list) else (given,)
        by_name = dict(zip(signature.results, outputs, strict=True))
        # In the result's own type: its factors are exact there.
        return sum(
            (by_name[name] * jnp.asarray(factors, by_name[name].dtype)).astype(jnp.float32).sum()
            for name, factors in functional.items()
        )

    kind = "kernel in Pallas" if signature.pallas else "function"
    with (
        HostCode(None, f"JAX cannot differentiate the emitted {kind}"),
        precision(signature.wide),
        jax.default_device(jax.devices("cpu")[0]),
    ):
        found = jax.jit(jax.grad(scalar))({name: jnp.asarray(arrays[name]) for name in names})
        return {name: np.asarray(found[name]) for name in names}


def _slope(problem: _Problem, name: str, rng: np.random.Generator) -> _Slope:
    """The slope along a random change of one array."""
    layout = problem.layout
    view = layout.views[name]
    buffer = view.array.buffer
    direction = np.zeros(layout.storages[buffer].size)
    view.of(direction)[...] = rng.standard_normal(view.array.shape)
    # Arrays that overlap change together.
    found = sum(
        float(np.sum(array.astype(np.float64) * other.of(direction)))
        for each, array in problem.gradient.items()
        if (other := layout.views[each]).array.buffer == buffer
    )
    coarse, size = _difference(problem, buffer, direction, _STEP)
    fine, _ = _difference(problem, buffer, direction, _STEP / 2)
    length = float(np.linalg.norm(problem.gradient[name].astype(np.float64)))
    scale = length + _ROUNDING * size / problem.tolerance
    return _Slope(
        array=name,
        found=found,
        expected=fine,
        smooth=abs(coarse - fine) <= problem.tolerance * scale / 4,
        error=abs(found - fine) / scale if scale else abs(found - fine),
    )


def _difference(
    problem: _Problem, buffer: int, direction: Array, step: float
) -> tuple[float, float]:
    """A central difference of the functional, and the size of what is subtracted."""
    ends = []
    for sign in (1, -1):
        storages = dict(problem.case.storages)
        storages[buffer] = storages[buffer] + sign * step * direction
        case = Case(title=problem.case.title, storages=storages, scalars=problem.case.scalars)
        arrays = run(problem.wide, problem.layout, case, problem.clock).arrays
        ends.append([factors * arrays[name] for name, factors in problem.functional.items()])
    above, below = ends
    # Element by element first: what does not change drops out exactly.
    change = sum(float(np.sum(high - low)) for high, low in zip(above, below, strict=True))
    changed = sum(
        float(np.sum(np.abs(high)[high != low])) for high, low in zip(above, below, strict=True)
    )
    return change / (2 * step), changed


def _judged(slopes: list[_Slope], tolerance: float) -> Rung:
    smooth = [slope for slope in slopes if slope.smooth]
    rough = ", ".join(dict.fromkeys(f"`{slope.array}`" for slope in slopes if not slope.smooth))
    if rough and all(slope.found == slope.expected == 0 for slope in smooth):
        return _rung(Status.SKIPPED, f"the kernel is not smooth here in {rough}")
    worst = max(smooth, key=lambda slope: slope.error)
    failed = not worst.error <= tolerance
    count = f"{len(smooth)} slopes" + (f"; not smooth here in {rough}" if rough else "")
    said = f"{worst.error:.2g} of the gradient's length"
    return Rung(
        name=GRADIENTS,
        status=Status.FAILED if failed else Status.PASSED,
        reason=(
            f"`{worst.array}`: a slope differs by {said}, more than {tolerance:.2g}"
            if failed
            else f"{count}; worst error {said}, in `{worst.array}`"
        ),
        array=worst.array if failed else "",
        expected=f"{worst.expected:.9g}",
        found=f"{worst.found:.9g}",
    )


def _not_finite(name: str, array: Array, wrong: Array) -> Rung:
    index = tuple(int(each) for each in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Rung(
        name=GRADIENTS,
        status=Status.FAILED,
        reason=f"`{name}`: JAX's gradient is not finite",
        array=name,
        index=index,
        expected="a number",
        found=str(array[index]),
    )


def _without_zeros(case: Case, rng: np.random.Generator) -> Case:
    """The case away from zero, where many functions have a kink, and without garbage."""
    storages = dict(case.storages)
    for buffer, array in case.storages.items():
        if is_float(array.dtype):
            values = array.astype(np.float64)
            usable = np.isfinite(values) & (values != 0) & (np.abs(values) < _GREATEST)
            drawn = rng.standard_normal(array.size)
            storages[buffer] = np.where(usable, values, drawn).astype(array.dtype)
    return Case(title=case.title, storages=storages, scalars=case.scalars)


def _tolerance(module: Module) -> float:
    """Half the digits of the narrowest float that the kernel computes with."""
    types = [
        element_of(value.type)
        for function in module.functions.values()
        for op in walk(function.body)
        for value in op.results
    ]
    precisions = [each.precision for each in types if isinstance(each, FloatType)]
    narrowest = min(precisions, default=F32.precision)
    return max(float(2.0 ** (-narrowest / 2)), _FINEST_TOLERANCE)


def _rung(status: Status, reason: str) -> Rung:
    return Rung(name=GRADIENTS, status=status, reason=reason)
