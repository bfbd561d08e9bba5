"""The text of a function once all of it is taken down: what is needed, where, and called what."""

import ast
import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from translators.emit.layout import WIDTH, laid_out
from translators.emit.statements import NAME, Statement, every, names_in
from translators.graph.location import SourceLocation

# Longer expressions get a line of their own.
_INLINE = 72
_PRAGMA = re.compile(r"\s*#\s*(noqa|type:|fmt:|ruff:|isort:|pyright:|pylint:|mypy:).*$")
TAKEN = frozenset({*keyword.kwlist, "jax", "jnp", "lax"})


def finished(
    block: list[Statement], returns: str, stems: Mapping[str, str]
) -> tuple[list[str], frozenset[str]]:
    """The lines of a function's body, and the names that it uses without giving them.

    Args:
      block: its statements, each of which gives new names.
      returns: what the function gives.
      stems: for each name that may be changed, what it is to begin with.
    """
    drop_unused(block, set(names_in(returns)))
    _inline(block, returns, stems)
    used = names_in(returns).union(
        *(names_in(f"{each.text} {each.returns} {each.decorator}") for each in every(block))
    )
    given = {name for each in every(block) for name in each.targets}
    free = used - given
    returns = _renamed(block, returns, stems, set(used - stems.keys()))
    _mark_unused(block, returns)
    if block and block[-1].targets == (returns,) and block[-1].body is None:
        last = block.pop()
        block.append(Statement((), f"return {_neat(last.text)}", last.location, guard=True))
        returns = ""
    lines: list[str] = []
    _print(block, "    ", lines, None)
    if returns:
        lines += laid_out(f"return {_neat(returns)}", "    ")
    while lines and not lines[-1]:
        lines.pop()
    return lines, free


def drop_unused(block: list[Statement], needed: set[str]) -> None:
    """Removes the statements whose names nobody uses, from the end; what acts stays."""
    acting = _acting(block)
    pending = [(block, len(block) - 1)]
    while pending:
        current, index = pending.pop()
        if index < 0:
            continue
        statement = current[index]
        pending.append((current, index - 1))
        if not statement.guard and needed.isdisjoint(statement.targets):
            if statement.body is not None or acting.isdisjoint(names_in(statement.text)):
                del current[index]
                continue
            statement.targets, statement.guard = (), True
        if statement.body is None:
            needed |= names_in(statement.text)
        else:
            needed |= names_in(f"{statement.returns} {statement.decorator}")
            pending.append((statement.body, len(statement.body) - 1))


def _acting(block: list[Statement]) -> set[str]:
    """The nested functions inside of which something is written."""
    found: set[str] = set()
    for statement in every(block):
        if statement.body is None:
            continue
        if any(each.guard or found & names_in(each.text) for each in every(statement.body)):
            found.update(statement.targets)
    return found


def _inline(block: list[Statement], returns: str, stems: Mapping[str, str]) -> None:
    """Puts what is used once, and has no name of the person's, where it is used.

    Triton names all parts of an assignment after what is assigned: of these only the last one,
    which is used on another line, is what the person named.
    """
    counts: Counter[str] = Counter(NAME.findall(returns))
    for statement in every(block):
        text = statement.text
        if statement.body is not None:
            text = f"{statement.returns} {statement.decorator}"
        counts.update(NAME.findall(text))
    blocks = [block]
    while blocks:
        current = blocks.pop()
        known: dict[str, Statement] = {}
        dropped: set[str] = set()
        for statement in current:
            if statement.body is not None:
                blocks.append(statement.body)
                continue
            for name in sorted(names_in(statement.text) & known.keys()):
                part = known[name]
                if part.pinned or (part.named and not _belongs(part, statement, stems)):
                    continue
                merged = _replaced(statement.text, name, f"({part.text})")
                if len(merged) <= _INLINE:
                    statement.text = merged
                    dropped.add(name)
            if statement.guard:
                continue
            if len(statement.targets) == 1 and counts[statement.targets[0]] == 1:
                known[statement.targets[0]] = statement
        current[:] = [each for each in current if not dropped.intersection(each.targets)]


