"""Writes kernels as op graphs, with broadcasting where Triton's front end would put it."""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from translators.access.launch import Buffer, Specialization
from translators.graph.builder import Builder
from translators.graph.graph import Function, Module, Value, make_module, make_region
from translators.graph.location import SourceLocation
from translators.graph.types import (
    F32,
    I1,
    I32,
    IntType,
    PointerType,
    TensorType,
    Type,
    element_of,
    shape_of,
    shaped,
    with_element,
)

Term = Value | int
F32_POINTER = PointerType(F32)
I32_POINTER = PointerType(I32)
FILE = "kernel.py"


class Kernel:
    """A kernel in the making; each call of `at` starts a new source line."""

    def __init__(self, **arguments: Type) -> None:
        self.region = make_region(tuple(arguments.values()), tuple(arguments))
        self.arguments = dict(zip(arguments, self.region.arguments, strict=True))
        self.builder = Builder(self.region)
        self.line = 0
        self.at("def kernel():")

    def at(self, text: str) -> int:
        """Starts a source line and gives its number."""
        self.line += 1
        self.builder.location = SourceLocation(file=FILE, line=self.line, text=text)
        return self.line

    def __getitem__(self, name: str) -> Value:
        return self.arguments[name]

    def pid(self, axis: int = 0) -> Value:
        return self.builder.value("tt.get_program_id", axis=axis)

    def programs(self, axis: int = 0) -> Value:
        return self.builder.value("tt.get_num_programs", axis=axis)

    def arange(self, end: int, start: int = 0) -> Value:
        type_ = TensorType((end - start,), I32)
        return self.builder.value("tt.make_range", results=(type_,), start=start, end=end)

    def number(self, value: int, type_: Type = I32) -> Value:
        return self.builder.constant(value, type_)

    def expand(self, value: Value, axis: int) -> Value:
        return self.builder.value("tt.expand_dims", value, axis=axis)

    def reshape(self, value: Value, *shape: int) -> Value:
        type_ = TensorType(shape, element_of(value.type))
        return self.builder.value("tt.reshape", value, results=(type_,))

    def trans(self, value: Value, *order: int) -> Value:
        return self.builder.value("tt.trans", value, order=order)

    def to(self, value: Value, shape: tuple[int, ...]) -> Value:
        """The value splat or broadcast to a shape."""
        if shape_of(value.type) == shape:
            return value
        type_ = shaped(shape, element_of(value.type))
        name = "tt.broadcast" if shape_of(value.type) else "tt.splat"
        return self.builder.value(name, value, results=(type_,))

    def together(self, left: Term, right: Term) -> tuple[Value, Value]:
        if isinstance(left, int):
            left = self.number(left, element_of(right.type))
        if isinstance(right, int):
            like = element_of(left.type)
            right = self.number(right, like if isinstance(like, IntType) else I32)
        one, other = shape_of(left.type), shape_of(right.type)
        if one and other:
            shape = tuple(max(pair) for pair in zip(one, other, strict=True))
        else:
            shape = one or other
        return self.to(left, shape), self.to(right, shape)

    def binary(self, name: str, left: Term, right: Term, **attributes: str) -> Value:
        return self.builder.value(name, *self.together(left, right), **attributes)

    def add(self, left: Term, right: Term) -> Value:
        return self.binary("arith.addi", left, right)

    def sub(self, left: Term, right: Term) -> Value:
        return self.binary("arith.subi", left, right)

    def mul(self, left: Term, right: Term) -> Value:
        return self.binary("arith.muli", left, right)

    def div(self, left: Term, right: Term) -> Value:
        return self.binary("arith.divsi", left, right)

    def rem(self, left: Term, right: Term) -> Value:
        return self.binary("arith.remsi", left, right)

    def minimum(self, left: Term, right: Term) -> Value:
        return self.binary("arith.minsi", left, right)

    def less(self, left: Term, right: Term, predicate: str = "slt") -> Value:
        return self.binary("arith.cmpi", left, right, predicate=predicate)

    def together_condition(self, condition: Value, value: Value) -> tuple[Value, Value]:
        """A condition and an integer, broadcast to one shape."""
        shapes = [shape for shape in (shape_of(condition.type), shape_of(value.type)) if shape]
        shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
        return self.to(condition, shape), self.to(value, shape)

    def both(self, left: Value, right: Value) -> Value:
        return self.binary("arith.andi", left, right)

    def widen(self, value: Value, type_: IntType) -> Value:
        return self.builder.value("arith.extsi", value, results=(with_element(value.type, type_),))

    def point(self, pointer: Value, offset: Term) -> Value:
        return self.binary("tt.addptr", pointer, offset)

    def load(self, pointer: Value, mask: Value | None = None) -> Value:
        operands = [pointer]
        if mask is not None:
            operands.append(self.to(mask, shape_of(pointer.type)))
        pointee = element_of(pointer.type)
        assert isinstance(pointee, PointerType)
        type_ = with_element(pointer.type, pointee.pointee)
        return self.builder.value("tt.load", *operands, results=(type_,))

    def store(self, pointer: Value, value: Value | None = None, mask: Value | None = None) -> None:
        pointee = element_of(pointer.type)
        assert isinstance(pointee, PointerType)
        if value is None:
            one = 1 if isinstance(pointee.pointee, IntType) else 1.0
            value = self.builder.constant(one, with_element(pointer.type, pointee.pointee))
        operands = [pointer, value]
        if mask is not None:
            operands.append(self.to(mask, shape_of(pointer.type)))
        self.builder.op("tt.store", *operands)

    def loop(
        self,
        lower: Term,
        upper: Term,
        step: Term,
        initial: Sequence[Value],
        body: Callable[[Value, tuple[Value, ...]], Sequence[Value]],
    ) -> tuple[Value, ...]:
        bounds = [
            each if isinstance(each, Value) else self.number(each) for each in (lower, upper, step)
        ]
        region = make_region((bounds[0].type, *(each.type for each in initial)))
        with self.builder.inside(region):
            yielded = body(region.arguments[0], region.arguments[1:])
            self.builder.op("scf.yield", *yielded)
        return self.builder.op("scf.for", *bounds, *initial, regions=(region,)).results

    def fold(
        self,
        name: str,
        values: Sequence[Value],
        axis: int,
        body: Callable[[tuple[Value, ...]], Sequence[Value]],
    ) -> tuple[Value, ...]:
        """A `tt.reduce` or `tt.scan`; `body` combines the elements of two places."""
        elements = [element_of(each.type) for each in values]
        region = make_region([*elements, *elements])
        with self.builder.inside(region):
            self.builder.op(f"{name}.return", *body(region.arguments))
        shape = shape_of(values[0].type)
        kept = shape if name == "tt.scan" else (*shape[:axis], *shape[axis + 1 :])
        types = [shaped(kept, each) for each in elements]
        attributes = {"reverse": False} if name == "tt.scan" else {}
        return self.builder.op(
            name, *values, results=types, regions=(region,), axis=axis, **attributes
        ).results

    def repeat(
        self,
        initial: Sequence[Value],
        test: Callable[[tuple[Value, ...]], tuple[Value, Sequence[Value]]],
        body: Callable[[tuple[Value, ...]], Sequence[Value]],
    ) -> tuple[Value, ...]:
        """A `scf.while`; `test` gives whether to go on, and what is handed on."""
        before = make_region(tuple(each.type for each in initial))
        with self.builder.inside(before):
            condition, handed = test(before.arguments)
            self.builder.op("scf.condition", condition, *handed)
        after = make_region(tuple(each.type for each in handed))
        with self.builder.inside(after):
            self.builder.op("scf.yield", *body(after.arguments))
        types = [each.type for each in handed]
        return self.builder.op(
            "scf.while", *initial, results=types, regions=(before, after)
        ).results

    def choose(
        self,
        condition: Value,
        held: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> tuple[Value, ...]:
        """A `scf.if` with results."""
        regions = []
        for write in (held, otherwise):
            region = make_region()
            with self.builder.inside(region):
                given = write()
                self.builder.op("scf.yield", *given)
            regions.append(region)
        types = [each.type for each in given]
        return self.builder.op("scf.if", condition, results=types, regions=regions).results

    def branch(
        self,
        condition: Value,
        body: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
        ends: str = "scf.yield",
    ) -> None:
        regions = []
        for write, end in ((body, ends), (otherwise, "scf.yield")):
            if write is None:
                continue
            region = make_region()
            with self.builder.inside(region):
                write()
                self.builder.op(end)
            regions.append(region)
        self.builder.op("scf.if", condition, results=(), regions=regions)

    def done(self) -> Module:
        self.builder.op("tt.return")
        return make_module([Function(name="kernel", body=self.region)])


def contiguous(*shape: int) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


def array(name: str, *shape: int, strides: tuple[int, ...] | None = None) -> Buffer:
    return Buffer(
        name=name, shape=shape, strides=contiguous(*shape) if strides is None else strides
    )


def launch(
    module: Module,
    *grid: int,
    scalars: dict[str, int] | None = None,
    **buffers: Buffer,
) -> Specialization:
    """A launch whose arguments are given by name."""
    index = {each.name: number for number, each in enumerate(module.kernel.arguments)}
    return Specialization(
        grid=(*grid, *(1 for _ in range(3 - len(grid)))),
        buffers=MappingProxyType({index[name]: each for name, each in buffers.items()}),
        scalars=MappingProxyType({index[name]: each for name, each in (scalars or {}).items()}),
    )


__all__ = ["F32", "F32_POINTER", "I1", "I32_POINTER", "Kernel", "array", "launch"]
