"""Random expressions of Triton's language, each with a bound on its size and on its error.

A term's `size` bounds its magnitude and its `error` how far two faithful computations of it may be
apart. Where that is zero the term may decide something: only such terms are compared, converted to
integers, or asked for the place of their maximum. Integers may wrap around; nothing divides by
zero, shifts too far, overflows to infinity or leaves the domain of its function.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st

# Element types: their name in Triton, and for floats a unit in the last place and the magnitude
# that terms are kept below.
FLOATS = {
    "float16": (2.0**-10, 500.0),
    "bfloat16": (2.0**-7, 1e4),
    "float32": (2.0**-23, 1e5),
    "float64": (2.0**-52, 1e6),
}
INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint32": 32}
WIDE = ("float32", "float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A value in the kernel.

    Attributes:
      code: an expression that needs no parentheses.
      dtype: the element type's name in Triton; `int1` for a condition.
      axes: the axes of the tile that it has; others have one element.
      size: a bound on the magnitude.
      error: a bound on the difference of two computations; zero for what is exact.
    """

    code: str
    dtype: str
    axes: frozenset[str]
    size: float = 1.0
    error: float = 0.0

    @property
    def real(self) -> bool:
        """Whether it is a float."""
        return self.dtype in FLOATS


class Writer:
    """Writes statements, and keeps the terms that later ones may use.

    Attributes:
      lines: the statements.
      terms: what may be used.
      tile: the tile's axes, outermost first; all terms have as many dimensions.
      lengths: elements of the tile along each axis.
    """

    def __init__(self, draw: st.DrawFn, lengths: dict[str, int]) -> None:
        self.draw = draw
        self.lengths = lengths
        self.tile = tuple(lengths)
        self.lines: list[str] = []
        self.terms: list[Term] = []
        self.depth = 1
        self._count = 0

    def write(self, line: str) -> None:
        """Adds a statement."""
        self.lines.append("    " * self.depth + line)

    def name(self) -> str:
        """A variable's name that is new."""
        self._count += 1
        return f"v{self._count}"

    def let(self, code: str, like: Term, **changes: Any) -> Term:
        """Names a value, which later statements may use."""
        term = replace(like, **{**changes, "code": self.name()})
        if term.real and term.size > FLOATS[term.dtype][1]:
            # Scaled down by a power of two: nothing is lost.
            power = 2.0 ** math.ceil(math.log2(term.size / FLOATS[term.dtype][1]))
            code = f"({code}) * {1 / power!r}"
            term = replace(term, size=term.size / power, error=term.error / power)
        self.write(f"{term.code} = {code}")
        self.terms.append(term)
        return term

    def choose(self, options: Sequence[Any]) -> Any:
        """One of several."""
        return self.draw(st.sampled_from(list(options)))

    def pick(self, suits: Any = lambda term: True) -> Term | None:
        """A term that suits, later ones rather than earlier ones."""
        found = [term for term in self.terms if suits(term)]
        return self.choose(found[::-1]) if found else None

    def step(self) -> None:
        """Writes one statement."""
        term = self.pick(lambda term: term.dtype != "int1")
        assert term is not None
        steps = [self.combine, self.combine, self.change, self.convert, self.condition]
        if term.axes == frozenset(self.tile):
            steps += [self.reduce, self.scan, self.move]
        self.choose(steps)(term)

    def partner(self, term: Term) -> Term:
        """Another term of the same type, converted if there is none."""
        same = self.pick(lambda other: other.dtype == term.dtype)
        other = self.pick(lambda each: each.real == term.real and each.dtype != "int1")
        if other is not None and self.draw(st.booleans()):
            same = self.cast(other, term.dtype)
        return same or term

    def combine(self, term: Term) -> None:
        """Two terms become one."""
        other = self.partner(term)
        x, y, axes = term.code, other.code, term.axes | other.axes
        if not term.real:
            code = self.choose(
                [
                    *(f"{x} + {y}", f"{x} - {y}", f"{x} * {y}"),
                    *(f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}"),
                    *(f"tl.minimum({x}, {y})", f"tl.maximum({x}, {y})"),
                    *(f"{x} // (({y} & 7) + 1)", f"{x} % (({y} & 7) + 1)"),
                ]
            )
            self.let(code, term, axes=axes)
            return
        ulp, both = FLOATS[term.dtype][0], term.size + other.size
        either, errors = max(term.size, other.size), term.error + other.error
        product = term.size * other.size
        crossed = term.size * other.error + other.size * term.error + term.error * other.error
        options = [
            (f"{x} + {y}", both, errors + ulp * both),
            (f"{x} - {y}", both, errors + ulp * both),
            (f"{x} * {y}", product, crossed + ulp * product),
            (f"tl.maximum({x}, {y})", either, max(term.error, other.error)),
            (f"tl.minimum({x}, {y})", either, max(term.error, other.error)),
        ]
        if term.dtype in WIDE:
            error = term.error + term.size * other.error + 4 * ulp * term.size
            options.append((f"{x} / (tl.abs({y}) + 1.0)", term.size, error))
        code, size, error = self.choose(options)
        self.let(code, term, axes=axes, size=size, error=error)

    def change(self, term: Term) -> None:
        """A function of one term, or of one and a number."""
        x = term.code
        if not term.real:
            shift = self.draw(st.integers(0, INTEGERS[term.dtype] - 1))
            number = self.draw(st.integers(1, 100))
            codes = [f"{x} << {shift}", f"{x} >> {shift}", f"{x} + {number}", f"{x} * {number}"]
            codes += [f"{x} // {number}", f"{x} % {number}", f"~{x}", f"{x} & {number}"]
            if not term.dtype.startswith("u"):
                codes += [f"-{x}", f"tl.abs({x})", f"{x} - {number}"]
            self.let(self.choose(codes), term)
            return
        ulp = FLOATS[term.dtype][0]
        options = [
            (f"-{x}", term.size, term.error),
            (f"tl.abs({x})", term.size, term.error),
            (f"{x} * 0.5", term.size / 2, term.error),
            (f"{x} + 1.5", term.size + 1.5, term.error + ulp * (term.size + 1.5)),
            (f"2.0 - {x}", term.size + 2, term.error + ulp * (term.size + 2)),
        ]
        if term.dtype in WIDE:
            root = math.sqrt(term.size + 1)
            options += [
                (f"tl.exp(tl.minimum({x}, 3.0))", 21.0, 21 * (term.error + 8 * ulp)),
                (f"tl.exp2(tl.minimum({x}, 3.0))", 8.0, 8 * (term.error + 8 * ulp)),
                (f"tl.sigmoid({x})", 1.0, term.error / 4 + 16 * ulp),
                (f"tl.sqrt(tl.abs({x}) + 0.5)", root, term.error + 4 * ulp * root),
                (f"tl.log(tl.abs({x}) + 0.5)", 20.0, 2 * term.error + 64 * ulp),
            ]
            if term.size <= 100:
                options.append((f"tl.cos({x})", 1.0, term.error + 16 * ulp))
            if not term.error:
                options.append((f"tl.floor({x})", term.size + 1, 0.0))
        code, size, error = self.choose(options)
        self.let(code, term, size=size, error=error)

    def convert(self, term: Term) -> None:
        """The same value in another type."""
        whole = not term.real or (not term.error and term.size < 100)
        names = [*FLOATS, *INTEGERS] if whole else list(FLOATS)
        self.cast(term, self.choose([name for name in names if name != term.dtype]))

    def cast(self, term: Term, dtype: str) -> Term:
        """The term in a type that can hold it."""
        if term.dtype == dtype:
            return term
        code = f"{term.code}.to(tl.{dtype})"
        if dtype in INTEGERS:
            if term.real and dtype.startswith("u"):
                code = f"tl.abs({term.code}).to(tl.{dtype})"
            return self.let(code, term, dtype=dtype, size=1.0, error=0.0)
        ulp, limit = FLOATS[dtype]
        if term.dtype in INTEGERS:
            code = f"({term.code} % 100).to(tl.{dtype})"
            return self.let(code, term, dtype=dtype, size=100.0, error=0.0)
        if term.size > limit:
            term = self.let(f"{term.code} * {limit / term.size / 2!r}", term, size=limit / 2)
            term = replace(term, error=term.error + FLOATS[term.dtype][0] * term.size)
            self.terms[-1] = term
            code = f"{term.code}.to(tl.{dtype})"
        wider = ulp <= FLOATS[term.dtype][0] and (term.dtype, dtype) != ("float16", "bfloat16")
        # An exact value rounds to the same value everywhere; one that is off may round apart.
        error = term.error + (0.0 if wider or not term.error else 2 * ulp * term.size)
        return self.let(code, term, dtype=dtype, error=error)

    def condition(self, term: Term) -> None:
        """A comparison of exact terms, and a choice by it."""
        left = self.pick(lambda each: not each.error and each.dtype != "int1")
        if left is None:
            return
        right = self.pick(lambda each: each.dtype == left.dtype and not each.error)
        sign = self.choose(["<", "<=", ">", ">=", "==", "!="])
        number = "0.5" if left.real else "3"
        against, axes = number, left.axes
        if right is not None and right is not left and self.draw(st.booleans()):
            against, axes = right.code, left.axes | right.axes
        holds = self.let(f"{left.code} {sign} {against}", left, dtype="int1", axes=axes, size=1.0)
        # Triton's interpreter joins no condition that has one element with one that has more.
        known = self.pick(lambda each: each.dtype == "int1" and each.axes and each is not holds)
        if known is not None and holds.axes and self.draw(st.booleans()):
            joint = self.choose(["&", "|", "^"])
            code, axes = f"{holds.code} {joint} {known.code}", axes | known.axes
            holds = self.let(code, holds, axes=axes)
        if self.draw(st.booleans()):
            holds = self.let(f"~{holds.code}", holds)
        other = self.partner(term)
        self.let(
            f"tl.where({holds.code}, {term.code}, {other.code})",
            term,
            axes=holds.axes | term.axes | other.axes,
            size=max(term.size, other.size),
            error=max(term.error, other.error),
        )

    def along(self, term: Term) -> tuple[str, int, int]:
        """An axis of the tile, its number, and its length."""
        axis = self.choose(self.tile)
        return axis, self.tile.index(axis), self.lengths[axis]

    def reduce(self, term: Term) -> None:
        """All elements along an axis become one."""
        axis, number, length = self.along(term)
        if term.dtype in ("float16", "bfloat16"):
            term = self.cast(term, "float32")
        keep = "" if len(self.tile) == 1 else "[:, None]" if number else "[None, :]"
        ops = ["sum", "max", "min"]
        if not term.error:
            ops += ["argmax", "argmin"]
        if not term.real:
            ops.append("xor_sum")
        op, axes = self.choose(ops), term.axes - {axis}
        code = f"tl.{op}({term.code}, axis={number}){keep}"
        if op.startswith("arg"):
            self.let(code, term, dtype="int32", axes=axes, size=1.0)
            return
        dtype = term.dtype
        if op != "xor_sum" and dtype in INTEGERS and INTEGERS[dtype] < 32:
            dtype = "uint32" if dtype.startswith("u") and op == "sum" else "int32"
        size, error = self._total(term, length) if op == "sum" else (term.size, term.error)
        self.let(code, term, dtype=dtype, axes=axes, size=size, error=error)

    def _total(self, term: Term, length: int) -> tuple[float, float]:
        if not term.real:
            return 1.0, 0.0
        size = term.size * length
        return size, length * term.error + length * FLOATS[term.dtype][0] * size

    def scan(self, term: Term) -> None:
        """Sums of all elements so far."""
        _, number, length = self.along(term)
        if term.dtype not in ("float32", "int32", "int64"):
            return
        reverse = self.draw(st.booleans())
        size, error = self._total(term, length)
        code = f"tl.cumsum({term.code}, axis={number}, reverse={reverse})"
        self.let(code, term, size=size, error=error)

    def move(self, term: Term) -> None:
        """The same elements in other places."""
        codes = [f"tl.flip({term.code}, {number})" for number in range(len(self.tile))]
        if len(set(self.lengths.values())) == 1 and len(self.tile) == 2:
            codes.append(f"tl.trans({term.code})")
        if term.dtype in ("float32", "int32"):
            codes.append(f"tl.sort({term.code})")
        self.let(self.choose(codes), term)
