"""Statements broken over lines where they are too long for one, as Python's formatters do it."""

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"


def laid_out(statement: str, indent: str) -> list[str]:
    """The statement in lines of at most `WIDTH` characters where its brackets allow it."""
    done: list[str] = []
    pending = [(indent, statement, "")]
    while pending:
        margin, text, after = pending.pop()
        if len(margin) + len(text) + len(after) <= WIDTH:
            done.append(f"{margin}{text}{after}")
            continue
        found = _last_bracket(text)
        if found is None:
            done.append(f"{margin}{text}{after}")
            continue
        start, end = found
        inner = margin + "    "
        parts = _parts(text[start + 1 : end])
        whole = ", ".join(parts)
        # As black has it: all on one line of their own, else each on its own with a comma.
        call = text[start] == "(" and not text[start + 1 : end].rstrip().endswith(",")
        if call and (len(parts) == 1 or len(inner) + len(whole) <= WIDTH):
            middle = [(inner, whole, "")]
        else:
            middle = [(inner, each, ",") for each in parts]
        tail = [(margin, text[end:] + after, "")]
        pending += reversed([(margin, text[: start + 1], ""), *middle, *tail])
    return done


def _last_bracket(text: str) -> tuple[int, int] | None:
    """The last pair of brackets at the outermost level that has something inside."""
    depth, start, found = 0, 0, None
    quoted = False
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPEN:
            if depth == 0:
                start = place
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth == 0 and place > start + 1:
                found = (start, place)
    return found


def _parts(text: str) -> list[str]:
    """What stands between the commas of the outermost level."""
    parts, depth, begin, quoted = [], 0, 0, False
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts
