"""Writes ops into a region, with the types of their results found by their rules."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from translators.graph.errors import GraphError
from translators.graph.graph import AttributeValue, Op, Region, Value, make_op
from translators.graph.location import SourceLocation
from translators.graph.ops.catalog import OPS
from translators.graph.ops.definition import RuleError, Typing
from translators.graph.types import Number, Type


class Builder:
    """Appends to `region`; `location` is that of the ops to come."""

    def __init__(self, region: Region, location: SourceLocation | None = None) -> None:
        self.region = region
        self.location = location

    def op(
        self,
        name: str,
        *operands: Value,
        results: Sequence[Type] | None = None,
        regions: Sequence[Region] = (),
        **attributes: AttributeValue,
    ) -> Op:
        """Appends an op.

        Args:
          name: as the catalogue has it.
          operands: what it takes.
          results: types of its results, where the operands do not say.
          regions: its bodies, already written.
          attributes: by name; a dot in a name is written as two underscores.

        Raises:
          GraphError: no such op, or not with these operands.
        """
        named = {key.replace("__", "."): value for key, value in attributes.items()}
        if name not in OPS:
            raise GraphError(f"`{name}` is no op of the graph", self.location)
        typing = Typing(
            operands=tuple(each.type for each in operands),
            attributes=named,
            wanted=None if results is None else tuple(results),
        )
        for key, spec in OPS[name].attributes.items():
            if spec.required and key not in named:
                raise GraphError(f"`{name}` lacks its attribute `{key}`", self.location)
        try:
            types = OPS[name].rule(typing)
        except RuleError as error:
            raise GraphError(f"`{name}` {error}", self.location) from error
        made = make_op(
            name, operands, types, attributes=named, regions=regions, location=self.location
        )
        self.region.ops.append(made)
        return made

    def value(
        self,
        name: str,
        *operands: Value,
        results: Sequence[Type] | None = None,
        regions: Sequence[Region] = (),
        **attributes: AttributeValue,
    ) -> Value:
        """Appends an op and gives its only result."""
        return self.op(name, *operands, results=results, regions=regions, **attributes).result

    def constant(self, value: Number | tuple[Number, ...], type_: Type) -> Value:
        """Numbers known now: one for all elements, or one for each in row-major order."""
        return self.value("arith.constant", results=(type_,), value=value)

    @contextmanager
    def inside(self, region: Region) -> Iterator[None]:
        """Appends to `region` meanwhile."""
        outer, self.region = self.region, region
        try:
            yield
        finally:
            self.region = outer
