"""Runs single ops and small kernels, and says by exact arithmetic what they should give."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from translators.graph.builder import Builder
from translators.graph.evaluator import Evaluation, evaluate
from translators.graph.graph import AttributeValue, make_region
from translators.graph.machine import Machine
from translators.graph.memory import Memory
from translators.graph.numerics import Array, dtype_of
from translators.graph.ops.catalog import OPS
from translators.graph.reader import read_module
from translators.graph.types import FloatType, Type, element_of, shape_of
from translators.graph.verifier import verify


def apply(
    name: str,
    operands: Sequence[tuple[Type, Any]],
    *,
    results: Sequence[Type] | None = None,
    **attributes: AttributeValue,
) -> tuple[Array, ...]:
    """What one op without regions gives, after its types were checked; given, held as typed."""
    region = make_region([type_ for type_, _ in operands])
    op = Builder(region).op(name, *region.arguments, results=results, **attributes)
    machine = Machine(memory=Memory(()), grid=(1, 1, 1), functions={})
    given = [held(type_, values) for type_, values in operands]
    with np.errstate(all="ignore"):
        found = tuple(np.asarray(each) for each in OPS[name].meaning(op, given, machine))
    for value, result in zip(found, op.results, strict=True):
        element = element_of(result.type)
        assert element is not None
        assert value.dtype == dtype_of(element), (name, value.dtype, result.type)
        assert value.shape == shape_of(result.type), (name, value.shape, result.type)
    return found


def held(type_: Type, values: Any) -> Array:
    """Values as the evaluator holds that type."""
    element = element_of(type_)
    assert element is not None
    array = np.asarray(values).astype(dtype_of(element))
    return array.reshape(shape_of(type_))


def run(text: str, *arguments: Any, grid: Sequence[int] = (1,), **options: Any) -> Evaluation:
    """Reads, verifies and runs a kernel."""
    module = read_module(text)
    verify(module)
    return evaluate(module, arguments, grid, **options)


def exact(value: Any) -> Fraction:
    """A finite float of any type as a rational number."""
    return Fraction(float(value))


def nearest(value: Fraction, type_: FloatType) -> float:
    """The number of that type nearest to a rational one, ties to even; infinite if beyond."""
    if not value:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, type_.smallest_exponent)
    unit = Fraction(2) ** (exponent - type_.precision + 1)
    rounded = round(magnitude / unit) * unit
    if rounded > Fraction(type_.largest):
        return float("inf") if value > 0 else float("-inf")
    return float(rounded) if value > 0 else -float(rounded)


def same(left: Any, right: Any) -> bool:
    """Whether two floats are equal as numbers, NaN to NaN and zeros by their sign."""
    a, b = float(left), float(right)
    if np.isnan(a) or np.isnan(b):
        return bool(np.isnan(a) and np.isnan(b))
    return a == b and np.signbit(a) == np.signbit(b)
