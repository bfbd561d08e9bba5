"""Triton IR as text -> op graph.

jaxlib's MLIR parses the text; every op becomes the op of the same name in the graph. What the
graph does not know is refused at the kernel's line. Branches of early returns become `scf.if`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlo_tools.errors import InputError
from translators.graph.builder import Builder
from translators.graph.errors import GraphError
from translators.graph.graph import (
    Attributes,
    AttributeValue,
    Function,
    Module,
    Op,
    Region,
    Value,
    make_module,
    make_op,
    make_region,
)
from translators.graph.location import SourceLocation
from translators.graph.ops.assembly import is_one_instruction
from translators.graph.ops.catalog import OPS
from translators.graph.types import I1, Type
from translators.triton.assembly import assembly
from translators.triton.branches import meeting_block, only_returns, reachable
from translators.triton.mlir_text import plain_name, readable
from translators.triton.mlir_values import (
    UnknownAttributeError,
    UnknownTypeError,
    attribute_of,
    constant_of,
    location_of,
    type_of,
)
from translators.triton.scaled_products import Factor, scaled_product

# Attributes that say how a GPU should run an op, or what the author knows of its operands, and
# never what it computes.
_HINTS = frozenset(
    {
        "cache",
        "evict",
        "efficient_layout",
        "fastmath",
        "maxNumImpreciseAcc",
        "noinline",
        "overflowFlags",
        "tt.constancy",
        "tt.contiguity",
        "tt.disallow_acc_multi_buffer",
        "tt.divisibility",
        "tt.flatten",
        "tt.loop_unroll_factor",
        "tt.num_stages",
        "tt.pointer_range",
        "tt.self_latency",
        "tt.warp_specialize",
    }
)
# Where the optional operands of an op lie among its groups of operands. Only the trailing ones of
# an op may be absent, as the graph tells them apart by their number.
_SEGMENTS = "operandSegmentSizes"
_SCALED_PRODUCT = "tt.dot_scaled"
_ASSEMBLY, _ASM = "tt.elementwise_inline_asm", "asm_string"


class TtirError(GraphError):
    """Triton IR that cannot become a graph, at the kernel's line."""


