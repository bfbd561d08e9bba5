"""The text of an emitted function with its numbers taken out.

Two emissions of a kernel that differ in sizes alone have one template, and each its numbers.
"""

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from translators.emit.general.formula import Factor, Formula
from translators.emit.jax import JaxFunction
from translators.emit.layout import laid_out

Number: TypeAlias = int | float

_PALLAS = "from jax.experimental import pallas as pl"
_LIMITED, _LIMIT = "pltpu.CompilerParams", "vmem_limit_bytes"
_SLOT = "number "  # no name of Python's
_INDENT = "    "


class TemplateError(Exception):
    """An emitted text has a form that templates do not; the message is a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the body.

    Attributes:
      depth: how many functions and conditions it is inside of.
      text: a comment, or empty for a blank line.
      node: the statement, without its body, if it is one.
    """

    depth: int
    text: str = ""
    node: ast.stmt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An emitted function without its numbers.

    Attributes:
      head: the lines of the file in front of the function.
      header: the function's `def`, in one line.
      arguments: the names of its array parameters.
      docstring: the function's.
      key: equal for functions that differ in numbers alone.
      numbers: the numbers, in the order of the text.
      names: every name that the text uses.
      limit: how much vector memory a kernel in Pallas is to have, as an expression; empty where
        that of the compiler is enough. It is no part of `key` and `numbers`.
      lines: the body, with slots in the place of the numbers.
    """

    head: str
    header: str
    arguments: tuple[str, ...]
    docstring: str
    key: tuple[str, ...]
    numbers: tuple[Number, ...]
    names: frozenset[str]
    limit: str
    lines: tuple[Line, ...]

    @property
    def is_pallas(self) -> bool:
        """Whether the text imports Pallas, under the name `pl`."""
        return _PALLAS in self.head.splitlines()

    def body(
        self, written: Sequence[Formula | Number], names: Mapping[Factor, str]
    ) -> Iterator[str]:
        """The lines of the body with formulas and literals in the place of the numbers.

        Args:
          written: one for each number.
          names: the variable that holds each factor of the formulas.
        """
        put = _Put(
            [_expression(each, names) for each in written],
            [_opposite(each, names) for each in written],
            self.limit,
        )
        for line in self.lines:
            indent = _INDENT * line.depth
            if line.node is None:
                yield f"{indent}{line.text}".rstrip()
                continue
            filled = ast.fix_missing_locations(put.visit(copy.deepcopy(line.node)))
            for text in _headers(filled):
                yield from laid_out(text, indent)


def template_of(function: JaxFunction) -> Template:
    """Takes an emitted function apart.

    Raises:
      TemplateError: it has statements of another kind than functions that are emitted have.
    """
    source = function.source
    module = ast.parse(source)
    found = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name == function.name
    ]
    if len(found) != 1 or not found[0].body:
        raise TemplateError(f"there is not one function `{function.name}`")
    (node,) = found
    statements = list(node.body)
    start = node.body[0].lineno
    docstring = ast.get_docstring(node, clean=False) or ""
    while statements and (_is_docstring(statements[0]) or _is_shape_check(statements[0])):
        start = (statements[0].end_lineno or start) + 1
        del statements[0]
    numbers: list[Number] = []
    take = _Take(numbers)
    lines = _lines(source, start, statements, take)
    head = "\n".join(source.splitlines()[: node.lineno - 1])
    return Template(
        head=head,
        header=f"def {node.name}({ast.unparse(node.args)}):",
        arguments=tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args)),
        docstring=docstring,
        key=(head, ast.dump(node.args), *map(_key, lines)),
        numbers=tuple(numbers),
        names=frozenset(_names(module)),
        limit=take.limit,
        lines=lines,
    )


def _is_docstring(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _is_shape_check(node: ast.stmt) -> bool:
    """Whether a statement is one of those by which a function refuses other shapes."""
    match node:
        case ast.If(
            test=ast.Compare(left=ast.Attribute(attr="shape")), body=[ast.Raise()], orelse=[]
        ):
            return True
    return False


def _lines(
    source: str, start: int, statements: Sequence[ast.stmt], take: "_Take"
) -> tuple[Line, ...]:
    """The statements and what stands between them, in order; takes their numbers."""
    if not statements:
        return ()
    end = statements[-1].end_lineno or start
    found: dict[int, Line] = {}
    covered: set[int] = set()
    stack = [(each, 1) for each in reversed(statements)]
    while stack:
        node, depth = stack.pop()
        inside: list[ast.stmt] = []
        first, last = node.lineno, node.end_lineno or node.lineno
        match node:
            case ast.FunctionDef(body=inside) | ast.If(body=inside, orelse=[]):
                node.body = []
                last = _first(inside[0]) - 1
                first = _first(node)
            case ast.Assign() | ast.Return() | ast.Expr() | ast.Raise():
                pass
            case _:
                raise TemplateError(f"has a statement of the kind `{type(node).__name__}`")
        covered.update(range(first, last + 1))
        found[first] = Line(depth=depth, node=take.visit(node))
        stack += [(each, depth + 1) for each in reversed(inside)]
    # Between statements there are comments and blank lines alone.
    for number, text in enumerate(source.splitlines(), start=1):
        stripped = text.strip()
        if start <= number <= end and (
            number not in covered or (number not in found and stripped.startswith("#"))
        ):
            depth = (len(text) - len(text.lstrip())) // len(_INDENT)
            found[number] = Line(depth=depth, text=stripped)
    return tuple(line for _, line in sorted(found.items()))


def _first(node: ast.stmt) -> int:
    """The line on which a statement begins, with what decorates it."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
    return min((each.lineno for each in decorators), default=node.lineno)


