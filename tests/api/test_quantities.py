"""Numbers with a unit stay numbers, and print what they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.quantities import Bytes, GiB, KiB, MiB, Seconds, Share, explained


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Bytes(0), "0 B"),
        (Bytes(1023), "1023 B"),
        (12 * GiB, "12 GiB"),
        (GiB * 1.5, "1.5 GiB"),
        (3 * MiB + KiB, "3.001 MiB"),
        (GiB - 1, "1 GiB"),
        (Bytes(5 << 50), "5120 TiB"),
        (Share(0.125), "12.5 %"),
        (Share(0.0), "0 %"),
        (Seconds(2.5), "2.5 s"),
        (Seconds(0.0025), "2.5 ms"),
        (Seconds(0.0), "0 µs"),
    ],
)
def test_a_number_is_shown_with_its_unit(number: object, text: str) -> None:
    assert repr(number) == str(number) == text


@given(st.integers(0, 1 << 60), st.integers(0, 1 << 60), st.integers(0, 1000))
def test_bytes_are_numbers(a: int, b: int, factor: int) -> None:
    assert (Bytes(a) < Bytes(b)) == (a < b)
    assert Bytes(a) + b == a + b
    assert Bytes(a) - b == a - b
    assert factor * Bytes(a) == Bytes(a) * factor == factor * a


@given(st.integers(0, 1 << 60))
def test_what_is_shown_is_the_number(size: int) -> None:
    """To the four digits that are shown."""
    number, unit = repr(Bytes(size)).split()
    shown = float(number) * 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    assert shown == pytest.approx(size, rel=5e-4)


def test_a_comparison_says_of_what_it_is() -> None:
    size = 13 * GiB
    size.of = "the peak of `jit_step`"
    assert explained(size, "<", 12 * GiB) == [
        "13 GiB < 12 GiB",
        "the peak of `jit_step` is 13 GiB, 1 GiB more than 12 GiB",
    ]
    assert explained(Share(0.2), "<", 0.1) == ["20 % < 10 %", "this is 20 %, more than 10 %"]
    assert explained(Seconds(0.001), ">", 0.001)[1] == "this is 1 ms, the same"
    assert explained(GiB, "==", "1 GiB") == ["1 GiB == '1 GiB'"]
