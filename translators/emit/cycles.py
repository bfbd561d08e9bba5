"""Loops that run: a nested function, called by `lax.fori_loop` or `lax.while_loop`."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from translators.emit.emission import Emission, Enter, UnsupportedError
from translators.emit.statements import every
from translators.emit.terms import (
    Emitted,
    PointerTerm,
    Term,
    constant,
    dtype,
    typed,
)
from translators.graph.graph import Op
from translators.graph.types import I1, I32, ElementType, IntType

Body: TypeAlias = Generator[Enter, list[Emitted], list[Emitted]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A loop over a counter.

    Attributes:
      first: where it begins.
      last: what it stays below.
      name: what to call it.
      unroll: how many iterations are laid out as one.
    """

    first: str
    last: str
    name: str
    unroll: int = 1


@dataclass(frozen=True, slots=True)
class WhileAny:
    """A loop that runs for as long as the last carried value holds anywhere."""


@dataclass(slots=True)
class _Carried:
    """A value that a loop carries: its dimensions grow until the body keeps them."""

    emitted: Emitted
    like: Term

    def grow(self, other: Emitted) -> bool:
        """Takes over the dimensions of what the body gives; whether there are more now."""
        if (
            isinstance(self.emitted, PointerTerm)
            and isinstance(other, PointerTerm)
            and self.emitted.buffer < 0
        ):
            self.emitted = other
        found = _offset(other)
        dims = tuple(a or b for a, b in zip(self.like.dims, found.dims, strict=True))
        batch = self.like.batch | found.batch
        element = _wider(self.like.element, found)
        before = (self.like.dims, self.like.batch, self.like.element)
        self.like = Term(text="", element=element, shape=self.like.shape, dims=dims, batch=batch)
        return before != (dims, batch, element)


def _wider(one: ElementType, other: Term) -> ElementType:
    if other.number is not None or other.element == one:
        return one
    if isinstance(one, IntType) and isinstance(other.element, IntType):
        return one if one.width >= other.element.width else other.element
    return one


def _offset(emitted: Emitted) -> Term:
    return emitted.offset if isinstance(emitted, PointerTerm) else emitted


def chosen_emitted(e: Emission, op: Op, condition: Term, yes: Emitted, no: Emitted) -> Emitted:
    """One where the condition holds, the other where not; pointers keep their array."""
    if isinstance(yes, PointerTerm) and isinstance(no, PointerTerm):
        if yes.alternatives or no.alternatives:
            raise e.refuse(op, "carries a pointer into one array or another")
        if yes.buffer != no.buffer and no.buffer >= 0:
            raise e.refuse(op, "carries a pointer from one array into another")
        offset = e.chosen(condition, yes.offset, no.offset)
        return PointerTerm(buffer=yes.buffer, offset=offset, pointee=yes.pointee)
    assert isinstance(yes, Term)
    assert isinstance(no, Term)
    return e.chosen(condition, yes, no)


def fitted(e: Emission, term: Term, to: Term) -> str:
    """The value as an array of exactly those dimensions and that element type."""
    if term.number is not None:
        term = constant(term.number, to.element, term.shape)
    elif term.element != to.element:
        term = e.bind(f"{term.text}.astype({dtype(to.element)})", term, element=to.element)
    shape = to.array_shape
    if term.number is not None:
        if not shape:
            return typed(term)
        if term.number == 0 and str(term.number)[0] != "-":
            return f"jnp.zeros({shape}, {dtype(to.element)})"
        return f"jnp.full({shape}, {term.text}, {dtype(to.element)})"
    return term.text if term.array_shape == shape else f"jnp.broadcast_to({term.text}, {shape})"


