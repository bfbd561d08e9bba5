"""Functions that kernels compose are as accurate as XLA's, over all that they take."""

import math

import numpy as np
import pytest
from emitted_kernels import both_ways, compiler, emitted, problems
from held_kernels import kernel_of
from special_values import assert_same

from translators.emit.pallas.functions import RULES
from translators.graph.types import F32, I32

SIZE = 4096
# Units in the last place; XLA's own functions are off by as many, or more.
TOLERANCE = 4.0
EXACT = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cosh": np.cosh,
    "erfc": np.vectorize(math.erfc),
    "expm1": np.expm1,
    "sinh": np.sinh,
}
# Where the function is finite and no subnormal.
DOMAINS = {
    "acos": (-1, 1),
    "acosh": (1, 3e38),
    "asin": (-1, 1),
    "atanh": (-1, 1),
    "cosh": (-89, 89),
    "erfc": (-9, 9.1),
    "expm1": (-104, 88.7),
    "sinh": (-89, 89),
}


def inputs(name):
    """Numbers of all magnitudes, near the ends of the domain, and beyond them."""
    rng = np.random.default_rng(0)
    low, high = DOMAINS.get(name, (-3e38, 3e38))
    sizes = np.logspace(-37, 38, SIZE // 4)
    near = np.logspace(-7, 0, SIZE // 8)
    few = rng.uniform(max(low, -10), min(high, 10), SIZE // 4)
    found = np.concatenate([sizes, -sizes, few, 1 + near, 1 - near, near - 1, -1 - near])
    found = found[(found >= low) & (found <= high)].astype(np.float32)
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -3.0, 30.0], np.float32)
    return np.resize(np.concatenate([special, found]), SIZE)


def test_every_composed_function_is_tested():
    assert {name.removeprefix("math.") for name in RULES} - {"ctpop", "tt.extern_elementwise"} == (
        EXACT.keys()
    )


@pytest.mark.parametrize("name", EXACT)
def test_accuracy(name):
    values = inputs(name)
    module = kernel_of(f"math.{name}", (F32,), F32, SIZE)
    found, _, _ = both_ways(module, {"x0": values, "out": np.zeros(SIZE, np.float32)})
    with np.errstate(all="ignore"):
        exact = EXACT[name](values.astype(np.float64))
        rounded = exact.astype(np.float32)
        normal = np.abs(rounded) >= np.finfo(np.float32).smallest_normal
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        off = np.abs(found["out"] - exact) / unit
    assert np.array_equal(np.isnan(found["out"]), np.isnan(rounded))
    finite = np.isfinite(rounded) & normal
    assert np.array_equal(found["out"][np.isinf(rounded)], rounded[np.isinf(rounded)])
    assert off[finite].max() <= TOLERANCE, values[finite][off[finite].argmax()]


def test_they_compile():
    with compiler() as process:
        for name in EXACT:
            arrays = {"x0": np.ones(SIZE, np.float32), "out": np.zeros(SIZE, np.float32)}
            function = emitted(kernel_of(f"math.{name}", (F32,), F32, SIZE), arrays)
            assert not problems(process, function, arrays), name


def test_set_bits_of_a_number():
    from kernel_builder import Kernel

    from translators.graph.types import PointerType

    k = Kernel(x=PointerType(I32), out=PointerType(I32))
    lanes = k.arange(SIZE)
    count = k.builder.value("math.ctpop", k.load(k["x"]))
    k.store(k.point(k["out"], lanes), k.to(count, (SIZE,)))
    module = k.done()
    arrays = {"x": np.array([-0x7FEDCBA9], np.int32), "out": np.zeros(SIZE, np.int32)}
    found, expected, function = both_ways(module, arrays)
    assert_same(found["out"], expected["out"])
    with compiler() as process:
        assert not problems(process, function, arrays)
