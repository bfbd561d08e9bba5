"""The state of an emission of a Pallas kernel."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from translators.access.expression import Affine, Iteration, Symbol, Variable, leaves
from translators.access.states import Pointer
from translators.emit.emission import Emission, UnsupportedError
from translators.emit.pallas.elements.held_types import held_element, is_narrow
from translators.emit.pallas.orders import FUNCTIONS
from translators.emit.pallas.places import evaluated, steps_of
from translators.emit.pallas.windows import Window, reach
from translators.emit.terms import BatchAxis, Term, Tiled, dtype
from translators.emit.tiles import Source
from translators.emit.tiling import Span
from translators.graph.graph import Op, Value, walk
from translators.graph.types import F16, I1, ElementType, bit_width, element_of, shape_of

# Ops that read memory and leave it as it is.
READS = frozenset(("tt.load", "tt.descriptor_load", "tt.descriptor_gather", "tt.atomic_load"))


# What makes zero of zero, as which elements count that lie behind the end of an array.
_KEEPING_ZERO = frozenset(
    (
        *("arith.sitofp", "arith.extf", "arith.truncf", "arith.extsi", "arith.trunci"),
        *("tt.fp_to_fp", "arith.negf"),
    )
)


class TooLargeError(UnsupportedError):
    """A step has more to do than there is room for: one of fewer programs may not."""


class CoarserError(Exception):
    """A window has to have all of some dimensions of an array.

    Attributes:
      buffer: the number of the array.
      dimensions: which, and of how many positions at least.
    """

    def __init__(self, buffer: int, dimensions: Mapping[int, int]) -> None:
        super().__init__()
        self.buffer = buffer
        self.dimensions = dimensions


def _lengths(one: Window, other: Window) -> dict[int, int]:
    """For the dimensions in which two windows differ how far they go; for all if in none."""
    pairs = list(enumerate(zip(one.spans, other.spans, strict=True)))
    unlike = [
        (place, pair)
        for place, pair in pairs
        if (pair[0].start, pair[0].length) != (pair[1].start, pair[1].length)
    ]
    return {place: max(reach(each) for each in pair) for place, pair in unlike or pairs}


def _overlapping(one: Window, other: Window) -> dict[int, int]:
    """For the dimensions of which two windows have all, one more than the other, the more.

    Empty where the windows differ in anything else: they are two blocks.
    """
    if one.buffer != other.buffer or one.layout != other.layout or one.scalars != other.scalars:
        return {}
    found: dict[int, int] = {}
    for cut, rival in zip(one.dimensions, other.dimensions, strict=True):
        if cut.place != rival.place and not (cut.is_whole and rival.is_whole):
            return {}
    for place, pair in enumerate(zip(one.spans, other.spans, strict=True)):
        if reach(pair[0]) != reach(pair[1]):
            found[place] = max(map(reach, pair))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A value that lies in memory from one step to the next.

    Attributes:
      reference: to where it lies.
      term: the value, without a name.
    """

    reference: str
    term: Term

    @property
    def place(self) -> str:
        """All of it, as the reference is indexed."""
        return f"{self.reference}[{'...' if self.term.shape else 0}]"

    @property
    def memory(self) -> str:
        """What memory it takes: vector memory for tensors, scalar memory for single numbers."""
        held = dtype(self.term.element)
        if self.term.shape:
            return f"pltpu.VMEM({self.term.shape}, {held})"
        return f"pltpu.SMEM((1,), {held})"

    @property
    def bytes(self) -> int:
        """Bytes that it takes of vector memory."""
        return prod(self.term.shape) * bit_width(self.term.element) // 8 if self.term.shape else 0


