"""Which parameters of a kernel its text shows to be pointers, before any launch."""

import ast
from collections.abc import Iterator
from typing import Any

# Functions of `triton.language` whose first argument is an address.
_ACCESSES = ("load", "store", "atomic_", "make_block_ptr", "make_tensor_descriptor")
_ADDRESS_KEYWORDS = ("pointer", "base")


def pointer_parameters(kernel: Any) -> set[str]:
    """Parameters from which an address is made that the kernel loads from or stores to.

    An address is a pointer plus offsets. Where a kernel's text adds several of its parameters, it
    does not show which of them is the pointer, and none is taken.
    """
    (function,) = (each for each in kernel.parse().body if isinstance(each, ast.FunctionDef))
    parameters = {argument.arg for argument in function.args.args}
    assigned: dict[str, list[ast.expr]] = {}
    addresses: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.Call):
            addresses += _addresses(node)
    found = set()
    for address in addresses:
        summed = _summed_names(address, assigned) & parameters
        if len(summed) == 1:
            found |= summed
    return found


def _addresses(call: ast.Call) -> Iterator[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name.startswith(_ACCESSES):
        yield from call.args[:1]
        yield from (each.value for each in call.keywords if each.arg in _ADDRESS_KEYWORDS)


def _summed_names(address: ast.expr, assigned: dict[str, list[ast.expr]]) -> set[str]:
    """Names of which an expression, with what its variables stand for, is a sum."""
    names: set[str] = set()
    pending = [address]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            pending += [node.left, node.right]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            pending.append(node.left)
        elif isinstance(node, ast.Subscript):
            pending.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            pending.append(node.func.value)  # a conversion such as `pointer.to(...)`
        elif isinstance(node, ast.Name) and node.id not in names:
            names.add(node.id)
            pending += assigned.get(node.id, [])
    return names
