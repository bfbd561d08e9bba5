"""Numbers as people read them: three significant digits and an SI unit."""

import math

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_SI_UNITS = ("", "k", "M", "G", "T", "P", "E")
_SECOND_UNITS = ("ns", "µs", "ms", "s")


def format_bytes(count: int) -> str:
    """Returns a number of bytes, for example `1.23 GB`; a kB is 1000 bytes."""
    return _scaled(float(count), _BYTE_UNITS)


def format_seconds(seconds: float) -> str:
    """Returns a duration, for example `14.1 ms`; below a nanosecond in fractions of it."""
    if seconds == 0:
        return "0 s"
    return _scaled(seconds * 1e9, _SECOND_UNITS)


def format_si(number: float, unit: str) -> str:
    """Returns a number with a unit, for example `197 TFLOP/s`."""
    return _scaled(float(number), tuple(prefix + unit for prefix in _SI_UNITS))


def format_share(share: float) -> str:
    """Returns a fraction as a percentage: `64 %`, `6.4 %`, `0.64 %`."""
    percent = share * 100
    if not math.isfinite(percent):
        return "an unknown share"
    if 0 < percent < 0.01:
        return "< 0.01 %"
    digits = 0 if abs(percent) >= 9.95 else 1 if abs(percent) >= 0.995 else 2
    return f"{percent:.{digits}f} %"


def count(number: int, noun: str) -> str:
    """Returns `1 finding`, `1,234 findings`: a number with its regular noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _scaled(value: float, units: tuple[str, ...]) -> str:
    if not math.isfinite(value):
        return f"unknown {units[0]}"
    unit = 0
    # 999.5 would be printed as 1000: three digits of it belong to the next unit.
    while abs(value) >= 999.5 and unit < len(units) - 1:
        value /= 1000
        unit += 1
    digits = f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"
    return f"{digits} {units[unit]}"
