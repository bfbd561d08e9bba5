"""Numbers at which arithmetic goes wrong first, by element type."""

import numpy as np

from translators.graph.numerics import dtype_of
from translators.graph.types import BF16, F16, IntType


def every(element):
    """All numbers of a type of at most 16 bits."""
    if isinstance(element, IntType):
        return np.arange(element.smallest, element.largest + 1).astype(dtype_of(element))
    bits = np.uint8 if element.width == 8 else np.uint16
    return np.arange(1 << element.width).astype(bits).view(dtype_of(element))


def some(element, count, seed=0):
    """So many numbers: limits first, then neighbours of ties and others at random."""
    rng = np.random.default_rng(seed)
    if isinstance(element, IntType):
        low, high = element.smallest, element.largest
        edges = np.array([low, low + 1, -1, 0, 1, 2, 3, 7, 8, high - 1, high], np.int64)
        rest = rng.integers(low, high, count, endpoint=True)
    else:
        edges = _edges(element)
        narrow = element.width <= 16
        rest = rng.permutation(every(element)) if narrow else _near_rounding(count, rng)
    rest = np.resize(rest, count)
    return np.concatenate([edges.astype(dtype_of(element)), rest.astype(dtype_of(element))])[:count]


def _edges(element):
    least = 2.0**element.smallest_exponent
    unit = 2.0 ** (element.smallest_exponent - element.precision + 1)
    found = [0.0, 1.0, 1.5, 2.0, least, unit, least - unit, element.largest, np.inf]
    return np.array([*found, *(-each for each in found), np.nan])


def _near_rounding(count, rng):
    """Numbers of narrow types, halfway between two of these, close to that, and anywhere."""
    found = []
    for element in (F16, BF16):
        values = rng.permutation(every(element).astype(np.float32))
        values = values[np.isfinite(values)][:count]
        above = np.nextafter(values.astype(dtype_of(element)), dtype_of(element).type(np.inf))
        middle = ((values.astype(np.float64) + above.astype(np.float64)) / 2).astype(np.float32)
        found += [values, middle, *(np.nextafter(middle, np.float32(s)) for s in (np.inf, -np.inf))]
    found.append(rng.standard_normal(count) * 10.0 ** rng.integers(-45, 38, count))
    return rng.permutation(np.concatenate(found).astype(np.float32))


def assert_same(found, expected, told=""):
    """Equal bit for bit, but for which NaN it is."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    bits = np.dtype(f"u{expected.itemsize}")
    same = found.view(bits) == expected.view(bits)
    if expected.dtype.kind not in "biu":
        wide = [each.astype(np.float64) for each in (found, expected)]
        same |= np.isnan(wide[0]) & np.isnan(wide[1])
    wrong = np.argwhere(~same)
    assert not len(wrong), (
        told,
        [(tuple(at), found[tuple(at)], expected[tuple(at)]) for at in wrong[:5]],
    )
