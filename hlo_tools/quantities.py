"""Numbers that say what they are of: for conditions in tests, and for notebooks."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))


class Quantity:
    """What figures have in common: `of` says what is measured, as the beginning of a sentence."""

    of = "this"


class Bytes(Quantity, int):
    """A number of bytes, shown as `12.5 GiB`."""

    def __repr__(self) -> str:
        if abs(self) < 1024:
            return f"{int(self)} B"
        size, unit = float(self), 0
        # 1023.5 would be printed as 1024: three digits of it belong to the next unit.
        while abs(size) >= 1023.5 and unit < len(_BINARY) - 1:
            size, unit = size / 1024, unit + 1
        return f"{size:.4g} {_BINARY[unit]}"

    __str__ = __repr__

    def __mul__(self, factor: float) -> "Bytes":
        return Bytes(round(int(self) * factor))

    __rmul__ = __mul__

    def __add__(self, other: int) -> "Bytes":
        return Bytes(int(self) + int(other))

    def __sub__(self, other: int) -> "Bytes":
        return Bytes(int(self) - int(other))


class Share(Quantity, float):
    """A part of a whole, 0 to 1, shown as `12.5 %`."""

    def __repr__(self) -> str:
        return f"{float(self) * 100:.3g} %"

    __str__ = __repr__


class Seconds(Quantity, float):
    """A duration, shown as `1.25 ms`."""

    def __repr__(self) -> str:
        size = abs(float(self))
        factor, unit = next((t for t in _TIMES if size * t[0] >= 1), _TIMES[-1])
        return f"{float(self) * factor:.4g} {unit}"

    __str__ = __repr__


KiB = Bytes(1 << 10)
MiB = Bytes(1 << 20)
GiB = Bytes(1 << 30)


def explained(found: Bytes | Share | Seconds, op: str, limit: object) -> list[str]:
    """The lines that say why `found op limit` does not hold."""
    if not isinstance(limit, int | float):
        return [f"{found!r} {op} {limit!r}"]
    kind = type(found)
    most = kind(limit)
    told = "the same" if found == most else f"{'more' if found > most else 'less'} than {most!r}"
    if found != most and kind is not Share:
        told = f"{kind(abs(found - most))!r} {told}"
    return [f"{found!r} {op} {most!r}", f"{found.of} is {found!r}, {told}"]