@dataclass(slots=True)
class StepEmission(Emission):
    """An emission of what one step of the grid does.

    Attributes:
      grid: the variables that count the steps, with how many there are along each.
      needless: for each load the parts of its mask that keep out only what comes to nothing.
      strict: reductions by greatest or least number that may be NaN where an element is.
      steering: numbers in memory that are known where a step begins: which window of scalars, and
        which of its numbers, over the variables of the grid.
      whole: for each buffer the dimensions of which its window has all, and how many positions
        that is at least.
      turned: the buffers whose last two dimensions change places.
      windows: what the step reads of the arrays, in the order in which it was asked for.
      outputs: the windows that are written, by buffer.
      kept: the buffers whose windows begin as what was there before.
      covered: for each buffer the places of its window that are written in any case.
      totals: values that a loop carries from step to step.
      begun: the buffers that something has been written to.
      changing: the numbers of the arguments that are written through.
      uncertain: the ops in loops that may have no iteration.
      untold: values without a form, which is told where one of them is used.
    """

    # Products of float32 are of one pass or of six (docs/pallas-capabilities.md).
    PRECISIONS: ClassVar[Mapping[str, str]] = {}

    grid: Mapping[Variable, int] = field(default_factory=dict)
    needless: Mapping[Op, frozenset[Affine]] = field(default_factory=dict)
    strict: Set[Op] = frozenset()
    steering: dict[Value, tuple[Window, Affine]] = field(default_factory=dict)
    whole: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    turned: Set[int] = frozenset()
    windows: dict[object, Window] = field(default_factory=dict)
    outputs: dict[int, Window] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    covered: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    totals: dict[Value, Held] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    changing: frozenset[int] = frozenset()
    uncertain: frozenset[Op] = frozenset()
    untold: dict[Value, UnsupportedError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Emission.__post_init__(self)
        self.changing = frozenset(
            access.pointer.argument
            for access in self.analysis.accesses
            if isinstance(access.pointer, Pointer) and access.op.name not in READS
        )
        self.uncertain = frozenset(
            inner
            for op, number in self.loop_numbers.items()
            if not self._runs(number)
            for region in op.regions
            for inner in walk(region)
        )

    def _runs(self, number: int) -> bool:
        """Whether a loop has at least one iteration in every program."""
        loop = self.analysis.loops.get(number)
        return loop is not None and loop.trips is not None and loop.trips.interval.low > 0

    def term(self, value: Value) -> Term:
        """An emitted value that is no pointer."""
        if value in self.untold and self.number(value) is None:
            raise self.untold[value]
        return Emission.term(self, value)

    @property
    def summed(self) -> frozenset[BatchAxis]:
        """The axes of the iterations that are computed at once."""
        return frozenset(each for each in self.iterations.values() if isinstance(each, BatchAxis))

    @property
    def parted(self) -> frozenset[BatchAxis]:
        """The axes of the iterations of which each step computes a part."""
        counted = self.iterations.values()
        return frozenset(each.axis for each in counted if isinstance(each, Tiled))

    def give(self, op: Op, text: str, operands: Sequence[Term], *, result: int = 0) -> Term:
        """A result that is computed element by element from `operands`.

        Of a tile that is all of a window so is what is computed of it alone: a product may then
        take the window.
        """
        made = Emission.give(self, op, text, operands, result=result)
        given = [each for each in operands if each.text in self.sources]
        source = self.sources[given[0].text] if len(given) == 1 else None
        others = (each for each in operands if each is not given[0]) if given else ()
        if not isinstance(source, Source) or not all(each.bare for each in others):
            return made
        cut_off = any(any(span.pads) for span in source.spans)
        if cut_off and op.name not in _KEEPING_ZERO:
            return made
        whole = re.sub(rf"(?<![\w.]){given[0].text}\b", source.state.name, text)
        state = replace(source.state, name=self.writer.assign(whole), element=made.element)
        self.sources[made.text] = replace(source, state=state)
        return made

    def indexed(self, term: Term, index: str) -> str:
        """The array of a value, indexed; conditions as integers, which have every layout."""
        if term.element == I1:
            return f"({term.text}.astype(jnp.int32)[{index}] != 0)"
        return Emission.indexed(self, term, index)

    def counters(self, spans: Sequence[Span]) -> dict[Variable, int]:
        """What may say which block a step reads: the grid's variables, and numbers in memory."""
        found = dict(self.grid)
        for span in spans:
            for leaf in leaves(span.start):
                if isinstance(leaf, Symbol) and leaf.value in self.steering and not leaf.lanes:
                    found[leaf] = leaf.interval.high + 1
        return found

    def function(self, name: str) -> str:
        """The name of a function of JAX, or of one in the file where kernels have it not."""
        return self.writer.helper(FUNCTIONS[name]) if name in FUNCTIONS else name

    def chosen(self, condition: Term, yes: Term, no: Term, hint: str = "") -> Term:
        """One where the condition holds, the other where not.

        In vectors of one dimension, and of single numbers, only elements of 32 bits can be chosen.
        """
        element = yes.element if yes.number is None else no.element
        flat = max(len(each.array_shape) for each in (condition, yes, no)) < 2
        if not flat or not is_narrow(element) or condition.number is not None or yes == no:
            return Emission.chosen(self, condition, yes, no, hint)
        wide = held_element(element, single=True)
        found = Emission.chosen(self, condition, self.widened(yes, wide), self.widened(no, wide))
        return self.bind(f"{found.text}.astype({dtype(element)})", found, hint, element=element)

    def widened(self, term: Term, element: ElementType) -> Term:
        """The numbers in a wider type that has them all."""
        if term.number is not None:
            return replace(term, element=element)
        return self.bind(f"{term.text}.astype({dtype(element)})", term, element=element)

    def product_helper(self, op: Op) -> str:
        """Products of `f16`, which is held as `f32`, are made of such of `bf16`."""
        halves = all(element_of(each.type) == F16 for each in op.operands[:2])
        return self.writer.helper("_dot_of_float16") if halves else ""

    def is_written(self, buffer: int) -> bool:
        """Whether the kernel writes to an array, here or elsewhere."""
        return any(self.aliases.get(each, each) == buffer for each in self.changing)

    def goes_everywhere(self, index: Affine, size: int) -> bool:
        """Whether the steps and iterations together come to every position below `size`."""
        counts: dict[Variable, int] = {}
        for variable, _ in index.terms:
            if variable in self.grid:
                counts[variable] = self.grid[variable]
            elif isinstance(variable, Iteration) and variable.fixed:
                counts[variable] = variable.extent
            else:
                return False
        places = evaluated(index, steps_of(counts))
        return bool(np.array_equal(np.unique(places), np.arange(size)))

    def window(self, wanted: Window) -> Window:
        """The window for reading, with a name.

        Raises:
          CoarserError: another one differs in how far it reaches over the end alone.
        """
        found = self.windows.get(wanted.place)
        if found is None:
            for other in self.windows.values():
                unlike = _overlapping(wanted, other)
                known = self.whole.get(wanted.buffer, {})
                if any(known.get(place, 0) < length for place, length in unlike.items()):
                    raise CoarserError(wanted.buffer, unlike)
            wanted.reference = self._reference(wanted.buffer, "ref")
            found = self.windows[wanted.place] = wanted
        return found

    def output(self, op: Op, wanted: Window) -> Window:
        """The one window of an array that is written.

        Raises:
          CoarserError: there is another one already, and one for both has to be larger.
          UnsupportedError: there is another one already, and none for both.
        """
        found = self.outputs.get(wanted.buffer)
        if found is None:
            wanted.reference = self._reference(wanted.buffer, "ref")
            found = self.outputs[wanted.buffer] = wanted
        elif found.place != wanted.place:
            if found.layout.sizes == wanted.layout.sizes:
                known = self.whole.get(wanted.buffer, {})
                unlike = {
                    place: length
                    for place, length in _lengths(found, wanted).items()
                    if known.get(place, 0) < length
                }
                if unlike:
                    raise CoarserError(wanted.buffer, unlike)
            name = self.buffers.states[wanted.buffer].fact.name
            raise self.refuse(op, f"touches another block of `{name}` than the one that is written")
        return found

    def initial(self, window: Window) -> str:
        """The reference to what was in a written window before the kernel."""
        if not window.initial:
            window.initial = self._reference(window.buffer, "before_ref")
        return window.initial

    def hold(self, op: Op, value: Value) -> None:
        """Gives a value a place in memory from step to step.

        Raises:
          UnsupportedError: memory does not hold such.
        """
        element, shape = self.element(value), shape_of(value.type)
        if element == I1 or (not shape and bit_width(element) != 32):
            raise self.refuse(op, f"carries `{element}` from step to step")
        term = Term(text="", element=element, shape=shape, dims=(True,) * len(shape))
        reference = self.writer.fresh(f"{value.name or 'total'}_ref")
        self.totals[value] = Held(reference=reference, term=term)

    def keeps(self, window: Window) -> None:
        """Says that the window begins as what was there before."""
        self.initial(window)
        self.kept.add(window.buffer)

    def covers(self, window: Window, extents: tuple[int, ...], written: Sequence[slice]) -> None:
        """Says that a part of a window is written in any case.

        Args:
          window: the window.
          extents: how much of it lies in the array.
          written: the part.
        """
        covered = self.covered.setdefault(window.buffer, np.zeros(extents, np.bool_))
        covered[tuple(written)] = True

    def keep_what_is_left(self) -> None:
        """Says of windows with places that may not be written that they begin as they were."""
        for buffer, window in self.outputs.items():
            covered = self.covered.get(buffer)
            if covered is not None and not covered.all():
                self.keeps(window)

    def _reference(self, buffer: int, ending: str) -> str:
        """A name that stays taken, also where it is given within an attempt that is dropped."""
        name = self.buffers.states[buffer].fact.name
        stem = f"{re.sub(r'_?ptrs?$', '', name) or name}_{ending}"
        taken = [each.reference for each in (*self.windows.values(), *self.outputs.values())]
        taken += [each.initial for each in self.outputs.values()]
        while (made := self.writer.fresh(stem)) in taken:
            pass
        return made
