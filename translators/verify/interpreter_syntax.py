"""What Triton's interpreter leaves to Python, and Python means otherwise than Triton.

The interpreter runs a kernel as Python code. In Python `a or b` is `a` or `b` as a whole, `not a`
is one truth value, and a loop counts in Python integers. Triton's front end makes `logical_or`,
`logical_and` and `not` of tensors, element by element, and counts in tensors of rank 0. Here those
expressions become calls of functions that do as the front end does
(`visit_BoolOp`, `visit_UnaryOp` and `visit_For` in `triton/compiler/code_generator.py`).
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from triton.language import core
from triton.runtime import interpreter

_LOGICAL, _NOT, _COUNTED = "_triton_logical", "_triton_not", "_triton_counted"


@contextmanager
def triton_syntax() -> Iterator[None]:
    """Within it, kernels that are interpreted for the first time mean what Triton means."""
    functions = {_LOGICAL: _logical, _NOT: _not, _COUNTED: _counted}
    with ExitStack() as stack:
        # The interpreter hands its module's names to every kernel that it rewrites.
        for name, function in functions.items():
            stack.enter_context(mock.patch.object(interpreter, name, function, create=True))
        stack.enter_context(
            mock.patch.object(interpreter.FunctionRewriter, "ast_transformer", _Transformer())
        )
        yield


class _Transformer(interpreter.ASTTransformer):  # type: ignore[misc]  # triton is not followed
    """Rewrites what the interpreter's own transformer leaves as it is."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`a or b` becomes a call with both, each computed only when it is asked for."""
        kind = "logical_or" if isinstance(node.op, ast.Or) else "logical_and"
        operands = [_thunk(self.visit(value)) for value in node.values]
        return _call(node, _LOGICAL, [ast.Constant(value=kind), *operands])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not a` becomes a call."""
        self.generic_visit(node)
        return _call(node, _NOT, [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_For(self, node: ast.For) -> ast.AST:
        """`range` in a loop counts as Triton does."""
        self.generic_visit(node)
        call = node.iter
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "range"
            and not call.keywords
        ):
            node.iter = _call(call, _COUNTED, call.args)
        return node


def _thunk(value: ast.expr) -> ast.expr:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=value)


def _call(node: ast.AST, name: str, arguments: list[ast.expr]) -> ast.Call:
    function = ast.Name(id=name, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=arguments, keywords=[]), node)


def _logical(kind: str, *operands: Callable[[], Any]) -> Any:
    """`logical_or` or `logical_and` of tensors; what is known at once counts as in Python."""
    decides = kind == "logical_or"
    tensors = []
    value: Any = None
    for operand in operands:
        value = operand()
        if isinstance(value, core.tensor):
            tensors.append(value)
        elif bool(value) is decides:
            return value
    if not tensors:
        return value
    result = tensors.pop()
    while tensors:
        result = getattr(tensors.pop(), kind)(result)
    return result


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, core.tensor) else not value


def _counted(*bounds: Any) -> Iterator[Any]:
    """The counter of `range`, in the type that the bounds have together."""
    semantic = interpreter.interpreter_semantic
    tensors = [semantic.to_tensor(bound) for bound in bounds]
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = semantic.integer_promote_impl(dtype, tensor.dtype)
    for number in range(*(int(tensor) for tensor in tensors)):
        yield semantic.scalar_constant(number, dtype)
