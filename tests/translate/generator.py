"""Random Triton kernels, valid by construction, each with a launch.

Every kernel works on one tile of arrays with `R` rows and `C` columns, or on a row of `C` elements:
nothing is read or written out of bounds, and no two programs write one element. The kinds differ
in their loops: none, over tiles of columns with a state carried along, or over slices of a product.
"""

import math
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
from generated_terms import FLOATS, INTEGERS, Term
from generated_tiles import LARGEST, NUMPY, Tiled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Generated:
    """A kernel with a launch.

    Attributes:
      source: the text of its file; the kernel is called `kernel`.
      arrays: the array arguments.
      scalars: the other ones.
      grid: programs along each axis.
      errors: for each array of floats that is written how far two computations may be apart.
      interpretable: whether Triton's interpreter computes it right.
    """

    source: str
    arrays: dict[str, np.ndarray[Any, Any]]
    scalars: dict[str, int | float]
    grid: tuple[int, ...]
    errors: dict[str, float]
    interpretable: bool

    def __repr__(self) -> str:
        shown = {
            name: f"{each.dtype}{each.shape}:{[step // each.itemsize for step in each.strides]}"
            for name, each in self.arrays.items()
        }
        return f"\n{self.source}\n# {shown}\n# {self.scalars}\n# grid {self.grid}\n"


class Kernel(Tiled):
    """Writes one kernel."""

    def body(self, least: int, most: int) -> None:
        """Some statements."""
        for _ in range(self.draw(st.integers(least, most))):
            kinds = [self.writer.step] * 9 + [self.gather, self.number, self.repeat]
            self.choose(kinds)()

    def repeat(self) -> None:
        """A value that a loop carries along, so many times as is known sooner or later."""
        w = self.writer
        term = w.pick(lambda each: each.dtype in ("int32", "int64", "float32"))
        if term is None:
            return
        state, count = w.name(), self.count()
        w.write(f"{state} = {term.code}")
        size, error = term.size, term.error
        step = f"{state} = {state} * 3 + i"
        if term.real:
            added = w.pick(lambda each: each.dtype == term.dtype and each.axes <= term.axes)
            assert added is not None
            step = f"{state} = {state} * 0.5 + {added.code}"
            size = term.size + 2 * added.size
            error = term.error + 2 * added.error + 4 * FLOATS[term.dtype][0] * size
        if self.draw(st.booleans()):
            w.write(f"for i in range({count}):")
            w.write(f"    {step}")
        else:
            w.write(f"i = {count} + 0 * pid")
            w.write("while i > 0:")
            w.write(f"    {step}")
            w.write("    i -= 1")
        w.let(state, term, size=size, error=error)

    def branch(self) -> None:
        """A value that depends on which program it is."""
        w = self.writer
        term = w.pick(lambda each: each.dtype != "int1")
        assert term is not None
        name = w.name()
        w.write(f"{name} = {term.code}")
        w.write(f"if pid % {self.choose([2, 3])} == {self.choose([0, 1])}:")
        w.depth += 1
        kept = len(w.terms)
        w.change(term)
        last = w.terms[-1]
        same = last.dtype == term.dtype and last.axes == term.axes
        w.write(f"{name} = {last.code if same else term.code}")
        del w.terms[kept:]
        w.depth -= 1
        size, error = max(term.size, last.size), max(term.error, last.error)
        w.let(name, term, size=size, error=error)

    def across_columns(self) -> None:
        """A loop over tiles of columns that carries states along; then one that uses them."""
        w, n = self.writer, self.lengths["N"]
        bound = "C"
        if self.draw(st.booleans()):
            name = "bounds"
            rng = np.random.default_rng(self.seed)
            bounds = rng.integers(0, self.columns + 1, self.programs).astype(np.int32)
            self.launch.arrays[name] = bounds
            w.write("bound = tl.load(bounds + pid)")
            bound = "bound"
        steps = math.ceil(self.columns / n)
        m = self.lengths["M"]
        w.write(f"total = tl.zeros(({m}, 1), tl.float32)")
        w.write(f"highest = tl.full(({m}, 1), -8.0, tl.float32)")
        w.write(f"state = tl.zeros(({m}, {n}), tl.float32)")
        w.write(f"for start in range(0, {bound}, {n}):")
        outside = len(w.terms)
        w.depth += 1
        w.write(f"c = start + tl.arange(0, {n})[None, :]")
        w.write(f"inside = (rows < R) & (c < {bound})")
        self.load(self.choose(["float32", "float16", "int32"]), columns="c", mask="inside")
        self.body(1, 4)
        used = w.pick(lambda each: each.dtype == "float32" and each.size <= 100)
        if used is None:
            used = self.load("float32", columns="c", mask="inside")
        full = w.let(f"tl.where(inside, {used.code} + zeros, 0.0)", used, axes=self.everything)
        w.write(f"total += tl.sum({full.code}, axis=1)[:, None]")
        w.write(f"highest = tl.maximum(highest, tl.max({full.code}, axis=1)[:, None])")
        w.write(f"state = state * 0.5 + {full.code}")
        w.depth -= 1
        del w.terms[outside:]
        ulp, size = FLOATS["float32"][0], full.size * n * steps
        error = n * steps * (full.error + ulp * size)
        real = Term(code="", dtype="float32", axes=frozenset("M"))
        w.let("total", real, size=size, error=error)
        w.let("highest", real, size=max(full.size, 8.0), error=full.error)
        size = 2 * full.size
        error = 2 * full.error + 4 * ulp * size
        w.let("state", real, axes=self.everything, size=size, error=error)
        self.body(1, 3)
        # What the first loop found, to every tile of columns.
        rowwise = w.pick(lambda each: each.dtype == "float32" and "N" not in each.axes)
        assert rowwise is not None
        w.write(f"for start in range(0, C, {n}):")
        outside = len(w.terms)
        w.depth += 1
        w.write(f"c = start + tl.arange(0, {n})[None, :]")
        w.write("inside = (rows < R) & (c < C)")
        again = self.load("float32", columns="c", mask="inside")
        size = rowwise.size + LARGEST
        error = rowwise.error + ulp * size
        out = w.let(f"{again.code} - {rowwise.code}", again, size=size, error=error)
        self.store(out, columns="c", mask="inside")
        w.depth -= 1
        del w.terms[outside:]
        # Terms with columns belong to no tile of the arrays now.
        w.terms[:] = [term for term in w.terms if "N" not in term.axes]

    def product(self) -> None:
        """A product, by slices along K."""
        w, (m, n) = self.writer, (self.lengths["M"], self.lengths["N"])
        dtype = self.choose(["float32", "float16", "bfloat16", "int8"])
        # Triton multiplies bytes in slices of 32 at least.
        k, inner = 32 if dtype == "int8" else self.choose([16, 32]), self.draw(st.integers(1, 80))
        self.array("left", (self.rows, inner), dtype, written=False)
        self.array("right", (inner, self.columns), dtype, written=False)
        self.scalar("K", inner)
        total = "int32" if dtype == "int8" else "float32"
        w.write(f"acc = tl.zeros(({m}, {n}), tl.{total})")
        guards = [("(rows < R) & (k[None, :] < K)", "(k[:, None] < K) & (cols < C)")]
        if self.rows % m == 0 and self.columns % n == 0:
            guards.append(("k[None, :] < K", "k[:, None] < K"))
        left, right = self.choose(guards)
        w.write(f"for step in range(0, tl.cdiv(K, {k})):")
        w.depth += 1
        w.write(f"k = step * {k} + tl.arange(0, {k})")
        places = self.places("left", ["rows", "k[None, :]"])
        w.write(f"a = tl.load({places} + tl.zeros(({m}, {k}), tl.int32), mask={left}, other=0)")
        places = self.places("right", ["k[:, None]", "cols"])
        w.write(f"b = tl.load({places} + tl.zeros(({k}, {n}), tl.int32), mask={right}, other=0)")
        w.write("acc = tl.dot(a, b, acc, input_precision='ieee')")
        w.depth -= 1
        size = LARGEST * LARGEST * inner
        error = (inner + 2) * FLOATS["float32"][0] * size
        exact = total == "int32"
        term = Term(code="", dtype=total, axes=self.everything)
        w.let("acc", term, size=1.0 if exact else size, error=0.0 if exact else error)

    def outputs(self) -> None:
        """The stores, some of which only some of the programs reach."""
        w = self.writer
        self.store(w.terms[-1])
        for _ in range(self.draw(st.integers(0, 2))):
            if not self.persistent and self.draw(st.integers(0, 3)) == 0:
                w.write(f"if {self.chosen()}:")
                w.write("    return")
            another, other = w.pick(), w.pick()
            assert another is not None
            assert other is not None
            if self.draw(st.integers(0, 3)):
                self.store(another)
                continue
            kept = len(w.terms)
            for line, term in ((f"if {self.chosen()}:", another), ("else:", other)):
                w.write(line)
                w.depth += 1
                self.store(term)
                w.depth -= 1
                del w.terms[kept:]  # what is named in a branch is not known after it
        if self.draw(st.integers(0, 3)) == 0:
            self.accumulate()

    def chosen(self) -> str:
        """A condition that holds for some of the programs."""
        if self.draw(st.booleans()):
            return f"pid % {self.choose([2, 3])} == {self.choose([0, 1])}"
        name = f"flags{len(self.launch.arrays)}"
        self.launch.arrays[name] = self.values((self.programs,), "int32")
        return f"tl.load({name} + pid) > 0"

    def accumulate(self) -> None:
        """Elements of all programs meet in a few places."""
        w = self.writer
        index = w.pick(lambda each: each.dtype == "int32" and each.axes == self.everything)
        value = w.pick(
            lambda each: each.dtype in ("int32", "float32") and each.axes == self.everything
        )
        if index is None or value is None:
            return
        name = f"bins{len(self.launch.arrays)}"
        self.array(name, (8,), value.dtype, written=True)
        op = self.choose(["add", "max", "min"])
        w.write(f"tl.atomic_{op}({name} + ({index.code} & 7), {value.code}, mask=mask)")
        if value.real:
            lanes = math.prod(self.lengths.values()) * self.programs
            size = LARGEST + lanes * value.size
            error = lanes * (value.error + FLOATS["float32"][0] * size)
            self.launch.errors[name] = error if op == "add" else value.error

    def write(self) -> Generated:
        """The kernel and its launch."""
        w = self.writer
        grid = self.ids()
        self.scalar("C", self.columns)
        if self.kind != "row":
            self.scalar("R", self.rows)
        self.edges()
        if self.kind == "product":
            self.product()
        elif self.kind == "columns":
            self.across_columns()
        else:
            names = [*FLOATS, *INTEGERS, "float32", "int32"]
            for _ in range(self.draw(st.integers(1, 3))):
                self.load(self.choose(names))
        self.body(1, 8)
        if self.draw(st.booleans()):
            self.branch()
        self.outputs()
        parameters = ", ".join([*self.launch.arrays, *self.launch.scalars])
        head = ["import triton", "import triton.language as tl", "", "", "@triton.jit"]
        source = "\n".join([*head, f"def kernel({parameters}):", *w.lines, ""])
        return Generated(
            source=source,
            arrays=self.launch.arrays,
            scalars=self.launch.scalars,
            grid=grid,
            errors=self.launch.errors,
            interpretable="bfloat16" not in source
            and all(array.dtype != NUMPY["bfloat16"] for array in self.launch.arrays.values()),
        )


@st.composite
def kernels(draw: st.DrawFn) -> Generated:
    """Kernels with a launch."""
    return Kernel(draw).write()