def cycle(
    e: Emission,
    initial: Sequence[Emitted],
    *,
    hints: Sequence[str],
    body: Callable[[list[Emitted], Term], Body],
    header: Counted | WhileAny,
    returns: bool,
) -> Body:
    """Emits a loop; gives the carried values after it.

    Args:
      e: the emission.
      initial: the values with which the loop is entered.
      hints: what to call them.
      body: emits the body, given the carried values and the counter; gives the next values.
      header: how often it runs.
      returns: whether a program may leave the kernel on the way.
    """
    given = [*initial, e.alive or constant(1, I1)] if returns else list(initial)
    if any(isinstance(each, PointerTerm) and each.alternatives for each in given):
        raise UnsupportedError(
            "a loop carries a pointer into one array or another", e.writer.location
        )
    names = [*hints, "alive"] if returns else list(hints)
    carried = [_Carried(each, _offset(each)) for each in given]
    for each in carried:
        each.like = each.like.like("")
    saved = e.buffers.snapshot()
    entering, iterations = (e.active, e.alive), dict(e.iterations)
    while True:
        notes = len(e.notes)
        with e.writer.trial() as attempt, e.scope():
            _, ends = yield from _once(e, carried, names, body, header, returns)
            grown = [each.grow(end) for each, end in zip(carried, ends, strict=True)]
            acts = any(each.guard for each in every(attempt))
        changed = e.buffers.changed_since(saved)
        read = [key for key, state in e.buffers.states.items() if state.read]
        e.buffers.restore(saved)
        (e.active, e.alive), e.iterations = entering, dict(iterations)
        del e.notes[notes:]
        if not any(grown):
            break
    for key in {*read, *changed}:
        e.buffers.states[key].read = True
    # Not fitted before, so that conversions stand in front of the loop.
    start = [fitted(e, _offset(each), held.like) for each, held in zip(given, carried, strict=True)]
    start += [e.buffers.states[key].name for key in changed]
    if not start and not acts:
        return []
    function = e.writer.fresh("step")
    with e.writer.nested() as statements, e.scope():
        parameters, ends = yield from _once(e, carried, names, body, header, returns, changed)
        back = [fitted(e, _offset(end), held.like) for end, held in zip(ends, carried, strict=True)]
        back += [e.buffers.states[key].name for key in changed]
    (e.active, e.alive), e.iterations = entering, dict(iterations)
    if not start:
        # What the loop does, it does to references; it has to carry something.
        start, back = ["0"], [parameters.rpartition(", ")[2]]
    e.writer.define(function, parameters, statements, _packed(back))
    hints_of = [*names, *_array_names(e, changed)] or [""]
    results = _called(e, function, header, start, hints_of)
    if not changed:
        results = results[: len(carried)]
    for key, name in zip(changed, results[len(carried) :], strict=True):
        state = e.buffers.states[key]
        state.name, state.written = name, True
    after = [
        _like(held.emitted, held.like.like(name))
        for name, held in zip(results, carried, strict=False)
    ]
    if returns:
        alive = after.pop()
        assert isinstance(alive, Term)
        e.alive = alive
    return after


def _array_names(e: Emission, keys: Sequence[int]) -> list[str]:
    return [e.buffers.states[key].fact.name for key in keys]


def _like(emitted: Emitted, term: Term) -> Emitted:
    if isinstance(emitted, PointerTerm):
        return PointerTerm(buffer=emitted.buffer, offset=term, pointee=emitted.pointee)
    return term


def _packed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _once(
    e: Emission,
    carried: Sequence[_Carried],
    names: Sequence[str],
    body: Callable[[list[Emitted], Term], Body],
    header: Counted | WhileAny,
    returns: bool,
    changed: Sequence[int] = (),
) -> Generator[Enter, list[Emitted], tuple[str, list[Emitted]]]:
    """Emits the body once; gives the function's parameters and the next values."""
    counter = Term(text="", element=I32)
    parameters = []
    if isinstance(header, Counted):
        counter = Term(text=e.writer.fresh(header.name), element=I32)
        parameters.append(counter.text)
    hints = [*names, *_array_names(e, changed)]
    if len(hints) == 1:
        own = [e.writer.fresh(hints[0] or "carry")]
        parameters.append(own[0])
    else:
        parameters.append(e.writer.fresh("carry"))
        own = list(e.writer.unpack(parameters[-1], hints)) if hints else []
    for name in own:
        e.writer.parameter(name)
    params = [
        _like(held.emitted, held.like.like(name)) for name, held in zip(own, carried, strict=False)
    ]
    for key, name in zip(changed, own[len(carried) :], strict=True):
        e.buffers.states[key].name = name
    if returns:
        alive = params.pop()
        assert isinstance(alive, Term)
        e.alive = alive
    ends = yield from body(params, counter)
    if returns:
        ends = [*ends, e.alive or constant(1, I1)]
    return ", ".join(parameters), ends


def _called(
    e: Emission, function: str, header: Counted | WhileAny, start: list[str], hints: list[str]
) -> tuple[str, ...]:
    packed = _packed(start)
    if isinstance(header, Counted):
        # Short loops are better laid out: the compiler then sees across iterations.
        unroll = f", unroll={header.unroll}" if header.unroll > 1 else ""
        text = f"lax.fori_loop({header.first}, {header.last}, {function}, {packed}{unroll})"
    else:
        goes = e.writer.fresh("goes_on")
        running = "carry" if len(start) == 1 else "carry[-1]"
        if hints and len(start) > 1:
            # Arrays that the body changes stand behind the values.
            running = f"carry[{hints.index('running')}]"
        e.writer.define(goes, "carry", [], f"jnp.any({running})")
        text = f"lax.while_loop({goes}, {function}, {packed})"
    if len(start) == 1:
        return (e.writer.assign(text, hints[0] or "t"),)
    return e.writer.unpack(text, hints)
