"""Statements broken over lines where they are too long for one, as Python's formatters do it."""

import re
from collections.abc import Iterator

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"
_LAMBDA = "lambda "
_STEP = "    "
# From the loosest on.
_OPERATORS = (
    *((" or ",), (" and ",), (" == ", " != ", " < ", " <= ", " > ", " >= "), (" | ",), (" ^ ",)),
    *((" & ",), (" << ", " >> "), (" + ", " - "), (" * ", " / ", " // ", " % ", " @ ")),
)
_KEYWORD = re.compile(r"\w+=")
_ASSIGNED = re.compile(r"return (?=.)|[\w, ]+ = ")


def laid_out(statement: str, indent: str) -> list[str]:
    """The statement in lines of at most `WIDTH` characters where its brackets allow it."""
    done: list[str] = []
    pending = [*reversed(_parenthesized(statement, indent))]
    while pending:
        margin, text, after = pending.pop()
        found = None
        if len(margin) + len(text) + len(after) > WIDTH:
            found = _to_break(text, WIDTH - len(margin))
        if found is None:
            done.append(f"{margin}{text}{after}")
            continue
        start, end = found
        inner = margin + _STEP
        parts = _parts(text[start + 1 : end])
        whole = ", ".join(parts)
        # As black has it: all on one line of their own, else each on its own with a comma, as in
        # tuples and lists anyway.
        operand = _is_operand(text[:start])
        middle: list[tuple[str, str, str]] = []
        if len(parts) == 1 and not text[start + 1 : end].rstrip().endswith(","):
            middle = _terms(whole, inner, "")
        elif operand and len(inner) + len(whole) <= WIDTH:
            middle = [(inner, whole, "")]
        else:
            for part in parts:
                middle += _terms(part, inner, ",")
        tail = [(margin, text[end:], after)]
        pending += reversed([(margin, text[: start + 1], ""), *middle, *tail])
    return done


def _parenthesized(statement: str, indent: str) -> list[tuple[str, str, str]]:
    """The statement, with what it assigns or returns in parentheses where that reads better."""
    assigned = _ASSIGNED.match(statement)
    if len(indent) + len(statement) <= WIDTH or assigned is None:
        return [(indent, statement, "")]
    value = statement[assigned.end() :]
    operands, count = _split(value)
    several = count > 1 or (
        count == 1 and not any(each.endswith(")") for each in (operands[0], operands[-1]))
    )
    if not several and (count or _links(value) < 2 or len(indent) + 4 + len(value) > WIDTH):
        return [(indent, statement, "")]
    inner = _terms(value, indent + _STEP, "")
    return [(indent, f"{assigned[0]}(", ""), *inner, (indent, ")", "")]


def _terms(text: str, margin: str, after: str) -> list[tuple[str, str, str]]:
    """An expression inside of brackets: an operand a line where one line is too short for all."""
    operands, count = _split(text)
    if len(margin) + len(text) + len(after) <= WIDTH or not count or _KEYWORD.match(text):
        return [(margin, text, after)]
    lines = [(margin, each, "") for each in operands]
    return [*lines[:-1], (margin, operands[-1], after)]


def _split(text: str) -> tuple[list[str], int]:
    """The operands of the loosest operators, each behind its operator, and how many those are."""
    outside = _outside(text)
    if outside.startswith(_LAMBDA):
        return [text], 0
    for operators in _OPERATORS:
        places = sorted(
            found.start() for each in operators for found in re.finditer(re.escape(each), outside)
        )
        if places:
            ends = [*places, len(text)]
            starts = [0, *(each + 1 for each in places)]
            return [text[a:b] for a, b in zip(starts, ends, strict=True)], len(places)
    return [text], 0


def _links(text: str) -> int:
    """How many attributes of calls and of elements there are at the outermost level."""
    return len(re.findall(r"[)\]]\.", _outside(text)))


def _outside(text: str) -> str:
    """The text with what is inside of brackets and quotes blotted out."""
    found = list(text)
    depth, quoted = 0, False
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            found[place] = "_"
        elif character in _CLOSE:
            depth -= 1
        if depth and not quoted:
            found[place] = "_"
        if not quoted and character in _OPEN:
            depth += 1
    return "".join(found)


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
    """Whether what ends here can be called or indexed, so that what follows is no list."""
    return text[-1:].isalnum() or text[-1:] in ("_", *_CLOSE)


def _parts(text: str) -> list[str]:
    """What stands between the commas of the outermost level, but for those of a lambda's names."""
    outside = _outside(text)
    parts, begin, named = [], 0, False
    for place, character in enumerate(outside):
        if outside.startswith(_LAMBDA, place) and not _is_operand(outside[begin:place]):
            named = True
        elif character == ":":
            named = False
        elif character == "," and not named:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts
