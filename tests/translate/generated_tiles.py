"""Arrays of a random kernel, and the tile of them that each of its programs works on."""

import math
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import ml_dtypes
import numpy as np
from generated_terms import INTEGERS, Term, Writer

NUMPY = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
LARGEST = 4.0
TABLE = 16  # elements of the table that gathers read


@dataclass(slots=True)
class _Launch:
    """What the kernel being written is launched with."""

    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    scalars: dict[str, int | float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)


def _dtype(name: str) -> np.dtype[Any]:
    return NUMPY.get(name) or np.dtype(name)


class Tiled:
    """A kernel being written, as far as it reads and writes its tile."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.kind = self.choose(["row", "tile", "tile", "columns", "columns", "product"])
        # Sizes of dots are multiples of 16.
        sizes = [16, 32] if self.kind == "product" else [1, 2, 4, 8, 16]
        self.lengths = {"N": self.choose(sizes[-3:] if self.kind != "product" else sizes)}
        if self.kind != "row":
            self.lengths = {"M": self.choose(sizes), **self.lengths}
        self.columns = self.draw(st.integers(1, 3 * self.lengths["N"]))
        self.rows = self.draw(st.integers(1, 2 * self.lengths.get("M", 1)))
        self.seed = self.draw(st.integers(0, 1000))
        self.writer = Writer(draw, self.lengths)
        self.launch = _Launch()
        self.persistent = False
        self.everything = frozenset(self.lengths)

    def choose(self, options: Any) -> Any:
        """One of several."""
        return self.draw(st.sampled_from(list(options)))

    # Arguments.

    def values(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        """Random elements: integers of any size, floats below `LARGEST`."""
        rng = np.random.default_rng(self.seed + len(self.launch.arrays))
        if dtype in INTEGERS:
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return rng.uniform(-LARGEST, LARGEST, shape).round(2).astype(_dtype(dtype))

    def array(self, name: str, shape: tuple[int, ...], dtype: str, *, written: bool) -> None:
        """An array argument in some layout; the gaps of one with gaps are random too."""
        layouts = ["plain", "plain", "padded", "transposed"]
        if not written:
            layouts += [f"along {axis}" for axis in range(len(shape))] if len(shape) == 2 else []
        layout = self.choose(layouts) if len(shape) == 2 else "plain"
        if layout == "padded":
            wide = self.values((shape[0] + 1, shape[1] + 3), dtype)
            made = wide[: shape[0], 1 : 1 + shape[1]]
        elif layout == "transposed":
            made = self.values(shape[::-1], dtype).T
        elif layout.startswith("along"):
            thin = [1 if axis == int(layout[-1]) else size for axis, size in enumerate(shape)]
            made = np.broadcast_to(self.values(tuple(thin), dtype), shape)
        else:
            made = self.values(shape, dtype)
        self.launch.arrays[name] = made

    def scalar(self, name: str, value: float) -> str:
        """A number known at launch; its name."""
        self.launch.scalars[name] = value
        return name

    def places(self, name: str, indices: list[str]) -> str:
        """The addresses of the elements at these indices."""
        array, parts = self.launch.arrays[name], []
        for axis, index in enumerate(indices):
            stride = array.strides[axis] // array.itemsize
            if stride == 1:
                parts.append(index)
            elif stride:
                text = self.choose([str(stride), self.scalar(f"{name}_{axis}", stride)])
                parts.append(f"{index} * {text}")
        return " + ".join([name, *parts])

    # Loads and stores of the tile.

    def load(self, dtype: str, *, columns: str = "cols", mask: str = "mask") -> Term:
        """A tile of a new array."""
        name = f"in{len(self.launch.arrays)}"
        shape = (self.columns,) if self.kind == "row" else (self.rows, self.columns)
        self.array(name, shape, dtype, written=False)
        places = self.places(name, [columns] if self.kind == "row" else ["rows", columns])
        other = "" if self.draw(st.booleans()) else ", other=1"
        term = Term(code="", dtype=dtype, axes=self.everything, size=LARGEST)
        # A stride of zero leaves a tile that does not have every axis: let it have them.
        full = f"{places} + zeros"
        return self.writer.let(f"tl.load({full}, mask={mask}{other})", term)

    def gather(self) -> None:
        """Elements of a table at indices that are anything."""
        index = self.writer.pick(lambda term: term.dtype in ("int32", "int64"))
        if index is None:
            return
        name, dtype = f"table{len(self.launch.arrays)}", self.choose(["float32", "int32"])
        self.launch.arrays[name] = self.values((TABLE,), dtype)
        code = f"tl.load({name} + ({index.code} & {TABLE - 1}))"
        self.writer.let(code, index, dtype=dtype, size=LARGEST, error=0.0)

    def count(self) -> str:
        """A small number that is not negative: written out, known at launch, or from memory."""
        how = self.choose(["written", "launch", "program", "memory"])
        if how == "written":
            return str(self.draw(st.integers(0, 3)))
        if how == "launch":
            return self.scalar(f"n{len(self.launch.scalars)}", self.draw(st.integers(0, 3)))
        if how == "program":
            return f"pid % {self.choose([2, 3])}"
        name = f"counts{len(self.launch.arrays)}"
        self.launch.arrays[name] = self.values((self.programs,), "int32")
        return f"(tl.load({name} + pid) & 3)"

    def number(self) -> None:
        """One number of its own for each program, from memory or known at launch."""
        if self.draw(st.booleans()):
            name = self.scalar(f"n{len(self.launch.scalars)}", self.draw(st.integers(-9, 9)))
            # Triton folds a one into the kernel, which leaves nothing to convert.
            code = f"(pid + {name}).to(tl.int32)"
            term = Term(code="", dtype="int32", axes=frozenset())
        else:
            name = f"each{len(self.launch.arrays)}"
            dtype = self.choose(["float32", "int32", "float16"])
            self.launch.arrays[name] = self.values((self.programs,), dtype)
            code = f"tl.load({name} + pid)"
            term = Term(code="", dtype=dtype, axes=frozenset(), size=LARGEST)
        if self.kind == "row":
            self.writer.let(code, term)
        else:
            self.writer.let(f"{code} + tl.zeros((1, 1), tl.{term.dtype})", term)

    def store(self, term: Term, *, columns: str = "cols", mask: str = "mask") -> None:
        """The term to a new array, each element by one program."""
        w, name = self.writer, f"out{len(self.launch.arrays)}"
        if term.dtype == "int1":
            term = w.let(f"{term.code}.to(tl.int32)", term, dtype="int32")
        if term.axes == self.everything:
            shape = (self.columns,) if self.kind == "row" else (self.rows, self.columns)
            indices, guard = [columns] if self.kind == "row" else ["rows", columns], mask
        elif not term.axes:
            shape, indices, guard = (self.programs,), ["pid"], ""
        elif "M" in term.axes:
            shape, indices, guard = (self.rows, self.across), ["rows", "pid_n"], "rows < R"
        else:
            shape, indices, guard = (self.down, self.columns), ["pid_m", columns], f"{columns} < C"
        self.array(name, shape, term.dtype, written=True)
        places = self.places(name, indices)
        if self.kind != "row" and term.axes != self.everything:
            places += self.spread(term)
        w.write(f"tl.store({places}, {term.code}{f', mask={guard}' if guard else ''})")
        if term.real:
            # The sum's own rounding is one of those that may differ.
            self.launch.errors[name] = term.error

    def spread(self, term: Term) -> str:
        """What makes addresses have the two dimensions of a term that lacks an axis or both."""
        return "" if term.axes else " + tl.zeros((1, 1), tl.int32)"

    # The parts of a kernel.

    @property
    def across(self) -> int:
        """Tiles along the columns."""
        if self.kind == "columns":
            return 1
        return math.ceil(self.columns / self.lengths["N"])

    @property
    def down(self) -> int:
        """Tiles along the rows."""
        return math.ceil(self.rows / self.lengths["M"]) if "M" in self.lengths else 1

    @property
    def programs(self) -> int:
        """All programs."""
        return self.across * self.down

    def ids(self) -> tuple[int, ...]:
        """Says which tile a program has; the grid."""
        w = self.writer
        if self.kind == "row" and self.draw(st.booleans()):
            # Each program takes every so many tiles.
            self.persistent = True
            across = self.scalar("across", self.across)
            w.write(f"for pid in range(tl.program_id(0), {across}, tl.num_programs(0)):")
            w.depth += 1
            return (self.draw(st.integers(1, self.across)),)
        if self.kind == "row":
            w.write("pid = tl.program_id(0)")
            return (self.across,)
        if self.kind == "columns":
            w.write("pid = tl.program_id(0)")
            w.write("pid_m, pid_n = pid, 0")
            return (self.down,)
        across, down = self.scalar("across", self.across), self.scalar("down", self.down)
        decodings = {
            "two axes": ("tl.program_id(0)", "tl.program_id(1)"),
            "the other way": ("tl.program_id(1)", "tl.program_id(0)"),
            "rows first": (f"tl.program_id(0) // {across}", f"tl.program_id(0) % {across}"),
            "columns first": (f"tl.program_id(0) % {down}", f"tl.program_id(0) // {down}"),
        }
        how = self.choose(list(decodings))
        w.write(f"pid_m, pid_n = {', '.join(decodings[how])}")
        w.write(f"pid = pid_m * {across} + pid_n")
        grids = {
            "two axes": (self.down, self.across),
            "the other way": (self.across, self.down),
        }
        return grids.get(how, (self.programs,))

    def edges(self) -> None:
        """The tile's rows and columns, and which of them are within the arrays."""
        w, n = self.writer, self.lengths["N"]
        if self.kind == "row":
            w.write(f"cols = pid * {n} + tl.arange(0, {n})")
            w.write("mask = cols < C")
            w.write("zeros = cols * 0")
            w.terms.append(Term(code="cols", dtype="int32", axes=self.everything))
            return
        m = self.lengths["M"]
        w.write(f"rows = (pid_m * {m} + tl.arange(0, {m}))[:, None]")
        w.write(f"cols = (pid_n * {n} + tl.arange(0, {n}))[None, :]")
        w.write("mask = (rows < R) & (cols < C)")
        w.write("zeros = rows * 0 + cols * 0")
        w.terms.append(Term(code="rows", dtype="int32", axes=frozenset("M")))
        if self.kind != "columns":
            w.terms.append(Term(code="cols", dtype="int32", axes=frozenset("N")))