def read_ttir(text: str, path: str | None = None) -> Module:
    """The op graph of a module of Triton IR.

    Args:
      text: the Triton IR.
      path: the file that it stands in, which is where ops without a location are.

    Raises:
      TtirError: an op, attribute, type or control flow is not supported; at the kernel's line.
      InputError: the text is no Triton IR that jaxlib's MLIR can parse.
    """
    from jaxlib.mlir import ir
    from jaxlib.triton import dialect

    context = ir.Context()
    dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    with context:
        try:
            parsed = ir.Module.parse(readable(text))
        except ir.MLIRError as error:
            raise InputError(f"the Triton IR cannot be parsed: {_first_line(error)}") from error
        functions = [_Reader(path=path).function(each.operation) for each in parsed.body.operations]
        entries = [
            _text(each.operation, "sym_name")
            for each in parsed.body.operations
            if _text(each.operation, "sym_visibility") != "private"
        ]
    if len(entries) != 1:
        raise InputError(f"the Triton IR has {len(entries)} public functions, not one kernel")
    return make_module(functions, entries[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Blocks to be read into a region, up to the block where the region's side rejoins.

    Attributes:
      block: where to begin.
      region: what to fill.
      until: the block at which to yield its arguments; `None` to go on to a terminator.
    """

    block: Any
    region: Region
    until: Any | None = None


@dataclass(slots=True)
class _Reader:
    """Reads one function; regions still to be filled wait on a stack."""

    path: str | None
    values: dict[Any, Value] = field(default_factory=dict)
    pending: list[_Work] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)

    def function(self, source: Any) -> Function:
        """The function of a `tt.func`."""
        location = self._location(source)
        if source.name != "tt.func":
            raise TtirError(f"`{source.name}` outside a function is not supported", location)
        blocks = list(source.regions[0].blocks)
        if not blocks:
            raise TtirError(f"`{_text(source, 'sym_name')}` has no body", location)
        body = self._region(blocks[0], location)
        self.pending.append(_Work(block=blocks[0], region=body))
        while self.pending:
            self._fill(self.pending.pop())
        results = source.attributes["function_type"].value.results
        return Function(
            name=_text(source, "sym_name"),
            body=body,
            result_types=_types(results, location),
            hints=_argument_hints(source),
            location=location,
        )

    def _location(self, source: Any) -> SourceLocation | None:
        return location_of(str(source.location), self.path)[0]

    def _region(self, block: Any, location: SourceLocation | None) -> Region:
        """An empty region with the arguments of a block, known from now on."""
        names = [_name(argument) for argument in block.arguments]
        types = _types((argument.type for argument in block.arguments), location)
        region = make_region(types, names)
        self.values.update(zip(block.arguments, region.arguments, strict=True))
        return region

    def _fill(self, work: _Work) -> None:
        """Reads a block and those that it goes on to."""
        block, region = work.block, work.region
        while True:
            if block in self.seen and not only_returns(block):
                raise TtirError(
                    "control flow that is no early return is not supported",
                    self._location(next(iter(block.operations))),
                )
            self.seen.add(block)
            operations = [each.operation for each in block.operations]
            last = operations[-1]
            branches = last.name in ("cf.br", "cf.cond_br")
            for source in operations[:-1] if branches else operations:
                if source.name == _SCALED_PRODUCT:
                    self._scaled_product(source, region)
                elif source.name == _ASSEMBLY and not is_one_instruction(_text(source, _ASM)):
                    self._assembly(source, region)
                else:
                    region.ops.append(self._op(source))
            if not branches:
                return
            onward = (
                self._jump(last, region, work.until)
                if last.name == "cf.br"
                else self._fork(last, region, work.until)
            )
            if onward is None:
                return
            block = onward

    def _jump(self, source: Any, region: Region, until: Any | None) -> Any | None:
        (target,) = source.successors
        passed = [self.values[each] for each in source.operands]
        return self._go_on(target, passed, region, until, self._location(source))

    def _go_on(
        self,
        target: Any,
        passed: Sequence[Value],
        region: Region,
        until: Any | None,
        location: SourceLocation | None,
    ) -> Any | None:
        """The block to go on at; `None` where this side rejoins the other, and yields."""
        if until is not None and target == until:
            region.ops.append(make_op("scf.yield", passed, location=location))
            return None
        self.values.update(zip(target.arguments, passed, strict=True))
        return target

    def _fork(self, source: Any, region: Region, until: Any | None) -> Any | None:
        """Appends the `scf.if` of a conditional branch; gives the block to go on at, if any."""
        location = self._location(source)
        first, second = source.successors
        _, count, _ = source.attributes[_SEGMENTS]
        condition = self.values[source.operands[0]]
        passed = [self.values[each] for each in list(source.operands)[1:]]
        sides = [(first, passed[:count]), (second, passed[count:])]
        meeting = meeting_block(first, second)
        if meeting is None:
            return self._leave(sides, condition, region, until, location)
        regions = [self._side(target, values, meeting, location) for target, values in sides]
        types = _types((each.type for each in meeting.arguments), location)
        names = [_name(each) for each in meeting.arguments]
        joined = make_op(
            "scf.if", [condition], types, regions=regions, location=location, result_names=names
        )
        region.ops.append(joined)
        return self._go_on(meeting, joined.results, region, until, location)

    def _side(
        self, target: Any, passed: list[Value], until: Any | None, location: SourceLocation | None
    ) -> Region:
        region = make_region()
        if until is not None and target == until:
            region.ops.append(make_op("scf.yield", passed, location=location))
            return region
        self.values.update(zip(target.arguments, passed, strict=True))
        if only_returns(target):  # shared with other sides, which pass other values to it
            region.ops.extend(self._op(each.operation) for each in target.operations)
        else:
            self.pending.append(_Work(block=target, region=region, until=until))
        return region

    def _leave(
        self,
        sides: list[tuple[Any, list[Value]]],
        condition: Value,
        region: Region,
        until: Any | None,
        location: SourceLocation | None,
    ) -> Any | None:
        """One side returns for good: it goes into an `scf.if`, the other one goes on."""
        (first, _), (second, _) = sides
        first_goes_on = (
            until in reachable(first)
            if until is not None
            else len(reachable(first)) > len(reachable(second))
        )
        if first_goes_on:
            negated = make_op(
                "arith.constant", (), [I1], attributes={"value": 1}, location=location
            )
            flipped = make_op("arith.xori", [condition, negated.result], [I1], location=location)
            region.ops.extend([negated, flipped])
            condition = flipped.result
            sides = sides[::-1]
        (leaving, passed), (onward, handed) = sides
        side = self._side(leaving, passed, None, location)
        region.ops.append(make_op("scf.if", [condition], regions=[side], location=location))
        return self._go_on(onward, handed, region, until, location)

    def _op(self, source: Any) -> Op:
        """The op of the same name, its regions waiting to be filled."""
        name = plain_name(source.name)
        location, hint = location_of(str(source.location), self.path)
        if name not in OPS:
            raise TtirError(f"`{name}` is not supported: {_line_of(location)}", location)
        regions = [
            (self._region(inner.blocks[0], location), inner.blocks[0])
            for inner in source.regions
            if len(inner.blocks)
        ]
        types = _types((result.type for result in source.results), location)
        try:
            attributes = _attributes(name, source)
        except UnknownAttributeError as error:
            raise TtirError(f"`{name}`: {error}: {_line_of(location)}", location) from error
        op = make_op(
            name,
            [self.values[operand] for operand in source.operands],
            types,
            attributes=attributes,
            regions=[region for region, _ in regions],
            location=location,
            result_names=[hint] * len(types),
        )
        self.values.update(zip(source.results, op.results, strict=True))
        self.pending.extend(_Work(block=block, region=region) for region, block in regions)
        return op

    def _assembly(self, source: Any, region: Region) -> None:
        """Assembly of several instructions, as what it stands for."""
        location = self._location(source)
        packed = int(source.attributes["packed_element"].value)
        if packed != 1:
            raise TtirError(
                f"`{_ASSEMBLY}` of {packed} elements at a time is not supported: "
                f"{_line_of(location)}",
                location,
            )
        values = assembly(
            Builder(region, location),
            _text(source, _ASM),
            _text(source, "constraints"),
            [self.values[each] for each in source.operands],
            _types((result.type for result in source.results), location),
        )
        self.values.update(zip(source.results, values, strict=True))

    def _scaled_product(self, source: Any, region: Region) -> None:
        """`tt.dot_scaled`, as what it stands for."""
        location = self._location(source)
        given = iter([self.values[each] for each in source.operands])
        present = list(source.attributes[_SEGMENTS])
        left, right, addend, left_scale, right_scale = (
            next(given) if count else None for count in present
        )
        assert left is not None
        assert right is not None
        assert addend is not None
        stated = {
            key: attribute_of(_SCALED_PRODUCT, key, source.attributes[key])
            for key in ("a_elem_type", "b_elem_type", "fastMath", "lhs_k_pack", "rhs_k_pack")
            if key in source.attributes
        }
        self.values[source.results[0]] = scaled_product(
            Builder(region, location),
            Factor(
                elements=left,
                scale=left_scale,
                format=str(stated["a_elem_type"]),
                summed=1,
                packed=1 if stated.get("lhs_k_pack", True) else 0,
            ),
            Factor(
                elements=right,
                scale=right_scale,
                format=str(stated["b_elem_type"]),
                summed=0,
                packed=0 if stated.get("rhs_k_pack", True) else 1,
            ),
            addend,
            fast=bool(stated.get("fastMath")),
        )


def _types(types: Iterable[Any], location: SourceLocation | None) -> tuple[Type, ...]:
    try:
        return tuple(type_of(str(each)) for each in types)
    except UnknownTypeError as error:
        raise TtirError(f"{error}: {_line_of(location)}", location) from error


def _name(value: Any) -> str:
    """The variable that an argument of a block stands for, where MLIR knows it."""
    _, name = location_of(str(value.location))
    return name


def _attributes(name: str, source: Any) -> Attributes:
    """The attributes that the graph's op has.

    Raises:
      UnknownAttributeError: one that may change what the op computes has no place in the graph.
    """
    if name == "arith.constant":
        type_ = type_of(str(source.results[0].type))
        return {"value": constant_of(type_, source.attributes["value"])}
    known = OPS[name].attributes
    found: dict[str, AttributeValue] = {}
    for key in source.attributes:
        attribute = source.attributes[key]
        if key == _SEGMENTS and key not in known:
            _check_segments(list(attribute))
            continue
        if key.partition("_arg")[0] in _HINTS:
            continue  # on a loop, `tt.divisibility_arg1` is a hint about its argument 1
        value = attribute_of(name, key, attribute)
        if key in known and value is not None:
            found[key] = value
        elif key not in known and value not in (None, False):
            raise UnknownAttributeError(f"the attribute `{key}` = `{attribute}` is not supported")
    return found


def _check_segments(sizes: list[int]) -> None:
    """Refuses an op that lacks an optional operand before one that it has."""
    absent = [index for index, size in enumerate(sizes) if size == 0]
    if absent and any(sizes[absent[0] :]):
        raise UnknownAttributeError("it lacks an operand before one that it has")


def _argument_hints(source: Any) -> tuple[Attributes, ...]:
    if "arg_attrs" not in source.attributes:
        return ()
    return tuple(
        {
            each.name: int(each.attr.value)
            for each in argument
            if hasattr(each.attr, "value") and isinstance(each.attr.value, int)
        }
        for argument in source.attributes["arg_attrs"]
    )


def _text(source: Any, attribute: str) -> str:
    return str(source.attributes[attribute].value) if attribute in source.attributes else ""


def _line_of(location: SourceLocation | None) -> str:
    return f"`{location.text}`" if location is not None and location.text else "no source line"


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[1] if len(lines) > 1 else lines[0]
