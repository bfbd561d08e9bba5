"""What `jax.grad` makes of translated kernels where differentiating is easily got wrong."""

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

import jax
import jax.numpy as jnp
import numpy as np
from corner_addresses import CASES as ADDRESSES
from corner_atomics import CASES as ATOMICS
from corner_control import CASES as CONTROL
from corner_dots import CASES as DOTS
from corner_floats import CASES as FLOATS
from corner_indices import CASES as INDICES
from corner_reductions import CASES as REDUCTIONS
from launch_case import launched

from translators.translation import translate

CASES = {
    case.name: case
    for case in (*ADDRESSES, *ATOMICS, *CONTROL, *DOTS, *FLOATS, *INDICES, *REDUCTIONS)
}
# Kernels that compute a differentiable function of their float arguments.
SMOOTH = (
    "floats: rounding once from f32 to float32",
    "dot: f32 as ieee",
    "dot: accumulator of float32 from memory, over slices",
    "dot: transposed operands",
    "dot: two products of float32",
    "reductions: softmax with lanes masked",
    "reductions: three values in step",
    "reductions: product of float32",
    "control: attention over 50, causal",
    "control: 4 programs that carry over 10 tiles",
    "control: grouped order of tiles",
    "addresses: transposed to padded rows",
    "addresses: one row for all to row-major",
    "addresses: wrapped rows of a product, pointers moved in the loop",
    "addresses: wrapped lanes that count",
    "indices: rows gathered by int32",
    "indices: rows scattered, some nowhere",
    "addresses: reads what it wrote",
    "addresses: a window of three",
    "indices: block pointers moved along rows",
    "atomics: add of float32",
    "atomics: rows to one row",
    "atomics: split along K",
)


def loaded(case):
    """The translated function, and its float arrays that are finite numbers."""
    translation = translate(*launched(case))
    names = translation.function.parameters
    return translation.load(), names, {name: jnp.asarray(case.arrays[name]) for name in names}


@pytest.mark.xfail(reason="no operand is guarded by the condition that chooses its result")
def test_nan_in_the_branch_not_chosen_stays_out_of_the_gradient():
    case = CASES["floats: NaN in the branch not chosen"]
    function, names, given = loaded(case)
    assert names == ("x_ptr",)
    x = np.asarray(given["x_ptr"])
    found = jax.grad(lambda x: function(x).sum())(jnp.asarray(x))
    with np.errstate(all="ignore"):
        wanted = np.where(x > 0, -0.5 * np.abs(x) ** -1.5, np.where(x == 0, 0, 1 / x**2))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


NESTED = pytest.param(
    "control: nested loops, 3 and 5",
    marks=pytest.mark.xfail(
        reason="a loop up to another loop's counter has no reverse mode", raises=ValueError
    ),
)


@pytest.mark.parametrize("name", [*SMOOTH, NESTED])
def test_gradients_are_slopes(name):
    case = CASES[name]
    # Indices of 64 bits stay what they are.
    with jax.enable_x64(any(each.dtype.itemsize == 8 for each in case.arrays.values())):
        assert_slopes(case)


def assert_slopes(case):
    """Along one random direction through all inputs, by central differences."""
    function, names, given = loaded(case)
    rng = np.random.default_rng(0)
    moved = [each for each in names if given[each].dtype.kind == "f"]
    start = {each: given[each] for each in moved}
    steps = {each: rng.standard_normal(given[each].shape) for each in moved}
    outs = jax.tree.leaves(jax.jit(function)(*given.values()))
    weights = [rng.standard_normal(each.shape).astype(np.float32) for each in outs]

    @jax.jit
    def total(values):
        found = jax.tree.leaves(function(*({**given, **values}[each] for each in names)))
        return sum(jnp.vdot(each, weight) for each, weight in zip(found, weights, strict=True))

    def end(width):
        moved_by = {each: (width * steps[each]).astype(start[each].dtype) for each in moved}
        return float(total({each: start[each] + moved_by[each] for each in moved}))

    gradients = jax.jit(jax.grad(total))(start)
    parts = {each: np.asarray(gradients[each], np.float64) * steps[each] for each in moved}
    slope = sum(float(part.sum()) for part in parts.values())
    width = 2.0**-6
    measured = (end(width) - end(-width)) / (2 * width)
    scale = sum(float(np.linalg.norm(part)) for part in parts.values())
    assert abs(slope - measured) <= 1e-2 * (scale + 1), (slope, measured)
