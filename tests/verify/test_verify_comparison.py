import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton.language")

from hypothesis import given
from hypothesis import strategies as st

from translators.verify.comparison import Noise, compare, ulps

RNG = np.random.default_rng(3)
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e5m2]


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def noisy(expected, relative):
    """The array with errors of about that size, as a fraction of each element."""
    errors = 1 + relative * RNG.choice([-1.0, 1.0], expected.shape)
    return (expected.astype(np.float64) * errors).astype(expected.dtype)


def exactly(expected):
    """What is expected is exact, and nothing is noise."""
    return Noise(exact=lambda: expected.astype(np.float64))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.bool_, np.uint8])
def test_an_array_agrees_with_itself_bit_for_bit(dtype):
    array = normal(3, 4).astype(dtype)
    found = compare(array, array.copy())
    assert (found.agrees, found.reason, found.ulps) == (True, "bit for bit", None)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_one_wrong_integer_of_many_is_found_where_it_is(dtype):
    expected = np.zeros((5, 7), dtype)
    found = expected.copy()
    found[3, 2] = 1
    comparison = compare(found, expected, tolerance=1.0)
    assert not comparison.agrees
    assert (comparison.index, comparison.ulps) == ((3, 2), np.inf)


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_are_one_ulp_apart(dtype):
    expected = np.array([1.5], dtype)
    next_bits = (expected.view(f"u{expected.itemsize}") + 1).view(dtype)
    assert ulps(next_bits, expected).tolist() == [1.0]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_next_float_is_one_ulp_away_unless_both_are_minute(value):
    """Differences below the least normal number count as none."""
    expected = np.array([value], np.float32)
    with np.errstate(over="ignore"):
        found = np.nextafter(expected, np.float32(np.inf))
    minute = np.float64(found[0]) - np.float64(expected[0]) < 2.0**-126
    if np.isfinite(found[0]):
        assert ulps(found, expected)[0] in ((0.0,) if minute else (0.5, 1.0))


def test_flushed_subnormals_and_the_sign_of_zero_are_no_difference():
    expected = np.array([1e-40, -0.0], np.float32)
    assert compare(np.zeros(2, np.float32), expected).agrees
    # The subnormal numbers of f16 are numbers like others.
    assert ulps(np.zeros(1, np.float16), np.array([3e-5], np.float16))[0] > 100


@pytest.mark.parametrize(
    ("found", "expected", "agrees"),
    [
        ([1, np.nan], [1, np.nan], True),
        ([1, 2], [1, np.nan], False),
        ([np.nan, 2], [1, 2], False),
        ([np.inf, 2], [np.inf, 2], True),
        ([-np.inf, 2], [np.inf, 2], False),
        ([3e38, 2], [np.inf, 2], False),
    ],
)
def test_nan_and_infinities_must_stand_in_the_same_places(found, expected, agrees):
    left, right = np.array(found, np.float32), np.array(expected, np.float32)
    noise = Noise(disturbed=lambda: [right * np.float32(0.5)])
    assert compare(left, right, noise=noise).agrees == agrees


def test_nan_may_stand_elsewhere_only_where_rounding_moves_it_in_the_kernel_too():
    expected = normal(100)
    expected[:5] = np.nan
    found, run = expected.copy(), expected.copy()
    found[:9] = np.nan
    run[4:6] = 1.0, np.nan
    noise = Noise(exact=lambda: expected.astype(np.float64), disturbed=lambda: [run])
    assert compare(found, expected, noise=noise).agrees
    found[:40] = np.nan
    assert not compare(found, expected, noise=noise).agrees


def test_results_of_other_summation_orders_agree():
    left, right = normal(60, 300), normal(300, 50)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    expected = exact.astype(np.float32)
    found = np.zeros_like(expected)
    for inner in range(300):
        found += left[:, inner : inner + 1] * right[inner : inner + 1]
    run = noisy(expected, np.sqrt(300) * 2.0**-23)
    noise = Noise(exact=lambda: exact, disturbed=lambda: [run])
    comparison = compare(found, expected, noise=noise)
    assert comparison.agrees, comparison.reason


def test_eight_bits_of_precision_too_few_are_noticed():
    expected = normal(64, 64)
    assert not compare(noisy(expected, 2.0**-16), expected, noise=exactly(expected)).agrees
    assert not compare(noisy(expected, 2.0**-16), expected).agrees
    assert compare(noisy(expected, 2.0**-23), expected, noise=exactly(expected)).agrees


def test_a_result_rounded_to_a_narrower_type_is_noticed():
    expected = normal(64, 64)
    narrow = expected.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert not compare(narrow, expected, noise=exactly(expected)).agrees
    bf16 = normal(64, 64, dtype=ml_dtypes.bfloat16)
    fp8 = bf16.astype(ml_dtypes.float8_e4m3fn).astype(ml_dtypes.bfloat16)
    assert not compare(fp8, bf16, noise=exactly(bf16)).agrees


def test_noise_everywhere_is_noticed_where_the_kernel_is_noisy_in_one_place():
    """One turned comparison must not excuse errors in all other elements."""
    exact = RNG.standard_normal(10000)
    expected = exact.astype(np.float32)
    expected[17] += 1
    noise = Noise(exact=lambda: exact)
    good, bad = expected.copy(), expected + np.float32(0.3)
    good[17] -= 1
    assert compare(good, expected, noise=noise).agrees
    assert not compare(bad, expected, noise=noise).agrees


def test_what_disturbed_runs_change_is_noise_with_a_reference_or_without():
    expected = normal(100)
    found = expected + np.float32(1e-4)
    run = expected - np.float32(1e-4)
    for exact in (lambda: None, lambda: expected.astype(np.float64)):
        assert compare(found, expected, noise=Noise(exact=exact, disturbed=lambda: [run])).agrees
        assert not compare(found, expected, noise=Noise(exact=exact)).agrees


def test_integers_may_be_what_disturbed_runs_make_of_them_and_nothing_else():
    expected = np.array([3, 5, 7], np.int8)
    runs = [np.array([4, 5, 7], np.int8), np.array([3, 5, 6], np.int8)]
    noise = Noise(disturbed=lambda: runs)
    turned = compare(np.array([4, 5, 6], np.int8), expected, noise=noise)
    assert (turned.agrees, turned.ulps) == (True, 1.0)
    wrong = compare(np.array([4, 6, 6], np.int8), expected, noise=noise)
    assert (wrong.agrees, wrong.index) == (False, (1,))


def test_noise_is_asked_for_only_where_it_is_needed():
    def asked():
        raise AssertionError("asked")

    expected = normal(5)
    noise = Noise(exact=asked, disturbed=asked)
    assert compare(np.nextafter(expected, np.float32(9)), expected, noise=noise).agrees
    with pytest.raises(AssertionError, match="asked"):
        compare(expected * 2, expected, noise=noise)
    near = Noise(exact=lambda: expected.astype(np.float64), disturbed=asked)
    assert compare(expected + np.float32(1e-8), expected, noise=near).agrees


def test_a_tolerance_takes_the_place_of_the_criterion():
    expected = np.array([100.0, 1.0], np.float32)
    found = np.array([100.0, 1.5], np.float32)
    assert compare(found, expected, tolerance=0.01).agrees
    assert not compare(found, expected, tolerance=0.001, noise=exactly(found)).agrees


def test_another_type_or_shape_never_agrees():
    array = normal(4)
    assert not compare(array.astype(np.float64), array).agrees
    assert not compare(array.reshape(2, 2), array).agrees
