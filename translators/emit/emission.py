"""The state of an emission: which values have been written, and where the text stands.

Ops are emitted in the order of the graph; those with regions ask for them through generators, so
that nesting costs no stack of Python's (see `drive`).
"""

from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from translators.access.analysis import Access, Analysis
from translators.access.expression import Variable
from translators.access.states import Condition, Integer
from translators.emit.buffers import Buffers
from translators.emit.narrowing import narrowed
from translators.emit.terms import (
    BatchAxis,
    Emitted,
    PointerTerm,
    Term,
    Tiled,
    common_batch,
    common_dims,
    constant,
    dtype,
    typed,
)
from translators.emit.writer import Writer
from translators.graph.errors import GraphError
from translators.graph.graph import Module, Op, Region, Value, walk
from translators.graph.types import (
    I1,
    I32,
    I64,
    ElementType,
    IntType,
    element_of,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class Enter:
    """A structured op's wish: emit `region`, give back the values that it ends with."""

    region: Region


Steps: TypeAlias = Generator[Enter, list[Emitted], Any]
Rule: TypeAlias = Callable[["Emission", Op], Steps | None]


class UnsupportedError(GraphError):
    """What cannot be written in the target faithfully."""


class RetryError(Exception):
    """A way of emitting a loop does not work out, and another is to be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a reader of the emitted function should know.

    Attributes:
      text: one sentence without a full stop.
      line: the kernel's line; 0 where it is not known.
    """

    text: str
    line: int = 0


@dataclass(slots=True)
class Emission:
    """An emission under way.

    Attributes:
      PRECISIONS: what `lax.Precision` the products of each precision of Triton's take.
      module: the kernel.
      analysis: its accesses.
      writer: the text.
      buffers: the arrays.
      rules: how each op is emitted.
      programs: for each coordinate of the programs its batch axis, or the scalar that counts it,
        or both where a step of a grid computes several of them.
      largest: how many elements an array of many iterations may have.
      iterations: the loops that are open, by number: their batch axis or counter, or both.
      active: which programs come here; all if `None`.
      alive: which programs have not returned; all if `None`.
      serial: whether programs run one after another.
      shifts: for each loop whose iterations are a batch axis, what the axes around it are inside.
      addresses: numbers that are addresses of arrays, of which is known that they are not zero.
      sources: for names of tiles that were read as they are, the `tiles.Source` of each.
      blocked: whether what is emitted computes on blocks of the arrays, a step at a time.
      returned: where the function at hand has returned on the way, and with what.
    """

    # What keeps at least the bits that Triton promises: `tf32` has 11, three passes of bf16
    # about 16.
    PRECISIONS: ClassVar[Mapping[str, str]] = {
        "tf32": "HIGH",
        "bf16x3": "HIGH",
        "ieee": "HIGHEST",
        "tf32x3": "HIGHEST",
    }

    module: Module
    analysis: Analysis
    writer: Writer
    buffers: Buffers
    rules: Mapping[str, Rule]
    programs: Mapping[Variable, BatchAxis | Term | Tiled]
    largest: int
    iterations: dict[int, BatchAxis | Term | Tiled] = field(default_factory=dict)
    active: Term | None = None
    alive: Term | None = None
    notes: list[Note] = field(default_factory=list)
    axes: list[BatchAxis] = field(default_factory=list)
    env: ChainMap[Value, Emitted] = field(default_factory=ChainMap)
    memo: ChainMap[object, Term] = field(default_factory=ChainMap)
    accesses: dict[Op, Access] = field(default_factory=dict)
    elements: Mapping[Value, ElementType] = field(default_factory=dict)
    loop_numbers: dict[Op, int] = field(default_factory=dict)
    aliases: dict[int, int] = field(default_factory=dict)
    serial: bool = False
    shifts: list[dict[BatchAxis, BatchAxis]] = field(default_factory=list)
    addresses: set[Value] = field(default_factory=set)
    sources: dict[str, object] = field(default_factory=dict)
    blocked: bool = False
    returned: list[tuple[Term, list[Emitted]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        counted = (
            each.axis if isinstance(each, Tiled) else each for each in self.programs.values()
        )
        self.axes = [each for each in counted if isinstance(each, BatchAxis)]
        self.accesses = {each.op: each for each in self.analysis.accesses}
        self.elements = narrowed(self.module, self.analysis)
        loops = (op for op in walk(self.module.kernel.body) if op.name in ("scf.for", "scf.while"))
        self.loop_numbers = {op: number for number, op in enumerate(loops)}

    # Values

    def found(self, value: Value) -> Emitted | None:
        """What a value has become, with the batch axes that are open now; `None` if nothing."""
        emitted = self.env.get(value)
        if emitted is None or not self.shifts:
            return emitted
        moved = self.moved_in(emitted)
        if moved is not emitted:
            self.env[value] = moved
        return moved

    def moved_in(self, emitted: Emitted) -> Emitted:
        """A value from outside of loops whose iterations are batch axes, as it is inside."""
        if isinstance(emitted, Term):
            return self._moved(emitted)
        others = tuple((self._moved(each), to) for each, to in emitted.alternatives)
        moved = replace(emitted, alternatives=others)
        moved = moved.each(lambda each: replace(each, offset=self._moved(each.offset)))
        return emitted if moved == emitted else moved

    def _moved(self, term: Term) -> Term:
        for shift in self.shifts:
            moves = any(old is not new for old, new in shift.items())
            if moves and term.batch and term.batch <= shift.keys():
                index = [*[":"] * term.lead, "None", *[":"] * len(term.shape)]
                batch = frozenset(shift[each] for each in term.batch)
                term = self.bind(f"{term.text}[{', '.join(index)}]", term, batch=batch)
        return term

    @contextmanager
    def axis_opened(self, name: str, extent: int, *, outside: bool) -> Iterator[BatchAxis]:
        """A new batch axis: in front of the others, or next to the tensors' dimensions.

        There the others make place for it.
        """
        first = 1 + max((each.place for each in self.axes), default=-1)
        made = BatchAxis(name=name, extent=extent, place=first if outside else 0)
        shift = {
            each: each
            if outside
            else BatchAxis(name=each.name, extent=each.extent, place=each.place + 1)
            for each in self.axes
        }
        saved = (self.axes, self.programs, self.iterations, self.active, self.alive)

        def moved(counted: BatchAxis | Term) -> BatchAxis | Term:
            return shift[counted] if isinstance(counted, BatchAxis) else counted

        def placed(counted: BatchAxis | Term | Tiled) -> BatchAxis | Term | Tiled:
            if isinstance(counted, Tiled):
                return replace(counted, axis=shift[counted.axis])
            return moved(counted)

        self.shifts.append(shift)
        self.axes = [*shift.values(), made]
        self.programs = {key: placed(each) for key, each in self.programs.items()}
        self.iterations = {key: placed(each) for key, each in self.iterations.items()}
        try:
            self.active = None if self.active is None else self._moved(self.active)
            self.alive = None if self.alive is None else self._moved(self.alive)
            yield made
        finally:
            self.shifts.pop()
            self.axes, self.programs, self.iterations, self.active, self.alive = saved

    def term(self, value: Value) -> Term:
        """An emitted value that is no pointer."""
        found = self.found(value)
        if found is None:
            if value in self.addresses:
                raise UnsupportedError(
                    "the address of an array is computed with, which arrays in JAX do not have",
                    self.writer.location,
                )
            found = self.env[value] = self._known(value)
        if isinstance(found, PointerTerm):
            raise UnsupportedError(
                "pointers are put together here, which has no form in JAX yet",
                self.writer.location,
            )
        return found

    def pointer(self, value: Value, op: Op) -> PointerTerm:
        """An emitted pointer.

        Raises:
          UnsupportedError: it is not known into which array it leads.
        """
        found = self.found(value)
        if not isinstance(found, PointerTerm):
            raise UnsupportedError(
                f"`{op.name}`: it is not known which array the pointer leads into", op.location
            )
        return found

    def _known(self, value: Value) -> Term:
        number = self.number(value)
        assert number is not None, value
        return constant(number, self.element(value), shape_of(value.type))

    def number(self, value: Value) -> int | None:
        """The integer that a value is in every lane, where the analysis knows it."""
        match self.analysis.states.get(value):
            case Integer(expression=expression, assumptions=()):
                return expression.value
            case Condition(assumptions=()) as condition:
                return 1 if condition.always else 0 if condition.never else None
        return None

    def element(self, value: Value) -> ElementType:
        """What the array of a value holds."""
        found = self.elements.get(value) or element_of(value.type)
        assert found is not None
        return found

    def put(self, value: Value, emitted: Emitted) -> None:
        """Takes down what a value has become."""
        self.env[value] = emitted

    def give(self, op: Op, text: str, operands: Sequence[Term], *, result: int = 0) -> Term:
        """A result that is computed element by element from `operands`."""
        value = op.results[result]
        shape = shape_of(value.type)
        shaped = [each for each in operands if len(each.shape) == len(shape)]
        made = Term(
            text=self.writer.assign(text, value.name),
            element=self.element(value),
            shape=shape,
            dims=common_dims(shaped) if shaped else (False,) * len(shape),
            batch=common_batch(operands),
        )
        self.put(value, made)
        return made

    def bind(self, text: str, like: Term, hint: str = "", **changes: object) -> Term:
        """A new name for an expression whose array has the dimensions of `like`."""
        return like.like(self.writer.assign(text, hint), **changes)

    def as_element(self, term: Term, element: ElementType) -> Term:
        """An integer as another type of integers."""
        if term.element == element:
            return term
        if term.number is not None:
            assert isinstance(element, IntType)
            return constant(element.wrap(int(term.number)), element, term.shape)
        return self.bind(f"{term.text}.astype({dtype(element)})", term, element=element)

    def alike(self, terms: Sequence[Term], element: ElementType | None = None) -> list[Term]:
        """Integers of one type, of which some were emitted as narrower ones.

        Args:
          terms: what the graph takes to be of one type.
          element: which type; the widest of theirs if not given.
        """
        if element is None:
            wide = any(each.element == I64 for each in terms)
            element = I64 if wide else I32
        return [
            self.as_element(each, element) if each.element in (I32, I64) else each for each in terms
        ]

    # Shapes

    def spread(self, term: Term, *, batch: Iterable[BatchAxis] = (), full: bool = True) -> Term:
        """The value with all dimensions of its tensor, and with those batch axes."""
        wanted = Term(
            text=term.text,
            element=term.element,
            shape=term.shape,
            dims=tuple(full or real for real in term.dims),
            batch=term.batch | frozenset(batch),
        )
        shape = wanted.array_shape
        if shape == term.array_shape and term.number is None:
            return term
        if term.number is not None:
            if term.number == 0 and str(term.number)[0] != "-":
                return self.bind(f"jnp.zeros({shape}, {dtype(term.element)})", wanted)
            return self.bind(f"jnp.full({shape}, {term.text}, {dtype(term.element)})", wanted)
        return self.bind(f"jnp.broadcast_to({term.text}, {shape})", wanted)

    def lifted(self, term: Term, shape: tuple[int, ...]) -> Term:
        """A scalar as a tensor of that shape, the same in every lane."""
        if term.shape == shape:
            return term
        assert not term.shape
        dims = (False,) * len(shape)
        if not term.batch:
            return Term(
                text=term.text, element=term.element, shape=shape, dims=dims, number=term.number
            )
        index = ", ".join(["..."] + ["None"] * len(shape))
        return self.bind(self.indexed(term, index), term, shape=shape, dims=dims)

    def indexed(self, term: Term, index: str) -> str:
        """The array of a value, indexed."""
        return f"{term.text}[{index}]"

    def function(self, name: str) -> str:
        """The name of a function of JAX, or of one in the file that does the same."""
        return name

    def product_helper(self, op: Op) -> str:
        """The function that multiplies matrices in the place of JAX's; empty if there is none."""
        return ""

    def range(self, extent: int, axis: int, rank: int) -> Term:
        """The positions along an axis of a tensor of that rank."""
        shape = tuple(extent if each == axis else 1 for each in range(rank))
        key = ("range", extent, rank - axis)
        if key not in self.memo:
            index = ", ".join([":"] + ["None"] * (rank - axis - 1))
            text = f"jnp.arange({extent}, dtype=jnp.int32)"
            if rank - axis > 1:
                text = f"{text}[{index}]"
            self.memo[key] = Term(
                text=self.writer.assign(text),
                element=I32,
                shape=shape,
                dims=tuple(each == axis for each in range(rank)),
            )
        found = self.memo[key]
        return Term(
            text=found.text,
            element=I32,
            shape=shape,
            dims=tuple(each == axis for each in range(rank)),
        )

    def counted(self, axis: BatchAxis | Term | Tiled) -> Term:
        """A coordinate of the programs or an iteration as a scalar."""
        if isinstance(axis, Term):
            return axis
        if isinstance(axis, Tiled):
            step, inside = self.programs[axis.step], self.counted(axis.axis)
            assert isinstance(step, Term)
            return self.bind(f"{step.text} * {axis.axis.extent} + {inside.text}", inside)
        key = ("counted", axis)
        if key not in self.memo:
            index = ", ".join([":"] + ["None"] * axis.place)
            text = f"jnp.arange({axis.extent}, dtype=jnp.int32)"
            if axis.place:
                text = f"{text}[{index}]"
            name = self.writer.assign(text, axis.name)
            self.memo[key] = Term(text=name, element=I32, batch=frozenset((axis,)))
        return self.memo[key]

    # Conditions

    def both(self, first: Term | None, second: Term | None) -> Term | None:
        """Where both hold; `None` is everywhere."""
        if first is None or first.number == 1:
            return None if second is not None and second.number == 1 else second
        if second is None or second.number == 1:
            return first
        shape = first.shape or second.shape
        one, other = self.lifted(first, shape), self.lifted(second, shape)
        if 0 in (one.number, other.number):
            return constant(0, I1, shape)
        return Term(
            text=self.writer.assign(f"{one.text} & {other.text}"),
            element=I1,
            shape=shape,
            dims=common_dims((one, other)),
            batch=one.batch | other.batch,
        )

    def either(self, first: Term, second: Term) -> Term:
        """Where one of two scalar conditions holds."""
        if 1 in (first.number, second.number):
            return constant(1, I1)
        if first.number == 0:
            return second
        if second.number == 0:
            return first
        return Term(
            text=self.writer.assign(f"{first.text} | {second.text}"),
            element=I1,
            batch=first.batch | second.batch,
        )

    def negated(self, condition: Term) -> Term:
        """Where it does not hold."""
        if condition.number is not None:
            return constant(1 - int(condition.number), I1, condition.shape)
        return self.bind(f"~{condition.text}", condition)

    def chosen(self, condition: Term, yes: Term, no: Term, hint: str = "") -> Term:
        """One where the condition holds, the other where not."""
        if condition.number is not None:
            return yes if condition.number else no
        if yes == no:
            return yes
        shape = yes.shape or no.shape or condition.shape
        parts = [self.lifted(each, shape) for each in (condition, yes, no)]
        first = typed(parts[1]) if parts[2].number is not None else parts[1].text
        text = f"jnp.where({parts[0].text}, {first}, {parts[2].text})"
        return Term(
            text=self.writer.assign(text, hint),
            element=yes.element if yes.number is None else no.element,
            shape=shape,
            dims=common_dims(parts),
            batch=common_batch(parts),
        )

    def chosen_pointer(
        self, condition: Term, yes: PointerTerm, no: PointerTerm, hint: str = ""
    ) -> PointerTerm:
        """One pointer where the condition holds, the other where not."""
        if condition.number is not None:
            return yes if condition.number else no
        single = not (yes.alternatives or no.alternatives)
        if single and yes.buffer == no.buffer:
            offset = self.chosen(condition, yes.offset, no.offset, hint)
            return PointerTerm(buffer=yes.buffer, offset=offset, pointee=yes.pointee)
        first = [(self.both(condition, each) or condition, to) for each, to in yes.alternatives]
        others = (*first, (condition, yes.last), *no.alternatives)
        return replace(no, alternatives=others)

    def come_here(self) -> Term | None:
        """Which programs come to the op at hand and have not returned."""
        return self.both(self.active, self.alive)

    # Control

    @contextmanager
    def only_where(self, condition: Term) -> Iterator[None]:
        """Emits for the programs for which the condition holds."""
        outer = self.active
        self.active = self.both(outer, condition)
        try:
            yield
        finally:
            self.active = outer

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are forgotten at the end."""
        env, memo = self.env, self.memo
        self.env, self.memo = env.new_child(), memo.new_child()
        try:
            yield
        finally:
            self.env, self.memo = env, memo

    def refuse(self, op: Op, clause: str) -> UnsupportedError:
        """The error that says why an op cannot be emitted."""
        return UnsupportedError(f"`{op.name}` {clause}", op.location)

    def integer_type(self, value: Value) -> IntType:
        """The element type of a value of integers."""
        element = self.element(value)
        assert isinstance(element, IntType)
        return element
