"""Checks that a module is legal, so that whoever takes a graph can rely on it."""

from collections.abc import Iterator
from dataclasses import dataclass

from translators.graph.errors import GraphError
from translators.graph.graph import Function, Module, Op, Region, Value, walk
from translators.graph.location import SourceLocation
from translators.graph.ops.catalog import OPS
from translators.graph.ops.definition import HINTS, OpDefinition, RuleError, Typing
from translators.graph.ops.refused import READ_AS, REFUSED
from translators.graph.types import TensorType, Type

# A return may leave these on its way out of a function, but not a combination of elements.
_LEFT_BY_RETURN = frozenset({"scf.for", "scf.if", "scf.while"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One broken rule.

    Attributes:
      message: one plain sentence that names the op.
      location: the kernel's line, where known.
    """

    message: str
    location: SourceLocation | None


def verify(module: Module) -> None:
    """Raises `GraphError` for the first broken rule, in the order of the text."""
    for problem in problems(module):
        raise GraphError(problem.message, problem.location)


def problems(module: Module) -> Iterator[Problem]:
    """Every broken rule of a module, in the order of the text."""
    if module.entry not in module.functions:
        yield Problem(message=f"no function is named `{module.entry}`", location=None)
        return
    for name, function in module.functions.items():
        yield from _function_problems(module, name, function)
    yield from _recursion(module)


def _function_problems(module: Module, name: str, function: Function) -> Iterator[Problem]:
    def problem(message: str) -> Problem:
        return Problem(message=f"function `{name}` {message}", location=function.location)

    if function.name != name:
        yield problem(f"calls itself `{function.name}`")
    if name == module.entry:
        if function.result_types:
            yield problem("is a kernel and gives results")
        for argument in function.arguments:
            if isinstance(argument.type, TensorType):
                yield problem(f"is a kernel and takes a tensor, `{argument.type}`")
    if len(function.hints) not in (0, len(function.arguments)):
        yield problem("has hints for some of its arguments only")
    for message in _end_problems(function.body, ("tt.return",)):
        yield problem(message)
    yield from _scope_problems(function)
    for op in walk(function.body):
        for message in _op_problems(module, function, op):
            yield Problem(message=f"`{op.name}` {message}", location=op.location)


@dataclass(slots=True)
class _Scope:
    """A region while it is being read.

    Attributes:
      ops: those still to come.
      defined: values that are visible until the region ends.
      op: whose region it is; `None` for a function's body.
      following: the regions of that op still to come.
      returns: whether `tt.return` may end a region here.
    """

    ops: Iterator[Op]
    defined: list[Value]
    op: Op | None
    following: Iterator[Region]
    returns: bool


def _scope_problems(function: Function) -> Iterator[Problem]:
    """Values used where they are not visible, ops and regions that occur twice."""
    visible: set[Value] = set(function.arguments)
    seen: set[Op | Region] = {function.body}
    scopes = [_Scope(iter(function.body.ops), [], None, iter(()), returns=True)]
    while scopes:
        scope = scopes[-1]
        op = next(scope.ops, None)
        if op is not None:
            yield from _place_problems(op, scope, visible, seen)
            returns = scope.returns and op.name in _LEFT_BY_RETURN
            scopes.append(_Scope(iter(()), [], op, iter(op.regions), returns))
            continue
        visible.difference_update(scope.defined)
        scopes.pop()
        region = next(scope.following, None)
        if region is not None:
            visible.update(region.arguments)
            scope.ops, scope.defined = iter(region.ops), list(region.arguments)
            scopes.append(scope)
        elif scope.op is not None:
            visible.update(scope.op.results)
            scopes[-1].defined.extend(scope.op.results)


def _place_problems(
    op: Op, scope: _Scope, visible: set[Value], seen: set[Op | Region]
) -> Iterator[Problem]:
    if op in seen:
        yield Problem(message=f"`{op.name}` occurs twice", location=op.location)
    seen.add(op)
    for index, operand in enumerate(op.operands):
        if operand not in visible:
            yield Problem(
                message=f"`{op.name}` takes a value as operand {index} that is not visible there",
                location=op.location,
            )
    if op.name == "tt.return" and not scope.returns:
        yield Problem(
            message="`tt.return` cannot leave a combination of elements", location=op.location
        )
    for region in op.regions:
        if region in seen:
            yield Problem(
                message=f"`{op.name}` has a region that occurs twice", location=op.location
            )
        seen.add(region)


def _op_problems(module: Module, function: Function, op: Op) -> Iterator[str]:
    definition = OPS.get(op.name)
    if definition is None:
        if op.name in READ_AS:
            yield f"has no place in a graph: {READ_AS[op.name]}"
        else:
            yield f"is refused: {REFUSED.get(op.name, 'it is no op of the graph')}"
        return
    bad = [*_attribute_problems(op, definition), *_region_problems(op, definition)]
    yield from bad
    if bad:
        return
    yield from _type_problems(op, definition)
    yield from definition.check(op)
    if op.name == "tt.return":
        given = tuple(each.type for each in op.operands)
        if given != function.result_types:
            yield f"gives {_spell(given)} where the function gives {_spell(function.result_types)}"
    if op.name == "tt.call":
        yield from _call_problems(module, op)


def _spell(types: tuple[Type, ...]) -> str:
    return "(" + ", ".join(f"`{each}`" for each in types) + ")"


def _attribute_problems(op: Op, definition: OpDefinition) -> Iterator[str]:
    for key, value in op.attributes.items():
        spec = definition.attributes.get(key, HINTS.get(key))
        if spec is None:
            yield f"has an attribute `{key}` that it cannot have"
            continue
        problem = spec.problem(value)
        if problem is not None:
            yield f"has an attribute `{key}` that {problem}"
    for key, spec in definition.attributes.items():
        if spec.required and key not in op.attributes:
            yield f"lacks its attribute `{key}`"


def _region_problems(op: Op, definition: OpDefinition) -> Iterator[str]:
    if len(op.regions) not in definition.regions:
        wanted = " or ".join(map(str, definition.regions))
        yield f"has {len(op.regions)} regions instead of {wanted}"
    for region in op.regions:
        yield from _end_problems(region, definition.ends)


def _end_problems(region: Region, ends: tuple[str, ...]) -> Iterator[str]:
    if not region.ops:
        yield "has a region without ops"
        return
    if region.terminator.name not in ends:
        yield f"has a region that ends in `{region.terminator.name}`"
    for inner in region.ops[:-1]:
        if inner.name in OPS and OPS[inner.name].terminator:
            yield f"has a region with `{inner.name}` before its end"


def _type_problems(op: Op, definition: OpDefinition) -> Iterator[str]:
    found = tuple(each.type for each in op.results)
    typing = Typing(
        operands=tuple(each.type for each in op.operands), attributes=op.attributes, wanted=found
    )
    try:
        wanted = definition.rule(typing)
    except RuleError as error:
        yield str(error)
        return
    if wanted != found:
        yield f"gives {_spell(wanted)}, but its results are {_spell(found)}"


def _call_problems(module: Module, op: Op) -> Iterator[str]:
    callee = module.functions.get(str(op.attributes["callee"]))
    if callee is None:
        yield f"calls `{op.attributes['callee']}`, which the module lacks"
        return
    given = tuple(each.type for each in op.operands)
    wanted = tuple(each.type for each in callee.arguments)
    if given != wanted:
        yield f"calls `{callee.name}` with {_spell(given)}, which takes {_spell(wanted)}"
    found = tuple(each.type for each in op.results)
    if found != callee.result_types:
        yield (
            f"has results {_spell(found)}, but `{callee.name}` gives {_spell(callee.result_types)}"
        )


def _recursion(module: Module) -> Iterator[Problem]:
    """Calls that lead back into a function that is being called."""
    calls: dict[str, list[Op]] = {
        name: [op for op in walk(function.body) if op.name == "tt.call"]
        for name, function in module.functions.items()
    }
    done: set[str] = set()
    for start in calls:
        path = [start]
        pending = [iter(calls[start])]
        while pending:
            op = next(pending[-1], None)
            if op is None:
                pending.pop()
                done.add(path.pop())
                continue
            callee = str(op.attributes.get("callee"))
            if callee in path:
                yield Problem(
                    message=f"`tt.call` of `{callee}` leads back into itself", location=op.location
                )
            elif callee in calls and callee not in done:
                path.append(callee)
                pending.append(iter(calls[callee]))