def _key(line: Line) -> str:
    return line.text if line.node is None else f"{line.depth} {ast.dump(line.node)}"


def _names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name


class _Take(ast.NodeTransformer):
    """Puts a slot in the place of each number; subtracting one becomes adding its opposite."""

    def __init__(self, numbers: list[Number]) -> None:
        self._numbers = numbers
        self.limit = ""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A number becomes a slot."""
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return node
        self._numbers.append(value)
        kind = type(value).__name__
        return ast.Name(id=f"{_SLOT}{kind} {len(self._numbers) - 1}", ctx=ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A limit of vector memory is taken out."""
        for each in [*node.keywords]:
            if each.arg == _LIMIT:
                self.limit = ast.unparse(each.value)
                node.keywords.remove(each)
        self.generic_visit(node)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """A number with a sign is one number."""
        operand: ast.expr = self.visit(node.operand)
        place = _slot(operand)
        if place is None or not isinstance(node.op, ast.USub):
            return ast.UnaryOp(op=node.op, operand=operand)
        self._numbers[place] = -self._numbers[place]
        return operand

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A difference from an integer is a sum."""
        left, op, right = self.visit(node.left), node.op, self.visit(node.right)
        place = _slot(right)
        if isinstance(op, ast.Sub) and place is not None and isinstance(self._numbers[place], int):
            self._numbers[place] = -self._numbers[place]
            op = ast.Add()
        return ast.BinOp(left=left, op=op, right=right)


class _Put(ast.NodeTransformer):
    """Puts expressions in the place of slots."""

    def __init__(
        self, written: Sequence[ast.expr], opposites: Sequence[ast.expr | None], limit: str
    ) -> None:
        self._written = written
        self._opposites = opposites
        self._limit = limit

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A limit of vector memory is put in."""
        self.generic_visit(node)
        if self._limit and ast.unparse(node.func) == _LIMITED:
            value = ast.parse(self._limit, mode="eval").body
            node.keywords.append(ast.keyword(arg=_LIMIT, value=value))
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A slot becomes its expression; a formula in the place of a float is made one."""
        place = _slot(node)
        if place is None:
            return node
        written = self._written[place]
        if node.id.startswith(f"{_SLOT}float") and not isinstance(
            written, ast.Constant | ast.UnaryOp
        ):
            return ast.Call(func=ast.Name(id="float", ctx=ast.Load()), args=[written], keywords=[])
        return written

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Adding what is negative is subtracting."""
        place = _slot(node.right) if isinstance(node.op, ast.Add) else None
        opposite = None if place is None else self._opposites[place]
        if opposite is None:
            return ast.BinOp(left=self.visit(node.left), op=node.op, right=self.visit(node.right))
        return ast.BinOp(left=self.visit(node.left), op=ast.Sub(), right=opposite)


def _slot(node: ast.AST) -> int | None:
    """Which number an expression stands for."""
    match node:
        case ast.Name(id=name) if name.startswith(_SLOT):
            return int(name.rpartition(" ")[2])
    return None


def _expression(written: Formula | Number, names: Mapping[Factor, str]) -> ast.expr:
    text = written.text(names) if isinstance(written, Formula) else repr(written)
    return ast.parse(text, mode="eval").body


def _opposite(written: Formula | Number, names: Mapping[Factor, str]) -> ast.expr | None:
    """The expression with the other sign where that has no sign at all."""
    if isinstance(written, Formula):
        numbers = [*(each for _, each in written.terms), written.offset]
        negative = max(numbers) <= 0 and min(numbers) < 0
        return _expression(written.negated(), names) if negative else None
    return _expression(-written, names) if isinstance(written, int) and written < 0 else None


def _headers(node: ast.stmt) -> Iterator[str]:
    """A statement without its body, as formatters write it, what decorates it in front."""
    match node:
        case ast.FunctionDef(name=name, args=arguments, decorator_list=decorators):
            texts = [*(f"@{ast.unparse(each)}" for each in decorators)]
            texts.append(f"def {name}({ast.unparse(arguments)}):")
        case ast.If(test=test):
            texts = [f"if {ast.unparse(test)}:"]
        case _:
            texts = [ast.unparse(node)]
    return (each.replace("'", '"') for each in texts)
