"""Ops that make tensors, or move elements without computing on them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from translators.access.expression import ProgramId, of
from translators.emit.affine import affine_term
from translators.emit.emission import Emission, Note, Rule
from translators.emit.terms import (
    PointerTerm,
    Term,
    common_batch,
    constant,
    dtype,
    literal,
)
from translators.emit.tiles import Source, turned
from translators.graph.graph import Op, integers
from translators.graph.types import IntType, shape_of


def each_part(rule: Callable[[Emission, Op, Term], Term]) -> Rule:
    """A rule for an op of one operand, which moves pointers as it moves their offsets."""

    def apply(e: Emission, op: Op) -> None:
        emitted = e.found(op.operands[0])
        if isinstance(emitted, PointerTerm):
            moved = emitted.each(lambda each: replace(each, offset=rule(e, op, each.offset)))
            conditions = (
                rule(e, op, each) if each.shape == emitted.offset.shape else each
                for each, _ in emitted.alternatives
            )
            others = (to for _, to in moved.alternatives)
            e.put(
                op.result, replace(moved, alternatives=tuple(zip(conditions, others, strict=True)))
            )
            return
        term = e.term(op.operands[0])
        if term.number is not None:
            e.put(op.result, constant(term.number, term.element, shape_of(op.result.type)))
            return
        e.put(op.result, rule(e, op, term))

    return apply


def _constant(e: Emission, op: Op) -> None:
    value = op.attributes["value"]
    element, shape = e.element(op.result), shape_of(op.result.type)
    if isinstance(value, tuple):
        if len(set(value)) == 1:
            value = value[0]
        else:
            numbers = ", ".join(literal(each, element) for each in value)
            text = f"jnp.array([{numbers}], {dtype(element)}).reshape({shape})"
            dims = tuple(size > 1 for size in shape)
            name = e.writer.assign(text, op.result.name)
            e.put(op.result, Term(text=name, element=element, shape=shape, dims=dims))
            return
    assert not isinstance(value, str | tuple)
    e.put(op.result, constant(value, element, shape))


def _poison(e: Emission, op: Op) -> None:
    element = e.element(op.result)
    zero = 0 if isinstance(element, IntType) else 0.0
    e.put(op.result, constant(zero, element, shape_of(op.result.type)))


def _range(e: Emission, op: Op) -> None:
    start, end = op.integer("start"), op.integer("end")
    if end - start == 1:
        e.put(op.result, constant(start, e.element(op.result), (1,)))
        return
    term = e.range(end - start, 0, 1)
    if start:
        term = e.bind(f"{term.text} + {start}", term, op.result.name)
    e.put(op.result, term)


def _splat(e: Emission, op: Op, term: Term) -> Term:
    return e.lifted(term, shape_of(op.result.type))


def _broadcast(e: Emission, op: Op, term: Term) -> Term:
    shape = shape_of(op.result.type)
    # A dimension of 1 is the same everywhere, and needs no text to be longer.
    dims = tuple(
        real and old == new for real, old, new in zip(term.dims, term.shape, shape, strict=True)
    )
    return Term(text=term.text, element=term.element, shape=shape, dims=dims, batch=term.batch)


def _expand(e: Emission, op: Op, term: Term) -> Term:
    axis = op.integer("axis")
    shape = shape_of(op.result.type)
    dims = (*term.dims[:axis], False, *term.dims[axis:])
    made = Term(text=term.text, element=term.element, shape=shape, dims=dims, batch=term.batch)
    behind = len(term.shape) - axis
    before = term.rank - behind
    if before <= 0:
        return made
    index = [":"] * before if before <= 3 else ["..."]
    text = ", ".join([*index, "None", *[":"] * behind])
    return made.like(e.writer.assign(e.indexed(term, text), op.result.name))


def _reshape(e: Emission, op: Op, term: Term) -> Term:
    return reshaped(e, term, shape_of(op.result.type), op.result.name)


def reshaped(e: Emission, term: Term, shape: tuple[int, ...], hint: str = "") -> Term:
    """The elements in row-major order as a tensor of another shape."""
    if term.shape == shape:
        return term
    if term.bare:
        return Term(
            text=term.text,
            element=term.element,
            shape=shape,
            dims=(False,) * len(shape),
            number=term.number,
        )
    old = [size for size in term.shape if size != 1]
    kept = [real for size, real in zip(term.shape, term.dims, strict=True) if size != 1]
    if old == [size for size in shape if size != 1]:
        rest = iter(kept)
        dims = tuple(size != 1 and next(rest) for size in shape)
        whole = term
    else:
        dims = tuple(size > 1 for size in shape)
        whole = e.spread(term)
    made = Term(text=whole.text, element=term.element, shape=shape, dims=dims, batch=term.batch)
    if made.array_shape == whole.array_shape:
        return made
    return made.like(e.writer.assign(f"{whole.text}.reshape{_tuple(made.array_shape)}", hint))


def _tuple(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _transpose(e: Emission, op: Op, term: Term) -> Term:
    order = integers(op.attributes, "order")
    shape = shape_of(op.result.type)
    dims = tuple(term.dims[axis] for axis in order)
    made = Term(text=term.text, element=term.element, shape=shape, dims=dims, batch=term.batch)
    moved = [axis for axis in order if term.dims[axis]]
    if moved == sorted(moved) and term.array_shape == made.array_shape:
        return made
    rank = len(order)
    whole = term
    lead = term.lead
    if not term.batch and term.rank < rank:
        # Dimensions that the array lacks on the left are put in before they are moved.
        missing = rank - term.rank
        whole = term.like(
            e.writer.assign(f"{term.text}[{', '.join(['None'] * missing + ['...'])}]")
        )
    elif lead:
        whole = term
    axes = (*range(lead), *(lead + axis for axis in order))
    text = f"{whole.text}.transpose{_tuple(axes)}"
    if lead == 0 and order == (1, 0):
        text = f"{whole.text}.T"
    elif order == (*range(rank - 2), rank - 1, rank - 2):
        text = f"{whole.text}.mT"
    name = e.writer.assign(text, op.result.name)
    source = e.sources.get(term.text)
    if isinstance(source, Source):
        e.sources[name] = turned(source, order)
    first = next((place for place, real in enumerate(dims) if real), rank)
    if not term.batch and first:
        index = ", ".join(["0"] * first)
        name = e.writer.assign(f"{name}[{index}]")
    return made.like(name)


def _unsplat(e: Emission, op: Op, term: Term) -> Term:
    rank = len(term.shape)
    made = Term(text=term.text, element=term.element, batch=term.batch)
    if not term.batch:
        return made
    return made.like(e.writer.assign(f"{term.text}[{', '.join(['...', *['0'] * rank])}]"))


def aligned(e: Emission, terms: list[Term]) -> tuple[list[Term], Term]:
    """The tensors with the same dimensions, all of the tensor's, and what one of them is like."""
    batch = common_batch(terms)
    whole = [e.spread(each, batch=batch) for each in e.alike(terms)]
    return whole, whole[0]