def _belongs(part: Statement, statement: Statement, stems: Mapping[str, str]) -> bool:
    """Whether both are parts of one assignment."""
    if part.location is None or statement.location is None or not statement.targets:
        return False
    same_line = (part.location.file, part.location.line) == (
        statement.location.file,
        statement.location.line,
    )
    names = [stems.get(each.targets[0]) for each in (part, statement)]
    return same_line and names[0] == names[1]


def _replaced(text: str, name: str, by: str) -> str:
    return re.sub(rf"(?<![\w.]){name}\b", by.replace("\\", r"\\"), text)


def _renamed(block: list[Statement], returns: str, stems: Mapping[str, str], kept: set[str]) -> str:
    """Gives names the lowest number that is free, now that most are gone; gives `returns`."""
    new: dict[str, str] = {}
    used = set(kept)

    def name_for(old: str) -> None:
        stem = stems.get(old)
        if stem is None or old in new:
            return
        name, number = stem, 0
        while name in used or name in TAKEN:
            number += 1
            name = f"{stem}_{number}"
        used.add(name)
        new[old] = name

    def put(text: str) -> str:
        return NAME.sub(lambda found: new.get(found[0], found[0]), text)

    pending = list(block)
    while pending:
        statement = pending.pop(0)
        for each in statement.targets:
            name_for(each)
        if statement.body is not None:
            # In the order of the parameters, so that the text is always the same.
            for each in NAME.findall(statement.text):
                name_for(each)
            pending[:0] = statement.body
    for statement in every(block):
        statement.targets = tuple(new.get(each, each) for each in statement.targets)
        statement.text, statement.returns = put(statement.text), put(statement.returns)
        statement.decorator = put(statement.decorator)
    return put(returns)


def _mark_unused(block: list[Statement], returns: str) -> None:
    """Lets names begin with an underscore that nobody uses, of members of a tuple."""
    used = set(names_in(returns)).union(
        *(names_in(f"{each.text} {each.returns} {each.decorator}") for each in every(block))
    )
    taken = used.union(*(each.targets for each in every(block)))
    for statement in every(block):
        if len(statement.targets) > 1:
            statement.targets = tuple(
                each if each in used or f"_{each}" in taken else f"_{each}"
                for each in statement.targets
            )


def _neat(text: str) -> str:
    """The expression without needless parentheses."""
    if not text:
        return text
    return ast.unparse(ast.parse(text, mode="eval")).replace("'", '"')


def _neat_statement(text: str) -> str:
    """The statement without needless parentheses."""
    return ast.unparse(ast.parse(text)).replace("'", '"')


def _print(
    block: list[Statement], indent: str, lines: list[str], told: SourceLocation | None
) -> None:
    stack: list[tuple[Iterator[Statement], str, Statement | None]] = [(iter(block), indent, None)]
    while stack:
        statements, indent, owner = stack[-1]
        statement = next(statements, None)
        if statement is None:
            stack.pop()
            if owner is not None:
                if owner.returns:
                    lines += laid_out(f"return {_neat(owner.returns)}", indent)
                if lines[-1]:
                    lines.append("")
            continue
        place = statement.location
        if statement.body is not None and lines and lines[-1] and not _is_header(lines[-1]):
            lines.append("")
        if (
            place is not None
            and place.text
            and (told is None or (place.file, place.line) != (told.file, told.line))
        ):
            before = f"{indent}# {place.line}: "
            lines.append(before + _short(_without_pragma(place.text), WIDTH - len(before)))
            told = place
        if statement.body is not None:
            if statement.decorator:
                lines += laid_out(f"@{_neat(statement.decorator)}", indent)
            lines += laid_out(f"def {statement.targets[0]}({statement.text}):", indent)
            stack.append((iter(statement.body), indent + "    ", statement))
            continue
        if statement.guard:
            lines += laid_out(_neat_statement(statement.text), indent)
            continue
        lines += laid_out(f"{', '.join(statement.targets)} = {_neat(statement.text)}", indent)


def _is_header(line: str) -> bool:
    """Whether a function's body begins behind a line."""
    return line.endswith("):") and not line.lstrip().startswith("#")


def _without_pragma(text: str) -> str:
    """The line without what it tells a tool, which would do so from within a comment too."""
    return _PRAGMA.sub("", text)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
