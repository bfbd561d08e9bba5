"""What an emitted value is: an expression, and which dimensions its array really has.

All programs are computed at once. A value that differs between programs has leading dimensions
for them, its batch axes; so it has for the iterations of a loop that is not run as one. Arrays
broadcast from the right, as in NumPy: an array has no dimensions further left than it needs, and
a dimension along which it is the same everywhere has the size 1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from translators.access.expression import Variable
from translators.graph.types import (
    F32,
    F64,
    I1,
    I64,
    ElementType,
    FloatType,
    IntType,
    Number,
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BatchAxis:
    """A dimension in front of those of the tensor; compared by identity.

    Attributes:
      name: what it counts.
      extent: how many there are.
      place: how many batch axes stand between it and the tensor's dimensions.
    """

    name: str
    extent: int
    place: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tiled:
    """A coordinate of the programs of which a step of a grid computes several values at once.

    Attributes:
      step: what counts the steps along it.
      axis: the values of one step.
    """

    step: Variable
    axis: BatchAxis


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """An emitted value.

    Attributes:
      text: a name or a literal.
      element: what the array holds; `i32` where the graph has an `i64` that fits.
      shape: that of the tensor; empty for a scalar.
      dims: for each dimension of the tensor whether the array has it; size 1 where not.
      batch: the batch axes that the array has.
      number: what it is, where that is known now.
    """

    text: str
    element: ElementType
    shape: tuple[int, ...] = ()
    dims: tuple[bool, ...] = ()
    batch: frozenset[BatchAxis] = frozenset()
    number: Number | None = None

    @property
    def full(self) -> bool:
        """Whether the array has every dimension of the tensor."""
        return all(self.dims)

    @property
    def bare(self) -> bool:
        """Whether the array has no dimensions."""
        return not self.batch and not any(self.dims)

    @property
    def lead(self) -> int:
        """How many dimensions of the array stand in front of those of the tensor."""
        return 1 + max((each.place for each in self.batch), default=-1)

    @property
    def array_shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        if not self.batch:
            first = next((axis for axis, real in enumerate(self.dims) if real), len(self.dims))
            return tuple(
                size if real else 1
                for size, real in zip(self.shape[first:], self.dims[first:], strict=True)
            )
        places = {each.place: each.extent for each in self.batch}
        front = [places.get(place, 1) for place in reversed(range(self.lead))]
        sizes = zip(self.shape, self.dims, strict=True)
        return (*front, *(size if real else 1 for size, real in sizes))

    @property
    def rank(self) -> int:
        """The number of dimensions of the array."""
        return len(self.array_shape)

    def like(self, text: str, **changes: object) -> "Term":
        """Another expression, of an array with the same dimensions unless said otherwise."""
        return replace(self, text=text, number=None, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerTerm:
    """An emitted pointer, or a tensor of them.

    Attributes:
      buffer: the number of the buffer.
      offset: elements from where the buffer's argument points.
      pointee: what it is taken to point to.
      alternatives: conditions, with the pointer that it is where one holds and none before it.
    """

    buffer: int
    offset: Term
    pointee: ElementType
    alternatives: tuple[tuple[Term, "PointerTerm"], ...] = ()

    @property
    def last(self) -> "PointerTerm":
        """The pointer that it is where no condition holds."""
        return replace(self, alternatives=())

    def each(self, change: Callable[["PointerTerm"], "PointerTerm"]) -> "PointerTerm":
        """Every pointer that it may be, changed."""
        changed = tuple((condition, change(each)) for condition, each in self.alternatives)
        return replace(change(self.last), alternatives=changed)


Emitted: TypeAlias = Term | PointerTerm


def common_dims(terms: Iterable[Term]) -> tuple[bool, ...]:
    """The dimensions that an array combined of these has."""
    given = [each.dims for each in terms]
    return tuple(any(dims) for dims in zip(*given, strict=True))


def common_batch(terms: Iterable[Term]) -> frozenset[BatchAxis]:
    """The batch axes that an array combined of these has."""
    return frozenset().union(*(each.batch for each in terms))


_FLOAT_NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
}


def dtype_name(element: ElementType) -> str:
    """The name of the element type in `jax.numpy`."""
    if element == I1:
        return "bool"
    if isinstance(element, IntType):
        return f"int{element.width}"
    assert isinstance(element, FloatType)
    return _FLOAT_NAMES[element.name]


def dtype(element: ElementType) -> str:
    """The element type as an expression."""
    return f"jnp.{'bool_' if element == I1 else dtype_name(element)}"


def unsigned(element: ElementType) -> str:
    """The unsigned type of the same width, as an expression."""
    assert isinstance(element, IntType)
    return f"jnp.uint{element.width}"


def is_wide(element: ElementType) -> bool:
    """Whether JAX has the type only where 64-bit types are enabled."""
    return element in (I64, F64)


def literal(number: Number, element: ElementType) -> str:
    """A number as JAX takes it beside an array of that type."""
    import numpy as np

    if element == I1:
        return "True" if number else "False"
    if isinstance(element, IntType):
        return str(int(number))
    value = float(number)
    if value != value:
        return "jnp.nan"
    if value in (float("inf"), float("-inf")):
        return "jnp.inf" if value > 0 else "-jnp.inf"
    if element == F32:
        text = str(np.float32(value))
        return text if float(text) != int(value) or "." in text or "e" in text else f"{text}.0"
    return repr(value)


def constant(number: Number, element: ElementType, shape: tuple[int, ...] = ()) -> Term:
    """A number known now, the same in every lane; of an integer, the bits that the type holds."""
    if isinstance(element, IntType):
        number = element.wrap(int(number))
    return Term(
        text=literal(number, element),
        element=element,
        shape=shape,
        dims=(False,) * len(shape),
        number=number,
    )


def typed(term: Term) -> str:
    """The expression with its own element type where nothing beside it says which."""
    if term.number is None:
        return term.text
    if term.element == I1:
        return f"jnp.bool_({term.text})"
    return f"{dtype(term.element)}({term.text})"
