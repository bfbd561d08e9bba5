"""Functions of an emitted file under other names."""

import ast

_SCOPES = (
    *(ast.FunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def renamed(source: str, old: str, new: str) -> str:
    """The file with a function of its top level under another name, wherever it is used.

    Args:
      source: a Python file.
      old: the function's name. Functions that have a variable of that name mean that one.
      new: a name that the file does not use.
    """
    places: list[tuple[int, int]] = []
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while pending:
        node, own = pending.pop()
        if isinstance(node, ast.Name) and node.id == old and not own:
            places.append((node.lineno, node.col_offset))
        if isinstance(node, ast.FunctionDef) and node.name == old and not own:
            places.append((node.lineno, node.col_offset + len("def ")))
        if isinstance(node, _SCOPES):
            own = own or old in _variables(node)
        pending += [(child, own) for child in ast.iter_child_nodes(node)]
    lines = source.encode().split(b"\n")
    for number, column in sorted(places, reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:column] + new.encode() + line[column + len(old.encode()) :]
    return b"\n".join(lines).decode()


def _variables(scope: ast.AST) -> set[str]:
    """The parameters of a function, and what it assigns to, or what a comprehension does."""
    found: set[str] = set()
    pending = [*ast.iter_child_nodes(scope)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
    return found