def _join(e: Emission, op: Op) -> None:
    terms = [e.term(each) for each in op.operands]
    whole, first = aligned(e, terms)
    shape = shape_of(op.result.type)
    text = f"jnp.stack([{', '.join(each.text for each in whole)}], axis=-1)"
    name = e.writer.assign(text, op.result.name)
    dims = (*first.dims, True)
    made = Term(text=name, element=first.element, shape=shape, dims=dims, batch=first.batch)
    e.put(op.result, made)


def _split(e: Emission, op: Op) -> None:
    emitted = e.found(op.operands[0])
    if isinstance(emitted, PointerTerm):
        raise e.refuse(op, "of pointers has no form in JAX yet")
    term = e.term(op.operands[0])
    for index, result in enumerate(op.results):
        shape, dims = shape_of(result.type), term.dims[:-1]
        made = Term(
            text=term.text,
            element=term.element,
            shape=shape,
            dims=dims,
            batch=term.batch,
            number=term.number,
        )
        if term.bare:
            e.put(result, made)
            continue
        if term.dims[-1]:
            name = e.writer.assign(f"{term.text}[..., {index}]", result.name)
        else:
            name = e.writer.assign(f"{term.text}[..., 0]", result.name)
        e.put(result, made.like(name))


def _concatenate(e: Emission, op: Op) -> None:
    whole, first = aligned(e, [e.term(each) for each in op.operands])
    shape = shape_of(op.result.type)
    axis = -len(shape)
    text = f"jnp.concatenate([{', '.join(each.text for each in whole)}], axis={axis})"
    e.put(op.result, first.like(e.writer.assign(text, op.result.name), shape=shape))


