"""Random pointer arithmetic: the analysis gives the addresses that running the ops gives.

The programs mix what is followed with what is not, and what fits with what wraps around; the
oracle compares every access in every program, iteration and lane.
"""

import hypothesis.strategies as st
import numpy as np
from address_oracle import assert_agrees
from hypothesis import given, settings
from kernel_builder import F32_POINTER, I32_POINTER, Kernel, array, launch

from translators.access.launch import Buffer
from translators.graph.graph import Module, Value
from translators.graph.types import I32, I64, shape_of, with_element

SMALL = st.integers(-9, 9)
DIVISORS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16])
FACTORS = st.one_of(SMALL, st.sampled_from([16, 24, 64, 1 << 20, 1 << 30, -(1 << 31)]))
LENGTHS = st.sampled_from([1, 2, 3, 4, 6, 8])
PREDICATES = st.sampled_from(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "uge"])


class Writer:
    """Writes random integers of one shape into a kernel."""

    def __init__(self, kernel: Kernel, draw: st.DrawFn, shape: tuple[int, ...]) -> None:
        self.kernel, self.draw, self.shape = kernel, draw, shape
        self.pool: list[Value] = [kernel.pid(0), kernel.pid(1), kernel["n"]]
        self.conditions: list[Value] = []

    def lanes(self) -> None:
        """Adds each axis's range, and a range over all lanes reshaped."""
        for axis, length in enumerate(self.shape):
            value = self.kernel.arange(length)
            for other in range(len(self.shape)):
                if other != axis:
                    value = self.kernel.expand(value, min(other, len(shape_of(value.type))))
            self.pool.append(value)
        if len(self.shape) == 2:
            rows, columns = self.shape
            flat = self.kernel.arange(rows * columns)
            self.pool.append(self.kernel.reshape(flat, rows, columns))
            self.pool.append(self.kernel.trans(self.kernel.reshape(flat, columns, rows), 1, 0))

    def load(self) -> None:
        """Adds integers loaded from memory, scalar or with lanes."""
        index = self.kernel.pid(0)
        if self.draw(st.booleans()):
            index = self.kernel.add(index, self.pool[3])
        self.pool.append(self.kernel.load(self.kernel.point(self.kernel["data"], index)))

    def step(self) -> None:
        """Adds one more integer made of those in the pool."""
        k, draw = self.kernel, self.draw
        left, right = draw(st.sampled_from(self.pool)), draw(st.sampled_from(self.pool))
        match draw(st.sampled_from("+-*/%<>&nscuijgxodra")):
            case "+":
                made = k.add(left, right)
            case "-":
                made = k.sub(left, right)
            case "*":
                made = k.mul(left, draw(FACTORS))
            case "/":
                made = k.div(left, draw(DIVISORS))
            case "%":
                made = k.rem(left, draw(DIVISORS))
            case "<":
                made = k.binary("arith.shli", left, draw(st.integers(0, 5)))
            case ">":
                made = k.binary(draw(st.sampled_from(["arith.shrsi", "arith.shrui"])), left, 2)
            case "&":
                made = k.binary("arith.andi", left, draw(st.sampled_from([7, 3, -4, 5])))
            case "n":
                made = k.binary(draw(st.sampled_from(["arith.minsi", "arith.maxsi"])), left, right)
            case "s":
                condition, left = k.together_condition(self.condition(), left)
                made = k.builder.value(
                    "arith.select", condition, left, k.to(k.number(3), shape_of(left.type))
                )
            case "i":
                scalars = [each for each in self.pool if not shape_of(each.type)]
                condition = k.less(draw(st.sampled_from(scalars)), draw(SMALL))
                left, right = k.together(left, right)
                (made,) = k.choose(condition, lambda: [k.add(left, 1)], lambda: [right])
            case "x":
                made = k.mul(left, right)
            case "o":
                name = draw(st.sampled_from(["arith.andi", "arith.ori", "arith.xori"]))
                made = k.binary(name, left, right)
            case "d":
                divisor = k.add(k.binary("arith.andi", right, 3), draw(st.sampled_from([1, -9])))
                name = draw(st.sampled_from(["arith.divsi", "arith.remsi"]))
                made = k.binary(name, left, divisor)
            case "r":
                count = k.binary("arith.andi", right, 15)
                name = draw(st.sampled_from(["arith.shrsi", "arith.shrui", "arith.shli"]))
                made = k.binary(name, left, count)
            case "a":
                made = k.builder.value("math.absi", left)
                wide = with_element(left.type, I64)
                made = k.builder.value("arith.extui", made, results=(wide,))
                made = k.builder.value("arith.trunci", k.div(made, 3), results=(left.type,))
            case "j":
                joined = k.builder.value("tt.join", *k.together(left, right))
                made = k.builder.op("tt.split", joined).results[draw(st.integers(0, 1))]
            case "g":
                source, places = (k.to(each, self.shape) for each in (left, right))
                axis = draw(st.integers(0, len(self.shape) - 1))
                places = k.binary("arith.andi", places, 0 if self.shape[axis] == 1 else 1)
                if self.shape[axis] == 3:
                    places = k.sub(2, places)
                made = k.builder.value("tt.gather", source, places, axis=axis)
            case "c":
                made = k.binary(
                    draw(st.sampled_from(["arith.floordivsi", "arith.ceildivsi"])),
                    left,
                    draw(DIVISORS),
                )
            case _:
                made = k.add(k.mul(left, draw(FACTORS)), draw(SMALL))
        self.pool.append(made)

    def condition(self) -> Value:
        """A comparison of two integers, two of them combined, or one that was there before."""
        k, draw = self.kernel, self.draw
        if self.conditions and draw(st.booleans()):
            return draw(st.sampled_from(self.conditions))
        one = k.less(draw(st.sampled_from(self.pool)), draw(SMALL), draw(PREDICATES))
        if draw(st.booleans()):
            other = k.less(draw(st.sampled_from(self.pool)), draw(st.sampled_from(self.pool)))
            name = draw(st.sampled_from(["arith.andi", "arith.andi", "arith.ori", "arith.xori"]))
            one = k.binary(name, one, other)
        self.conditions.append(one)
        return one

    def access(self, pointer: Value) -> None:
        """Loads from or stores to memory around `pointer`."""
        k, draw = self.kernel, self.draw
        offset = k.to(draw(st.sampled_from(self.pool)), self.shape)
        mask = k.to(self.condition(), self.shape) if draw(st.booleans()) else None
        if mask is not None and draw(st.booleans()):
            other = k.to(draw(st.sampled_from(self.pool)), self.shape)
            offset = k.builder.value("arith.select", mask, offset, other)
            mask = k.both(mask, k.to(self.condition(), self.shape))
        if draw(st.booleans()):
            offset = k.widen(offset, I64)
        target = k.point(pointer, offset)
        if draw(st.booleans()):
            k.load(target, mask)
        else:
            k.store(target, mask=mask)


