"""Typed SSA with structured control flow: values, ops, regions, functions, modules.

Identity is the identity of the object: two values are the same only if they are one. An op is
not changed once made; a region grows at its end while it is being built.

The ops carry the names that Triton IR gives them (`tt.load`, `arith.addi`, `scf.for`), and their
operands stand in the same order. `ops/catalog.py` says what each one takes and means. What
differs from Triton IR:

- Optional operands are trailing: `tt.load(pointer[, mask[, other]])`,
  `tt.store(pointer, value[, mask])`, `tt.atomic_rmw(pointer, value[, mask])`,
  `tt.histogram(source[, mask])`.
- `arith.constant` holds Python numbers in `value`: one for a scalar or a splat, else a tuple in
  row-major order. Integers are signed, `i1` is 0 or 1 (`IntType.wrap`).
- Enumerations are their keyword in MLIR text: `predicate="slt"`, `inputPrecision="tf32"`.
- There are no branches between blocks. An early return is a `tt.return` that ends a region of
  `scf.if`, at any depth of `scf.if`, `scf.for` and `scf.while`: it leaves the whole function.
- A region always ends in its terminator; `scf.if` has two regions, or one where it has no result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from translators.graph.location import SourceLocation
from translators.graph.types import Number, Type

AttributeValue: TypeAlias = Number | str | tuple[Number, ...]
Attributes: TypeAlias = Mapping[str, AttributeValue]

NO_ATTRIBUTES: Attributes = MappingProxyType({})


def integer(attributes: Attributes, key: str) -> int:
    """An attribute that is known to hold an integer."""
    value = attributes[key]
    assert isinstance(value, int)
    return value


def integers(attributes: Attributes, key: str) -> tuple[int, ...]:
    """An attribute that is known to hold integers."""
    value = attributes[key]
    assert isinstance(value, tuple)
    return tuple(int(each) for each in value)


@dataclass(eq=False, slots=True)
class Value:
    """What an op gives or a region is entered with.

    Attributes:
      type: its type.
      name: the variable's name in the kernel, where known; a hint, not unique.
      owner: the op that gives it or the region that it is an argument of.
      index: which result or argument it is.
    """

    type: Type
    name: str = ""
    owner: "Op | Region | None" = field(default=None, repr=False)
    index: int = 0


@dataclass(eq=False, slots=True)
class Op:
    """One operation; made by `make_op`, which makes its results too.

    Attributes:
      name: which op of the catalogue this is.
      operands: what it takes.
      results: what it gives.
      attributes: facts known while translating.
      regions: bodies that it runs.
      location: the kernel's line.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Attributes
    regions: "tuple[Region, ...]"
    location: SourceLocation | None

    @property
    def result(self) -> Value:
        """The only result."""
        (only,) = self.results
        return only

    def text(self, key: str, default: str = "") -> str:
        """The attribute `key` of a verified op, which holds text."""
        return str(self.attributes.get(key, default))

    def integer(self, key: str) -> int:
        """The attribute `key` of a verified op, which holds an integer."""
        return integer(self.attributes, key)

    def flag(self, key: str) -> bool:
        """The attribute `key` of a verified op, which says yes or no; no where it is absent."""
        return bool(self.attributes.get(key, False))


@dataclass(eq=False, slots=True)
class Region:
    """Ops in the order in which they run, with the values that the region is entered with."""

    arguments: tuple[Value, ...] = ()
    ops: list[Op] = field(default_factory=list)

    @property
    def terminator(self) -> Op:
        """The last op; a verified region always has one."""
        return self.ops[-1]


@dataclass(eq=False, slots=True, kw_only=True)
class Function:
    """A kernel, or a function that kernels call.

    Attributes:
      name: unique in the module.
      body: its arguments, of pointer, scalar or descriptor type in a kernel, are the function's.
      result_types: what `tt.return` takes; a kernel gives nothing.
      hints: for each argument what the front end says of it, such as `tt.divisibility`; may be
        empty. Hints never change what the function means.
      location: where it is defined.
    """

    name: str
    body: Region
    result_types: tuple[Type, ...] = ()
    hints: tuple[Attributes, ...] = ()
    location: SourceLocation | None = None

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The values that the function is called with."""
        return self.body.arguments


@dataclass(eq=False, slots=True, kw_only=True)
class Module:
    """A kernel with the functions that it calls.

    Attributes:
      functions: by name, in the order given.
      entry: the name of the kernel.
    """

    functions: Mapping[str, Function]
    entry: str

    @property
    def kernel(self) -> Function:
        """The function that a launch runs."""
        return self.functions[self.entry]


def make_module(functions: Iterable[Function], entry: str | None = None) -> Module:
    """A module of `functions`; the first one is the kernel unless `entry` names another."""
    by_name = {function.name: function for function in functions}
    return Module(functions=by_name, entry=entry or next(iter(by_name)))


def make_op(
    name: str,
    operands: Sequence[Value] = (),
    result_types: Sequence[Type] = (),
    *,
    attributes: Attributes = NO_ATTRIBUTES,
    regions: Sequence[Region] = (),
    location: SourceLocation | None = None,
    result_names: Sequence[str] = (),
) -> Op:
    """An op with fresh results; nothing is checked here (`verifier.py` does)."""
    names = [*result_names, *[""] * (len(result_types) - len(result_names))]
    results = tuple(
        Value(type_, hint, None, index)
        for index, (type_, hint) in enumerate(zip(result_types, names, strict=True))
    )
    op = Op(
        name,
        tuple(operands),
        results,
        MappingProxyType(dict(attributes)),
        tuple(regions),
        location,
    )
    for result in results:
        result.owner = op
    return op


def make_region(types: Sequence[Type] = (), names: Sequence[str] = ()) -> Region:
    """A region with fresh arguments and no ops yet."""
    hints = [*names, *[""] * (len(types) - len(names))]
    region = Region(
        tuple(
            Value(type_, hint, None, index)
            for index, (type_, hint) in enumerate(zip(types, hints, strict=True))
        )
    )
    for argument in region.arguments:
        argument.owner = region
    return region


def walk(region: Region) -> Iterator[Op]:
    """Every op inside, an op before those in its regions, in the order of the text."""
    pending = [iter(region.ops)]
    while pending:
        op = next(pending[-1], None)
        if op is None:
            pending.pop()
            continue
        yield op
        pending.extend(iter(inner.ops) for inner in reversed(op.regions))


def users(region: Region) -> dict[Value, list[tuple[Op, int]]]:
    """For every value used inside, the ops that take it and at which operand."""
    found: dict[Value, list[tuple[Op, int]]] = {}
    for op in walk(region):
        for index, operand in enumerate(op.operands):
            found.setdefault(operand, []).append((op, index))
    return found