def _gather(e: Emission, op: Op) -> None:
    whole, first = aligned(e, [e.term(each) for each in op.operands])
    axis = op.integer("axis") - len(first.shape)
    text = f"jnp.take_along_axis({whole[0].text}, {whole[1].text}, axis={axis})"
    name = e.writer.assign(text, op.result.name)
    e.put(op.result, first.like(name, shape=shape_of(op.result.type)))


def _histogram(e: Emission, op: Op) -> None:
    shape = shape_of(op.result.type)
    values = e.spread(e.term(op.operands[0]))
    bins = e.range(shape[0], 1, 2)
    found = f"{values.text}[..., None] == {bins.text}"
    terms = [values]
    if len(op.operands) > 1:
        mask = e.spread(e.term(op.operands[1]))
        found = f"({found}) & {mask.text}[..., None]"
        terms.append(mask)
    element = e.element(op.result)
    text = f"jnp.sum({found}, axis=-2, dtype={dtype(element)})"
    name = e.writer.assign(text, op.result.name)
    made = Term(text=name, element=element, shape=shape, dims=(True,), batch=common_batch(terms))
    e.put(op.result, made)


def _program_id(e: Emission, op: Op) -> None:
    axis = op.integer("axis")
    expression = of(ProgramId(axis=axis, extent=e.analysis.launch.grid[axis]))
    if e.analysis.axes is not None:
        expression = e.analysis.axes.rewrite(expression)
    e.put(op.result, affine_term(e, expression, (), op.result.name))


def _count_of_programs(e: Emission, op: Op) -> None:
    e.put(op.result, constant(e.analysis.launch.grid[op.integer("axis")], e.element(op.result)))


def _nothing(e: Emission, op: Op) -> None:
    """Does nothing to values."""


def _left_out(e: Emission, op: Op) -> None:
    """What a kernel says to the person who debugs it is no part of what it computes."""
    line = op.location.line if op.location else 0
    e.notes.append(Note(text=f"`{op.name}` is left out", line=line))


_TABLE: dict[str, Rule] = {
    "arith.constant": _constant,
    "ub.poison": _poison,
    "tt.make_range": _range,
    "tt.splat": each_part(_splat),
    "tt.broadcast": each_part(_broadcast),
    "tt.expand_dims": each_part(_expand),
    "tt.reshape": each_part(_reshape),
    "tt.trans": each_part(_transpose),
    "tt.unsplat": each_part(_unsplat),
    "tt.join": _join,
    "tt.split": _split,
    "tt.cat": _concatenate,
    "tt.gather": _gather,
    "tt.histogram": _histogram,
    "tt.get_program_id": _program_id,
    "tt.get_num_programs": _count_of_programs,
    "tt.assert": _left_out,
    "tt.print": _left_out,
    "llvm.intr.assume": _nothing,
    "tt.grid_dependency_launch_dependents": _nothing,
    "tt.grid_dependency_wait": _nothing,
    "ttg.barrier": _nothing,
}

RULES: Mapping[str, Rule] = MappingProxyType(_TABLE)