@st.composite
def buffers(draw: st.DrawFn) -> Buffer:
    """An array of up to three dimensions, contiguous, padded, permuted or backwards."""
    shape = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8, 16]), min_size=1, max_size=3))
    strides = [0] * len(shape)
    step = draw(st.sampled_from([1, 1, 1, 2]))
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = -step if draw(st.integers(0, 9)) == 0 else step
        step *= shape[axis]
        if draw(st.integers(0, 3)) == 0:
            step += draw(st.sampled_from([1, 2, 4]))
    return array("x", *shape, strides=tuple(strides))


@st.composite
def programs(draw: st.DrawFn) -> Module:
    """A kernel with some accesses, in up to two loops."""
    k = Kernel(x=F32_POINTER, data=I32_POINTER, n=I32)
    shape = tuple(draw(st.lists(LENGTHS, min_size=1, max_size=2)))
    w = Writer(k, draw, shape)
    w.lanes()
    if draw(st.booleans()):
        w.load()
    for _ in range(draw(st.integers(0, 5))):
        w.step()
    w.access(k["x"])
    if draw(st.booleans()):
        loop(w, draw, draw(st.integers(1, 2)))
    return k.done()


def loop(w: Writer, draw: st.DrawFn, depth: int) -> None:
    k = w.kernel
    scalars = [each for each in w.pool if not shape_of(each.type)]
    lower = draw(st.one_of(SMALL, st.sampled_from([w.kernel.arguments["n"], scalars[0]])))
    upper = draw(st.one_of(st.integers(0, 6), st.sampled_from(scalars[:3])))
    start = k.to(draw(st.sampled_from(w.pool)), w.shape)

    def body(counter: Value, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        pointer, integer = carried
        outside, conditions = list(w.pool), list(w.conditions)
        w.pool += [counter, integer]
        for _ in range(draw(st.integers(0, 3))):
            w.step()
        w.access(pointer)
        if depth > 1:
            loop(w, draw, depth - 1)
        moved = k.point(pointer, draw(st.one_of(SMALL, st.sampled_from(w.pool[:3]))))
        grown = (
            k.add(integer, draw(FACTORS))
            if draw(st.booleans())
            else k.to(draw(st.sampled_from(w.pool)), w.shape)
        )
        w.pool[:], w.conditions[:] = outside, conditions
        return moved, grown

    if draw(st.integers(0, 3)) == 0:
        pointer, integer = run_down(w, draw, start, body)
    else:
        pointer, integer = k.loop(lower, upper, draw(st.integers(1, 3)), (k["x"], start), body)
    w.pool.append(integer)
    w.access(pointer)


def run_down(w: Writer, draw: st.DrawFn, start: Value, body) -> tuple[Value, ...]:
    """A `scf.while` of a few rounds around the body of a loop."""
    k = w.kernel
    handed_on = draw(st.booleans())

    def test(carried: tuple[Value, ...]) -> tuple[Value, tuple[Value, ...]]:
        rounds, pointer, integer = carried
        if handed_on:
            integer = k.add(integer, rounds)
        return k.less(rounds, 0, "sgt"), (rounds, pointer, integer)

    def again(carried: tuple[Value, ...]) -> tuple[Value, ...]:
        rounds, *others = carried
        moved, grown = body(rounds, tuple(others))
        pointer = draw(st.sampled_from([others[0], moved]))
        return k.sub(rounds, 1), pointer, draw(st.sampled_from([others[1], grown]))

    first = k.minimum(draw(st.sampled_from([k.pid(0), k["n"]])), 3)
    return k.repeat((first, k["x"], start), test, again)[1:]


@given(module=programs(), buffer=buffers(), seed=st.integers(0, 5), n=st.integers(-3, 9))
@settings(max_examples=150)
def test_the_analysis_gives_the_addresses_of_the_run(
    module: Module, buffer: Buffer, seed: int, n: int
) -> None:
    data = np.random.default_rng(seed).integers(-4, 12, 64).astype(np.int32)
    given_ = launch(module, 3, 2, scalars={"n": n}, x=buffer, data=array("data", 64))
    assert_agrees(module, given_, {1: data})


@given(module=programs(), buffer=buffers(), n=st.integers(-3, 9))
@settings(max_examples=50)
def test_scalars_that_the_launch_leaves_open_stay_symbols(
    module: Module, buffer: Buffer, n: int
) -> None:
    given_ = launch(module, 2, 2, x=buffer, data=array("data", 64))
    data = np.arange(64, dtype=np.int32)
    assert_agrees(module, given_, {1: data, 2: np.int32(n)})
