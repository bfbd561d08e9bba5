"""Statements broken over lines where they are too long for one, as Python's formatters do it."""

from collections.abc import Iterator

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"
_LAMBDA = "lambda "


def laid_out(statement: str, indent: str) -> list[str]:
    """The statement in lines of at most `WIDTH` characters where its brackets allow it."""
    done: list[str] = []
    pending = [(indent, statement, "")]
    while pending:
        margin, text, after = pending.pop()
        found = None
        if len(margin) + len(text) + len(after) > WIDTH:
            found = _to_break(text, WIDTH - len(margin))
        if found is None:
            done.append(f"{margin}{text}{after}")
            continue
        start, end = found
        inner = margin + "    "
        parts = _parts(text[start + 1 : end])
        whole = ", ".join(parts)
        # As black has it: all on one line of their own, else each on its own with a comma, as in
        # tuples and lists anyway.
        operand = _is_operand(text[:start])
        alone = len(parts) == 1 and not text[start + 1 : end].rstrip().endswith(",")
        if alone or (operand and len(inner) + len(whole) <= WIDTH):
            middle = [(inner, whole, "")]
        else:
            middle = [(inner, each, ",") for each in parts]
        tail = [(margin, text[end:], after)]
        pending += reversed([(margin, text[: start + 1], ""), *middle, *tail])
    return done


def _to_break(text: str, width: int) -> tuple[int, int] | None:
    """The first pair of brackets at the outermost level behind which the line gets too long."""
    found = None
    for start, end in _brackets(text):
        if found is not None and start >= width:
            break
        found = (start, end)
    return found


def _brackets(text: str) -> Iterator[tuple[int, int]]:
    """The pairs of brackets at the outermost level that have something inside."""
    depth, start = 0, 0
    quoted = False
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted or (place == 0 and character in _CLOSE):
            continue
        elif character in _OPEN:
            if depth == 0:
                start = place
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth == 0 and place > start + 1:
                yield start, place


def _is_operand(text: str) -> bool:
    """Whether what ends here can be indexed, so that what follows is no list."""
    return text[-1:].isalnum() or text[-1:] in ("_", *_CLOSE)


def _parts(text: str) -> list[str]:
    """What stands between the commas of the outermost level, but for those of a lambda's names."""
    parts, depth, begin = [], 0, 0
    quoted = named = False
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif depth:
            continue
        elif text.startswith(_LAMBDA, place) and not _is_operand(text[begin:place]):
            named = True
        elif character == ":":
            named = False
        elif character == "," and not named:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts
