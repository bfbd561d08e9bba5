"""The arrays that a kernel works on, as names in the emitted text.

A store gives an array a new name. An array is seen either as its own dimensions, or flat, as the
elements lie in the memory of the launch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from translators.emit.facts import ArrayFact
from translators.emit.terms import dtype, dtype_name
from translators.emit.writer import Writer
from translators.graph.types import I1, I8, ElementType


@dataclass(slots=True)
class BufferState:
    """An array as far as the emission has come.

    Attributes:
      fact: what the launch says of it.
      element: what the kernel takes it to hold.
      name: the text's name for its present contents.
      read: whether its first contents matter.
      written: whether the kernel has changed it.
    """

    fact: ArrayFact
    element: ElementType
    name: str
    read: bool = False
    written: bool = False

    @property
    def size(self) -> int:
        """The number of elements of the flat view."""
        return flat_extent(self.fact)


@dataclass(slots=True)
class Buffers:
    """All arrays, by the index of the first argument that points to each."""

    writer: Writer
    states: dict[int, BufferState] = field(default_factory=dict)
    flats: dict[str, str] = field(default_factory=dict)

    def add(self, index: int, fact: ArrayFact, element: ElementType) -> None:
        """Takes an array up; its contents are those that the function is called with."""
        self.states[index] = BufferState(fact, element, self.writer.fresh(fact.name))

    def entered(self, state: BufferState) -> str:
        """An expression for what the caller gave, as the kernel takes it."""
        given = state.fact.dtype
        if given == dtype_name(state.element):
            return ""
        if given == "bool":
            return f"{state.name}.astype({dtype(state.element)})"
        if state.element == I1:
            return f"({state.name} != 0)"
        return f"lax.bitcast_convert_type({state.name}, {dtype(state.element)})"

    def left(self, state: BufferState) -> str:
        """An expression for what the caller gets back."""
        given = state.fact.dtype
        if given == dtype_name(state.element):
            return state.name
        if given == "bool":
            return f"({state.name} != 0)"
        if state.element == I1:
            return f"{state.name}.astype(jnp.{given})"
        return f"lax.bitcast_convert_type({state.name}, jnp.{given})"

    def update(self, buffer: int, text: str) -> None:
        """Gives an array new contents."""
        state = self.states[buffer]
        state.name = self.writer.assign(text, state.fact.name)
        state.written = True

    def snapshot(self) -> Mapping[int, tuple[str, bool, bool]]:
        """What `restore` takes."""
        return {key: (each.name, each.read, each.written) for key, each in self.states.items()}

    def restore(self, saved: Mapping[int, tuple[str, bool, bool]]) -> None:
        """Back to what the arrays were."""
        for key, (name, read, written) in saved.items():
            state = self.states[key]
            state.name, state.read, state.written = name, read, written

    def changed_since(self, saved: Mapping[int, tuple[str, bool, bool]]) -> list[int]:
        """The arrays that have another name now."""
        return [key for key, (name, *_) in saved.items() if self.states[key].name != name]

    def flat(self, buffer: int) -> str:
        """The elements as they lie in memory, in one dimension."""
        state = self.states[buffer]
        state.read = True
        return _flattened(state.name, state.fact)

    def unflattened(self, buffer: int, text: str) -> str:
        """The array of a flat view."""
        return _restored(text, self.states[buffer].fact)


def storable(element: ElementType) -> ElementType:
    """How an element lies in memory."""
    return I8 if element == I1 else element


def _levels(fact: ArrayFact) -> list[tuple[int, int, int]]:
    """Axis, size and stride of the dimensions that matter, the largest stride first."""
    found = [
        (axis, size, stride)
        for axis, (size, stride) in enumerate(zip(fact.shape, fact.strides, strict=True))
        if size > 1 and stride
    ]
    return sorted(found, key=lambda each: -each[2])


def flat_extent(fact: ArrayFact) -> int:
    """Elements from the first to the last one, in whole steps of the largest stride."""
    levels = _levels(fact)
    if 0 in fact.shape:
        return 0
    return levels[0][1] * levels[0][2] if levels else 1


def flat_problem(fact: ArrayFact) -> str:
    """Why the memory of an array is no padded form of it, as a clause; empty where it is."""
    if any(stride < 0 for stride in fact.strides):
        return "has a negative stride"
    step, reach = 1, 1
    for _, size, stride in reversed(_levels(fact)):
        if stride < reach or stride % step:
            return "has strides that do not nest"
        step, reach = stride, stride * size
    return ""


def _steps(fact: ArrayFact) -> tuple[list[int], list[int], list[int]]:
    """The axes in order of memory, their sizes, and the sizes that memory gives them."""
    levels = _levels(fact)
    order = [axis for axis, _, _ in levels]
    sizes = [size for _, size, _ in levels]
    padded = []
    for place, (_, size, _stride) in enumerate(levels):
        outer = levels[place - 1][2] if place else None
        padded.append(size if outer is None else outer // levels[place][2])
    if levels and levels[-1][2] > 1:
        padded.append(levels[-1][2])
        sizes.append(1)
    return order, sizes, padded


def is_row_major(fact: ArrayFact) -> bool:
    """Whether the elements lie in memory in row-major order without gaps."""
    expected = 1
    for size, stride in reversed(list(zip(fact.shape, fact.strides, strict=True))):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _flattened(name: str, fact: ArrayFact) -> str:
    if is_row_major(fact):
        return f"{name}.reshape(-1)" if len(fact.shape) != 1 else name
    order, sizes, padded = _steps(fact)
    text = dropped(name, fact, order)
    text = permuted(text, order)
    if len(sizes) > len(order):
        text = f"{text}[..., None]"
    if sizes != padded:
        pads = ", ".join(f"(0, {to - size})" for size, to in zip(sizes, padded, strict=True))
        text = f"jnp.pad({text}, ({pads},))"
    return f"{text}.reshape(-1)"


def _restored(text: str, fact: ArrayFact) -> str:
    if is_row_major(fact):
        return text if len(fact.shape) == 1 else f"({text}).reshape({fact.shape})"
    order, sizes, padded = _steps(fact)
    text = f"({text}).reshape({tuple(padded)})"
    if sizes != padded:
        text = f"{text}[{', '.join(f':{size}' for size in sizes)}]"
    if len(sizes) > len(order):
        text = f"{text}[..., 0]"
    inverse = [sorted(order).index(axis) for axis in order]
    back = [inverse.index(place) for place in range(len(order))]
    if back != sorted(back):
        text = f"{text}.transpose({tuple(back)})"
    return regained(text, fact, order)


def regained(text: str, fact: ArrayFact, kept: Iterable[int]) -> str:
    """The array of what `dropped` gives: an axis without a stride is the same everywhere."""
    keep = set(kept)
    if len(keep) == len(fact.shape):
        return text
    sizes = tuple(size if axis in keep else 1 for axis, size in enumerate(fact.shape))
    text = f"({text}).reshape({sizes})"
    return text if sizes == fact.shape else f"jnp.broadcast_to({text}, {fact.shape})"


def dropped(name: str, fact: ArrayFact, kept: Iterable[int]) -> str:
    """The array without the axes that do not matter, read at their first position."""
    keep = set(kept)
    index = ", ".join(":" if axis in keep else "0" for axis in range(len(fact.shape)))
    return name if len(keep) == len(fact.shape) else f"{name}[{index}]"


def permuted(text: str, order: list[int]) -> str:
    """The dimensions that are left, in that order of their axes."""
    ranked = sorted(order)
    places = tuple(ranked.index(axis) for axis in order)
    return text if list(places) == sorted(places) else f"{text}.transpose({places})"


def elements_of(fact: ArrayFact) -> int:
    """The number of elements."""
    return prod(fact.shape)
